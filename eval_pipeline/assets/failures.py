"""``<suite>/failures``: why the runs of a batch failed, as far as rules can see it in their traces."""

# no postponed annotations here: Dagster reads the type of a step's context at import
import dagster as dg
from sqlalchemy import Connection, column, func, select, table

from eval_pipeline import markdown
from eval_pipeline.assets.common import OWNERS, database, one_line_errors, partition_keys
from eval_pipeline.assets.lease import LEASE
from eval_pipeline.assets.partitions import Family
from eval_pipeline.failures.store import classify_batch
from eval_pipeline.ids import BatchTeam
from eval_pipeline.settings import load_settings
from eval_pipeline.suites import Suite


def _unsuccessful(connection: Connection, batch_team: BatchTeam) -> dict[str, int]:
    """Runs without success by the mode that they are filed under, or by their error class."""
    view = table("v_failures", *(column(name) for name in ("batch_id", "team_id", "error_class", "failure_stage")))
    filed = func.coalesce(view.c.error_class, view.c.failure_stage, "not looked at")
    rows = connection.execute(
        select(filed, func.count())
        .where(view.c.batch_id == batch_team.batch, view.c.team_id == batch_team.team)
        .group_by(filed)
        .order_by(func.count().desc(), filed)
    ).all()
    return {str(name): int(count) for name, count in rows}


def failures_asset(suite: Suite, family: Family) -> dg.AssetsDefinition:
    """The failure signals of one suite."""

    @dg.asset(
        key=family.key("failures"),
        deps=[family.key("events")],
        partitions_def=family.batch_team,
        backfill_policy=dg.BackfillPolicy.single_run(),
        description=(
            "Rule-based failure signals over the traces, named by the modes of MAST, each with the events that made it "
            "fire. Recomputable at any time, without a model."
        ),
        kinds={"python", "postgres"},
        group_name=suite.name,
        owners=OWNERS,
        required_resource_keys={LEASE},
    )
    def failures(context: dg.AssetExecutionContext) -> None:
        with one_line_errors():
            engine = database(load_settings())
            for key in partition_keys(context):
                batch_team = BatchTeam.parse(key, "partition key")
                with engine.begin() as connection:
                    modes = classify_batch(connection, batch_team)
                    filed = _unsuccessful(connection, batch_team)
                metadata: dict[str, dg.MetadataValue | int] = {
                    "runs_without_success": sum(filed.values()),
                    "filed_under": dg.MetadataValue.md(markdown.table(("mode or class", "runs"), filed.items())),
                    "all_signals": dg.MetadataValue.md(markdown.table(("mode", "runs"), modes.most_common())),
                }
                context.add_asset_metadata(metadata, partition_key=key)

    return failures
