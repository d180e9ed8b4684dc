"""One month of traces as files: ``events``, ``model_calls`` and their ``texts`` in Parquet, and a manifest beside them.

A folder such as ``2026-10`` has all four. Columns are the tables', JSON and ids as their texts, moments as UTC with
microseconds, so that other programs read them and nothing is lost on the way back. The manifest says how many rows each
file has, the SHA-256 of its bytes, and the SHA-256 of its content, which the database's rows can be held against. Which
month is written, and what becomes of its rows, belongs to :mod:`eval_pipeline.export.archive`.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import BigInteger, Column, ColumnElement, DateTime, Integer, Table, Text, Uuid, cast
from sqlalchemy.dialects.postgresql import JSONB

from eval_pipeline.db import tables
from eval_pipeline.errors import EvalPipelineError
from eval_pipeline.ids import shown
from eval_pipeline.run_ids import Month

FORMAT = 1
MANIFEST = "manifest.json"
_LARGEST_MANIFEST = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ROWS_AT_ONCE = 10_000
_CHARACTERS_AT_ONCE = 32_000_000
"""Of texts in one row group: what is in memory at once, save for a single text that is larger."""
_CHUNK = 1 << 20

Row = Sequence[Any]


class ArchiveError(EvalPipelineError):
    """A month that cannot be archived or brought back; nothing was deleted."""


@dataclass(frozen=True, slots=True)
class Source:
    """A table as it is archived. Its content hash leaves out what is in ``unhashed``."""

    table: Table
    key: tuple[str, ...]
    unhashed: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def file(self) -> str:
        return f"{self.name}.parquet"

    @property
    def columns(self) -> list[str]:
        return [column.name for column in self.table.columns]

    def values(self) -> list[ColumnElement[Any]]:
        """The columns for a query, in the form in which they are archived."""
        return [
            cast(column, Text).label(column.name) if isinstance(column.type, Uuid | JSONB) else column
            for column in self.table.columns
        ]


# a text that is stored again after its month was dropped has another date, and is the same text
SOURCES = (
    Source(tables.texts, ("sha256",), ("stored_at",)),
    Source(tables.events, ("run_id", "seq")),
    Source(tables.model_calls, ("run_id", "call_no")),
)
"""In the order in which they can be brought back."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a file or a table holds: rows, and the SHA-256 (hex) over them in the order of their keys."""

    rows: int
    content_sha256: str


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of the manifest, with the SHA-256 (hex) of its bytes."""

    content: Content
    sha256: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a folder says of itself. ``schema_version`` is the last migration of the database that it comes from."""

    month: Month
    schema_version: int
    files: Mapping[str, FileEntry]

    def text(self) -> str:
        files = {
            name: {**asdict(entry.content), "sha256": entry.sha256, "columns": list(entry.columns)}
            for name, entry in self.files.items()
        }
        head = {"format": FORMAT, "month": str(self.month), "schema_version": self.schema_version}
        return json.dumps(head | {"files": files}, indent=2) + "\n"


def need_pyarrow() -> None:
    """See that Parquet can be read and written here.

    Raises:
        ArchiveError: the package is not installed.
    """
    try:
        importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise ArchiveError(
            "archive needs the package pyarrow; install it with pip install 'eval-pipeline[parquet]'"
        ) from None


def content_of(source: Source, rows: Iterable[Row]) -> Content:
    """The content of ``rows``, which must come in the order of their keys."""
    hashing = _Hashing(source)
    for row in rows:
        hashing.add(row)
    return hashing.content()


class _Hashing:
    def __init__(self, source: Source) -> None:
        self._places = [place for place, name in enumerate(source.columns) if name not in source.unhashed]
        self._digest = hashlib.sha256()
        self._rows = 0

    def add(self, row: Row) -> None:
        values = [_plain(row[place]) for place in self._places]
        self._digest.update(json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        self._rows += 1

    def content(self) -> Content:
        return Content(self._rows, self._digest.hexdigest())


def _plain(value: object) -> object:
    return (value - _EPOCH) // _MICROSECOND if isinstance(value, datetime) else value


def write_file(folder: Path, source: Source, rows: Iterable[Row]) -> FileEntry:
    """Write ``rows``, in the order of their keys, to the source's file in ``folder``, down to the disk.

    Raises:
        OSError: it cannot be written.
    """
    pyarrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    schema = pyarrow.schema([(column.name, _arrow_type(pyarrow, column)) for column in source.table.columns])
    hashing = _Hashing(source)
    path = folder / source.file
    with path.open("wb") as file:
        with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
            for group in _groups(rows):
                for row in group:
                    hashing.add(row)
                arrays = [
                    pyarrow.array([row[place] for row in group], field.type) for place, field in enumerate(schema)
                ]
                writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema), row_group_size=len(group))
        file.flush()
        os.fsync(file.fileno())
    return FileEntry(hashing.content(), _sha256_of(path), tuple(source.columns))


def _arrow_type(pyarrow: Any, column: Column[Any]) -> Any:
    match column.type:
        case BigInteger():
            return pyarrow.int64()
        case Integer():
            return pyarrow.int32()
        case DateTime():
            return pyarrow.timestamp("us", tz="UTC")
        case _:
            return pyarrow.string()


def _groups(rows: Iterable[Row]) -> Iterator[list[Row]]:
    group: list[Row] = []
    characters = 0
    for row in rows:
        group.append(row)
        characters += sum(len(value) for value in row if isinstance(value, str))
        if len(group) >= _ROWS_AT_ONCE or characters >= _CHARACTERS_AT_ONCE:
            yield group
            group, characters = [], 0
    if group:
        yield group


def read_file(folder: Path, source: Source, only: Sequence[str] | None = None) -> Iterator[tuple[Any, ...]]:
    """The rows of the source's file in ``folder`` with the source's columns, or ``only`` some of them.

    Raises:
        ArchiveError: the file is not what it should be.
    """
    pyarrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    path, wanted = folder / source.file, list(only or source.columns)
    try:
        with parquet.ParquetFile(path) as file:
            for number in range(file.num_row_groups):
                group = file.read_row_group(number, columns=wanted)
                yield from zip(*(_python_values(pyarrow, group.column(name)) for name in wanted), strict=True)
    except (OSError, KeyError, ValueError, pyarrow.ArrowException) as error:
        raise ArchiveError(f"{path} cannot be read as Parquet ({type(error).__name__}); it is not used") from None


def _python_values(pyarrow: Any, column: Any) -> list[Any]:
    if not pyarrow.types.is_timestamp(column.type):
        return list(column.to_pylist())
    counts = column.cast(pyarrow.timestamp("us", tz="UTC")).cast(pyarrow.int64()).to_pylist()
    return [None if count is None else _EPOCH + count * _MICROSECOND for count in counts]


def _sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest beside its files, down to the disk.

    Raises:
        OSError: it cannot be written.
    """
    with (folder / MANIFEST).open("w", encoding="utf-8") as file:
        file.write(manifest.text())
        file.flush()
        os.fsync(file.fileno())
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Let the names in ``folder`` survive a power failure."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def manifest_sha256(folder: Path) -> str:
    """SHA-256, hex, of the manifest's bytes, by which a database knows a folder again.

    Raises:
        ArchiveError: there is none that can be read.
    """
    return hashlib.sha256(_manifest_bytes(folder)).hexdigest()


def _manifest_bytes(folder: Path) -> bytes:
    path = folder / MANIFEST
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST_MANIFEST)
    except OSError as error:
        raise ArchiveError(f"{path} cannot be read ({error.strerror}); name a folder that archive has made") from None


def verified(folder: Path) -> Manifest:
    """The manifest of ``folder``, after every file has been read back and held against it.

    Raises:
        ArchiveError: a file is missing, has changed, or holds other rows than the manifest says.
    """
    manifest = read_manifest(folder)
    for source in SOURCES:
        entry, path = manifest.files[source.name], folder / source.file
        try:
            found = _sha256_of(path)
        except OSError as error:
            raise ArchiveError(f"{path} cannot be read ({error.strerror}); the archive is not whole") from None
        if found != entry.sha256:
            raise ArchiveError(f"{path} is not the file that was archived: its SHA-256 differs from the manifest's")
        content = content_of(source, read_file(folder, source))
        if content != entry.content:
            raise ArchiveError(
                f"{path} holds {content.rows:,} rows that are not the {entry.content.rows:,} of the manifest"
            )
    return manifest


def read_manifest(folder: Path) -> Manifest:
    """What ``folder`` says of itself; its files are not looked at.

    Raises:
        ArchiveError: there is no manifest, it is not ours, or it is of a newer version.
    """
    path = folder / MANIFEST
    try:
        value = json.loads(_manifest_bytes(folder))
        if value["format"] != FORMAT:
            raise ArchiveError(f"{path} has the format {shown(value['format'])}, not {FORMAT}; update eval-pipeline")
        files = {source.name: _entry(value["files"][source.name]) for source in SOURCES}
        manifest = Manifest(Month.parse(str(value["month"]), str(path)), int(value["schema_version"]), files)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ArchiveError(f"{path} is not a manifest of an archive; name a folder that archive has made") from None
    for source in SOURCES:
        columns = manifest.files[source.name].columns
        if columns != tuple(source.columns):
            raise ArchiveError(
                f"{path}: {source.name} has other columns than this version's ({shown(', '.join(columns))}); "
                f"it was made at migration {manifest.schema_version:03}"
            )
    return manifest


def _entry(value: Mapping[str, Any]) -> FileEntry:
    content = Content(int(value["rows"]), str(value["content_sha256"]))
    return FileEntry(content, str(value["sha256"]), tuple(str(name) for name in value["columns"]))


def remove(folder: Path) -> None:
    """Take away a folder that was not finished, as far as that goes."""
    shutil.rmtree(folder, ignore_errors=True)
