"""The dashboards: every query runs as the role that Grafana reads with, and shows what its panel says it shows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import Connection, Engine, NullPool, create_engine, text
from sqlalchemy.exc import ProgrammingError

import eval_pipeline
from eval_pipeline.db import embedded
from eval_pipeline_tests.conftest import fresh_database, own_tables
from eval_pipeline_tests.deploy.filled import fill

GRAFANA = Path(eval_pipeline.__file__).parent.parent / "deploy" / "grafana"
FILES = sorted((GRAFANA / "dashboards").glob("*.json"))
BOARDS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FILES}
DATA_SOURCE = "eval-pipeline"
_VARIABLE = re.compile(r"\$\{(\w+):sqlstring\}")
_TIME_FILTER = re.compile(r"\$__timeFilter\((\w+)\)")
_READ = re.compile(r"\b(?:from|join)\s+(\w+)", re.IGNORECASE)
_FIELD = re.compile(r"\$\{__data\.fields\.(\w+)\}")
_MEASURES = {"time", "metric", "value"}


@dataclass(frozen=True)
class Result:
    """What a query gave."""

    columns: set[str]
    rows: Sequence[Sequence[object]]


def read_as_grafana(pool: Engine) -> Iterator[Connection]:
    statement = (GRAFANA / "reader_role.sql").read_text(encoding="utf-8")
    with pool.begin() as connection:
        # its percent signs are its own
        connection.connection.cursor().execute(statement)
    with pool.connect() as connection:
        connection.exec_driver_sql("set role grafana_reader")
        yield connection


@pytest.fixture(scope="module")
def filled(postgres: embedded.Server, migrated_template: str) -> Iterator[Connection]:
    with fresh_database(postgres, migrated_template) as url:
        pool = create_engine(own_tables(url), poolclass=NullPool)
        with pool.begin() as connection:
            fill(connection)
        yield from read_as_grafana(pool)


@pytest.fixture(scope="module")
def empty(postgres: embedded.Server, migrated_template: str) -> Iterator[Connection]:
    with fresh_database(postgres, migrated_template) as url:
        pool = create_engine(own_tables(url), poolclass=NullPool)
        with pool.begin() as connection:
            # the shipped ledger is there from the beginning; everything else must do without any row
            connection.exec_driver_sql("delete from experiments")
        yield from read_as_grafana(pool)


def panels(board: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for panel in board["panels"]:
        yield panel
        yield from panel.get("panels", [])


def queries(board: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], str]]:
    for panel in panels(board):
        for target in panel.get("targets", []):
            yield panel, target["rawSql"]


def expanded(query: str, chosen: Mapping[str, Sequence[str]]) -> str:
    """``query`` as Grafana sends it: the values of variables quoted, the time range filled in."""

    def quoted(match: re.Match[str]) -> str:
        return ",".join("'" + value.replace("'", "''") + "'" for value in chosen[match[1]])

    query = _TIME_FILTER.sub(r"\1 between '2000-01-01T00:00:00Z' and '2100-01-01T00:00:00Z'", query)
    query = _VARIABLE.sub(quoted, query)
    assert "$" not in query, f"Grafana would be sent {query}"
    return query


def run(connection: Connection, query: str) -> Result:
    result = connection.execute(text(query.replace(":", r"\:")))
    return Result(set(result.keys()), [tuple(row) for row in result])


def choices(connection: Connection, board: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    """What is chosen when a board is opened: all values, or of a variable that takes one value the first."""
    chosen: dict[str, Sequence[str]] = {}
    for variable in board["templating"]["list"]:
        if variable["type"] == "custom":
            values = variable["query"].split(",")
        else:
            found = run(connection, expanded(variable["query"], chosen))
            values = [str(row[0]) for row in found.rows]
        chosen[variable["name"]] = values if variable["multi"] else values[:1]
    return chosen


def test_there_are_seven_boards_and_no_two_share_an_address() -> None:
    assert len(BOARDS) == 7
    assert len({board["uid"] for board in BOARDS.values()}) == 7
    assert len({board["title"] for board in BOARDS.values()}) == 7
    assert {board["schemaVersion"] for board in BOARDS.values()} == {41}


@pytest.mark.parametrize("name", BOARDS)
def test_a_board_is_consistent_in_itself(name: str) -> None:
    board = BOARDS[name]
    assert board["id"] is None
    ids = [panel["id"] for panel in panels(board)]
    assert len(ids) == len(set(ids))
    titles = [panel["title"] for panel in panels(board)]
    assert all(titles)
    assert len(titles) == len(set(titles))
    taken: set[tuple[int, int]] = set()
    for panel in panels(board):
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, f"{panel['title']} lies over another panel"
        taken |= cells
    for panel, query in queries(board):
        sources = {panel["datasource"]["uid"], *(target["datasource"]["uid"] for target in panel["targets"])}
        assert sources == {DATA_SOURCE}, panel["title"]
        assert "select" in query
    known = {variable["name"] for variable in board["templating"]["list"]}
    used = {name for _, query in queries(board) for name in _VARIABLE.findall(query)}
    assert used <= known
    assert "://" not in json.dumps(board), "a board needs no network"


@pytest.mark.parametrize("name", BOARDS)
def test_a_board_reads_views_only(name: str) -> None:
    board = BOARDS[name]
    texts = [query for _, query in queries(board)]
    texts += [v["query"] for v in board["templating"]["list"] if v["type"] == "query"]
    read = {relation for query in texts for relation in _READ.findall(query)}
    assert read
    assert {relation for relation in read if not relation.startswith(("v_", "mv_"))} == set()


@pytest.mark.parametrize("name", BOARDS)
def test_every_query_has_rows_and_the_columns_that_its_panel_names(name: str, filled: Connection) -> None:
    board = BOARDS[name]
    chosen = choices(filled, board)
    assert all(chosen.values()), chosen
    for panel, query in queries(board):
        found = run(filled, expanded(query, chosen))
        where = f"{name}: {panel['title']}"
        assert found.rows, where
        assert any(value is not None for value in found.rows[0]), where
        if panel["targets"][0]["format"] == "time_series":
            assert found.columns == _MEASURES, where
        named = {
            override["matcher"]["options"]
            for override in panel["fieldConfig"]["overrides"]
            if override["matcher"]["id"] == "byName"
        }
        linked = set(_FIELD.findall(json.dumps(panel["fieldConfig"]["overrides"])))
        axis = (
            {panel["options"]["xField"]} & {panel["options"].get("xField")} if "xField" in panel["options"] else set()
        )
        assert named | linked | axis <= found.columns, where


@pytest.mark.parametrize("name", BOARDS)
def test_every_query_runs_where_there_is_nothing_yet(name: str, empty: Connection) -> None:
    board = BOARDS[name]
    chosen = choices(empty, board)
    for _, query in queries(board):
        run(empty, expanded(query, chosen))


@pytest.mark.parametrize("statement", ["select * from runs", "select * from texts", "delete from runs"])
def test_the_reading_role_may_touch_no_table(statement: str, filled: Connection) -> None:
    with pytest.raises(ProgrammingError, match="permission denied"), filled.begin_nested():
        filled.execute(text(statement))


def test_a_link_leads_to_a_board_that_has_the_variables_it_sets() -> None:
    boards = {board["uid"]: {v["name"] for v in board["templating"]["list"]} for board in BOARDS.values()}
    links = {url for board in BOARDS.values() for url in re.findall(r'"url": "(/d/[^"]+)"', json.dumps(board))}
    assert links
    for url in links:
        uid, _, variables = url.removeprefix("/d/").partition("?")
        assert set(re.findall(r"var-(\w+)=", variables)) <= boards[uid]


def test_provisioning_names_the_data_source_and_the_boards_folder() -> None:
    files = {path.parent.name: yaml.safe_load(path.read_text(encoding="utf-8")) for path in GRAFANA.glob("*/*/*.yaml")}
    (source,) = files["datasources"]["datasources"]
    assert source["uid"] == DATA_SOURCE
    assert {p["datasource"]["type"] for board in BOARDS.values() for p, _ in queries(board)} == {source["type"]}
    assert source["secureJsonData"]["password"].startswith("$")
    (provider,) = files["dashboards"]["providers"]
    assert provider["allowUiUpdates"] is False


@pytest.mark.parametrize("name", BOARDS)
def test_grafanas_own_model_knows_every_field(name: str) -> None:
    dashboard = pytest.importorskip("grafana_foundation_sdk.models.dashboard")
    encoder = pytest.importorskip("grafana_foundation_sdk.cog.encoder")
    read = dashboard.Dashboard.from_json(BOARDS[name])
    written = json.loads(encoder.JSONEncoder(sort_keys=True).encode(read))
    lost = [path for path in _leaves(BOARDS[name]) if path not in set(_leaves(written))]
    assert lost == []


def _leaves(value: object, path: str = "") -> Iterator[str]:
    """Every value with its place, those that say nothing left out."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _leaves(member, f"{path}.{key}")
    elif isinstance(value, list):
        for number, member in enumerate(value):
            yield from _leaves(member, f"{path}[{number}]")
    elif value not in (None, "", False):
        yield f"{path} = {value!r}"
