"""``<suite>/tasks`` and ``<suite>/team_configs``: a batch's frozen half of the contract, readable in the UI.

Both are frozen by the same function, whether they are materialized themselves or ``runs`` is launched first.
"""

# no postponed annotations here: Dagster reads the type of a step's context at import
import re
from collections.abc import Callable, Mapping

import dagster as dg

from eval_pipeline.assets.common import OWNERS, database, one_line_errors, partition_keys
from eval_pipeline.assets.lease import LEASE
from eval_pipeline.assets.partitions import TEAMS_KEY, Family
from eval_pipeline.assets.run_metadata import shown_model
from eval_pipeline.assets.teams import REGISTRY_VERSION
from eval_pipeline.execution.launch import Launch, open_launch
from eval_pipeline.ids import BatchTeam
from eval_pipeline.markdown import fenced, table
from eval_pipeline.settings import load_settings
from eval_pipeline.suites import Suite, load_tasks
from eval_pipeline.teams.registry import load_teams
from eval_pipeline.teams.spec import PROMPTS

Metadata = Mapping[str, dg.MetadataValue | int | str]

_QUESTION = 160


def tasks_metadata(launch: Launch) -> Metadata:
    """The tasks of a batch with their hashes. Gold answers stay in the database."""
    loaded = launch.loaded
    rows = [
        (
            task.task_id,
            task.level,
            task.attachment.file_name if task.attachment else None,
            task.content_hash[:12],
        )
        for task in loaded.tasks
    ]
    questions = [(task.task_id, task.question[:_QUESTION]) for task in loaded.tasks]
    return {
        "tasks": len(loaded.tasks),
        "attempts": loaded.suite.attempts,
        "suite_hash": loaded.content_hash,
        "frozen_tasks": dg.MetadataValue.md(table(("task", "level", "attachment", "content hash"), rows)),
        "questions": dg.MetadataValue.md(table(("task", "question"), questions)),
    }


def team_metadata(launch: Launch) -> Metadata:
    """The team of a batch, with its prompts, and every field of the batch's contract."""
    spec, contract = launch.spec, launch.frozen.contract
    prompts = "\n\n".join(f"**{name}**\n\n{fenced(spec.prompts[name])}" for name in PROMPTS)
    return {
        "team": spec.team_id,
        "parent": spec.parent or "–",
        "change": spec.change,
        "prompt_bundle_hash": spec.prompt_bundle_hash,
        "contract_hash": spec.contract_hash,
        "model": shown_model(launch.settings),
        "contract": dg.MetadataValue.md(table(("field", "value"), _short(contract))),
        "prompts": dg.MetadataValue.md(prompts),
    }


def _short(contract: Mapping[str, object]) -> list[tuple[str, object]]:
    """The fields in order, hashes cut: whole ones would push the table out of the page."""
    return [
        (name, f"{value[:12]}…" if isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) else value)
        for name, value in sorted(contract.items())
    ]


def report_frozen(context: dg.AssetExecutionContext, family: Family, launch: Launch) -> None:
    """Log the materializations of a contract that Dagster does not know yet.

    Mostly this launch is the one that fixed it; or the one that did died before it could say so.
    """
    suite_hash = launch.loaded.content_hash
    for name, metadata, tags in (
        ("tasks", tasks_metadata(launch), _made_from(family.key("dataset"), suite_hash)),
        ("team_configs", team_metadata(launch), _made_from(TEAMS_KEY, REGISTRY_VERSION)),
    ):
        if launch.frozen.first or not _is_materialized(context.instance, family.key(name), launch.batch_team.key):
            context.log_event(
                dg.AssetMaterialization(
                    asset_key=family.key(name), partition=launch.batch_team.key, metadata=dict(metadata), tags=tags
                )
            )


def _is_materialized(instance: dg.DagsterInstance, asset_key: dg.AssetKey, partition: str) -> bool:
    of_partition = dg.AssetRecordsFilter(asset_key=asset_key, asset_partitions=[partition])
    return bool(instance.fetch_materializations(of_partition, limit=1).records)


def _made_from(upstream: dg.AssetKey, data_version: str) -> dict[str, str]:
    """What a step of its own would have noted. Without it, Dagster goes by dates and calls a batch out of date as soon
    as its suite has been loaded again."""
    key = upstream.to_user_string()
    return {
        "dagster/code_version": "1",
        f"dagster/input_data_version/{key}": data_version,
        f"dagster/input_event_pointer/{key}": "NULL",
    }


def _frozen_asset(
    suite: Suite,
    family: Family,
    name: str,
    upstream: dg.AssetKey,
    description: str,
    metadata_of: Callable[[Launch], Metadata],
) -> dg.AssetsDefinition:
    @dg.asset(
        key=family.key(name),
        deps=[upstream],
        partitions_def=family.batch_team,
        backfill_policy=dg.BackfillPolicy.single_run(),
        description=description,
        kinds={"postgres", "table"},
        group_name=suite.name,
        owners=OWNERS,
        required_resource_keys={LEASE},
    )
    def frozen(context: dg.AssetExecutionContext) -> None:
        with one_line_errors():
            settings = load_settings()
            loaded = load_tasks(suite, settings)
            teams = load_teams(settings.teams_dir)
            for key in partition_keys(context):
                batch_team = BatchTeam.parse(key, "partition key")
                launch = open_launch(settings, database(settings), batch_team, loaded, teams)
                context.add_asset_metadata(dict(metadata_of(launch)), partition_key=key)

    return frozen


def frozen_assets(suite: Suite, family: Family) -> list[dg.AssetsDefinition]:
    """The two frozen halves of a batch's contract."""
    return [
        _frozen_asset(
            suite,
            family,
            "tasks",
            family.key("dataset"),
            "The tasks that a batch answers, frozen with the hash of every question, gold answer and attachment. "
            "A later launch over changed tasks is refused.",
            tasks_metadata,
        ),
        _frozen_asset(
            suite,
            family,
            "team_configs",
            TEAMS_KEY,
            "The team that a batch runs, frozen with its prompts, tools, hashes, model and limits. "
            "A later launch under other conditions is refused.",
            team_metadata,
        ),
    ]
