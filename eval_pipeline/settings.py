"""The ``EVAL_*`` variables as one typed object; every field says what it means and what it defaults to.

A new setting is a field here and a line in ``.env.example``; a test holds the two against each other. Reading
``.env`` files belongs to :mod:`eval_pipeline.env_files`, what follows from a setting to whoever uses it.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from annotated_types import Ge, Gt, Le
from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from eval_pipeline.addresses import check_base_url, check_dsn, dsn_passwords
from eval_pipeline.complaints import complaint
from eval_pipeline.env_files import PREFIX, merged
from eval_pipeline.errors import SettingsError
from eval_pipeline.home import find_home
from eval_pipeline.ids import shown

_TEST_PREFIX = f"{PREFIX}TEST_"
_HIDDEN = frozenset({"pg_dsn", "llm_api_key", "llm_base_url"})
_SCHEMA = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")


def _schema_name(value: str) -> str:
    if not _SCHEMA.fullmatch(value) or value == "information_schema":
        raise ValueError("is no schema name; set 1 to 63 of a-z 0-9 _ that begin with a letter or _ and not with pg_")
    return value


def _folder(value: Path) -> Path:
    if not str(value).isprintable():
        raise ValueError("has control characters; set a path")
    try:
        return value.expanduser()
    except RuntimeError:
        raise ValueError("begins with a ~ that names no user; set a path") from None


def _secret_dsn(value: SecretStr) -> SecretStr:
    check_dsn(value.get_secret_value())
    return value


def _key(value: SecretStr) -> SecretStr:
    key = value.get_secret_value()
    if not key.isascii() or not key.isprintable() or " " in key:
        # it travels in an HTTP header, where such a key fails with an error that quotes it
        raise ValueError("has white space or characters outside ASCII; set the key alone")
    return value


def _name(value: str) -> str:
    if not value.strip() or not value.isprintable() or len(value) > 200:
        raise ValueError("is no name; set 1 to 200 printable characters")
    return value


def _none_word(value: object) -> object:
    return None if isinstance(value, str) and value.strip().lower() == "none" else value


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


SchemaName = Annotated[str, AfterValidator(_schema_name)]
Folder = Annotated[Path, AfterValidator(_folder)]
Name = Annotated[str, AfterValidator(_name)]
Count = Annotated[int, Ge(1), Le(2**31 - 1)]
Seconds = Annotated[float, Gt(0), Le(604_800)]
Money = Annotated[float, Ge(0)]
LogLevel = Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"], BeforeValidator(_upper)]


class Settings(BaseSettings):
    """Everything that a person can set from outside; made by :func:`load_settings`, immutable."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        allow_inf_nan=False,
    )

    pg_dsn: Annotated[SecretStr, AfterValidator(_secret_dsn)] | None = Field(
        None,
        description="PostgreSQL, as postgresql://user:password@host:5432/database. Unset: an embedded one.",
    )
    pg_schema: SchemaName = Field("eval_ph1", description="Schema of the pipeline's own tables and views.")
    pg_dagster_schema: SchemaName = Field(
        "dagster",
        description="Schema of Dagster's tables in your server; the embedded one has a database for them.",
    )

    llm_provider: Literal["scripted", "openai"] = Field(
        "scripted",
        description="scripted plays the sample suite's scripts; openai is any OpenAI-compatible endpoint.",
    )
    scripts_dir: Folder | None = Field(
        None,
        description="Scripts for tasks and teams of your own, played before the shipped ones. Unset: none.",
    )
    scripted_latency_s: Annotated[float, Ge(0), Le(3600)] = Field(
        0.0, description="Seconds that every answer of the scripted model takes, to rehearse a batch."
    )
    llm_base_url: Annotated[str, AfterValidator(check_base_url)] | None = Field(
        None, description="Address of the endpoint, such as http://localhost:8000/v1. Needed for openai."
    )
    llm_api_key: Annotated[SecretStr, AfterValidator(_key)] | None = Field(
        None,
        description="Key of the endpoint. Unset: the word none is sent, which local servers take.",
    )
    llm_model: Name | None = Field(None, description="Model, as the endpoint names it. Needed for openai.")
    llm_temperature: Annotated[Annotated[float, Ge(0), Le(2)] | None, BeforeValidator(_none_word)] = Field(
        0.0, description="Sampling temperature; none leaves it out of the request, for models that refuse it."
    )
    llm_seed: Annotated[int, Ge(-(2**63)), Le(2**63 - 1)] | None = Field(
        None, description="Seed of the sampling, for endpoints that take one. Unset: left out of the request."
    )
    llm_max_tokens: Count | None = Field(None, description="Most tokens of one answer. Unset: left out of the request.")
    llm_timeout_s: Seconds = Field(
        120.0, description="Seconds that an answer may take; in a stream, from one chunk to the next."
    )
    llm_connect_timeout_s: Seconds = Field(10.0, description="Seconds that connecting may take.")
    llm_retries: Annotated[int, Ge(0), Le(100)] = Field(
        4, description="How often a request that failed for a passing reason is sent again."
    )
    llm_retry_budget_s: Annotated[float, Ge(0), Le(604_800)] = Field(
        300.0, description="Seconds that all waits between the retries of one request may add up to."
    )
    llm_backoff_s: Annotated[float, Ge(0), Le(3600)] = Field(
        1.0, description="Seconds before the first retry; doubled for each further one, unless the endpoint says."
    )
    llm_stream: bool = Field(False, description="Whether answers are streamed from the endpoint.")
    llm_family: Name = Field(
        "unknown",
        description="AutoGen's model family; r1 splits off <think> blocks, unknown fits most others.",
    )
    llm_vision: bool = Field(False, description="Whether the model takes images.")
    llm_function_calling: bool = Field(True, description="Whether the model calls tools.")
    llm_json_output: bool = Field(True, description="Whether the endpoint has a JSON mode.")
    llm_structured_output: bool = Field(False, description="Whether the endpoint takes a JSON schema.")
    llm_parallel_tool_calls: bool | None = Field(
        None, description="Whether one answer may hold several tool calls. Unset: left out of the request."
    )
    llm_include_name: bool = Field(
        True,
        description="Whether messages carry a name field; false puts the name before the text instead.",
    )

    max_messages: Count = Field(30, description="Messages after which a run ends, the task's own included.")
    run_timeout_s: Seconds = Field(1800.0, description="Seconds after which a run ends.")
    max_tokens_per_run: Count | None = Field(
        None, description="Tokens, input and output together, after which a run ends. Unset: no such limit."
    )
    max_cost_per_run: Annotated[float, Gt(0)] | None = Field(
        None, description="Cost after which a run ends, in the currency of the prices. Unset: no such limit."
    )
    tool_timeout_s: Seconds = Field(60.0, description="Seconds that one tool call may take.")
    sandbox_minimum: Literal["bwrap", "namespaces", "landlock", "limits"] = Field(
        "limits", description="Weakest isolation at which python_exec may run a model's program."
    )
    concurrency: Annotated[int, Ge(1), Le(1000)] = Field(4, description="Runs under way at once in a launch.")

    cells_per_dagster_run: Count | None = Field(
        None,
        description="Cells per Dagster run of a backfill. Unset: a batch is one Dagster run; set it for many workers.",
    )

    resume_paused_after_s: Seconds = Field(
        21_600.0, description="Seconds after which the sensor resume_paused_batches, once on, tries a paused batch."
    )
    keep_nightly: Count = Field(
        30, description="Nights whose partition keys the sensor retire_nightly_keys, once on, leaves in the UI."
    )

    gaia_dir: Folder | None = Field(
        None, description="Folder with GAIA's metadata.jsonl, or the dataset's root above 2023/validation."
    )
    sql_dir: Folder | None = Field(None, description="Folder with the tasks of the sql benchmark.")
    research_dir: Folder | None = Field(None, description="Folder with the tasks of the research benchmark.")
    analysis_dir: Folder | None = Field(None, description="Folder with the tasks of the analysis benchmark.")
    extract_dir: Folder | None = Field(None, description="Folder with the tasks of the extract benchmark.")
    cppx_dir: Folder | None = Field(None, description="Folder with the tasks of the cppx benchmark.")
    meeting_dir: Folder | None = Field(None, description="Folder with the tasks of the meeting benchmark.")
    ocrproxy_dir: Folder | None = Field(None, description="Folder with the tasks of the ocrproxy benchmark.")
    coding_dir: Folder | None = Field(None, description="Folder with the tasks of the coding benchmark.")
    codetest_dir: Folder | None = Field(None, description="Folder with the tasks of the codetest benchmark.")

    suites_file: Folder | None = Field(
        None,
        description="Suites to offer. Unset: suites.yaml of the home folder, or the packaged one.",
    )
    teams_dir: Folder | None = Field(None, description="Folder with team files of your own. Unset: none.")
    stage_dir: Folder | None = Field(
        None,
        description="Where attachments are staged. Unset: .eval_pipeline/stage in the home folder.",
    )
    report_dir: Folder | None = Field(
        None, description="Where reports are written. Unset: .eval_pipeline/reports in the home folder."
    )

    price_input: Money | None = Field(
        None,
        description="Price of a million input tokens; set both prices or none. Unset: cost is NULL.",
    )
    price_output: Money | None = Field(
        None,
        description="Price of a million output tokens; set both prices or none. Unset: cost is NULL.",
    )
    log_level: LogLevel = Field("WARNING", description="Least severe messages that the command line logs.")

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if self.pg_schema == self.pg_dagster_schema:
            raise ValueError("EVAL_PG_SCHEMA and EVAL_PG_DAGSTER_SCHEMA name the same schema; set two different ones")
        if (self.price_input is None) != (self.price_output is None):
            raise ValueError("EVAL_PRICE_INPUT and EVAL_PRICE_OUTPUT make a cost only together; set both or none")
        if self.max_cost_per_run is not None and self.price_input is None:
            raise ValueError("EVAL_MAX_COST_PER_RUN needs EVAL_PRICE_INPUT and EVAL_PRICE_OUTPUT; set them")
        return self

    def require_endpoint(self) -> tuple[str, str]:
        """The endpoint's base URL and model, both set.

        Raises:
            SettingsError: one of them is not; names what to set.
        """
        if self.llm_base_url is not None and self.llm_model is not None:
            return self.llm_base_url, self.llm_model
        needed = {"EVAL_LLM_BASE_URL": self.llm_base_url, "EVAL_LLM_MODEL": self.llm_model}
        missing = " and ".join(name for name, value in needed.items() if value is None)
        raise SettingsError(
            f"EVAL_LLM_PROVIDER is {self.llm_provider!r}, which needs {missing}; "
            "set EVAL_LLM_BASE_URL such as http://localhost:8000/v1 and EVAL_LLM_MODEL as it is named there"
        )


def env_name(field: str) -> str:
    """The variable of a field of :class:`Settings`, such as ``EVAL_CONCURRENCY``."""
    return f"{PREFIX}{field.upper()}"


def load_settings() -> Settings:
    """Read the settings afresh: the environment over the current folder's ``.env`` over the home folder's.

    An empty value is an unset one.

    Raises:
        SettingsError: one line that names every variable that is unknown or has a wrong value; never with the
            value of a secret.
    """
    values = merged([find_home() / ".env", Path(".env")], os.environ)
    fields = {env_name(field): field for field in Settings.model_fields}
    unknown = [name for name in values if name not in fields and not name.startswith(_TEST_PREFIX)]
    if unknown:
        raise SettingsError("; ".join(_unknown(name, list(fields)) for name in sorted(unknown)))
    problem = ""
    try:
        return Settings.model_validate({fields[name]: values[name] for name in fields if values.get(name)})
    except ValidationError as exc:
        problem = "; ".join(_wrong(details) for details in exc.errors(include_url=False))
    # outside the handler, so that the error which holds the values is not even its context
    raise SettingsError(problem)


def secrets(settings: Settings) -> tuple[str, ...]:
    """What must be masked wherever it turns up: the key, and the DSN's passwords as written and decoded."""
    key = () if settings.llm_api_key is None else (settings.llm_api_key.get_secret_value(),)
    passwords = () if settings.pg_dsn is None else dsn_passwords(settings.pg_dsn.get_secret_value())
    return (*key, *passwords)


def _unknown(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else "remove it, or see .env.example for the ones there are"
    return f"{name[:80]!a} is no setting; {hint}"


def _wrong(details: ErrorDetails) -> str:
    words = complaint(details)
    if not details["loc"]:
        return words
    field = str(details["loc"][0])
    value = "the value (not shown)" if field in _HIDDEN else shown(details["input"])
    if details["type"] == "value_error":
        return f"{env_name(field)}: {value} {words}"
    default = default_text(field) or "none"
    return f"{env_name(field)}: {value} {words}; set {_expected(field)} (default: {default})"


def default_text(field: str) -> str:
    """The default of a field as it would be written in ``.env``; empty for none."""
    default = Settings.model_fields[field].default
    if default is None:
        return ""
    return str(default).lower() if isinstance(default, bool) else str(default)


def _expected(field: str) -> str:
    """What a field takes, in words made from its declaration."""
    schema = Settings.model_json_schema()["properties"][field]
    kinds = [kind for kind in schema.get("anyOf", [schema]) if kind.get("type") != "null"]
    return " or ".join(_kind(kind) for kind in kinds)


def _kind(schema: Mapping[str, object]) -> str:
    if "enum" in schema:
        choices = schema["enum"]
        return "one of " + ", ".join(map(str, choices)) if isinstance(choices, list) else "a text"
    words = {"integer": "a whole number", "number": "a number", "boolean": "true or false"}
    bounds = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to"}
    limits = [f"{word} {schema[name]}" for name, word in bounds.items() if name in schema]
    return " ".join([words.get(str(schema.get("type")), "a text"), *limits])
