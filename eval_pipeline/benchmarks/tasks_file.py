"""``tasks.jsonl``: the file format that every benchmark but GAIA shares, read into tasks.

One JSON object a line. ``task_id`` and ``question`` are needed; ``level`` (1 to 9, by default 1), ``file_name`` (a file
in the folder ``files``, or beside), ``requires_web`` and ``materials`` (paths below the folder ``materials``, a folder
meaning all its files) are not. Every other key is the benchmark's own, which says what it means; an unknown one is
refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from eval_pipeline.benchmarks.attachments import check_file_name, find_attachment
from eval_pipeline.benchmarks.base import Attachment, Material, Task
from eval_pipeline.benchmarks.rows import Row, read_rows
from eval_pipeline.errors import TaskDataError
from eval_pipeline.ids import check_id, shown
from eval_pipeline.jsontypes import JsonObject

TASKS = "tasks.jsonl"
_SHARED = frozenset({"task_id", "question", "level", "file_name", "requires_web", "materials"})
_MOST_MATERIALS = 5000

OwnFields = Callable[[Row], tuple[str, JsonObject]]
"""Reads a benchmark's own keys of a row: the gold answer as text (empty where there is none) and the task's extra."""


def load_tasks_file(data_dir: Path, benchmark: str, own_keys: frozenset[str], own: OwnFields) -> list[Task]:
    """Every task of ``data_dir/tasks.jsonl`` in the order of the file.

    Raises:
        TaskDataError: no such file, no task, an unknown key, two rows of one id, or a value that cannot be used; names
            file, line, field and value.
    """
    path = data_dir / TASKS
    if not path.is_file():
        raise TaskDataError(f"{data_dir}: has no {TASKS}; choose the folder that holds the tasks of {benchmark}")
    first_seen: dict[str, str] = {}
    tasks: list[Task] = []
    for row in read_rows(path):
        unknown = sorted(set(row.values) - _SHARED - own_keys)
        if unknown:
            known = ", ".join(sorted(_SHARED | own_keys))
            raise TaskDataError(f"{row.where}: there is no field {shown(unknown[0])}; known are {known}")
        task_id = check_id(row.text("task_id"), "task id", row.where)
        if task_id in first_seen:
            raise row.wrong("task_id", f"is {shown(task_id)} as in {first_seen[task_id]}; every id stands once")
        first_seen[task_id] = row.where
        gold, extra = own(row)
        tasks.append(
            Task(
                task_id=task_id,
                benchmark=benchmark,
                level=_level(row),
                question=row.text("question"),
                gold=gold,
                attachment=_attachment(row, data_dir),
                requires_web=bool(row.flag("requires_web")),
                extra=extra,
                materials=tuple(_materials(row, data_dir)),
            )
        )
    if not tasks:
        raise TaskDataError(f"{path}: holds no task; it needs one JSON object a line")
    return tasks


def _level(row: Row) -> int:
    value = row.values.get("level", 1)
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 9:
        return value
    raise row.wrong("level", f"is {shown(value)}; write a whole number from 1 to 9")


def _attachment(row: Row, data_dir: Path) -> Attachment | None:
    name = row.optional_text("file_name")
    if not name:
        return None
    where = f"{row.where}: field 'file_name'"
    name = check_file_name(name, where)
    return find_attachment(name, [data_dir / "files" / name, data_dir / name], data_dir, where)


def _materials(row: Row, data_dir: Path) -> Iterator[Material]:
    names = row.values.get("materials") or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise row.wrong("materials", f"is {shown(names)}; write a list of paths below the folder materials")
    root = data_dir / "materials"
    found: dict[str, Material] = {}
    for name in names:
        path = PurePosixPath(str(name))
        if path.is_absolute() or ".." in path.parts or "\\" in str(name) or not path.parts:
            raise row.wrong("materials", f"names {shown(name)}; write a path below {root}")
        place = root / path
        files = sorted(child for child in place.rglob("*") if child.is_file()) if place.is_dir() else [place]
        for file in files:
            relative = file.relative_to(root).as_posix()
            file_found = find_attachment(file.name, [file], root, f"{row.where}: field 'materials'")
            found[relative] = Material(relative, file_found.path, file_found.sha256, file_found.size)
        if not files or len(found) > _MOST_MATERIALS:
            many = f"more than {_MOST_MATERIALS} files" if files else "an empty folder"
            raise row.wrong("materials", f"names {shown(name)}, {many}")
    yield from found.values()
