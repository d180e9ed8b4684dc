"""GAIA's ``metadata.jsonl`` and the files beside it, read into tasks.

Rows without a published answer cannot be scored: they are left out with a warning, and a file of nothing else
(the test split) is refused.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path, PurePosixPath

from eval_pipeline.benchmarks.attachments import check_file_name, find_attachment
from eval_pipeline.benchmarks.base import Attachment, Task
from eval_pipeline.benchmarks.rows import Row, read_rows
from eval_pipeline.errors import TaskDataError
from eval_pipeline.ids import check_id, shown

METADATA = "metadata.jsonl"
LAYOUTS = (".", "validation", "2023/validation")
"""Where below the data folder the metadata may be, in the order of looking."""

_GREETING = "0-0-0-0-0"
_UNPUBLISHED = "?"
_LEVELS = {1: 1, 2: 2, 3: 3, "1": 1, "2": 2, "3": 3}
_WEB_TOOLS = re.compile(
    r"""\bweb | browser | \binternet\b | \bonline\b | \bsearch\s+(?:engine|tool|site) | https?:// | \bwww\.
    | \bgoogle\b(?!\s+(?:sheets?|docs?|slides|drive|colab)\b) | \bbing\b | duckduckgo | wikipedia | wikimedia
    | \bwayback\b | \barchive\.org\b | youtube | vimeo | \bvideo\s+(?:site|platform|sharing|streaming)""",
    re.IGNORECASE | re.VERBOSE,
)

logger = logging.getLogger(__name__)


def load_gaia(data_dir: Path) -> list[Task]:
    """Every scorable task below ``data_dir``, in the order of the file.

    Raises:
        TaskDataError: no ``metadata.jsonl``, a row or attachment that cannot be used, two rows of one id, or
            no row with an answer; names file, line, field and value.
    """
    metadata = _metadata(data_dir)
    first_seen: dict[str, str] = {}
    tasks: list[Task] = []
    for row in read_rows(metadata):
        if row.values.get("task_id") == _GREETING:
            continue
        task_id = check_id(row.text("task_id"), "task id", row.where)
        if task_id in first_seen:
            raise row.wrong("task_id", f"is {shown(task_id)} as in {first_seen[task_id]}; every id stands once")
        first_seen[task_id] = row.where
        if row.text("Final answer").strip() != _UNPUBLISHED:
            tasks.append(_task(task_id, row, metadata.parent, data_dir))
    if not first_seen:
        raise TaskDataError(f"{metadata}: holds no task; it needs one JSON object a line")
    if not tasks:
        raise TaskDataError(
            f"{metadata}: every 'Final answer' is '?', so this is the test split, which cannot be scored; "
            "use the validation split"
        )
    if len(tasks) < len(first_seen):
        logger.warning("%s: %d rows without an answer left out", metadata, len(first_seen) - len(tasks))
    return tasks


def _metadata(data_dir: Path) -> Path:
    if not data_dir.is_dir():
        raise TaskDataError(f"{data_dir}: is not a folder; it should be the one that holds {METADATA}")
    for layout in LAYOUTS:
        path = data_dir / layout / METADATA
        if path.exists():
            return path
    places = ", ".join(LAYOUTS)
    if any((data_dir / layout / "metadata.parquet").exists() for layout in LAYOUTS):
        raise TaskDataError(f"{data_dir}: has metadata.parquet but no {METADATA}; write its rows as JSON lines")
    raise TaskDataError(f"{data_dir}: has no {METADATA} (looked in {places}); choose the folder that holds it")


def _task(task_id: str, row: Row, folder: Path, root: Path) -> Task:
    stated = row.flag("requires_web")
    return Task(
        task_id=task_id,
        benchmark="gaia",
        level=_level(row),
        question=row.text("Question"),
        gold=row.text("Final answer"),
        attachment=_attachment(row, folder, root),
        requires_web=bool(_WEB_TOOLS.search(_tools(row))) if stated is None else stated,
    )


def _level(row: Row) -> int:
    value = row.values.get("Level")
    # True is 1 to a dict
    if isinstance(value, int | str) and not isinstance(value, bool) and value in _LEVELS:
        return _LEVELS[value]
    raise row.wrong("Level", "is missing" if value is None else f"is {shown(value)}; write 1, 2 or 3")


def _tools(row: Row) -> str:
    """What the annotator listed as tools; empty where there is no such list."""
    annotations = row.values.get("Annotator Metadata")
    if annotations is None:
        return ""
    if not isinstance(annotations, dict):
        raise row.wrong("Annotator Metadata", f"is {shown(annotations)}; write an object")
    return Row(f"{row.where}: 'Annotator Metadata'", annotations).optional_text("Tools")


def _attachment(row: Row, folder: Path, root: Path) -> Attachment | None:
    """The row's file: ``file_name`` beside the metadata, or ``file_path`` (newer dumps) below ``root``."""
    name, relative = row.optional_text("file_name"), PurePosixPath(row.optional_text("file_path"))
    if relative.is_absolute() or ".." in relative.parts or "\\" in str(relative):
        raise row.wrong("file_path", f"is {shown(str(relative))}; write a path below the data folder")
    field = "file_name" if name else "file_path"
    name = name or relative.name
    if not name:
        return None
    where = f"{row.where}: field {field!r}"
    name = check_file_name(name, where)
    places = [folder / name, *([root / relative] if relative.name else [])]
    return find_attachment(name, places, root, where)
