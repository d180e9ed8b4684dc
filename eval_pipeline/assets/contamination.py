"""``<suite>/contamination``: which runs of a batch touched an answer key, a foreign file or a public copy."""

# no postponed annotations here: Dagster reads the type of a step's context at import
import dagster as dg
from sqlalchemy import Connection, column, select, table

from eval_pipeline import markdown
from eval_pipeline.assets.common import OWNERS, database, one_line_errors, partition_keys
from eval_pipeline.assets.lease import LEASE
from eval_pipeline.assets.partitions import Family
from eval_pipeline.contamination.rules import VERSION
from eval_pipeline.contamination.store import flag_batch, flagged_runs, places
from eval_pipeline.ids import BatchTeam
from eval_pipeline.settings import load_settings
from eval_pipeline.suites import Suite

_SHOWN = 50
_COLUMNS = ("task_id", "attempt", "rule", "confidence", "seqs", "detail")


def _sample(connection: Connection, batch_team: BatchTeam) -> str:
    view = table("v_contamination", *(column(name) for name in (*_COLUMNS, "batch_id", "team_id")))
    rows = connection.execute(
        select(*(view.c[name] for name in _COLUMNS))
        .where(view.c.batch_id == batch_team.batch, view.c.team_id == batch_team.team)
        .order_by(view.c.confidence, view.c.rule, view.c.task_id, view.c.attempt)
        .limit(_SHOWN)
    ).all()
    return markdown.table(_COLUMNS, [tuple(row) for row in rows])


def contamination_asset(suite: Suite, family: Family) -> dg.AssetsDefinition:
    """The contamination flags of one suite's batches."""

    @dg.asset(
        key=family.key("contamination"),
        deps=[family.key("events")],
        partitions_def=family.batch_team,
        backfill_policy=dg.BackfillPolicy.single_run(),
        description=(
            "Runs that touched an answer key, another task's file or a public copy of the benchmark, each with the "
            "events that show it. A flag changes no verdict; compare --without-flagged leaves decided ones out."
        ),
        kinds={"python", "postgres"},
        group_name=suite.name,
        owners=OWNERS,
        required_resource_keys={LEASE},
    )
    def contamination(context: dg.AssetExecutionContext) -> None:
        with one_line_errors():
            settings = load_settings()
            engine, known = database(settings), places(settings)
            for key in partition_keys(context):
                batch_team = BatchTeam.parse(key, "partition key")
                with engine.begin() as connection:
                    counts = flag_batch(connection, batch_team, known)
                    decided = len(flagged_runs(connection, batch_team))
                    sample = _sample(connection, batch_team)
                rows = [(rule, found["decided"], found["signal"]) for rule, found in sorted(counts.items())]
                metadata: dict[str, dg.MetadataValue | int | str] = {
                    "runs_decided": decided,
                    "rules": VERSION,
                    "flags": dg.MetadataValue.md(markdown.table(("rule", "decided", "signal"), rows)),
                    "sample": dg.MetadataValue.md(sample),
                }
                context.add_asset_metadata(metadata, partition_key=key)

    return contamination
