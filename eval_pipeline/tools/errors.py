"""What a tool raises for the model to read, where no exception of Python's own says it.

The adapter turns every exception of a tool into a tool error; errors that a person must mend are in
:mod:`eval_pipeline.errors`.
"""

from __future__ import annotations


class ToolError(Exception):
    """A call that cannot be answered; the message tells the model why and what it can do instead."""


class ToolTimeoutError(ToolError, TimeoutError):
    """A call that took longer than it may; what it had started has been killed."""


class UnreadableFileError(ToolError):
    """An attachment that is encrypted, corrupt, not what its name says, or too large to be unpacked."""


class CodeFailedError(ToolError):
    """A program of ``python_exec`` ended with a status other than 0, or was stopped at one of its limits."""
