"""One team file: read strictly, every value checked and every text normalised.

A file says only what it changes against the team that it extends, so most fields may be absent. Filling them
in from the parent belongs to :mod:`eval_pipeline.teams.registry`; whether a team may change what it changes
belongs to :mod:`eval_pipeline.teams.guards`.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from eval_pipeline.benchmarks.base import AnswerKind
from eval_pipeline.complaints import complaint
from eval_pipeline.errors import IdError, TeamFileError
from eval_pipeline.ids import check_id, shown
from eval_pipeline.jsontypes import JsonObject
from eval_pipeline.strict_yaml import read_yaml
from eval_pipeline.teams.differences import Layer, Part
from eval_pipeline.teams.inputs import INPUTS
from eval_pipeline.teams.spec import PROMPTS, ROLES
from eval_pipeline.tools.registry import TOOLS

TERMINATIONS = ("critic_approve_or_max_messages",)
"""The ways in which a team's run can end of itself; built in :mod:`eval_pipeline.agents`."""
TEMPLATE_FIELDS = ("roles", "participants", "history")
"""What AutoGen fills into the selector's prompt."""
MAX_PROMPT = 20_000
MAX_LINE = 500


def normalised(text: str) -> str:
    """NFC, line ends as LF, no white space around: what is left is what a person meant and what is hashed.

    A checkout on another system and another block style of YAML then give the same text.

    Raises:
        ValueError: empty, or it holds a character that no prompt needs and PostgreSQL or HTTP refuses.
    """
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n")).strip()
    if not text:
        raise ValueError("is empty")
    for position, character in enumerate(text):
        if unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\t":
            raise ValueError(f"holds the character U+{ord(character):04X} at position {position}; remove it")
    return text


def _prompt(text: str) -> str:
    text = normalised(text)
    if len(text) > MAX_PROMPT:
        raise ValueError(f"has {len(text):,} characters; a prompt has at most {MAX_PROMPT:,}")
    return text


def _line(text: str) -> str:
    text = normalised(text)
    if len(text) > MAX_LINE or "\n" in text:
        raise ValueError(f"must be one line of at most {MAX_LINE} characters")
    return text


def check_template(text: str) -> None:
    """Whether AutoGen can fill in the selector's prompt.

    Raises:
        ValueError: unbalanced braces, a field that is not one of :data:`TEMPLATE_FIELDS` or is more than a
            plain name (``{history.__class__}``, ``{roles:>9}``), or one of them is missing.
    """
    hint = 'write literal braces double, as in {{"next": …}}'
    try:
        fields = [field for field in string.Formatter().parse(text) if field[1] is not None]
    except ValueError as exc:
        raise ValueError(f"has unbalanced braces ({exc}); {hint}") from exc
    for _, name, layout, conversion in fields:
        if name not in TEMPLATE_FIELDS or layout or conversion:
            raise ValueError(f"has the field {shown('{' + str(name) + '}')} that nothing fills in; {hint}")
    for name in TEMPLATE_FIELDS:
        if name not in {field[1] for field in fields}:
            raise ValueError(f"lacks the field {{{name}}}")


def _selector_prompt(text: str) -> str:
    text = _prompt(text)
    check_template(text)
    return text


def _one_of(known: Collection[str], what: str) -> AfterValidator:
    def check(value: str) -> str:
        if value not in known:
            raise ValueError(f"is no {what}; choose from {', '.join(known)}")
        return value

    return AfterValidator(check)


def _distinct(values: list[str]) -> list[str]:
    if len(set(values)) != len(values):
        raise ValueError("names one twice")
    return values


def _callable_apart(keys: list[str]) -> list[str]:
    """Two tools that the model would know by the same name cannot be told apart."""
    names = [TOOLS[key].name for key in keys]
    if len(set(names)) != len(names):
        raise ValueError("names two tools that the model would call by the same name")
    return keys


PromptText = Annotated[str, AfterValidator(_prompt)]
LineText = Annotated[str, AfterValidator(_line)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    def given(self) -> dict[str, str]:
        """What the file says of the fields, absent ones left out."""
        return self.model_dump(exclude_none=True)


class FilePrompts(_Part):
    planner: PromptText | None = None
    executor: PromptText | None = None
    critic: PromptText | None = None
    selector: Annotated[str, AfterValidator(_selector_prompt)] | None = None


class FileDescriptions(_Part):
    planner: LineText | None = None
    executor: LineText | None = None
    critic: LineText | None = None


class TeamFile(BaseModel):
    """What one file says, checked field by field; absent fields are ``None`` or empty."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    id: str
    extends: str | None = None
    layer: Layer | None = None
    changes: Annotated[list[Part], AfterValidator(_distinct)] = Field(default_factory=list)
    change: LineText
    """One sentence for people."""
    answers: AnswerKind | None = None
    prompts: FilePrompts = FilePrompts()
    descriptions: FileDescriptions = FileDescriptions()
    tools: (
        Annotated[
            list[Annotated[str, _one_of(TOOLS, "tool")]],
            AfterValidator(_distinct),
            AfterValidator(_callable_apart),
        ]
        | None
    ) = None
    input: Annotated[str, _one_of(INPUTS, "input builder")] | None = None
    termination: Annotated[str, _one_of(TERMINATIONS, "termination")] | None = None
    allow_repeated_speaker: bool | None = None
    max_selector_attempts: Annotated[int, Field(ge=1, le=10)] | None = None


def place(path: Path) -> str:
    """The path as it may stand in a one-line message, in full."""
    return str(path) if str(path).isprintable() else ascii(str(path))


def read_team_file(path: Path) -> TeamFile:
    """Read and check one file on its own; what it extends is not looked at.

    Raises:
        TeamFileError: one line naming file, field and value, and what would be right.
    """
    where = place(path)
    values = read_yaml(path, where, TeamFileError)
    if not isinstance(values, dict):
        raise TeamFileError(f"{where}: holds no keys and values; see the shipped teams for the form")
    for field in _empty_fields(values):
        raise TeamFileError(f"{where}: {field} is empty; give it a value or leave the key out")
    try:
        file = TeamFile.model_validate(values)
    except ValidationError as exc:
        raise TeamFileError(f"{where}: {_first_complaint(exc)}") from exc
    _check_id(file.id, path, where)
    _check_whole(file, where)
    return file


def _empty_fields(values: JsonObject, prefix: str = "") -> Iterator[str]:
    """A key without a value would read as absent and be inherited, which is not what its writer meant."""
    for key, value in values.items():
        if value is None:
            yield prefix + (key if key.isidentifier() else shown(key))
        elif isinstance(value, dict):
            yield from _empty_fields(value, f"{prefix}{key}.")


def _first_complaint(exc: ValidationError) -> str:
    # a misspelt key also makes the right one missing, so it is named first
    errors = sorted(exc.errors(include_url=False), key=lambda error: error["type"] != "extra_forbidden")
    first = errors[0]
    field = ""
    for step in first["loc"]:
        field += f"[{step}]" if isinstance(step, int) else f".{step}" if field else step
    if first["type"] == "extra_forbidden":
        siblings = {"prompts": PROMPTS, "descriptions": ROLES}.get(str(first["loc"][0]), tuple(TeamFile.model_fields))
        return f"the key {shown(field)} is not known; the keys are {', '.join(siblings)}"
    value = "" if first["type"] == "missing" else f" {shown(first['input'])}"
    return f"{field}{value} {complaint(first)}"


def _check_id(team_id: str, path: Path, where: str) -> None:
    try:
        check_id(team_id, "id", where)
    except IdError as exc:
        raise TeamFileError(str(exc)) from exc
    if team_id != path.stem:
        raise TeamFileError(f"{where}: id {shown(team_id)} must be the name of its file, {shown(path.stem)}")


def _check_whole(file: TeamFile, where: str) -> None:
    """A team with a parent says what it changes; one without says everything."""
    if file.extends is not None:
        for field in ("layer", "changes"):
            if not getattr(file, field):
                raise TeamFileError(f"{where}: {field} is missing; a team that extends another declares its one change")
        return
    for field in ("layer", "changes"):
        if getattr(file, field):
            raise TeamFileError(f"{where}: {field} is a difference to a parent; name the parent in 'extends'")
    for field in _absent(file):
        raise TeamFileError(f"{where}: {field} is missing; a team without 'extends' says everything itself")


def _absent(file: TeamFile) -> Iterator[str]:
    for part, names in (("prompts", PROMPTS), ("descriptions", ROLES)):
        given = getattr(file, part).given()
        yield from (f"{part}.{name}" for name in names if name not in given)
    whole = ("answers", "tools", "input", "termination", "allow_repeated_speaker", "max_selector_attempts")
    yield from (field for field in whole if getattr(file, field) is None)
