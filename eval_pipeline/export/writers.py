"""Rows into one file: JSON lines, CSV or Parquet. Which rows those are belongs to :mod:`eval_pipeline.export.batch`.

* ``jsonl`` keeps every value as it is: one JSON object a line, UTF-8.
* ``csv`` is for spreadsheets: UTF-8 with a byte order mark, JSON as its text, NULL and the empty text both as an empty
  cell. A text that a spreadsheet would run as a formula (it begins with ``= + - @``, a tab or a line end), or that
  begins with an apostrophe, gets one apostrophe in front: take one away from every cell that has one and you have the
  text. Numbers stay numbers.
* ``parquet`` has the types of the columns, JSON as its text. It needs pyarrow.
"""

from __future__ import annotations

import csv
import importlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal
from uuid import UUID

from eval_pipeline.errors import EvalPipelineError

Format = Literal["jsonl", "csv", "parquet"]
Row = Mapping[str, object]
_RUN_BY_SPREADSHEETS = ("=", "+", "-", "@", "\t", "\r", "\n", "'")


class ExportError(EvalPipelineError):
    """Rows that cannot be exported as asked."""


def check_format(form: Format) -> None:
    """See that files of this format can be written here.

    Raises:
        ExportError: it needs a package that is not installed.
    """
    if form == "parquet":
        try:
            importlib.import_module("pyarrow")
        except ImportError:
            raise ExportError(
                "--format parquet needs the package pyarrow; install it with pip install 'eval-pipeline[parquet]', "
                "or choose jsonl or csv"
            ) from None


def write(path: Path, form: Format, columns: Sequence[str], json_columns: Sequence[str], rows: Iterable[Row]) -> int:
    """Write ``rows`` to ``path``, which appears whole or not at all; how many there were.

    Raises:
        ExportError: the file cannot be written.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        count = _WRITERS[form](part, columns, frozenset(json_columns), rows)
        part.replace(path)
    except OSError as error:
        raise ExportError(f"--output: {path} cannot be written ({error.strerror})") from error
    finally:
        part.unlink(missing_ok=True)
    return count


def _write_jsonl(path: Path, columns: Sequence[str], json_columns: frozenset[str], rows: Iterable[Row]) -> int:
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps({name: _plain(row[name]) for name in columns}, ensure_ascii=False) + "\n")
            count += 1
    return count


def _write_csv(path: Path, columns: Sequence[str], json_columns: frozenset[str], rows: Iterable[Row]) -> int:
    count = 0
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for row in rows:
            flat = (_flat(row[name], is_json=name in json_columns) for name in columns)
            writer.writerow([_harmless(value) if isinstance(value, str) else value for value in flat])
            count += 1
    return count


def _write_parquet(path: Path, columns: Sequence[str], json_columns: frozenset[str], rows: Iterable[Row]) -> int:
    # importing it takes a second, and the other formats do without
    import pandas as pd  # noqa: PLC0415

    flat = [
        [_typed(row[name]) if name not in json_columns else _flat(row[name], is_json=True) for name in columns]
        for row in rows
    ]
    # as objects, so that a whole number beside a NULL stays one
    pd.DataFrame(flat, columns=list(columns), dtype=object).to_parquet(path, engine="pyarrow", index=False)
    return len(flat)


def _harmless(text: str) -> str:
    return f"'{text}" if text.startswith(_RUN_BY_SPREADSHEETS) else text


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else str(value) if isinstance(value, UUID) else value


def _typed(value: object) -> object:
    return str(value) if isinstance(value, UUID) else value


def _flat(value: object, *, is_json: bool) -> object:
    if is_json and value is not None:
        return json.dumps(value, ensure_ascii=False)
    return _plain(value)


_WRITERS: Mapping[Format, Callable[[Path, Sequence[str], frozenset[str], Iterable[Row]], int]] = {
    "jsonl": _write_jsonl,
    "csv": _write_csv,
    "parquet": _write_parquet,
}
