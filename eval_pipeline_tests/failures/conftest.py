"""What only the tests of failures need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine


@pytest.fixture
def connection(played_engine: Engine) -> Iterator[Connection]:
    """A transaction on that copy, rolled back with the test."""
    with played_engine.connect() as connection:
        yield connection
