"""Scripts of the scripted model: reading the YAML files, and filling their templates from real tool output.

What a script file may hold is said and checked here. Playing a script through a team belongs to
:mod:`eval_pipeline.agents.scripted`; which tools a team has and when it ends belong to the team.

A file is ``<task_id>.yaml`` with ``task`` (the same id) and ``teams``: per team either ``steps`` with an
optional ``loop_from``, or ``same_as``, which plays another team's steps of the same file.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeGuard, cast

from eval_pipeline.errors import ScriptError
from eval_pipeline.ids import check_id, shown
from eval_pipeline.jsontypes import JsonObject, JsonValue
from eval_pipeline.strict_yaml import read_yaml
from eval_pipeline.teams.spec import ROLES

SCRIPTS = Path(__file__).parent / "scripts"
UNKNOWN = "unknown"
"""What stands in for a tool result that is not there, or in which nothing matches."""

_REASON_CODES = ("NEEDS_PLANNING", "NEEDS_EXECUTION", "NEEDS_VERIFICATION", "NEEDS_REVISION")
_STEP_KEYS = frozenset({"by", "say", "call", "tokens", "when", "select", "select_raw"})
_MAX_RAW_ANSWERS = 2  # the selector has three attempts, and the last one must name the speaker
# a regular expression inside may end in a brace of its own: of a row of braces, the last two end the template
_TEMPLATE = re.compile(r"\{\{(.*?)\}\}(?!\})", re.DOTALL)
_INSIDE = re.compile(r"(?P<attachment>attachment)|result(?P<number>[1-9][0-9]{0,2})?(?::(?P<regex>.+))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call; texts in ``args`` may hold templates."""

    name: str
    args: JsonObject


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of one role: a message, or tool calls made at the same time.

    ``tokens`` are prompt and completion; ``None`` leaves them to be estimated. ``when`` plays the step only
    if the latest tool outcome was no error (``ok``) or one (``error``). ``reason_code`` and ``summary``
    replace what the selector says by default; ``select_raw`` is what it answers before that.
    """

    by: str
    say: str | None = None
    calls: tuple[Call, ...] = ()
    tokens: tuple[int, int] | None = None
    when: Literal["ok", "error"] | None = None
    reason_code: str | None = None
    summary: str | None = None
    select_raw: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Script:
    """The turns of one team at one task; after the last one it goes on at ``loop_from``, if that is set."""

    name: str
    steps: tuple[Step, ...]
    loop_from: int | None = None


def load_script(team_id: str, task_id: str, folder: Path | None = None) -> Script:
    """The script of ``team_id`` at ``task_id`` from ``folder`` if that has the task, else from the shipped ones.

    Raises:
        ScriptError: no such file or team, or the file breaks the format; names file, team, step and field.
        IdError: ``task_id`` is no task id, so it names no file either.
    """
    check_id(task_id, "task id", "script")
    name = f"{task_id}.yaml"
    for path in (folder / name, SCRIPTS / name) if folder else (SCRIPTS / name,):
        with contextlib.suppress(OSError):
            stat = path.stat()
            break
    else:
        raise ScriptError(
            f"{name}: the scripted model has no script for task {shown(task_id)}; it plays the sample suite and the "
            "scripts in EVAL_SCRIPTS_DIR, for other tasks set EVAL_LLM_PROVIDER=openai"
        )
    teams = _teams(path, stat.st_mtime_ns, stat.st_size)
    raw = _entry(teams, team_id, path.name)
    if "same_as" in raw:
        _only_keys(raw, {"same_as"}, f"{path.name}: team {shown(team_id)}")
        other = _text(raw["same_as"], f"{path.name}: team {shown(team_id)}: same_as")
        raw = _entry(teams, other, path.name)
        if "same_as" in raw:
            raise ScriptError(
                f"{path.name}: team {shown(team_id)}: same_as names {shown(other)}, which has no steps "
                "of its own; name a team that has"
            )
    return _script(raw, f"{path.name}: team {shown(team_id)}")


def folder_hash(folder: Path) -> str:
    """SHA-256, hex, over the names and contents of the scripts in ``folder``.

    Raises:
        ScriptError: the folder or a file in it cannot be read.
    """
    digest = hashlib.sha256()
    try:
        for path in sorted(folder.glob("*.yaml")):
            content = path.read_bytes()
            digest.update(f"{path.name}\n{len(content)}\n".encode(errors="surrogateescape"))
            digest.update(content)
    except OSError as exc:
        raise ScriptError(
            f"EVAL_SCRIPTS_DIR: {shown(str(folder))} cannot be read: {exc.strerror}; name a readable folder"
        ) from exc
    return digest.hexdigest()


def fill(text: str, attachment: str | None, results: Sequence[str]) -> str:
    """``text`` with its templates replaced, in one pass: a tool's output is never taken for a template.

    ``{{attachment}}`` is the path that the run message names. ``{{result}}`` is the latest of ``results``,
    ``{{result2}}`` the second; ``{{result:REGEX}}`` is group 1, or else the whole, of the first match in it
    (multi-line mode). What is not there is ``unknown``, so that a broken tool breaks the answer.

    Raises:
        ScriptError: an unknown template, a wrong regular expression, or ``{{attachment}}`` without one.
    """

    def value(match: re.Match[str]) -> str:
        number, regex = _parsed(match)
        if number == 0:
            if attachment is None:
                raise ScriptError("a script uses {{attachment}}, but the run message names no attachment")
            return attachment
        if number is None:
            result = results[-1] if results else ""
        else:
            result = results[number - 1] if number <= len(results) else ""
        if regex is not None:
            found = regex.search(result)
            result = (found[1] if regex.groups else found[0]) or "" if found else ""
        return result.strip() or UNKNOWN

    return _TEMPLATE.sub(value, text)


def _parsed(match: re.Match[str]) -> tuple[int | None, re.Pattern[str] | None]:
    """Which tool result a template means (``None`` the latest, 0 the attachment) and where to look in it."""
    inside = _INSIDE.fullmatch(match[1])
    if inside is None:
        raise ScriptError(
            f"the template {shown(match[0])} is unknown; known are "
            "{{attachment}}, {{result}}, {{result2}} and {{result:REGEX}}"
        )
    if inside["attachment"]:
        return 0, None
    number = int(inside["number"]) if inside["number"] else None
    if inside["regex"] is None:
        return number, None
    try:
        return number, re.compile(inside["regex"], re.MULTILINE)
    except re.error as exc:
        raise ScriptError(f"the template {shown(match[0])} has a wrong regular expression: {exc}") from exc


@lru_cache(maxsize=64)
def _teams(path: Path, mtime_ns: int, size: int) -> JsonObject:
    """The ``teams`` of a file. Every team's run reads the same one, and parsing is the slow part.

    Time and size only belong to the cache's key: an edited file is read again.
    """
    data = _mapping(read_yaml(path, path.name, ScriptError), path.name)
    _only_keys(data, {"task", "teams"}, path.name)
    if data.get("task") != path.stem:
        raise ScriptError(f"{path.name}: task is {shown(data.get('task'))}, not what the file is named for")
    return _mapping(data.get("teams"), f"{path.name}: teams")


def _entry(teams: JsonObject, team_id: str, file: str) -> JsonObject:
    if team_id not in teams:
        raise ScriptError(
            f"{file}: the scripted model has no script for team {shown(team_id)}, only for "
            f"{', '.join(teams)}; for a team of your own set EVAL_LLM_PROVIDER=openai"
        )
    return _mapping(teams[team_id], f"{file}: team {shown(team_id)}")


def _script(raw: JsonObject, where: str) -> Script:
    _only_keys(raw, {"steps", "loop_from"}, where)
    listed = raw.get("steps")
    if not isinstance(listed, list) or not listed:
        raise ScriptError(f"{where}: steps must be a list of at least one step")
    steps = tuple(_step(step, f"{where}: step {index}") for index, step in enumerate(listed))
    loop_from = raw.get("loop_from")
    if loop_from is not None and not (_is_whole(loop_from) and loop_from < len(steps)):
        raise ScriptError(f"{where}: loop_from {shown(loop_from)} must be the index of a step, 0 to {len(steps) - 1}")
    script = Script(where, steps, loop_from)
    for index, following in _neighbours(script):
        if steps[index].by == steps[following].by:
            raise ScriptError(
                f"{where}: step {following} can follow step {index}, but both are the {steps[index].by}'s; "
                "the team lets nobody speak twice in a row"
            )
    return script


def _neighbours(script: Script) -> Iterator[tuple[int, int]]:
    """Every pair of steps of which the second can be played right after the first."""
    steps = script.steps
    for index, step in enumerate(steps):
        order = [*range(index + 1, len(steps))]
        if script.loop_from is not None:
            order += range(script.loop_from, index + 1)
        # a step without calls leaves the tool outcome as it was, which then also picks the step after it
        outcomes = ("ok", "error") if step.calls or step.when is None else (step.when,)
        for outcome in outcomes:
            following = next((later for later in order if steps[later].when in (None, outcome)), None)
            if following is not None:
                yield index, following


def _step(value: JsonValue, where: str) -> Step:
    raw = _mapping(value, where)
    _only_keys(raw, _STEP_KEYS, where)
    by = raw.get("by")
    if not isinstance(by, str) or by not in ROLES:
        raise ScriptError(f"{where}: by is {shown(by)}; it must be one of {', '.join(ROLES)}")
    if ("say" in raw) == ("call" in raw):
        raise ScriptError(f"{where}: needs either say or call, not both")
    when = raw.get("when")
    if when not in (None, "ok", "error"):
        raise ScriptError(f"{where}: when is {shown(when)}; it must be ok or error")
    reason_code, summary = _selection(raw.get("select"), f"{where}: select")
    return Step(
        by=by,
        say=_template(raw["say"], f"{where}: say") if "say" in raw else None,
        calls=_calls(raw["call"], f"{where}: call") if "call" in raw else (),
        tokens=_tokens(raw.get("tokens"), f"{where}: tokens"),
        when=cast('Literal["ok", "error"] | None', when),
        reason_code=reason_code,
        summary=summary,
        select_raw=_raw_answers(raw.get("select_raw"), f"{where}: select_raw"),
    )


def _calls(value: JsonValue, where: str) -> tuple[Call, ...]:
    if not isinstance(value, list) or not value:
        raise ScriptError(f"{where}: must be a list of at least one call")
    calls = []
    for index, item in enumerate(value):
        place = f"{where} {index}"
        raw = _mapping(item, place)
        _only_keys(raw, {"name", "args"}, place)
        args = _mapping(raw.get("args", {}), f"{place}: args")
        _check_templates(args, f"{place}: args")
        calls.append(Call(_text(raw.get("name"), f"{place}: name"), args))
    return tuple(calls)


def _tokens(value: JsonValue, where: str) -> tuple[int, int] | None:
    if value is None:
        return None
    match value:
        case [prompt, completion] if _is_whole(prompt) and _is_whole(completion):
            return prompt, completion
    raise ScriptError(f"{where}: is {shown(value)}; it must be two whole numbers, prompt and completion")


def _selection(value: JsonValue, where: str) -> tuple[str | None, str | None]:
    if value is None:
        return None, None
    raw = _mapping(value, where)
    _only_keys(raw, {"reason_code", "summary"}, where)
    code = raw.get("reason_code")
    if code is not None and code not in _REASON_CODES:
        raise ScriptError(f"{where}: reason_code is {shown(code)}; known are {', '.join(_REASON_CODES)}")
    summary = raw.get("summary")
    return code, None if summary is None else _text(summary, f"{where}: summary")


def _raw_answers(value: JsonValue, where: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > _MAX_RAW_ANSWERS:
        raise ScriptError(f"{where}: must be a list of at most {_MAX_RAW_ANSWERS} texts")
    return tuple(_text(item, where) for item in value)


def _check_templates(value: JsonValue, where: str) -> None:
    match value:
        case str():
            _template(value, where)
        case dict():
            for key, item in value.items():
                _check_templates(item, f"{where}: {key}")
        case list():
            for item in value:
                _check_templates(item, where)


def _template(value: JsonValue, where: str) -> str:
    text = _text(value, where)
    for match in _TEMPLATE.finditer(text):
        try:
            _parsed(match)
        except ScriptError as exc:
            raise ScriptError(f"{where}: {exc}") from exc
    return text


def _is_whole(value: JsonValue) -> TypeGuard[int]:
    # true and false are ints to Python, but nobody means them here
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _text(value: JsonValue, where: str) -> str:
    if not isinstance(value, str):
        raise ScriptError(f"{where}: is {shown(value)}; it must be a text, so put it in quotes")
    return value


def _mapping(value: JsonValue, where: str) -> JsonObject:
    if not isinstance(value, dict):
        raise ScriptError(f"{where}: is {shown(value)}; it must be a mapping of names to values")
    return value


def _only_keys(raw: Mapping[str, JsonValue], known: set[str] | frozenset[str], where: str) -> None:
    if unknown := sorted(set(raw) - known):
        raise ScriptError(f"{where}: the key {shown(unknown[0])} is unknown; known are {', '.join(sorted(known))}")
