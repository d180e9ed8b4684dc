"""Pairing two groups one to one so that the sum of the pairs' weights is the largest possible.

What a weight means belongs to the caller.
"""

from __future__ import annotations

from collections.abc import Sequence


def best_pairs(weights: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """Pairs of row and column of ``weights`` (not negative, rows of one length) in the order of the rows.

    Every row and every column is in at most one pair, the sum of weights is the largest there is, and pairs of weight 0
    are left out.
    """
    rows = [row for row, values in enumerate(weights) if any(values)]
    if not rows:
        return []
    columns = [column for column in range(len(weights[0])) if any(weights[row][column] for row in rows)]
    if len(rows) == 1:
        values = weights[rows[0]]
        return [(rows[0], max(columns, key=lambda column: (values[column], -column)))]
    # half a second to import, which only those who score lists have to wait for
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415

    matrix = [[weights[row][column] for column in columns] for row in rows]
    pairs = zip(*linear_sum_assignment(matrix, maximize=True), strict=True)
    return [(rows[i], columns[j]) for i, j in pairs if matrix[i][j] > 0]
