"""The ``teams`` asset: every version of the agent team, registered under its hash."""

# no postponed annotations here: Dagster reads the type of a step's context at import
import dagster as dg

from eval_pipeline.assets.common import OWNERS, database, one_line_errors
from eval_pipeline.assets.lease import LEASE
from eval_pipeline.assets.partitions import TEAMS_KEY
from eval_pipeline.markdown import table
from eval_pipeline.settings import load_settings
from eval_pipeline.teams.registry import diff_text, load_teams, register_teams

REGISTRY_VERSION = "append-only"
"""The data version of ``teams``: a registered team never changes, so a new one puts no batch out of date."""


@dg.asset(
    key=TEAMS_KEY,
    description=(
        "The versions of the agent team, from the shipped files and EVAL_TEAMS_DIR, registered with their hashes. "
        "A known id whose text has changed stops everything: one letter changed needs a new id."
    ),
    kinds={"autogen", "yaml", "postgres"},
    group_name="teams",
    owners=OWNERS,
    required_resource_keys={LEASE},
)
def teams(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    with one_line_errors():
        settings = load_settings()
        specs = load_teams(settings.teams_dir)
        with database(settings).begin() as connection:
            register_teams(connection, specs)
    rows = [
        (
            spec.team_id,
            spec.parent,
            spec.layer,
            spec.change,
            spec.prompt_bundle_hash[:12],
            spec.contract_hash[:12],
        )
        for spec in specs.values()
    ]
    header = ("team", "parent", "layer", "the one change", "prompt hash", "contract hash")
    metadata: dict[str, dg.MetadataValue | int] = {
        "teams": len(specs),
        "versions": dg.MetadataValue.md(table(header, rows)),
    }
    for spec in specs.values():
        if spec.parent is not None:
            metadata[f"diff of {spec.team_id}"] = dg.MetadataValue.md(diff_text(spec, specs[spec.parent]))
    return dg.MaterializeResult(metadata=metadata, data_version=dg.DataVersion(REGISTRY_VERSION))
