"""``<suite>/accounting``: what each role of a team did and cost, who handed over to whom, how the talk ended."""

# no postponed annotations here: Dagster reads the type of a step's context at import
from dataclasses import astuple, fields

import dagster as dg

from eval_pipeline import markdown
from eval_pipeline.assets.common import OWNERS, database, one_line_errors, partition_keys
from eval_pipeline.assets.lease import LEASE
from eval_pipeline.assets.partitions import Family
from eval_pipeline.db.accounting import Accounting, Ending, Handover, RoleFigures, accounting
from eval_pipeline.ids import BatchTeam
from eval_pipeline.settings import load_settings
from eval_pipeline.suites import Suite

Row = RoleFigures | Handover | Ending


def _table(kind: type[Row], rows: tuple[Row, ...]) -> dg.MetadataValue:
    header = [field.name for field in fields(kind)]
    return dg.MetadataValue.md(markdown.table(header, [astuple(row) for row in rows]))


def _metadata(found: Accounting) -> dict[str, dg.MetadataValue | int | float]:
    selector = next((one for one in found.roles if one.role == "selector"), None)
    all_tokens = sum(one.tokens or 0 for one in found.roles)
    metadata: dict[str, dg.MetadataValue | int | float] = {
        "model_calls": sum(one.model_calls for one in found.roles),
        "failed_calls": sum(one.failed_calls for one in found.roles),
        "failed_decisions": sum(one.failed_decisions for one in found.roles),
        "tokens": all_tokens,
        "roles": _table(RoleFigures, found.roles),
        "handovers": _table(Handover, found.handovers),
        "endings": _table(Ending, found.endings),
    }
    if selector is not None and selector.tokens is not None and all_tokens:
        metadata["selector_share_of_tokens"] = round(selector.tokens / all_tokens, 4)
    return metadata


def accounting_asset(suite: Suite, family: Family) -> dg.AssetsDefinition:
    """The accounting of one suite's batches."""

    @dg.asset(
        key=family.key("accounting"),
        deps=[family.key("runs"), family.key("events")],
        partitions_def=family.batch_team,
        backfill_policy=dg.BackfillPolicy.single_run(),
        description=(
            "Per role of the team, the selector included: requests and failed ones, tokens, cost, latency, turns, tool "
            "calls, over all tries; the hand-over matrix with its reasons, and how the talk ended."
        ),
        kinds={"postgres", "view"},
        group_name=suite.name,
        owners=OWNERS,
        required_resource_keys={LEASE},
    )
    def roles(context: dg.AssetExecutionContext) -> None:
        with one_line_errors():
            engine = database(load_settings())
            for key in partition_keys(context):
                with engine.connect() as connection:
                    found = accounting(connection, BatchTeam.parse(key, "partition key"))
                context.add_asset_metadata(_metadata(found), partition_key=key)

    return roles
