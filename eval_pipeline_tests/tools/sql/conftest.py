"""Small databases for the tests of queries."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

SCHEMA = """
create table emp (id integer primary key, name text, pay real, photo blob, start text);
insert into emp values (1, 'Ann', 100.0, x'00ff', '2020-01-05'), (2, '한별', 90.5, null, null);
create view well_paid as select name from emp where pay > 95;
create table quiet (note text);
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database of SQLite, with a name as people give them."""
    return made(tmp_path / "급여 #1?.sqlite", SCHEMA)


def made(path: Path, script: str) -> Path:
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()
    return path
