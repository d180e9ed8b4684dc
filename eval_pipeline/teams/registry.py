"""The teams there are: shipped and the user's own, each with what it inherits filled in.

The front door of the package: the guards and the differences are offered here too. Reading one file belongs
to :mod:`eval_pipeline.teams.files`, what a team may change and how it is stored to
:mod:`eval_pipeline.teams.guards`.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from eval_pipeline.errors import IdError, SettingsError, TeamFileError
from eval_pipeline.ids import shown
from eval_pipeline.teams import inputs
from eval_pipeline.teams.differences import changed_parts, diff_text
from eval_pipeline.teams.files import TeamFile, place, read_team_file
from eval_pipeline.teams.guards import check_one_change, register_teams
from eval_pipeline.teams.spec import TeamSpec
from eval_pipeline.tools.registry import TOOLS

__all__ = ["changed_parts", "diff_text", "lineage", "load_teams", "register_teams", "team"]

SHIPPED = Path(__file__).parent
_SUFFIXES = (".yaml", ".yml")
_NAMES_SHOWN = 12

_NOTHING = TeamSpec(
    team_id="",
    parent=None,
    layer=None,
    changes=(),
    change="",
    answers="line",
    prompts={},
    descriptions={},
    tools=(),
    input="",
    termination="",
    allow_repeated_speaker=False,
    max_selector_attempts=1,
)
"""What a team without a parent inherits; its file has been checked to leave nothing out."""


@dataclass(frozen=True, slots=True)
class _Source:
    where: str
    file: TeamFile


def load_teams(teams_dir: Path | None) -> dict[str, TeamSpec]:
    """Every shipped team and every team in ``teams_dir``, by id; a parent always stands before its children.

    Raises:
        SettingsError: ``teams_dir`` is not a folder that can be listed.
        TeamFileError: a file is wrong, two have one id, a parent is missing or circular, or a team changes
            something else than it declares; one line naming the file.
    """
    sources: dict[str, _Source] = {}
    for path in (*_team_paths(SHIPPED), *(_team_paths(teams_dir) if teams_dir else ())):
        file = read_team_file(path)
        if taken := sources.get(file.id):
            raise TeamFileError(
                f"{place(path)}: the id {shown(file.id)} is taken by {taken.where}; give this team another"
            )
        sources[file.id] = _Source(place(path), file)
    teams: dict[str, TeamSpec] = {}
    for team_id in _parents_first(sources):
        source = sources[team_id]
        parent = teams[source.file.extends] if source.file.extends else None
        spec = _filled_in(source.file, parent)
        if parent:
            check_one_change(spec, parent, source.where)
        teams[team_id] = spec
    return teams


def team(teams: Mapping[str, TeamSpec], team_id: str) -> TeamSpec:
    """The team called ``team_id``.

    Raises:
        IdError: there is none; the message lists what there is.
    """
    if team_id not in teams:
        raise IdError(f"there is no team {shown(team_id)}; choose from {_names(teams)}")
    return teams[team_id]


def lineage(teams: Mapping[str, TeamSpec], team_id: str) -> tuple[TeamSpec, ...]:
    """The team and all that it extends, the first ancestor first.

    Raises:
        IdError: there is no such team.
    """
    line = [team(teams, team_id)]
    while (parent := line[-1].parent) is not None:
        line.append(team(teams, parent))
    return tuple(reversed(line))


def _team_paths(folder: Path) -> list[Path]:
    """Team files by name, without hidden ones, which file managers leave behind."""
    try:
        names = sorted(path.name for path in folder.iterdir())
    except (OSError, ValueError) as exc:
        raise SettingsError(
            f"EVAL_TEAMS_DIR: {shown(str(folder))} is not a folder that can be listed; "
            "name the folder of your team files"
        ) from exc
    return [folder / name for name in names if name.endswith(_SUFFIXES) and not name.startswith(".")]


def _parents_first(sources: Mapping[str, _Source]) -> list[str]:
    for team_id, source in sources.items():
        if source.file.extends is not None and source.file.extends not in sources:
            others = [other for other in sources if other != team_id]
            raise TeamFileError(
                f"{source.where}: extends {shown(source.file.extends)}, which is no team; choose from {_names(others)}"
            )
    waiting = list(sources)
    ordered: dict[str | None, None] = {None: None}
    while waiting:
        ready = (team_id for team_id in waiting if sources[team_id].file.extends in ordered)
        if (found := next(ready, None)) is None:
            raise _circular(sources, waiting[0])
        waiting.remove(found)
        ordered[found] = None
    return [team_id for team_id in ordered if team_id is not None]


def _circular(sources: Mapping[str, _Source], team_id: str) -> TeamFileError:
    chain = [team_id]
    while (parent := sources[chain[-1]].file.extends) is not None and parent not in chain:
        chain.append(parent)
    circle = [*chain[chain.index(str(parent)) :], str(parent)]
    return TeamFileError(f"{sources[circle[0]].where}: extends goes in a circle: {_names(circle, ' → ')}")


def _filled_in(file: TeamFile, parent: TeamSpec | None) -> TeamSpec:
    base = parent or _NOTHING
    tools = base.tools if file.tools is None else tuple(file.tools)
    builder = base.input if file.input is None else file.input
    return TeamSpec(
        team_id=file.id,
        parent=file.extends,
        layer=file.layer,
        changes=tuple(file.changes),
        change=file.change,
        answers=base.answers if file.answers is None else file.answers,
        prompts=base.prompts | file.prompts.given(),
        descriptions=base.descriptions | file.descriptions.given(),
        tools=tools,
        input=builder,
        termination=base.termination if file.termination is None else file.termination,
        allow_repeated_speaker=(
            base.allow_repeated_speaker if file.allow_repeated_speaker is None else file.allow_repeated_speaker
        ),
        max_selector_attempts=(
            base.max_selector_attempts if file.max_selector_attempts is None else file.max_selector_attempts
        ),
        source_hashes={key: TOOLS[key].source_hash for key in tools} | {builder: _inputs_hash()},
    )


@cache
def _inputs_hash() -> str:
    """SHA-256, hex, of the input builders' source; line ends do not count."""
    return hashlib.sha256(inspect.getsource(inputs).encode()).hexdigest()


def _names(ids: Mapping[str, object] | list[str], separator: str = ", ") -> str:
    names = list(ids)
    more = len(names) - _NAMES_SHOWN
    return separator.join(names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
