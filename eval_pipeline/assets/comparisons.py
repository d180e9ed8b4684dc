"""``<suite>/comparisons``, one partition per pair of conditions, and ``experiments``, the ledger.

A pair's key is ``before@team>after@team``: ``>`` is in no id. A static mapping from batches to pairs does not exist, so
a comparison depends on every batch's summary.
"""

# no postponed annotations here: Dagster reads the type of a step's context at import
import dagster as dg

from eval_pipeline.assets.common import OWNERS, database, one_line_errors, partition_keys
from eval_pipeline.assets.lease import LEASE
from eval_pipeline.assets.partitions import TEAMS_KEY, Family
from eval_pipeline.comparison.compare import Comparison, compare
from eval_pipeline.comparison.ledger import experiments, graph
from eval_pipeline.comparison.outcomes import outcomes
from eval_pipeline.errors import IdError
from eval_pipeline.ids import BatchTeam, shown
from eval_pipeline.markdown import table
from eval_pipeline.settings import load_settings
from eval_pipeline.suites import Suite
from eval_pipeline.teams.registry import load_teams

BETWEEN = ">"
_SHOWN_TASKS = 50


def pair_key(before: BatchTeam, after: BatchTeam) -> str:
    """The partition key of a comparison."""
    return f"{before.key}{BETWEEN}{after.key}"


def parse_pair(key: str) -> tuple[BatchTeam, BatchTeam]:
    """The two conditions of a key such as ``first@v4-prompt-fix>first@v5-multitool``.

    Raises:
        IdError: it is not of that form.
    """
    before, between, after = key.partition(BETWEEN)
    if not between:
        raise IdError(f"comparison {shown(key)} is not of the form before@team>after@team")
    return BatchTeam.parse(before, "comparison"), BatchTeam.parse(after, "comparison")


def _metadata(found: Comparison) -> dict[str, dg.MetadataValue | float | int | str]:
    interval = found.difference.interval
    metadata: dict[str, dg.MetadataValue | float | int | str] = {
        "verdict": found.verdict,
        "in_words": found.words(),
        "tasks": len(found.pairs),
        "difference_points": 100 * found.difference.mean,
        "p_value": found.p_value,
        "test": found.test,
        "changed": dg.MetadataValue.md(
            table(
                ("task", "before", "after"),
                [(p.task_id, p.before, p.after) for p in (*found.gained, *found.lost)][:_SHOWN_TASKS],
            )
        ),
        "by_part": dg.MetadataValue.md(
            table(
                ("part", "tasks", "before", "after"),
                [(p.name, p.difference.tasks, p.before, p.after) for p in (*found.levels, *found.attachments)],
            )
        ),
    }
    if interval is not None:
        metadata["low_points"], metadata["high_points"] = 100 * interval.low, 100 * interval.high
    if found.tokens is not None:
        metadata["tokens_per_task"] = found.tokens.mean
    if found.latency_ms is not None:
        metadata["latency_ms_per_task"] = found.latency_ms.mean
    return metadata


def comparisons_asset(suite: Suite, family: Family) -> dg.AssetsDefinition:
    """The comparisons of one suite."""

    @dg.asset(
        key=family.key("comparisons"),
        deps=[dg.AssetDep(family.key("mv_batch_summary"), partition_mapping=dg.AllPartitionMapping())],
        partitions_def=family.comparison,
        backfill_policy=dg.BackfillPolicy.single_run(),
        description=(
            "One condition against another, task by task: paired difference with its 95 % interval, exact test, cost "
            "and latency, tasks gained and lost. Add a partition such as first@v4-prompt-fix>first@v5-multitool."
        ),
        kinds={"python", "postgres"},
        group_name=suite.name,
        owners=OWNERS,
        required_resource_keys={LEASE},
    )
    def comparisons(context: dg.AssetExecutionContext) -> None:
        with one_line_errors():
            engine = database(load_settings())
            for key in partition_keys(context):
                before, after = parse_pair(key)
                with engine.connect() as connection:
                    found = compare(outcomes(connection, before), outcomes(connection, after))
                context.add_asset_metadata(_metadata(found), partition_key=key)

    return comparisons


@dg.asset(
    key=dg.AssetKey(["experiments"]),
    deps=[TEAMS_KEY],
    description=(
        "The experiments ledger: a hypothesis about one change each, and the verdict that the interval of its "
        "comparison gives. eval-pipeline experiment opens and closes them."
    ),
    kinds={"postgres", "table"},
    group_name="teams",
    owners=OWNERS,
    required_resource_keys={LEASE},
)
def experiments_asset(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    with one_line_errors():
        settings = load_settings()
        with database(settings).connect() as connection:
            entries = experiments(connection)
        lineage = graph(entries, load_teams(settings.teams_dir))
    rows = [
        (
            one.experiment_id,
            f"{one.team_before} → {one.team_after}",
            one.layer,
            one.verdict,
            one.difference,
            one.hypothesis,
        )
        for one in entries
    ]
    header = ("experiment", "teams", "layer", "verdict", "difference", "hypothesis")
    return dg.MaterializeResult(
        metadata={
            "experiments": len(entries),
            "ledger": dg.MetadataValue.md(table(header, rows)),
            "lineage": dg.MetadataValue.md("```\n" + "\n".join(lineage) + "\n```"),
        }
    )
