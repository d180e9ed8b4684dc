"""``roles``: what each role of a team did and cost, who handed over to whom, how the talk ended."""

from __future__ import annotations

from dataclasses import asdict

from eval_pipeline import console
from eval_pipeline.commands.context import ready
from eval_pipeline.comparison.outcomes import outcomes
from eval_pipeline.db.accounting import RoleFigures, accounting
from eval_pipeline.ids import BatchTeam

_ROLE_HEADER = (
    "role", "calls", "failed", "in", "out", "share", "cost", "latency", "turns", "tools", "tool errors", "bad choices",
)  # fmt: skip


def show_roles(batch_team: BatchTeam, *, as_json: bool) -> None:
    """Print the accounting of ``batch_team``.

    Raises:
        IdError: there is no such batch.
    """
    _, database = ready()
    with database.connect() as connection:
        scripted = outcomes(connection, batch_team).scripted
        found = accounting(connection, batch_team)
    if as_json:
        console.print_json({"batch": batch_team.key, "scripted": scripted, **asdict(found)})
        return
    note = " (scripted model)" if scripted else ""
    all_tokens = sum(one.tokens or 0 for one in found.roles)
    console.table(
        f"Roles of {batch_team.key}{note}, over all tries",
        _ROLE_HEADER,
        [_role_row(one, all_tokens) for one in found.roles],
    )
    console.table(
        "Hand-overs",
        ("speaker", "next", "reason", "times", "runs"),
        [
            (one.speaker, one.next_speaker, one.reason_code, str(one.handovers), str(one.runs))
            for one in found.handovers
        ],
        left=3,
    )
    console.table(
        "Endings",
        ("ended by", "last speaker", "runs", "right"),
        [(one.ended_by, one.last_speaker, str(one.runs), str(one.successes)) for one in found.endings],
        left=2,
    )


def _role_row(one: RoleFigures, all_tokens: int) -> tuple[str, ...]:
    return (
        one.role,
        console.count(one.model_calls),
        console.count(one.failed_calls),
        console.count(one.tokens_in),
        console.count(one.tokens_out),
        console.percent(one.tokens / all_tokens if one.tokens is not None and all_tokens else None),
        "–" if one.cost is None else f"{one.cost:,.4f}",
        console.seconds(one.latency_ms),
        console.count(one.turns),
        console.count(one.tool_calls),
        console.count(one.tool_errors),
        console.count(one.failed_decisions),
    )
