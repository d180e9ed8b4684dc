"""Contiguous ranges of keys, which is all that one Dagster run can hold, and the tags that say them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from eval_pipeline.ids import TaskAttempt

_START = "dagster/asset_partition_range_start"
_END = "dagster/asset_partition_range_end"
_PARTITION = "dagster/partition"


def range_tags(first: str, last: str) -> dict[str, str]:
    """The tags of a Dagster run over the keys from ``first`` to ``last``, both included."""
    return {_START: str(first), _END: str(last)}


def batch_teams_of(tags: Mapping[str, str], known: Sequence[str]) -> set[str]:
    """Which of the ``known`` batch_team keys a Dagster run with these tags may work at."""
    ends = [tags[name].partition("|")[0] for name in (_PARTITION, _START, _END) if name in tags]
    places = [known.index(key) for key in ends if key in known]
    return set(known[min(places) : max(places) + 1]) if places else set()


def contiguous(
    known: Sequence[str], wanted: Collection[TaskAttempt], done: Collection[TaskAttempt]
) -> Iterator[list[TaskAttempt]]:
    """Ranges of ``known`` that hold all ``wanted`` and, between them, only cells that are ``done``.

    Each Dagster run costs seconds, and what is done costs nothing, so it bridges. ``known`` is the order of
    registration, which is not the suite's once a task has been put in between.
    """
    chunk: list[TaskAttempt] = []
    bridge: list[TaskAttempt] = []
    for cell in (TaskAttempt.parse(key) for key in known):
        if cell in wanted:
            chunk += [*bridge, cell]
            bridge = []
        elif chunk and cell in done:
            bridge.append(cell)
        elif chunk:
            yield chunk
            chunk, bridge = [], []
    if chunk:
        yield chunk
