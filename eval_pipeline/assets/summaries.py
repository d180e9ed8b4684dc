"""The summaries of a suite as assets, one partition per ``batch@team``: materializing one renews that batch's rows."""

# no postponed annotations here: Dagster reads the type of a step's context at import
from collections.abc import Callable, Sequence

import dagster as dg
from sqlalchemy import Connection, Row

from eval_pipeline.assets.common import OWNERS, database, one_line_errors, partition_keys
from eval_pipeline.assets.lease import LEASE
from eval_pipeline.assets.partitions import Family
from eval_pipeline.db.views import batch_summary, passk, refresh, tool_summary
from eval_pipeline.ids import BatchTeam
from eval_pipeline.markdown import table
from eval_pipeline.settings import load_settings
from eval_pipeline.suites import Suite

Reader = Callable[[Connection, BatchTeam], Sequence[Row[tuple[object, ...]]]]
Metadata = dict[str, dg.MetadataValue | int | float]


def _markdown(rows: Sequence[Row[tuple[object, ...]]]) -> str:
    if not rows:
        return "no rows yet"
    return table([str(name) for name in rows[0]._fields], [tuple(row) for row in rows])


def _batch_figures(rows: Sequence[Row[tuple[object, ...]]]) -> Metadata:
    """Totals over the levels, as numbers that the UI can plot over batches."""
    runs = sum(row.runs for row in rows)
    completed = sum(row.completed for row in rows)
    planned = sum(row.planned for row in rows)
    successes = sum(row.successes for row in rows)
    figures: Metadata = {
        "planned": planned,
        "runs": runs,
        "completed": completed,
        "crashed": sum(row.crashed for row in rows),
        "successes": successes,
    }
    if completed:
        figures["pass_at_1_completed"] = round(successes / completed, 4)
    if planned:
        figures["pass_at_1_planned"] = round(successes / planned, 4)
    return figures


def _nothing_more(rows: Sequence[Row[tuple[object, ...]]]) -> Metadata:
    return {"rows": len(rows)}


def _view_asset(
    suite: Suite,
    family: Family,
    view: str,
    upstream: Sequence[str],
    description: str,
    read: Reader,
    figures: Callable[[Sequence[Row[tuple[object, ...]]]], Metadata],
) -> dg.AssetsDefinition:
    @dg.asset(
        key=family.key(view),
        deps=[family.key(name) for name in upstream],
        partitions_def=family.batch_team,
        backfill_policy=dg.BackfillPolicy.single_run(),
        description=description,
        kinds={"postgres", "view"},
        group_name=suite.name,
        owners=OWNERS,
        required_resource_keys={LEASE},
    )
    def summary(context: dg.AssetExecutionContext) -> None:
        with one_line_errors():
            batch_teams = [BatchTeam.parse(key, "partition key") for key in partition_keys(context)]
            renewed = database(load_settings())
            refresh(renewed, view, batch_teams)
            with renewed.connect() as connection:
                for batch_team in batch_teams:
                    rows = read(connection, batch_team)
                    metadata = {**figures(rows), "figures": dg.MetadataValue.md(_markdown(rows))}
                    context.add_asset_metadata(metadata, partition_key=batch_team.key)

    return summary


def summary_assets(suite: Suite, family: Family) -> list[dg.AssetsDefinition]:
    """The three summaries that every suite has."""
    return [
        _view_asset(
            suite,
            family,
            "mv_batch_summary",
            ["runs"],
            "Per batch, team and level: runs, crashes, pass@1 over completed and over planned runs, tokens over all "
            "tries, latency, turns.",
            batch_summary,
            _batch_figures,
        ),
        _view_asset(
            suite,
            family,
            "mv_passk",
            ["runs"],
            "Unbiased pass@k and pass^k per batch, team, level and k; a task with fewer than k completed runs is out.",
            passk,
            _nothing_more,
        ),
        _view_asset(
            suite,
            family,
            "mv_tool_summary",
            ["events"],
            "Calls, errors and latency of every tool per batch and team.",
            tool_summary,
            _nothing_more,
        ),
    ]
