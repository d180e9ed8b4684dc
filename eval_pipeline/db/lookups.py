"""What PostgreSQL's planner is told before a batch is read: that its rows are looked up, not searched for."""

from __future__ import annotations

from sqlalchemy import Connection, text

_EXPECT = text("select set_config('random_page_cost', '1.1', true), set_config('jit', 'off', true)")


def expect_lookups(connection: Connection) -> None:
    """Have the rest of this transaction planned for indexes that are in memory.

    A batch is a few hundred runs, each found by its id. At the usual costs, which are those of a rotating disk, whole
    tables are read instead wherever the history is of a middle size; and compiling a statement takes longer than it
    runs.
    """
    connection.execute(_EXPECT)
