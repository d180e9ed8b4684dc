"""Dagster's daemon without its process: one tick of a schedule or a sensor, and the runs that it requests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import dagster as dg

from eval_pipeline.definitions import build_defs
from eval_pipeline.settings import load_settings


class Daemon:
    """Asks schedules and sensors as Dagster's daemon does: what has a run key that was seen before is not run again."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self.instance = instance
        self.defs = build_defs(load_settings())
        self._seen: set[tuple[str, str | None]] = set()

    def tick(self, name: str, moment: datetime) -> dg.SkipReason | Sequence[dg.RunRequest]:
        """One tick of a schedule; what it requests and has not been requested before is run to its end."""
        (schedule,) = [one for one in self.defs.schedules or () if one.name == name]
        assert isinstance(schedule, dg.ScheduleDefinition)
        context = dg.build_schedule_context(
            instance=self.instance,
            scheduled_execution_time=moment,
            repository_def=self.defs.get_repository_def(),
        )
        found = schedule.evaluate_tick(context)
        if found.skip_message:
            return dg.SkipReason(found.skip_message)
        return self._new(schedule.name, found.run_requests or (), schedule.job_name)

    def look(self, name: str) -> Sequence[dg.RunRequest]:
        """The same for a sensor."""
        (sensor,) = [one for one in self.defs.sensors or () if one.name == name]
        with dg.build_sensor_context(instance=self.instance, definitions=self.defs) as context:
            found = sensor(context)
        assert isinstance(found, dg.SensorResult)
        for request in found.dynamic_partitions_requests or ():
            assert isinstance(request, dg.AddDynamicPartitionsRequest)
            self.instance.add_dynamic_partitions(request.partitions_def_name, list(request.partition_keys))
        return self._new(name, found.run_requests or (), None)

    def _new(self, asker: str, requests: Sequence[dg.RunRequest], job_name: str | None) -> Sequence[dg.RunRequest]:
        new = [request for request in requests if (asker, request.run_key) not in self._seen]
        self._seen |= {(asker, request.run_key) for request in new}
        for request in new:
            job = self.defs.resolve_job_def(request.job_name or job_name or "")
            outcome = job.execute_in_process(
                instance=self.instance,
                tags=dict(request.tags),
                partition_key=request.partition_key,
                run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
                raise_on_error=False,
            )
            assert outcome.success
        return new
