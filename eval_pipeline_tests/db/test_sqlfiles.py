"""Finding and ordering the files below ``sql/``."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval_pipeline.db import sqlfiles
from eval_pipeline.errors import DatabaseError


def write(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).write_text("select 1;\n")
    return folder


def test_the_shipped_migrations_are_numbered_without_a_gap() -> None:
    found = sqlfiles.migrations()
    assert [step.version for step in found] == list(range(1, len(found) + 1))
    assert [step.name for step in found[:3]] == ["init", "views", "experiments"]


def test_the_folder_of_an_installed_package_is_taken_before_that_of_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "eval_pipeline" / "_sql").mkdir(parents=True)
    monkeypatch.setattr(sqlfiles, "files", lambda name: tmp_path / name)
    assert sqlfiles.sql_folder() == tmp_path / "eval_pipeline" / "_sql"
    (tmp_path / "eval_pipeline" / "_sql").rmdir()
    assert sqlfiles.sql_folder() == tmp_path / "sql"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ((), "holds no migrations"),
        (("001_a.sql", "003_c.sql"), "migration 002 is missing"),
        (("002_b.sql",), "migration 001 is missing"),
        (("000_a.sql", "001_b.sql"), "000_a.sql: is not named like"),
        (("001_a.sql", "001_b.sql"), "001_b.sql: has the number of 001_a.sql"),
        (("001_a.sql", "2_b.sql"), "2_b.sql: is not named like"),
        (("001_a.sql", "002_B.sql"), "002_B.sql: is not named like"),
        (("001_a.sql", "002-b.sql"), "002-b.sql: is not named like"),
    ],
)
def test_a_folder_is_refused_with(tmp_path: Path, names: tuple[str, ...], message: str) -> None:
    with pytest.raises(DatabaseError, match=message) as caught:
        sqlfiles.migrations(write(tmp_path, *names))
    assert "\n" not in str(caught.value)


def test_line_ends_and_a_byte_order_mark_are_not_part_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_bytes("\ufeffselect '한글'\r\n;\r\n".encode())
    assert sqlfiles.read(tmp_path / "a.sql").text == "select '한글'\n;\n"


def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_bytes("select '한글'".encode("cp949"))
    with pytest.raises(DatabaseError, match=r"a\.sql: is not UTF-8 at byte 8"):
        sqlfiles.read(tmp_path / "a.sql")


def test_a_query_that_there_is_not_is_refused() -> None:
    with pytest.raises(DatabaseError, match=r"nothing\.sql: cannot be read"):
        sqlfiles.query("nothing")
