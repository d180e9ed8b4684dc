"""``suites.yaml`` as suites, and a suite's tasks: a named, content-hashed selection of one benchmark's tasks.

How a benchmark reads its files belongs to :mod:`eval_pipeline.benchmarks`; the contract of a batch, which has
the suite's hash in it, to :mod:`eval_pipeline.execution`.
"""

from __future__ import annotations

import hashlib
import json
import re
import zoneinfo
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from eval_pipeline.benchmarks.base import Benchmark, Task
from eval_pipeline.benchmarks.registry import BENCHMARKS, benchmark
from eval_pipeline.complaints import complaint
from eval_pipeline.errors import IdError, SuiteError
from eval_pipeline.home import find_home, packaged
from eval_pipeline.ids import check_id, shown
from eval_pipeline.jsontypes import JsonValue
from eval_pipeline.settings import Settings, env_name
from eval_pipeline.strict_yaml import read_yaml

PACKAGE: Literal["package"] = "package"
"""``data`` of a suite whose tasks ship with the product."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_PACKAGED_DATA = {
    "gaia": "tasks",
    "sql": "sql",
    "research": "research",
    "analysis": "analysis",
    "cppx": "cppx",
    "extract": "extract",
    "meeting": "meeting",
    "ocrproxy": "ocrproxy",
    "coding": "coding",
    "codetest": "codetest",
}
_SAMPLE_DATA = Path(__file__).parent / "sample_data"


def _printable(value: str) -> str:
    if not value.isprintable():
        raise ValueError("has control characters; write one line of text")
    return value


_CRON_FIELD = re.compile(r"[0-9A-Za-z*/,\-#]+")
_CRON_FIELDS = 5


def _cron(value: str) -> str:
    fields = value.split()
    if len(fields) != _CRON_FIELDS or not all(_CRON_FIELD.fullmatch(field) for field in fields):
        raise ValueError("is no cron expression of five fields; write minute hour day month weekday, such as 0 2 * * *")
    return " ".join(fields)


def _time_zone(value: str) -> str:
    if value not in zoneinfo.available_timezones():
        raise ValueError("is no time zone; write a name such as Asia/Seoul or UTC")
    return value


Line = Annotated[str, MinLen(1), MaxLen(200), AfterValidator(_printable)]
Protected = Literal["golds", "attachments"]
"""What a suite can have kept out of its reports, beside keys and passwords, which always are."""


@dataclass(frozen=True, slots=True)
class Nightly:
    """A batch of the suite that starts by itself: ``nightly-YYYY-MM-DD`` under each of ``teams``.

    ``cron`` has five fields; the date is that of ``time_zone``. A ``label`` is added to the id, which several suites
    need that are run under one team.
    """

    cron: str
    time_zone: str
    teams: tuple[str, ...]
    label: str | None = None


@dataclass(frozen=True)
class Suite:
    """A selection of tasks, as it is declared; it fixes the grid of cells.

    Empty ``levels`` and ``task_ids`` leave nothing out; ``limit`` keeps the first so many of what the rest
    selects. ``data`` is a folder, ``"package"``, or ``None`` for what ``EVAL_<BENCHMARK>_DIR`` names.
    ``thresholds`` are the benchmark's with the suite's own over them. ``protect`` is kept out of reports.
    """

    name: str
    benchmark: str
    title: str
    description: str
    attempts: int
    levels: tuple[int, ...]
    exclude_web: bool
    task_ids: tuple[str, ...]
    limit: int | None
    data: Path | Literal["package"] | None
    thresholds: Mapping[str, float]
    nightly: Nightly | None = None
    protect: tuple[Protected, ...] = ()


@dataclass(frozen=True)
class LoadedSuite:
    """A suite with its tasks, in the order of the data; ``content_hash`` as :func:`content_hash` makes it."""

    suite: Suite
    tasks: tuple[Task, ...]
    content_hash: str


class _NightlyEntry(BaseModel):
    """What ``suites.yaml`` may say of a nightly batch."""

    model_config = ConfigDict(extra="forbid", strict=True)

    cron: Annotated[str, AfterValidator(_cron)]
    time_zone: Annotated[str, AfterValidator(_time_zone)] = "UTC"
    teams: Annotated[list[str], MinLen(1), MaxLen(100)]
    label: Annotated[str, MinLen(1), MaxLen(40)] | None = None


class _Entry(BaseModel):
    """What ``suites.yaml`` may say of one suite."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    benchmark: str
    title: Line
    description: Annotated[str, MaxLen(2000), AfterValidator(_printable)] = ""
    attempts: Annotated[int, Ge(1), Le(100)] = 1
    levels: Annotated[list[Annotated[int, Ge(1), Le(9)]], MinLen(1), MaxLen(9)] | None = None
    exclude_web: bool = False
    task_ids: Annotated[list[str], MinLen(1), MaxLen(100_000)] | None = None
    limit: Annotated[int, Ge(1)] | None = None
    nightly: _NightlyEntry | None = None
    protect: Annotated[list[Protected], MaxLen(2)] = Field(default_factory=list)
    data: Line | None = None
    thresholds: dict[str, Annotated[float, Ge(0)]] = Field(default_factory=dict)


def suites_file(settings: Settings) -> Path:
    """The file with the suites: ``EVAL_SUITES_FILE``, else the home folder's, else the packaged one."""
    if settings.suites_file is not None:
        return settings.suites_file
    own = find_home() / "suites.yaml"
    return own if own.is_file() else packaged("suites.yaml")


def load_suites(settings: Settings) -> dict[str, Suite]:
    """Every declared suite by name, in the order of the file; no task is read yet.

    Raises:
        SuiteError: the file, or anything in it, cannot be used; names file, suite, field and value.
    """
    path = suites_file(settings)
    declared = _declared(read_yaml(path, str(path), SuiteError), path)
    suites = {name: _suite(name, entry, path) for name, entry in declared.items()}
    _no_nightly_twice(suites, path)
    return suites


def _no_nightly_twice(suites: Mapping[str, Suite], path: Path) -> None:
    """One ``batch@team`` belongs to one suite, and every night makes one for each team."""
    taken: dict[tuple[str | None, str], str] = {}
    for suite in suites.values():
        for team_id in suite.nightly.teams if suite.nightly else ():
            key = (suite.nightly.label if suite.nightly else None, team_id)
            if key in taken:
                raise SuiteError(
                    f"{path}: suite {suite.name!r}: nightly: {team_id} would have the batch ids of suite "
                    f"{taken[key]!r}; give one of the two a label of its own"
                )
            taken[key] = suite.name


def load_tasks(suite: Suite, settings: Settings) -> LoadedSuite:
    """Read the data of ``suite`` and select its tasks.

    Raises:
        SuiteError: no data folder is set, a task id is not in the data, or nothing is selected.
        TaskDataError: the data cannot be used.
    """
    everything = benchmark(suite.benchmark).load(data_dir(suite, settings))
    _check_task_ids(suite, everything)
    named = set(suite.task_ids)
    chosen = [task for task in everything if not named or task.task_id in named]
    kept = [task for task in chosen if _is_kept(task, suite)]
    left_out = [task.task_id for task in chosen if not _is_kept(task, suite)]
    if named and left_out:
        raise SuiteError(
            f"suite {suite.name!r}: task_ids: levels or exclude_web leave {shown(left_out[0])} out; drop one"
        )
    if not kept:
        raise SuiteError(f"suite {suite.name!r}: levels and exclude_web leave none of {len(everything)} tasks")
    tasks = tuple(kept[: suite.limit])
    return LoadedSuite(suite, tasks, content_hash(tasks))


def content_hash(tasks: tuple[Task, ...]) -> str:
    """SHA-256, hex, over the ordered pairs of task id and content hash."""
    pairs = [[task.task_id, task.content_hash] for task in tasks]
    return hashlib.sha256(json.dumps(pairs, ensure_ascii=True, separators=(",", ":")).encode()).hexdigest()


def data_dir(suite: Suite, settings: Settings) -> Path:
    """The folder that the suite's tasks are read from.

    Raises:
        SuiteError: it is for a setting to say, which is not set.
    """
    if suite.data == PACKAGE:
        return _SAMPLE_DATA / _PACKAGED_DATA[suite.benchmark]
    if suite.data is not None:
        return suite.data
    if ":" in suite.benchmark:
        raise SuiteError(f"suite {suite.name!r} has no data; write the folder with its tasks as 'data'")
    field = f"{suite.benchmark}_dir"
    folder: Path | None = getattr(settings, field)
    if folder is None:
        raise SuiteError(f"suite {suite.name!r} has no data; set {env_name(field)} to the folder with its tasks")
    return folder


def _declared(document: JsonValue, path: Path) -> dict[str, JsonValue]:
    if not isinstance(document, dict) or list(document) != ["suites"]:
        raise SuiteError(f"{path}: must hold the one key 'suites' with a mapping of names to suites")
    suites = document["suites"]
    if not isinstance(suites, dict) or not suites:
        raise SuiteError(f"{path}: suites: is {shown(suites)}; write a mapping of names to suites")
    return suites


def _suite(name: str, values: JsonValue, path: Path) -> Suite:
    if not _NAME.fullmatch(name):
        raise SuiteError(f"{path}: suite {shown(name)}: a name is 1 to 40 of a-z 0-9 _ and begins with a letter")
    where = f"{path}: suite {name!r}"
    try:
        entry = _Entry.model_validate(values)
    except ValidationError as exc:
        raise SuiteError(f"{where}: {_wrong(exc.errors(include_url=False)[0])}") from None
    kind = _benchmark(entry, where)
    levels, task_ids = entry.levels or [], _ids(entry.task_ids or [], where)
    _no_doubles("levels", levels, where)
    _no_doubles("task_ids", task_ids, where)
    _no_doubles("protect", entry.protect, where)
    return Suite(
        name=name,
        benchmark=entry.benchmark,
        title=entry.title,
        description=entry.description,
        attempts=entry.attempts,
        levels=tuple(levels),
        exclude_web=entry.exclude_web,
        task_ids=tuple(task_ids),
        limit=entry.limit,
        data=_data(entry, where, path),
        thresholds=_thresholds(entry, kind, where),
        nightly=_nightly(entry.nightly, where),
        protect=tuple(entry.protect),
    )


def _nightly(entry: _NightlyEntry | None, where: str) -> Nightly | None:
    if entry is None:
        return None
    try:
        teams = [check_id(team_id, "team id", f"{where}: nightly: teams") for team_id in entry.teams]
        label = None if entry.label is None else check_id(entry.label, "label", f"{where}: nightly")
    except IdError as exc:
        raise SuiteError(str(exc)) from None
    _no_doubles("nightly: teams", teams, where)
    return Nightly(entry.cron, entry.time_zone, tuple(teams), label)


def _benchmark(entry: _Entry, where: str) -> Benchmark:
    if ":" in entry.benchmark:
        try:
            return benchmark(entry.benchmark)
        except SuiteError as exc:
            raise SuiteError(f"{where}: {exc}") from None
    if entry.benchmark not in BENCHMARKS:
        known = ", ".join(sorted(BENCHMARKS))
        raise SuiteError(f"{where}: benchmark: {shown(entry.benchmark)} is not known; known are {known}")
    return BENCHMARKS[entry.benchmark]


def _ids(task_ids: list[str], where: str) -> list[str]:
    try:
        return [check_id(task_id, "task id", f"{where}: task_ids") for task_id in task_ids]
    except IdError as exc:
        raise SuiteError(str(exc)) from None


def _no_doubles(field: str, values: Sequence[int | str], where: str) -> None:
    seen: set[int | str] = set()
    for value in values:
        if value in seen:
            raise SuiteError(f"{where}: {field}: {shown(value)} stands twice; write it once")
        seen.add(value)


def _data(entry: _Entry, where: str, path: Path) -> Path | Literal["package"] | None:
    if entry.data is None:
        return None
    if entry.data == PACKAGE:
        if entry.benchmark not in _PACKAGED_DATA:
            raise SuiteError(f"{where}: data: no tasks of {entry.benchmark} are packaged; write a folder")
        return PACKAGE
    return path.parent / entry.data


def _thresholds(entry: _Entry, kind: Benchmark, where: str) -> Mapping[str, float]:
    unknown = next((name for name in entry.thresholds if name not in kind.thresholds), None)
    if unknown is not None:
        known = ", ".join(sorted(kind.thresholds)) or "none"
        raise SuiteError(
            f"{where}: thresholds: {shown(unknown)} is not one of {kind.name}, which has {known}; remove it"
        )
    return MappingProxyType({**kind.thresholds, **entry.thresholds})


def _wrong(details: ErrorDetails) -> str:
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in details["loc"]).lstrip(".")
    place = place if place.isprintable() and len(place) <= 80 else shown(place)
    words = complaint(details)
    if details["type"] == "missing":
        return f"{place} {words}"
    if details["type"] == "extra_forbidden":
        return f"{place} {words}; known are {', '.join(_Entry.model_fields)}"
    return f"{place}: {shown(details['input'])} {words}".lstrip(": ")


def _check_task_ids(suite: Suite, tasks: list[Task]) -> None:
    known = {task.task_id for task in tasks}
    missing = [task_id for task_id in suite.task_ids if task_id not in known]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise SuiteError(
            f"suite {suite.name!r}: task_ids: {shown(missing[0])}{more} not in the data; correct or remove"
        )
    if len(known) < len(tasks):
        raise SuiteError(f"suite {suite.name!r}: the data hold a task id twice; give every task an id of its own")


def _is_kept(task: Task, suite: Suite) -> bool:
    return (not suite.levels or task.level in suite.levels) and not (suite.exclude_web and task.requires_web)
