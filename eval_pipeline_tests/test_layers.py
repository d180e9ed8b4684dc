"""Who may import what: AutoGen and Dagster stay behind the modules that are there to keep them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import eval_pipeline

PACKAGE = Path(eval_pipeline.__file__).parent
MAY_IMPORT = {
    "autogen": ("agents/",),
    "openai": ("agents/",),
    "dagster": ("assets/", "automation/", "definitions.py", "launcher.py", "db/storage.py", "db/event_log.py"),
}
"""By the beginning of a module's name, the folders and files below the package that may import it."""


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def _importers(library: str) -> set[str]:
    return {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if any(name.partition(".")[0].partition("_")[0] == library for name in _imported(path))
    }


@pytest.mark.parametrize("library", MAY_IMPORT)
def test_a_library_is_imported_only_where_it_is_kept(library: str) -> None:
    importers = _importers(library)
    assert importers, "nobody imports it: the test looks for the wrong name"
    assert {path for path in importers if not path.startswith(MAY_IMPORT[library])} == set()


def test_the_adapter_does_not_know_the_database_or_dagster() -> None:
    forbidden = (
        "sqlalchemy",
        "psycopg",
        "dagster",
        "eval_pipeline.db",
        "eval_pipeline.execution",
        "eval_pipeline.assets",
    )
    found = {
        f"{path.name}: {name}"
        for path in (PACKAGE / "agents").glob("*.py")
        for name in _imported(path)
        if name.startswith(forbidden)
    }
    assert found == set()
