"""How the runs of a batch failed: by class, by how they ended, by the modes that their traces show. Pure counting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eval_pipeline.reporting.material import VERDICTS, Run, Signal, Verdict

_ENDINGS = ("approve", "max_messages", "timeout", "token_limit")


@dataclass(frozen=True, slots=True)
class FailureClass:
    """Runs that failed alike. ``share`` is of all planned runs; ``verdict`` colours it."""

    name: str
    verdict: Verdict
    count: int
    share: float


@dataclass(frozen=True, slots=True)
class Ending:
    """What ended the completed runs, and what they came to."""

    name: str
    counts: tuple[tuple[Verdict, int], ...]
    total: int


@dataclass(frozen=True, slots=True)
class Mode:
    """A failure mode or contamination with the number of runs that show it.

    ``decided`` of them do without doubt, ``failed`` of them failed.
    """

    name: str
    found_by: str
    runs: int
    decided: int
    failed: int


def failure_classes(runs: Sequence[Run]) -> list[FailureClass]:
    """The classes of the runs that failed, the most frequent first."""
    found = Counter((run.failure, run.verdict) for run in runs if run.failure is not None)
    ordered = sorted(found.items(), key=lambda item: (-item[1], str(item[0][0])))
    return [FailureClass(str(name), verdict, count, count / len(runs)) for (name, verdict), count in ordered]


def endings(runs: Sequence[Run]) -> list[Ending]:
    """The completed runs by what ended them, in a fixed order."""
    completed = [run for run in runs if run.completed]
    names = [name for name in _ENDINGS if any(run.terminated_by == name for run in completed)]
    found = []
    for name in (*names, None):
        counts = Counter(run.verdict for run in completed if run.terminated_by == name)
        if counts:
            shown = tuple((verdict, counts[verdict]) for verdict in VERDICTS if counts[verdict])
            found.append(Ending(name or "not said", shown, sum(counts.values())))
    return found


def modes(runs: Sequence[Run]) -> list[Mode]:
    """The failure modes that were seen in the runs, the most frequent first; a judge's stand after the rules'."""
    return _modes((run, signal) for run in runs for signal in run.signals)


def contaminations(runs: Sequence[Run]) -> list[Mode]:
    """The contaminations that were seen in the runs, the most frequent first."""
    return _modes((run, flag) for run in runs for flag in run.flags)


def _modes(cases: Iterable[tuple[Run, Signal]]) -> list[Mode]:
    seen: dict[tuple[str, str], list[tuple[Run, Signal]]] = {}
    for run, signal in cases:
        seen.setdefault((signal.found_by, signal.mode), []).append((run, signal))
    found = [
        Mode(
            name,
            found_by,
            len(shown),
            sum(signal.confidence == "decided" for _, signal in shown),
            sum(run.failure is not None for run, _ in shown),
        )
        for (found_by, name), shown in seen.items()
    ]
    return sorted(found, key=lambda mode: (mode.found_by != "rules", -mode.runs, mode.name))
