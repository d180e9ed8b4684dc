"""``<suite>/scores``: a batch's stored answers scored again with the present scorers, on demand."""

# no postponed annotations here: Dagster reads the type of a step's context at import
import dagster as dg

from eval_pipeline.assets.common import OWNERS, database, one_line_errors, partition_keys
from eval_pipeline.assets.lease import LEASE
from eval_pipeline.assets.partitions import Family
from eval_pipeline.db.views import refresh_batches
from eval_pipeline.execution.rescoring import rescore
from eval_pipeline.ids import BatchTeam
from eval_pipeline.settings import load_settings
from eval_pipeline.suites import Suite, load_tasks


def scores_asset(suite: Suite, family: Family) -> dg.AssetsDefinition:
    """The rescoring of one suite's batches."""

    @dg.asset(
        key=family.key("scores"),
        deps=[family.key("runs")],
        partitions_def=family.batch_team,
        backfill_policy=dg.BackfillPolicy.single_run(),
        description=(
            "Stored answers scored again with the present scorer: materialize it after a scorer has changed. The old "
            "scores stay under their version; no model is called."
        ),
        kinds={"python", "postgres"},
        group_name=suite.name,
        owners=OWNERS,
        required_resource_keys={LEASE},
    )
    def scores(context: dg.AssetExecutionContext) -> None:
        with one_line_errors():
            settings = load_settings()
            engine = database(settings)
            loaded = load_tasks(suite, settings)
            for key in partition_keys(context):
                batch_team = BatchTeam.parse(key, "partition key")
                done = rescore(engine, batch_team, loaded)
                refresh_batches(engine, [batch_team])
                metadata: dict[str, dg.MetadataValue | int | str] = {
                    "scorer_version": done.version,
                    "scored": done.scored,
                    "gained": len(done.gained),
                    "lost": len(done.lost),
                    "left_out": done.left_out,
                }
                context.add_asset_metadata(metadata, partition_key=key)

    return scores
