"""The files below ``sql/``, in a checkout and in an installed package.

Reading and ordering them belongs here; running migrations and checks belongs to the modules of those names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from sqlalchemy import TextClause, text

from eval_pipeline.errors import DatabaseError

_MIGRATION = re.compile(r"(?P<version>(?!000)[0-9]{3})_(?P<name>[a-z0-9_]+)\.sql")


@dataclass(frozen=True, slots=True)
class SqlFile:
    """A file of statements. ``text`` has the line ends of this project whatever the checkout made of them."""

    path: Path
    text: str


@dataclass(frozen=True, slots=True)
class Migration:
    """``NNN_name.sql``: step ``version`` of the schema, counted from 1."""

    version: int
    name: str
    file: SqlFile


def sql_folder() -> Path:
    """The folder ``sql/``: inside the package when it was installed from a wheel, beside it in a checkout."""
    package = Path(str(files("eval_pipeline")))
    packaged = package / "_sql"
    return packaged if packaged.is_dir() else package.parent / "sql"


def read(path: Path) -> SqlFile:
    """Read one file.

    Raises:
        DatabaseError: missing, unreadable or not UTF-8.
    """
    try:
        return SqlFile(path, path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n"))
    except OSError as exc:
        raise DatabaseError(f"{path}: cannot be read ({exc.strerror}); install eval-pipeline again") from exc
    except UnicodeDecodeError as exc:
        raise DatabaseError(f"{path}: is not UTF-8 at byte {exc.start}; save the file as UTF-8") from exc


def migrations(folder: Path | None = None) -> tuple[Migration, ...]:
    """The migrations of ``folder`` (default: :func:`sql_folder`) in order, their versions without a gap from 1.

    Raises:
        DatabaseError: a file is misnamed, two have one number, or a number is missing.
    """
    place = folder or sql_folder()
    found: dict[int, Migration] = {}
    for path in sorted(place.glob("*.sql")):
        match = _MIGRATION.fullmatch(path.name)
        if match is None:
            raise DatabaseError(f"{path}: is not named like 004_what_it_does.sql; rename it")
        version = int(match["version"])
        if version in found:
            raise DatabaseError(f"{path}: has the number of {found[version].file.path.name}; give it the next free one")
        found[version] = Migration(version, match["name"], read(path))
    for expected in range(1, len(found) + 1):
        if expected not in found:
            raise DatabaseError(f"{place}: migration {expected:03} is missing; restore it, numbers have no gaps")
    if not found:
        raise DatabaseError(f"{place}: holds no migrations; install eval-pipeline again")
    return tuple(found[version] for version in sorted(found))


def questions(folder: Path | None = None) -> tuple[SqlFile, ...]:
    """The files of ``questions/`` below ``folder`` (default: :func:`sql_folder`), by name.

    Raises:
        DatabaseError: one cannot be read.
    """
    return tuple(read(path) for path in sorted(((folder or sql_folder()) / "questions").glob("*.sql")))


@cache
def query(name: str) -> TextClause:
    """The statement in ``sql/queries/<name>.sql``, whose ``:names`` are bound parameters.

    Raises:
        DatabaseError: there is no such file.
    """
    return text(read(sql_folder() / "queries" / f"{name}.sql").text)
