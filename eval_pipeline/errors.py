"""The errors that a person reads, and the classes that a crashed run is filed under.

Every message is one line: what was wrong, where, and what to do about it. The command line prints it without a
traceback. Errors of a library are turned into one of these where their meaning is known, not here.
"""

from __future__ import annotations

from enum import StrEnum


class EvalPipelineError(Exception):
    """Anything the user can mend: a file, a setting, an id, a database that is not there."""


class SettingsError(EvalPipelineError):
    """An ``EVAL_*`` variable has a value that cannot be used; the message names the variable."""


class IdError(EvalPipelineError):
    """A batch, team, task id or partition key breaks the rules of :mod:`eval_pipeline.ids`."""


class SuiteError(EvalPipelineError):
    """``suites.yaml`` is wrong, or a suite cannot be loaded as it is declared."""


class TaskDataError(EvalPipelineError):
    """A task file or attachment cannot be used; the message names file, line or id, field and value."""


class TeamFileError(EvalPipelineError):
    """A team file is wrong: unknown key, missing prompt, unknown tool, undeclared change."""


class TeamConfigMismatchError(EvalPipelineError):
    """A team id whose stored hash differs from the code's: the text under a known id has changed."""


class ContractMismatchError(EvalPipelineError):
    """A launch that would go on with a batch under other conditions than it began with."""


class DatabaseError(EvalPipelineError):
    """The database cannot be reached, started or migrated."""


class ScriptError(EvalPipelineError):
    """The scripted model has no script for a run, or the script does not fit what the team did."""


class ScorerError(EvalPipelineError):
    """An answer cannot be judged, for a reason that is not the answer's: no sandbox, no database, a wrong gold."""


class JudgeError(EvalPipelineError):
    """The model that was asked to label failures gave no answer."""


class ErrorClass(StrEnum):
    """Why a run crashed; the values are stored in ``runs.error_class`` and ``model_calls.error_class``."""

    RATE_LIMIT = "rate_limit"
    QUOTA = "quota"
    AUTH = "auth"
    CONTENT_FILTER = "content_filter"
    TIMEOUT = "timeout"
    CONNECTION = "connection"
    SERVER_ERROR = "server_error"
    BAD_RESPONSE = "bad_response"
    TOOL = "tool"
    TEAM = "team"
    INTERRUPTED = "interrupted"
    DATABASE = "database"
    UNKNOWN = "unknown"
