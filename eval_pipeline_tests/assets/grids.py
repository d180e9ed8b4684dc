"""A suite's grid on a real Dagster instance, launched as the pages and the command line launch it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg
from dagster._core.definitions.partitions.context import partition_loading_context
from dagster._core.storage.partition_status_cache import AssetPartitionStatus
from sqlalchemy import func, select

from eval_pipeline.assets.partitions import Family
from eval_pipeline.assets.ranges import range_tags
from eval_pipeline.automation.jobs import runs_job_name
from eval_pipeline.db import tables
from eval_pipeline.definitions import build_defs
from eval_pipeline.home import stage_dir
from eval_pipeline.launcher import load_suite
from eval_pipeline.settings import load_settings
from eval_pipeline.suites import load_suites
from eval_pipeline_tests.conftest import Database

V4 = "first@v4-prompt-fix"
"""A condition whose tools start no process, so that its runs take milliseconds."""


@dataclass
class Grid:
    """A loaded suite on an instance, with the definitions of this moment's settings."""

    instance: dg.DagsterInstance
    database: Database
    suite: str = "sample"
    batch_teams: Sequence[str] = (V4,)
    defs: dg.Definitions = field(init=False)

    def __post_init__(self) -> None:
        self.reload()
        self.instance.add_dynamic_partitions(self.family.batch_team_name, list(self.batch_teams))

    def reload(self) -> None:
        """Read suites and settings again, and load the suite."""
        settings = load_settings()
        self.defs = build_defs(settings)
        load_suite(self.instance, load_suites(settings)[self.suite])

    @property
    def family(self) -> Family:
        return Family(self.suite)

    @property
    def task_keys(self) -> list[str]:
        return list(self.instance.get_dynamic_partitions(self.family.task_attempt_name))

    def launch(self, first: str, last: str, **tags: str) -> dg.ExecuteInProcessResult:
        """Run the cells from ``batch@team|task#attempt`` to another one, in the order of their registration."""
        job = self.defs.resolve_job_def(runs_job_name(self.suite))
        return self._executed(job, range_tags(first, last) | {name.replace("__", "/"): tags[name] for name in tags})

    def launch_tasks(self, count: int, batch_team: str = V4, **tags: str) -> dg.ExecuteInProcessResult:
        """Run the first ``count`` tasks of a condition."""
        keys = self.task_keys[:count]
        return self.launch(f"{batch_team}|{keys[0]}", f"{batch_team}|{keys[-1]}", **tags)

    def materialize(self, name: str, first: str, last: str) -> dg.ExecuteInProcessResult:
        """Run one asset that is partitioned by ``batch@team``, over a range of conditions."""
        every = self.defs.resolve_implicit_global_asset_job_def()
        return self._executed(every.get_subset(asset_selection={self.family.key(name)}), range_tags(first, last))

    def _executed(self, job: dg.JobDefinition, tags: dict[str, str]) -> dg.ExecuteInProcessResult:
        quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
        return job.execute_in_process(instance=self.instance, tags=tags, run_config=quiet, raise_on_error=False)

    def cells(self, name: str, status: AssetPartitionStatus) -> set[str]:
        """The keys of an asset's partitions that the pages show in ``status``."""
        key = self.family.key(name)
        partitions = self.defs.resolve_asset_graph().get(key).partitions_def
        assert partitions is not None
        with partition_loading_context(dynamic_partitions_store=self.instance):
            keys = partitions.get_partition_keys()
            found = self.instance.get_status_by_partition(key, keys, partitions)
        return {str(cell) for cell, shown in (found or {}).items() if shown is status}

    def materializations(self, name: str) -> Counter[str | None]:
        """How often each partition of an asset was materialized; the key ``None`` is an event of no partition."""
        events = self.instance.fetch_materializations(self.family.key(name), limit=1000).records
        return Counter(None if event.partition_key is None else str(event.partition_key) for event in events)

    def metadata(self, name: str, partition: str) -> dict[str, object]:
        """What the pages show of the latest materialization of one partition."""
        records = dg.AssetRecordsFilter(asset_key=self.family.key(name), asset_partitions=[partition])
        (latest, *_) = self.instance.fetch_materializations(records, limit=1).records
        assert latest.asset_materialization is not None
        return {key: value.value for key, value in latest.asset_materialization.metadata.items()}

    def observation(self, partition: str) -> dict[str, object]:
        """The latest observation of one cell of ``runs``."""
        wanted = dg.AssetRecordsFilter(asset_key=self.family.key("runs"), asset_partitions=[partition])
        (latest, *_) = self.instance.fetch_observations(wanted, limit=1).records
        observed = latest.event_log_entry.asset_observation
        assert observed is not None
        return {key: value.value for key, value in observed.metadata.items()}

    def counts(self) -> dict[str, int]:
        """The rows of every table that a run writes to."""
        names = ("runs", "events", "model_calls", "texts", "plan", "batches")
        with self.database.engine.connect() as connection:
            return {
                name: connection.execute(select(func.count()).select_from(tables.metadata.tables[name])).scalar_one()
                for name in names
            }


def block_staging(task_id: str) -> Path:
    """Make every run of a task with an attachment crash: a file lies where its folder must be made."""
    place = stage_dir(load_settings()) / task_id
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("in the way")
    return place


def failure(result: dg.ExecuteInProcessResult) -> str:
    """The one reason that a person reads of a failed run."""
    assert not result.success
    (event,) = (event for event in result.all_events if event.is_step_failure)
    told = event.step_failure_data.user_failure_data
    assert told is not None, "the step ended in an error of ours, not in a message"
    assert told.description is not None
    return told.description
