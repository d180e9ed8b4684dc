"""What a team is, as a value: everything that decides how its runs go, with the hashes that fix it.

Reading team files and comparing versions belong to :mod:`eval_pipeline.teams.registry`; building the AutoGen team out
of a spec belongs to :mod:`eval_pipeline.agents`.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property

from eval_pipeline.benchmarks.base import AnswerKind

ROLES = ("planner", "executor", "critic")
"""The three assistants, in the order in which they join the group chat."""
PROMPTS = (*ROLES, "selector")


def sha256_of(value: object) -> str:
    """SHA-256, hex, of a JSON-able value in its canonical form (sorted keys, no spaces, ASCII)."""
    canonical = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


@dataclass(frozen=True)
class TeamSpec:
    """One version of the agent team, with everything it inherited already filled in.

    ``prompts`` has one system text per role and the selector's template; ``descriptions`` what the selector is told
    of each role; ``tools`` keys of :mod:`eval_pipeline.tools.registry`; ``input`` a builder of
    :mod:`eval_pipeline.teams.inputs`. ``source_hashes`` maps each named tool and input builder to the SHA-256 of its
    source, so that a changed tool cannot hide behind an unchanged prompt.
    """

    team_id: str
    parent: str | None
    layer: str | None
    changes: tuple[str, ...]
    change: str
    answers: AnswerKind
    prompts: dict[str, str]
    descriptions: dict[str, str]
    tools: tuple[str, ...]
    input: str
    termination: str
    allow_repeated_speaker: bool
    max_selector_attempts: int
    source_hashes: dict[str, str] = field(default_factory=dict)

    @cached_property
    def prompt_bundle_hash(self) -> str:
        """SHA-256 over the planner, executor, critic and selector prompts."""
        return sha256_of([self.prompts[name] for name in PROMPTS])

    @cached_property
    def contract_hash(self) -> str:
        """SHA-256 over all that decides how a run goes; not over the id, the parent or the description."""
        return sha256_of(
            {
                "prompts": self.prompts,
                "descriptions": self.descriptions,
                "tools": list(self.tools),
                "input": self.input,
                "termination": self.termination,
                "allow_repeated_speaker": self.allow_repeated_speaker,
                "max_selector_attempts": self.max_selector_attempts,
                "answers": self.answers,
                "sources": self.source_hashes,
            }
        )
