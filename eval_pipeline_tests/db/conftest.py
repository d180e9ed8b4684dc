"""What only the tests of the database need."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine

from eval_pipeline.db import embedded
from eval_pipeline_tests.conftest import FOLDER, fresh_database, own_tables
from eval_pipeline_tests.db.builders import Rows


@pytest.fixture(scope="session")
def shared_engine(postgres: embedded.Server, migrated_template: str) -> Iterator[Engine]:
    """One migrated database for all tests that commit nothing."""
    with fresh_database(postgres, migrated_template) as url:
        yield create_engine(own_tables(url))


@pytest.fixture
def rows(shared_engine: Engine) -> Iterator[Rows]:
    """Rows in a transaction that is rolled back with the test."""
    with shared_engine.connect() as connection:
        yield Rows(connection)


@pytest.fixture
def folder() -> Path:
    """A folder that a server's system user can enter, which pytest's own ones are not."""
    return Path(tempfile.mkdtemp(dir=os.environ[FOLDER]))
