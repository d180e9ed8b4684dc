"""A home of its own for a benchmark, with an empty embedded PostgreSQL and suites made for it, gone afterwards."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from sqlalchemy import Engine

from eval_pipeline.db import embedded
from eval_pipeline.db.engine import engine
from eval_pipeline.db.migrations import migrate
from eval_pipeline.home import packaged, pg_data_dir
from eval_pipeline.settings import load_settings

SUITES = """
suites:
  grid:
    benchmark: gaia
    data: package
    task_ids: [{tasks}]
    attempts: {attempts}
    title: Cells for a benchmark of the product itself
"""


@contextlib.contextmanager
def bench_home(*, suites: str = "", variables: Mapping[str, str] | None = None) -> Iterator[Path]:
    """An empty home for this process and those that it starts; ``suites`` is the text of its ``suites.yaml``."""
    folder = Path(tempfile.mkdtemp(prefix="eval-pipeline-bench-")).resolve() / "home"
    folder.mkdir()
    for name in ("dagster.yaml", "workspace.yaml", "suites.yaml"):
        shutil.copy(packaged(name), folder / name)
    if suites:
        (folder / "suites.yaml").write_text(suites)
    before = dict(os.environ)
    for name in [name for name in os.environ if name.startswith("EVAL_")]:
        del os.environ[name]
    os.environ |= {"DAGSTER_HOME": str(folder), "EVAL_SUITES_FILE": str(folder / "suites.yaml"), **(variables or {})}
    try:
        yield folder
    finally:
        with contextlib.suppress(Exception):
            embedded.stop(pg_data_dir())
        os.environ.clear()
        os.environ |= before
        shutil.rmtree(folder.parent, ignore_errors=True)


def grid(tasks: int, attempts: int) -> str:
    """A ``suites.yaml`` with a suite ``grid`` of that many tasks of the sample, each in that many attempts."""
    return SUITES.format(tasks=", ".join(TASKS[:tasks]), attempts=attempts)


TASKS = ("sample-leaking-tank", "sample-floor-tiles")
"""Tasks of the sample that read no file, so that what is measured is not a reader of documents."""


def migrated() -> Engine:
    """The engine of the current home, with all migrations applied."""
    found = engine(load_settings())
    migrate(found)
    return found
