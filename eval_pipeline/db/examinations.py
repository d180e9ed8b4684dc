"""Which tries a version of some rules has not looked at yet, and that it now has. What rules see belongs to them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from sqlalchemy import Connection, select, text
from sqlalchemy.dialects.postgresql import insert

from eval_pipeline.db import tables
from eval_pipeline.db.archived import is_archived
from eval_pipeline.ids import BatchTeam


def unexamined(
    connection: Connection, batch_team: BatchTeam, examiner: str, version: str, *, again: bool = False
) -> list[UUID]:
    """The ended live tries of ``batch_team`` that ``version`` has not looked at; with ``again`` all of them.

    Tries whose traces are archived are never among them.
    Two that ask at once wait for each other until their transactions end.
    """
    connection.execute(
        text("select pg_advisory_xact_lock(hashtext(:examiner), hashtext(:key))"),
        {"examiner": f"examination {examiner}", "key": batch_team.key},
    )
    runs, examinations = tables.runs, tables.examinations
    query = select(runs.c.run_id).where(
        runs.c.batch_id == batch_team.batch,
        runs.c.team_id == batch_team.team,
        runs.c.live,
        runs.c.status != "running",
        # without its trace a run looks like one in which nothing happened; what was found in it stays
        ~is_archived(),
    )
    if not again:
        looked_at = select(examinations.c.run_id).where(
            examinations.c.run_id == runs.c.run_id,
            examinations.c.examiner == examiner,
            examinations.c.version == version,
        )
        query = query.where(~looked_at.exists())
    return list(connection.execute(query.order_by(runs.c.task_id, runs.c.attempt)).scalars())


def examined(connection: Connection, run_ids: Sequence[UUID], examiner: str, version: str) -> None:
    """Remember that ``version`` is the last that looked at these tries."""
    if not run_ids:
        return
    now = datetime.now(UTC)
    statement = insert(tables.examinations)
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=["run_id", "examiner"],
            set_={"version": statement.excluded.version, "examined_at": statement.excluded.examined_at},
        ),
        [{"run_id": run_id, "examiner": examiner, "version": version, "examined_at": now} for run_id in run_ids],
    )
