"""What is exported can be read back as it was, in each format, and no cell of a spreadsheet is run as a formula."""

from __future__ import annotations

import csv
import json
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, text

from eval_pipeline.db import tables
from eval_pipeline.export.batch import export_batch
from eval_pipeline.export.writers import ExportError, Format
from eval_pipeline.ids import BatchTeam
from eval_pipeline_tests.commands.running import command
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.db.builders import Rows
from eval_pipeline_tests.played import V1

B1 = BatchTeam("b1", "v1")
ODD = (
    "=HYPERLINK(\"//x\")", "+1", "-2", "@cmd", "\tx", "\rx", "\nx", "'quoted'", "''", "plain", "한글, \"쉼표\"\n줄",
    "", " =1", "a\u2028b\ufffd\u202e", "x" * 8000, "null", "1e5", "0042",
)  # fmt: skip
"""Contents that a format or a spreadsheet could make something else of."""


@pytest.fixture
def odd(rows: Rows) -> Rows:
    """A run whose events hold all of them, and values of every other type."""
    run_id = rows.one_run()
    for seq, content in enumerate(ODD):
        rows.event(run_id, seq, source="planner", content=content, tokens_in=seq or None)
    seq = len(ODD)
    arguments = {"q": '한글 "x"\n', "n": [1, None, 2.5], "deep": {"=": "=1"}}
    rows.event(run_id, seq, "tool_call", tool_name="=tool", tool_call_id="c", tool_args=arguments)
    rows.event(run_id, seq + 1, "tool_call", tool_name="t", tool_call_id="c2", tool_args="-cut text")
    call = {"call_no": 0, "role": "planner", "kind": "turn", "latency_ms": 5, "outcome": "ok"}
    rows.connection.execute(insert(tables.model_calls).values(run_id=run_id, **call))
    metric = {"name": "cer", "scorer_version": "s", "value": 0.125}
    rows.connection.execute(insert(tables.run_metrics).values(run_id=run_id, **metric))
    rows.connection.execute(text("update runs set scorer_version = 's'"))
    return rows


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of an exported file; of a spreadsheet, with the apostrophes taken away that the writer put there."""
    match path.suffix:
        case ".jsonl":
            return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
        case ".csv":
            with path.open(encoding="utf-8-sig", newline="") as file:
                return [{name: cell.removeprefix("'") for name, cell in row.items()} for row in csv.DictReader(file)]
        case _:
            pandas = pytest.importorskip("pandas")
            frame = pandas.read_parquet(path)
            return [
                {name: None if pandas.isna(value) else value for name, value in row.items()}
                for row in frame.astype(object).to_dict("records")
            ]


def stored(rows: Rows, view: str) -> list[Mapping[str, Any]]:
    order = {"v_trace": "seq", "v_runs": "task_id", "v_model_calls": "call_no", "v_run_metrics": "name"}[view]
    found = rows.connection.execute(text(f"select * from {view} where batch_id = 'b1' order by {order}"))  # noqa: S608
    return [dict(row) for row in found.mappings()]


VIEWS = {"runs": "v_runs", "events": "v_trace", "model_calls": "v_model_calls", "metrics": "v_run_metrics"}


def export(rows: Rows, form: Format, folder: Path) -> dict[str, Path]:
    if form == "parquet":
        pytest.importorskip("pyarrow")
    written = export_batch(rows.connection, B1, form, folder)
    assert [path.name for path in written] == [f"{name}.{form}" for name in VIEWS]
    assert list(written.values()) == [1, len(ODD) + 2, 1, 1]
    assert {path.parent for path in written} == {folder / "b1@v1"}
    return {path.stem: path for path in written}


def test_json_lines_keep_every_value(odd: Rows, tmp_path: Path) -> None:
    files = export(odd, "jsonl", tmp_path)
    for name, view in VIEWS.items():
        expected = json.loads(json.dumps(stored(odd, view), default=lambda v: getattr(v, "isoformat", v.__str__)()))
        assert read(files[name]) == expected


def test_parquet_keeps_types_and_json_as_its_text(odd: Rows, tmp_path: Path) -> None:
    files = export(odd, "parquet", tmp_path)
    events, expected = read(files["events"]), stored(odd, "v_trace")
    assert [row["content"] for row in events] == [row["content"] for row in expected]
    assert [row["tokens_in"] for row in events] == [row["tokens_in"] for row in expected]
    assert [row["ts"] for row in events] == [row["ts"] for row in expected]
    assert [json.loads(row["tool_args"] or "null") for row in events] == [row["tool_args"] for row in expected]
    (metric,) = read(files["metrics"])
    assert metric["value"] == 0.125


def test_a_spreadsheet_has_every_text_back_and_runs_none(odd: Rows, tmp_path: Path) -> None:
    files = export(odd, "csv", tmp_path)
    raw = files["events"].read_bytes()
    assert raw.startswith(b"\xef\xbb\xbf")
    with files["events"].open(encoding="utf-8-sig", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))] == []
    events, expected = read(files["events"]), stored(odd, "v_trace")
    assert [row["content"] for row in events] == [row["content"] or "" for row in expected]
    assert [row["tool_name"] for row in events] == [row["tool_name"] or "" for row in expected]
    assert [json.loads(row["tool_args"] or "null") for row in events] == [row["tool_args"] for row in expected]
    assert [row["seq"] for row in events] == [str(row["seq"]) for row in expected]
    (run,) = read(files["runs"])
    assert (run["task_id"], run["attempt"], run["cost"]) == ("t1", "1", "")


def test_a_negative_number_stays_a_number(odd: Rows, tmp_path: Path) -> None:
    odd.connection.execute(text("update run_metrics set value = -0.5"))
    with export(odd, "csv", tmp_path)["metrics"].open(encoding="utf-8-sig", newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["value"] == "-0.5"


def test_exporting_again_replaces_the_files_and_leaves_no_part(odd: Rows, tmp_path: Path) -> None:
    export(odd, "jsonl", tmp_path)
    odd.connection.execute(text("update events set content = 'new' where seq = 0"))
    files = export(odd, "jsonl", tmp_path)
    assert read(files["events"])[0]["content"] == "new"
    assert sorted(path.name for path in (tmp_path / "b1@v1").iterdir()) == sorted(f"{name}.jsonl" for name in VIEWS)


def test_parquet_without_pyarrow_is_one_line_that_says_what_to_do(
    odd: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ExportError, match="needs the package pyarrow"):
        export_batch(odd.connection, B1, "parquet", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_one_line(odd: Rows, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ExportError, match=r"--output: .*file"):
        export_batch(odd.connection, B1, "jsonl", tmp_path / "file")
    (tmp_path / "b1@v1" / "events.jsonl").mkdir(parents=True)
    with pytest.raises(ExportError, match=r"events\.jsonl cannot be written"):
        export_batch(odd.connection, B1, "jsonl", tmp_path)
    assert not list((tmp_path / "b1@v1").glob(".*"))


def test_the_command_writes_all_tries_events_and_says_where(played: Database, tmp_path: Path) -> None:
    told = command("export", "--batch", V1.key, "--output", str(tmp_path), "--json").json
    rows = {Path(one["file"]).name: one["rows"] for one in told}
    assert rows["runs.jsonl"] == 5
    with played.engine.connect() as connection:
        query = "select count(*) from events join runs using (run_id) where team_id = 'v1-baseline'"
        assert rows["events.jsonl"] == connection.execute(text(query)).scalar_one()
    events = read(tmp_path / V1.key / "events.jsonl")
    assert {event["team_id"] for event in events} == {V1.team}
    assert stat.S_ISREG((tmp_path / V1.key / "runs.jsonl").stat().st_mode)
    shown = command("export", "--batch", V1.key, "--format", "csv", "--output", str(tmp_path))
    assert f"{V1.key}/runs.csv: 5 rows" in shown.out
    assert "no batch" in (command("export", "--batch", "b@v9", "--output", str(tmp_path)).error or "")
