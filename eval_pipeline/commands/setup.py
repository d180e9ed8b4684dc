"""``init-db``, ``stop-db`` and ``smoke-llm``: what one does before the first batch."""

from __future__ import annotations

import asyncio

from eval_pipeline import console
from eval_pipeline.agents.smoke import smoke
from eval_pipeline.db.embedded import stop
from eval_pipeline.db.engine import engine
from eval_pipeline.db.event_partitions import make_ahead
from eval_pipeline.db.migrations import migrate
from eval_pipeline.home import pg_data_dir
from eval_pipeline.settings import load_settings
from eval_pipeline.teams.registry import load_teams, register_teams


def initialise() -> tuple[list[str], str]:
    """Migrate and register the teams; the migrations that were applied, and where."""
    settings = load_settings()
    database = engine(settings)
    applied = migrate(database)
    make_ahead(database)
    with database.begin() as connection:
        register_teams(connection, load_teams(settings.teams_dir))
    where = "embedded PostgreSQL" if settings.pg_dsn is None else f"PostgreSQL at {database.url.host}"
    return [step.name for step in applied], f"{where}, schema {settings.pg_schema}"


def stop_embedded() -> str:
    """Stop the embedded server; what happened, in words."""
    return "the embedded PostgreSQL is stopped" if stop(pg_data_dir()) else "no embedded PostgreSQL was running"


def smoke_endpoint(*, as_json: bool) -> int:
    """Try the endpoint; exit code 1 if text or tools do not work."""
    settings = load_settings()
    if settings.llm_provider == "scripted":
        console.out.print(
            "EVAL_LLM_PROVIDER is scripted: there is no endpoint to try. "
            "Set EVAL_LLM_PROVIDER=openai, EVAL_LLM_BASE_URL and EVAL_LLM_MODEL."
        )
        return 0
    results = asyncio.run(smoke(settings))
    if as_json:
        console.print_json(
            [{"name": r.name, "works": r.works, "detail": r.detail, "seconds": round(r.seconds, 3)} for r in results]
        )
    else:
        rows = [(r.name, "works" if r.works else "FAILS", r.detail, f"{r.seconds:.1f} s") for r in results]
        console.table(f"{settings.llm_model}", ("what", "", "detail", "time"), rows, left=3)
    return 0 if all(r.works for r in results if r.name in ("text", "tools")) else 1
