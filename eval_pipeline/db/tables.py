"""The tables as SQLAlchemy Core objects, for statements that are built in code.

The truth is ``sql/``; a test holds these columns against a migrated database. No schema is named: the engine's
search path says where the tables are.
"""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Double,
    Identity,
    Integer,
    MetaData,
    SmallInteger,
    Table,
    Text,
    Uuid,
)
from sqlalchemy.dialects.postgresql import JSONB

metadata = MetaData()
# None is SQL's NULL; by default SQLAlchemy would store it as a JSON null, which no "is null" finds
_JSON = JSONB(none_as_null=True)


def _timestamp(name: str) -> Column[object]:
    return Column(name, DateTime(timezone=True))


tasks = Table(
    "tasks",
    metadata,
    Column("task_id", Text, primary_key=True),
    Column("content_hash", Text, primary_key=True),
    Column("benchmark", Text),
    Column("level", SmallInteger),
    Column("question", Text),
    Column("gold", Text),
    Column("file_name", Text),
    Column("file_sha256", Text),
    Column("file_size", BigInteger),
    Column("requires_web", Boolean),
    Column("extra", _JSON),
    _timestamp("loaded_at"),
)

teams = Table(
    "teams",
    metadata,
    Column("team_id", Text, primary_key=True),
    Column("parent_id", Text),
    Column("layer", Text),
    Column("changes", _JSON),
    Column("change", Text),
    Column("answers", Text),
    Column("prompt_bundle_hash", Text),
    Column("contract_hash", Text),
    Column("spec", _JSON),
    _timestamp("registered_at"),
)

batches = Table(
    "batches",
    metadata,
    Column("batch_id", Text, primary_key=True),
    Column("team_id", Text, primary_key=True),
    Column("suite", Text),
    Column("benchmark", Text),
    Column("suite_hash", Text),
    Column("contract", _JSON),
    Column("contract_hash", Text),
    Column("info", _JSON),
    Column("provider", Text),
    Column("model", Text),
    Column("scripted", Boolean),
    _timestamp("created_at"),
)

plan = Table(
    "plan",
    metadata,
    Column("batch_id", Text, primary_key=True),
    Column("team_id", Text, primary_key=True),
    Column("task_id", Text, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("task_hash", Text),
    _timestamp("planned_at"),
)

runs = Table(
    "runs",
    metadata,
    Column("run_id", Uuid, primary_key=True),
    Column("batch_id", Text),
    Column("team_id", Text),
    Column("task_id", Text),
    Column("attempt", Integer),
    Column("try_no", Integer),
    Column("live", Boolean),
    Column("task_hash", Text),
    Column("level", SmallInteger),
    Column("status", Text),
    Column("terminated_by", Text),
    Column("success", Boolean),
    Column("format_valid", Boolean),
    Column("final_answer", Text),
    Column("score_reason", Text),
    Column("scorer_version", Text),
    Column("error_class", Text),
    Column("error_message", Text),
    Column("failure_stage", Text),
    _timestamp("started_at"),
    _timestamp("heartbeat_at"),
    _timestamp("finished_at"),
    Column("latency_ms", BigInteger),
    Column("turns", Integer),
    Column("tool_calls", Integer),
    Column("tool_errors", Integer),
    Column("selector_fallbacks", Integer),
    Column("tokens_in", BigInteger),
    Column("tokens_out", BigInteger),
    Column("all_tokens_in", BigInteger),
    Column("all_tokens_out", BigInteger),
    Column("model_calls", Integer),
    Column("cost", Double),
    Column("events_dropped", Integer),
    Column("text_repairs", Integer),
    Column("abandoned", Boolean),
    Column("sandbox_level", Text),
    Column("dagster_run_id", Text),
    Column("worker", Text),
)

events = Table(
    "events",
    metadata,
    Column("run_id", Uuid, primary_key=True),
    Column("seq", Integer, primary_key=True),
    _timestamp("ts"),
    Column("message_type", Text),
    Column("source", Text),
    Column("target", Text),
    Column("content", Text),
    Column("content_sha256", Text),
    Column("content_length", BigInteger),
    Column("tool_name", Text),
    Column("tool_call_id", Text),
    Column("tool_args", JSONB(none_as_null=True)),
    Column("reason_code", Text),
    Column("payload", JSONB(none_as_null=True)),
    Column("error", JSONB(none_as_null=True)),
    Column("tokens_in", Integer),
    Column("tokens_out", Integer),
    Column("latency_ms", BigInteger),
)

texts = Table(
    "texts",
    metadata,
    Column("sha256", Text, primary_key=True),
    Column("body", Text),
    Column("length", BigInteger),
    _timestamp("stored_at"),
)

model_calls = Table(
    "model_calls",
    metadata,
    Column("run_id", Uuid, primary_key=True),
    Column("call_no", Integer, primary_key=True),
    Column("role", Text),
    Column("kind", Text),
    Column("attempt", Integer),
    _timestamp("started_at"),
    Column("latency_ms", BigInteger),
    Column("outcome", Text),
    Column("finish_reason", Text),
    Column("prompt_tokens", Integer),
    Column("completion_tokens", Integer),
    Column("http_status", Integer),
    Column("error_class", Text),
    Column("error_message", Text),
    Column("model", Text),
)

run_metrics = Table(
    "run_metrics",
    metadata,
    Column("run_id", Uuid, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("scorer_version", Text, primary_key=True),
    Column("value", Double),
)

research_grounding = Table(
    "research_grounding",
    metadata,
    Column("run_id", Uuid, primary_key=True),
    Column("scorer_version", Text, primary_key=True),
    Column("evidence", Integer),
    Column("claims", Integer),
    Column("claims_cited", Integer),
    Column("claims_supported", Integer),
    Column("citations", Integer),
    Column("citations_valid", Integer),
    Column("citation_precision", Double),
    Column("citation_recall", Double),
    Column("grounding_f1", Double),
    Column("details", _JSON),
)

cppx_grounding = Table(
    "cppx_grounding",
    metadata,
    Column("run_id", Uuid, primary_key=True),
    Column("scorer_version", Text, primary_key=True),
    Column("facts", Integer),
    Column("facts_found", Integer),
    Column("fact_ratio", Double),
    Column("forbidden_found", Integer),
    Column("identifiers", Integer),
    Column("identifiers_valid", Integer),
    Column("identifier_precision", Double),
    Column("locations", Integer),
    Column("locations_valid", Integer),
    Column("location_precision", Double),
    Column("details", _JSON),
)

message_types = Table(
    "message_types",
    metadata,
    Column("name", Text, primary_key=True),
    Column("meaning", Text),
)

experiments = Table(
    "experiments",
    metadata,
    Column("experiment_id", Text, primary_key=True),
    Column("hypothesis", Text),
    Column("layer", Text),
    Column("team_before", Text),
    Column("team_after", Text),
    Column("suite", Text),
    Column("batch_before", Text),
    Column("batch_after", Text),
    Column("tasks_compared", Integer),
    Column("difference", Double),
    Column("ci_low", Double),
    Column("ci_high", Double),
    _timestamp("opened_at"),
    _timestamp("closed_at"),
)

circuits = Table(
    "circuits",
    metadata,
    Column("endpoint", Text, primary_key=True),
    Column("failures", Integer),
    Column("error_class", Text),
    Column("error_message", Text),
    _timestamp("opened_at"),
    _timestamp("updated_at"),
)

stored_batch_summary = Table(
    "stored_batch_summary",
    metadata,
    Column("batch_id", Text, primary_key=True),
    Column("team_id", Text, primary_key=True),
    Column("level", SmallInteger, primary_key=True),
    *(Column(name, Integer) for name in ("planned", "runs", "tries", "completed", "crashed", "running", "successes")),
    *(Column(name, Double) for name in ("pass_at_1", "pass_at_1_completed", "pass_at_1_planned")),
    *(Column(name, Double) for name in ("format_invalid_rate", "loop_rate")),
    *(Column(name, BigInteger) for name in ("tokens_in", "tokens_out")),
    *(Column(name, BigInteger) for name in ("all_tokens_in", "all_tokens_out", "all_tokens")),
    Column("tokens_per_success", Double),
    Column("model_calls", BigInteger),
    *(Column(name, Double) for name in ("cost", "p50_latency_ms", "p95_latency_ms", "mean_turns")),
    *(Column(name, BigInteger) for name in ("tool_calls", "tool_errors", "events_dropped")),
)

stored_passk = Table(
    "stored_passk",
    metadata,
    Column("batch_id", Text, primary_key=True),
    Column("team_id", Text, primary_key=True),
    Column("level", SmallInteger, primary_key=True),
    Column("k", Integer, primary_key=True),
    Column("tasks", Integer),
    Column("pass_at_k", Double),
    Column("pass_hat_k", Double),
)

stored_tool_summary = Table(
    "stored_tool_summary",
    metadata,
    Column("batch_id", Text, primary_key=True),
    Column("team_id", Text, primary_key=True),
    Column("tool_name", Text, primary_key=True),
    Column("calls", Integer),
    Column("errors", Integer),
    Column("error_rate", Double),
    Column("p50_latency_ms", Double),
)

stale_summaries = Table(
    "stale_summaries",
    metadata,
    Column("stale_no", BigInteger, Identity(always=True), primary_key=True),
    Column("batch_id", Text),
    Column("team_id", Text),
    Column("summary", Text),
)

pauses = Table(
    "pauses",
    metadata,
    Column("batch_id", Text, primary_key=True),
    Column("team_id", Text, primary_key=True),
    Column("endpoint", Text),
    _timestamp("since"),
)

failure_signals = Table(
    "failure_signals",
    metadata,
    Column("run_id", Uuid, primary_key=True),
    Column("mode", Text, primary_key=True),
    Column("found_by", Text, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("confidence", Text),
    Column("seqs", ARRAY(Integer)),
    Column("detail", Text),
    _timestamp("found_at"),
)

scores = Table(
    "scores",
    metadata,
    Column("run_id", Uuid, primary_key=True),
    Column("scorer_version", Text, primary_key=True),
    Column("success", Boolean),
    Column("format_valid", Boolean),
    Column("reason", Text),
    _timestamp("scored_at"),
)

examinations = Table(
    "examinations",
    metadata,
    Column("run_id", Uuid, primary_key=True),
    Column("examiner", Text, primary_key=True),
    Column("version", Text),
    _timestamp("examined_at"),
)

archived_accounting = Table(
    "archived_accounting",
    metadata,
    Column("batch_id", Text, primary_key=True),
    Column("team_id", Text, primary_key=True),
    Column("roles", _JSON),
    Column("handovers", _JSON),
    Column("endings", _JSON),
)

archived_months = Table(
    "archived_months",
    metadata,
    Column("month", Text, primary_key=True),
    Column("first_id", Uuid),
    Column("end_id", Uuid),
    Column("folder", Text),
    Column("manifest_sha256", Text),
    Column("events", BigInteger),
    Column("model_calls", BigInteger),
    Column("texts", BigInteger),
    _timestamp("archived_at"),
    _timestamp("dropped_at"),
    _timestamp("texts_dropped_at"),
)

contamination_flags = Table(
    "contamination_flags",
    metadata,
    Column("run_id", Uuid, primary_key=True),
    Column("rule", Text, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("confidence", Text),
    Column("seqs", ARRAY(Integer)),
    Column("detail", Text),
    _timestamp("found_at"),
)
