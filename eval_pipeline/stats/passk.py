"""pass@k and pass^k without the bias of the plug-in forms ``1-(1-p)^k`` and ``p^k``."""

from __future__ import annotations

from collections.abc import Iterable
from math import comb


def _checked(n: int, c: int, k: int) -> None:
    if not 1 <= k <= n:
        raise ValueError(f"k is {k} with {n} attempts: k must be from 1 to the number of attempts")
    if not 0 <= c <= n:
        raise ValueError(f"{c} right attempts of {n}")


def pass_at_k(n: int, c: int, k: int) -> float:
    """The chance that at least one of ``k`` attempts is right, from ``c`` right ones of ``n``.

    ``1 - C(n-c, k) / C(n, k)`` (Chen et al. 2021, arXiv 2107.03374).

    Raises:
        ValueError: k > n, which has no unbiased estimate; the usual code returns 1.0 there.
    """
    _checked(n, c, k)
    return 1 - comb(n - c, k) / comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """The chance that all of ``k`` attempts are right: ``C(c, k) / C(n, k)`` (tau-bench, arXiv 2406.12045).

    Raises:
        ValueError: k > n.
    """
    _checked(n, c, k)
    return comb(c, k) / comb(n, k)


def mean_pass_at_k(tasks: Iterable[tuple[int, int]], k: int) -> float | None:
    """The mean of pass@k over tasks given as (n, c); tasks with fewer than ``k`` attempts are left out."""
    values = [pass_at_k(n, c, k) for n, c in tasks if n >= k]
    return sum(values) / len(values) if values else None


def mean_pass_hat_k(tasks: Iterable[tuple[int, int]], k: int) -> float | None:
    """The mean of pass^k over tasks given as (n, c); tasks with fewer than ``k`` attempts are left out."""
    values = [pass_hat_k(n, c, k) for n, c in tasks if n >= k]
    return sum(values) / len(values) if values else None
