"""``<suite>/report``: one HTML page per ``batch@team``, and the same in short in the UI.

A report that cannot be made takes nothing with it: the results are in the database, and the other reports of the same
Dagster run are written first.
"""

# no postponed annotations here: Dagster reads the type of a step's context at import
import dagster as dg

from eval_pipeline.assets.common import OWNERS, database, one_line_errors, partition_keys
from eval_pipeline.assets.lease import LEASE
from eval_pipeline.assets.partitions import Family
from eval_pipeline.db.views import SUMMARY_VIEWS
from eval_pipeline.errors import EvalPipelineError
from eval_pipeline.home import report_dir
from eval_pipeline.ids import BatchTeam
from eval_pipeline.reporting.publish import Report, publish
from eval_pipeline.settings import load_settings
from eval_pipeline.suites import Suite

Metadata = dict[str, dg.MetadataValue | int | float | str]


def report_metadata(report: Report) -> Metadata:
    """Where the page is, its headline figures as numbers that the UI can plot over batches, and its summary."""
    figures = report.material.figures
    metadata: Metadata = {
        "page": dg.MetadataValue.path(str(report.path)),
        "size_bytes": report.size_bytes,
        "planned": figures.planned,
        "completed": figures.completed,
        "crashed": figures.crashed,
        "successes": figures.successes,
        "protected_strings_replaced": report.replaced.total(),
        "summary": dg.MetadataValue.md(report.markdown),
    }
    if report.rate is not None:
        metadata["pass_at_1_completed"] = round(report.rate.value, 4)
        metadata["pass_at_1_low"] = round(report.rate.interval.low, 4)
        metadata["pass_at_1_high"] = round(report.rate.interval.high, 4)
    if report.planned is not None:
        metadata["pass_at_1_planned"] = round(report.planned.value, 4)
    if figures.tokens_per_success is not None:
        metadata["tokens_per_success"] = round(figures.tokens_per_success)
    contrast = report.material.contrast
    if contrast is not None:
        metadata["baseline"] = contrast.before.key
        metadata["verdict"] = contrast.verdict
        metadata["difference_points"] = round(100 * contrast.difference.mean, 2)
    return metadata


def report_asset(suite: Suite, family: Family) -> dg.AssetsDefinition:
    """The reports of one suite."""

    @dg.asset(
        key=family.key("report"),
        # the last two, so that what was seen in the traces is there when both are renewed together
        deps=[family.key(name) for name in (*SUMMARY_VIEWS, "failures", "contamination")],
        partitions_def=family.batch_team,
        backfill_policy=dg.BackfillPolicy.single_run(),
        description=(
            "One self-contained HTML page per batch@team: figures with intervals, comparison with the parent team's "
            "batch, plots, failures, every run with its transcript. The metadata `page` says where it is."
        ),
        kinds={"python", "html"},
        group_name=suite.name,
        owners=OWNERS,
        required_resource_keys={LEASE},
    )
    def report(context: dg.AssetExecutionContext) -> None:
        problems = []
        with one_line_errors():
            settings = load_settings()
            engine = database(settings)
            for key in partition_keys(context):
                try:
                    made = publish(engine, settings, BatchTeam.parse(key, "partition key"), report_dir(settings))
                except EvalPipelineError as error:
                    problems.append(str(error))
                else:
                    context.add_asset_metadata(report_metadata(made), partition_key=key)
        if problems:
            raise dg.Failure(description="; ".join(problems), allow_retries=False)

    return report
