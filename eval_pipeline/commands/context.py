"""What every command begins with: settings, a migrated database, a suite by its name."""

from __future__ import annotations

import logging

from sqlalchemy import Engine

from eval_pipeline.db.engine import engine
from eval_pipeline.db.migrations import migrate
from eval_pipeline.errors import SuiteError
from eval_pipeline.ids import shown
from eval_pipeline.settings import Settings, load_settings, secrets
from eval_pipeline.suites import Suite, load_suites
from eval_pipeline.tracing.masking import Masker, MaskingFilter


def ready() -> tuple[Settings, Engine]:
    """The settings and an engine on an up-to-date schema.

    Raises:
        SettingsError: a variable is wrong.
        DatabaseError: the database cannot be reached or migrated.
    """
    settings = load_settings()
    _set_up_logging(settings)
    database = engine(settings)
    migrate(database)
    return settings, database


def _set_up_logging(settings: Settings) -> None:
    """Log from ``EVAL_LOG_LEVEL`` on, with keys and passwords masked whoever logs them."""
    root = logging.getLogger()
    root.setLevel(settings.log_level)
    masking = MaskingFilter(Masker(secrets(settings)))
    for handler in root.handlers:
        for known in [one for one in handler.filters if isinstance(one, MaskingFilter)]:
            handler.removeFilter(known)
        handler.addFilter(masking)


def suite_named(settings: Settings, suite: str | None, benchmark: str | None = None) -> Suite:
    """The suite of that name, or the only one of that benchmark.

    Raises:
        SuiteError: there is none, or several.
    """
    suites = load_suites(settings)
    if suite is not None:
        if suite not in suites:
            raise SuiteError(f"--suite: there is no suite {shown(suite)}; there are {', '.join(suites)}")
        return suites[suite]
    if benchmark is None:
        raise SuiteError(f"--suite is missing; there are {', '.join(suites)}")
    found = [one for one in suites.values() if one.benchmark == benchmark]
    if len(found) != 1:
        names = ", ".join(one.name for one in found) or "none"
        raise SuiteError(f"--benchmark {shown(benchmark)} has not exactly one suite but {names}; use --suite")
    return found[0]
