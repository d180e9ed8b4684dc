"""What every asset needs: a database that is up to date, and a user's mistake as one line instead of a traceback."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from weakref import WeakSet

import dagster as dg
from sqlalchemy import Engine

from eval_pipeline.db.engine import engine
from eval_pipeline.db.migrations import migrate
from eval_pipeline.errors import EvalPipelineError
from eval_pipeline.settings import Settings

OWNERS = ["team:evaluation"]

_up_to_date: WeakSet[Engine] = WeakSet()


def database(settings: Settings) -> Engine:
    """The process's engine on an up-to-date schema: on a fresh machine a step or a sensor is the first to need it.

    Raises:
        DatabaseError: the server cannot be started, reached or migrated.
    """
    found = engine(settings)
    if found not in _up_to_date:
        migrate(found)
        _up_to_date.add(found)
    return found


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn an error that the user can mend into a Dagster failure with just its line, never retried."""
    try:
        yield
    except EvalPipelineError as error:
        raise dg.Failure(description=str(error), allow_retries=False) from None


def partition_keys(context: dg.AssetExecutionContext) -> Sequence[str]:
    """The keys that this Dagster run holds, in the order of their registration.

    Raises:
        dagster.Failure: there is none. Dagster makes an empty range of one whose ends are the wrong way round, and
            would call that a success.
    """
    keys: Sequence[str] = context.partition_keys
    if not keys:
        raise dg.Failure(
            description="the partition range is empty: its end was registered before its start; "
            "turn the two round, or launch from the Materialize dialog instead",
            allow_retries=False,
        )
    return keys


@contextmanager
def without_beta_warnings() -> Iterator[None]:
    """Build assets without Dagster's warning for each backfill policy, which is beta and which we depend on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=dg.BetaWarning)
        yield
