"""The two guards that make comparisons of teams mean something.

One-variable guard: a team changes against its parent exactly what it declares, within one layer.
Reproducibility guard: the content under a team id never changes once it has been stored. Both run before any
model is called.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Connection, select
from sqlalchemy.dialects.postgresql import insert

from eval_pipeline.db.tables import teams as teams_table
from eval_pipeline.errors import TeamConfigMismatchError, TeamFileError
from eval_pipeline.ids import shown
from eval_pipeline.teams.differences import Part, changed_parts
from eval_pipeline.teams.spec import ROLES, TeamSpec
from eval_pipeline.tools.registry import TOOLS

_ROLE_PROMPTS: tuple[Part, ...] = ("prompt.planner", "prompt.executor", "prompt.critic")
_SPEC = TypeAdapter(TeamSpec)


@dataclass(frozen=True, slots=True)
class _Rule:
    """``core``: at least one of these must change; ``along``: these may change with it."""

    core: tuple[Part, ...]
    along: tuple[Part, ...] = ()


_RULES: Mapping[str | None, _Rule] = {
    "input": _Rule(("input",)),
    "prompt": _Rule(_ROLE_PROMPTS, ("answers",)),
    "tools": _Rule(("tools",), _ROLE_PROMPTS),
    "routing": _Rule(("prompt.selector", "selector", "descriptions")),
    "termination": _Rule(("termination",)),
}


def check_one_change(spec: TeamSpec, parent: TeamSpec, where: str) -> None:
    """The one-variable guard. ``where`` names the team's file in messages.

    Raises:
        TeamFileError: the content differs from the parent's in other parts than are declared, or in parts
            that the declared layer may not touch.
    """
    found = changed_parts(spec, parent)
    if set(found) != set(spec.changes):
        raise TeamFileError(
            f"{where}: declares changes {_listed(spec.changes)}, but against {spec.parent} its content "
            f"changes {_listed(found)}; declare what changes, and change one thing at a time"
        )
    rule = _RULES.get(spec.layer, _Rule(()))
    strange = [part for part in found if part not in (*rule.core, *rule.along)]
    if strange or not set(found) & set(rule.core):
        raise TeamFileError(
            f"{where}: declares layer {spec.layer}, which changes {_listed(rule.core)}"
            f"{f' and along with it {_listed(rule.along)}' if rule.along else ''}, but against {spec.parent} "
            f"its content changes {_listed(found)}; split it into two teams or correct the layer"
        )
    if spec.layer == "tools":
        _check_prompts_name_tools(spec, parent, found, where)


def _check_prompts_name_tools(spec: TeamSpec, parent: TeamSpec, found: Sequence[Part], where: str) -> None:
    """A change of tools has to be told to the roles, but is no occasion to reword another prompt."""
    names = sorted({TOOLS[key].name for key in set(spec.tools) ^ set(parent.tools)})
    named = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)") if names else None
    for role in ROLES:
        texts = (spec.prompts[role], parent.prompts[role])
        if f"prompt.{role}" in found and not (named and any(map(named.search, texts))):
            raise TeamFileError(
                f"{where}: declares layer tools but changes prompt.{role}, which names no tool that is added "
                f"or removed ({_listed(names)}); leave that prompt as it is or make it a team of its own"
            )


def _listed(parts: Collection[str]) -> str:
    return ", ".join(parts) or "nothing"


def register_teams(connection: Connection, teams: Mapping[str, TeamSpec], only: Iterable[str] | None = None) -> None:
    """The reproducibility guard: store teams that are new and refuse those whose content has changed.

    ``only``: these teams and all that they extend; by default every team. Safe to repeat, and safe when two
    processes store the same team at once. What describes a team (its sentence, its layer) stays as it was
    first stored. The caller's transaction is not committed here.

    Raises:
        TeamConfigMismatchError: a stored hash differs from the code's; nothing has been stored then.
    """
    specs = [teams[team_id] for team_id in _with_ancestors(teams, only)]
    new = _checked(connection, specs)
    if not new:
        return
    rows = [_row(spec) for spec in new]
    connection.execute(insert(teams_table).on_conflict_do_nothing(index_elements=["team_id"]), rows)
    # another process may have stored one of them in between, with other content
    _checked(connection, new)


def _with_ancestors(teams: Mapping[str, TeamSpec], only: Iterable[str] | None) -> list[str]:
    if only is None:
        return list(teams)
    wanted: set[str] = set()
    for team_id in only:
        current: str | None = team_id
        while current is not None and current not in wanted:
            wanted.add(current)
            current = teams[current].parent
    return [team_id for team_id in teams if team_id in wanted]


def _checked(connection: Connection, specs: Sequence[TeamSpec]) -> list[TeamSpec]:
    """Those of ``specs`` that are not stored yet."""
    columns = teams_table.c
    query = select(columns.team_id, columns.prompt_bundle_hash, columns.contract_hash, columns.spec)
    stored = {
        row.team_id: row
        for row in connection.execute(query.where(columns.team_id.in_([spec.team_id for spec in specs])))
    }
    problems = [
        _mismatch(spec, row.prompt_bundle_hash, row.contract_hash, row.spec)
        for spec in specs
        if (row := stored.get(spec.team_id)) is not None
        and (row.prompt_bundle_hash, row.contract_hash) != (spec.prompt_bundle_hash, spec.contract_hash)
    ]
    if problems:
        raise TeamConfigMismatchError(
            f"{'; '.join(problems)}; a stored team never changes: give the changed team a new id"
        )
    return [spec for spec in specs if spec.team_id not in stored]


def _mismatch(spec: TeamSpec, prompt_hash: str, contract_hash: str, stored: object) -> str:
    if prompt_hash != spec.prompt_bundle_hash:
        kind, then, now = "prompt_bundle_hash", prompt_hash, spec.prompt_bundle_hash
    else:
        kind, then, now = "contract_hash", contract_hash, spec.contract_hash
    return (
        f"team {shown(spec.team_id)} is stored with {kind} {then[:12]} but the code has {now[:12]} "
        f"(differs: {_listed(_stored_differences(spec, stored))})"
    )


def _stored_differences(spec: TeamSpec, stored: object) -> list[str]:
    try:
        before = _SPEC.validate_python(stored)
        parts: list[str] = [*changed_parts(spec, before)]
    except (ValidationError, KeyError):
        return ["in its stored form, which this version cannot read"]
    keys = sorted(spec.source_hashes.keys() & before.source_hashes.keys())
    return parts + [f"source of {key}" for key in keys if spec.source_hashes[key] != before.source_hashes[key]]


def _row(spec: TeamSpec) -> dict[str, object]:
    return {
        "team_id": spec.team_id,
        "parent_id": spec.parent,
        "layer": spec.layer,
        "changes": list(spec.changes),
        "change": spec.change,
        "answers": spec.answers,
        "prompt_bundle_hash": spec.prompt_bundle_hash,
        "contract_hash": spec.contract_hash,
        "spec": _SPEC.dump_python(spec, mode="json"),
    }
