"""``sql_schema`` and ``sql_query`` as a model meets them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from eval_pipeline.tools.context import ToolContext
from eval_pipeline.tools.errors import ToolError, ToolTimeoutError
from eval_pipeline.tools.registry import TOOLS
from eval_pipeline.tools.sql import tools
from eval_pipeline.tools.sql.runner import QueryLimits


async def ask(query: str, database: Path | None) -> str:
    return await TOOLS["sql_query"].bind(ToolContext(attachment=database))(query=query)


async def test_the_schema_is_shown(database: Path) -> None:
    text = await TOOLS["sql_schema"].bind(ToolContext(attachment=database))()
    assert text.startswith("CREATE TABLE emp (id integer primary key")
    assert "CREATE VIEW well_paid" in text


async def test_a_result_is_lines_of_text_with_its_number_of_rows(database: Path) -> None:
    assert await ask("select name, pay, photo, start from emp order by id;", database) == (
        "name | pay | photo | start\nAnn | 100.0 | x'00ff' | 2020-01-05\n한별 | 90.5 | NULL | NULL\n(2 rows)"
    )
    assert await ask("select note from quiet", database) == "note\n(0 rows)"
    assert await ask("select 'a' || char(10) || 'b' as x", database) == "x\na\\nb\n(1 row)"


async def test_at_most_fifty_rows_are_shown(database: Path) -> None:
    count = "with recursive c(n) as (select 1 union all select n + 1 from c where n < {}) select n from c"
    shown = (await ask(count.format(51), database)).splitlines()
    assert shown[-1] == "(51 rows, the first 50 are shown)"
    assert shown[1:-1] == [str(number) for number in range(1, 51)]
    assert (await ask(count.format(50), database)).endswith("\n50\n(50 rows)")
    with pytest.raises(ToolError, match="more than 1,000 rows; count, group or limit it"):
        await ask(count.format(1001), database)


async def test_long_cells_and_long_answers_are_cut(database: Path) -> None:
    assert await ask("select hex(zeroblob(500)) as x", database) == f"x\n{'0' * 200}…\n(1 row)"
    wide = ", ".join(f"hex(zeroblob(500)) as c{n}" for n in range(300))
    text = await ask(f"select {wide}", database)
    assert len(text) == tools.MAX_CHARACTERS
    assert text.endswith("[cut]")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select nme from emp", "the query failed: no such column: nme"),
        ("drop table emp", "the query failed: not authorized"),
        ("select 1; select 2", "the query has 2 statements; send exactly one"),
        ("-- nothing", "the query has 0 statements; send exactly one"),
    ],
)
async def test_a_refusal_says_what_is_wrong(query: str, message: str, database: Path) -> None:
    with pytest.raises(ToolError) as caught:
        await ask(query, database)
    assert str(caught.value) == message


async def test_an_endless_query_is_stopped(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "_LIMITS", QueryLimits(seconds=0.5))
    begin = time.perf_counter()
    with pytest.raises(ToolTimeoutError, match="took longer than"):
        await ask("with recursive c(n) as (select 1 union all select n + 1 from c) select max(n) from c", database)
    assert time.perf_counter() - begin < 15


async def test_a_task_without_a_database_has_none() -> None:
    with pytest.raises(ToolError, match="no database"):
        await ask("select 1", None)


async def test_an_attachment_that_is_no_database_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database, but long enough to look at")
    with pytest.raises(ToolError, match="the database cannot be used: file is not a database"):
        await ask("select 1", tmp_path / "notes.txt")
