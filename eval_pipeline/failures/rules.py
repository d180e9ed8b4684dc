"""The rules: each looks at one trace and says which mode it saw, in which events, and how surely. Pure.

``decided`` means that the trace leaves no doubt; ``signal`` means that somebody should look. Modes that only a reader
can see (information withheld, a derailed task) have no rule here.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from eval_pipeline.failures.trace import Event, Trace, canonical
from eval_pipeline.teams.verdict import is_approval

VERSION = "rules-1"
DECIDED, SIGNAL = "decided", "signal"

_ANSWER_LINE = re.compile(r"^\W{0,8}FINAL ANSWER\s*[:：]", re.MULTILINE)
_PLACEHOLDER = re.compile(r"FINAL ANSWER\s*[:：]\s*[*`\"']{0,3}(?:<[^>\n]{0,60}>|\[YOUR [^\]\n]{0,60}\])")
_REPEATED_CALLS = 3
_REPEATED_MESSAGES = 3
_CYCLE = 6
_READ = "read_attached_file"


@dataclass(frozen=True, slots=True)
class Signal:
    """A mode that a rule saw. ``seqs`` are the events that made it fire, in order."""

    mode: str
    confidence: str
    seqs: tuple[int, ...]
    detail: str


Rule = Callable[[Trace], Iterator[Signal]]


def signals(trace: Trace) -> list[Signal]:
    """What the rules see, one signal per mode: the surer one, and of equals the first."""
    best: dict[str, Signal] = {}
    for rule in RULES:
        for found in rule(trace):
            known = best.get(found.mode)
            if known is None or (known.confidence == SIGNAL and found.confidence == DECIDED):
                best[found.mode] = found
    return list(best.values())


def stage(found: list[Signal]) -> str | None:
    """The mode that a run is filed under: the first decided one in the order of the rules, else the first signal."""
    for confidence in (DECIDED, SIGNAL):
        for one in found:
            if one.confidence == confidence:
                return one.mode
    return None


def placeholder_answer(trace: Trace) -> Iterator[Signal]:
    """The planner's last answer line holds the placeholder of its prompt."""
    said = [event for event in trace.said_by("planner") if _ANSWER_LINE.search(event.content)]
    if said and _PLACEHOLDER.search(said[-1].content) and trace.final_answer is None:
        yield Signal("disobey_task_specification", DECIDED, (said[-1].seq,), "the answer is a placeholder")


def missing_answer_line(trace: Trace) -> Iterator[Signal]:
    """A team that must answer in a line ended by a verdict without one."""
    if trace.status != "completed" or trace.answers != "line" or trace.format_valid:
        return
    said = trace.said_by("planner")
    if said and not any(_ANSWER_LINE.search(event.content) for event in said):
        yield Signal("disobey_task_specification", DECIDED, (said[-1].seq,), "no FINAL ANSWER line was written")


def no_answer_at_all(trace: Trace) -> Iterator[Signal]:
    """The run ended by a limit before anybody answered."""
    cut_off = trace.terminated_by in ("timeout", "token_limit")
    if trace.status == "completed" and trace.final_answer is None and cut_off:
        yield Signal(
            "premature_termination", DECIDED, _last(trace), f"ended by {trace.terminated_by} without an answer"
        )


def answer_after_error(trace: Trace) -> Iterator[Signal]:
    """The first answer follows a tool error with no successful call in between: nothing supports it."""
    if trace.success or trace.final_answer is None:
        return
    error: Event | None = None
    for event in trace.events:
        if event.message_type == "tool_error":
            error = event
        elif event.message_type == "tool_result":
            error = None
        elif event.source == "planner" and _ANSWER_LINE.search(event.content) and error is not None:
            yield Signal("premature_termination", SIGNAL, (error.seq, event.seq), "answered right after a tool error")
            return


def guessed_path(trace: Trace) -> Iterator[Signal]:
    """A file was asked for under a path that nobody had named, and nobody asked which one it is."""
    guessed = [
        event.seq
        for event in trace.of("tool_error")
        if event.tool_name == _READ and event.error_type == "FileNotFoundError"
    ]
    if guessed and not trace.success:
        yield Signal("fail_to_ask_for_clarification", SIGNAL, tuple(guessed), "the path of the file was guessed")


def repeated_steps(trace: Trace) -> Iterator[Signal]:
    """The same call with the same outcome again, the same words again, or a selector that goes in circles."""
    calls: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for call in trace.of("tool_call"):
        outcome = trace.outcome_of.get(call.tool_call_id or "")
        result = outcome.content_sha256 or outcome.content if outcome else ""
        # arguments that were cut are told apart by the hash of the whole
        arguments = call.content_sha256 or canonical(call.tool_args)
        calls[call.tool_name or "", arguments, result].append(call.seq)
    for (name, _, _), seqs in calls.items():
        if len(seqs) >= _REPEATED_CALLS:
            yield Signal("step_repetition", DECIDED, tuple(seqs), f"{name} was called {len(seqs)} times alike")
    words: dict[tuple[str, str], list[int]] = defaultdict(list)
    for role in ("planner", "critic"):
        for event in trace.said_by(role):
            words[role, " ".join(event.content.split())].append(event.seq)
    for (role, text), seqs in words.items():
        if len(seqs) >= _REPEATED_MESSAGES and text:
            yield Signal("step_repetition", DECIDED, tuple(seqs), f"the {role} said the same {len(seqs)} times")
    if trace.terminated_by == "max_messages":
        cycle = _longest_cycle(trace.of("selector_decision"))
        if len(cycle) >= _CYCLE:
            yield Signal("step_repetition", SIGNAL, tuple(cycle), "two roles took turns to the end")


def _longest_cycle(decisions: list[Event]) -> list[int]:
    """The longest run of decisions in which two targets alternate."""
    best: list[int] = []
    current: list[Event] = []
    for event in decisions:
        if len(current) >= 2 and event.target == current[-2].target and event.target != current[-1].target:
            current.append(event)
        else:
            current = [*current[-1:], event] if current and current[-1].target != event.target else [event]
        if len(current) > len(best):
            best = [one.seq for one in current]
    return best


def went_on_after_the_answer(trace: Trace) -> Iterator[Signal]:
    """The answer was there, and the team talked on until the message limit."""
    if trace.terminated_by != "max_messages":
        return
    answered = [event.seq for event in trace.said_by("planner") if _ANSWER_LINE.search(event.content)]
    # an answer with the last message that was allowed has not been talked over
    if answered and any(event.seq > answered[0] for event in trace.of("agent_message")):
        detail = "answered, then went on to the message limit"
        yield Signal("unaware_of_termination_conditions", DECIDED, (answered[0], *_last(trace)), detail)
    else:
        yield Signal("unaware_of_termination_conditions", SIGNAL, _last(trace), "went on to the message limit")


def no_verification(trace: Trace) -> Iterator[Signal]:
    """An answer stands at the end that the critic never spoke about."""
    answered = [event.seq for event in trace.said_by("planner") if _ANSWER_LINE.search(event.content)]
    if trace.status != "completed" or not answered:
        return
    if not any(event.source == "critic" and event.seq > answered[-1] for event in trace.of("agent_message")):
        yield Signal("no_or_incomplete_verification", DECIDED, (answered[-1],), "nobody checked the answer")


def wrong_verification(trace: Trace) -> Iterator[Signal]:
    """The critic approved what the scorer calls wrong."""
    if trace.status != "completed" or trace.success or trace.terminated_by != "approve":
        return
    said = trace.said_by("critic")
    # the word at the end of a long message may have been cut off
    approvals = [event.seq for event in said if is_approval(event.content)] or [event.seq for event in said]
    yield Signal("incorrect_verification", DECIDED, tuple(approvals[-1:]), "the critic approved a wrong answer")


def out_of_role(trace: Trace) -> Iterator[Signal]:
    """Somebody else than the executor called a tool, or somebody else than the planner gave the answer."""
    foreign = [event.seq for event in trace.of("tool_call") if event.source != "executor"]
    if foreign:
        yield Signal("disobey_role_specification", DECIDED, tuple(foreign), "a role without tools called one")
    for role in ("executor", "critic"):
        answered = [event.seq for event in trace.said_by(role) if _ANSWER_LINE.search(event.content)]
        if answered:
            yield Signal("disobey_role_specification", DECIDED, tuple(answered), f"the {role} gave the answer")


def ignored_error(trace: Trace) -> Iterator[Signal]:
    """A call that had failed was made again, unchanged, and failed again."""
    failed = Counter[tuple[str, str]]()
    seqs: dict[tuple[str, str], list[int]] = defaultdict(list)
    for call in trace.of("tool_call"):
        outcome = trace.outcome_of.get(call.tool_call_id or "")
        if outcome is not None and outcome.message_type == "tool_error":
            key = (call.tool_name or "", call.content_sha256 or canonical(call.tool_args))
            failed[key] += 1
            seqs[key].append(outcome.seq)
    for key, count in failed.items():
        if count >= 2:
            detail = f"{key[0]} failed alike {count} times"
            yield Signal("ignored_other_agents_input", DECIDED, tuple(seqs[key]), detail)


def conversation_reset(trace: Trace) -> Iterator[Signal]:
    """The task's own text was said again in the middle of the run."""
    first = next((event for event in trace.events if event.source == "user"), None)
    if first is None or not first.content.strip():
        return
    again = [event.seq for event in trace.of("agent_message") if event.seq > 0 and event.content == first.content]
    if again:
        yield Signal("conversation_reset", SIGNAL, tuple(again), "the task was stated again")


def announced_another_tool(trace: Trace) -> Iterator[Signal]:
    """The planner named one tool and the executor called another, which the planner had not named."""
    names = {event.tool_name for event in trace.of("tool_call") if event.tool_name}
    announced: Event | None = None
    for event in trace.events:
        if event.message_type == "agent_message" and event.source == "planner":
            announced = event
        elif event.message_type == "tool_call" and announced is not None and event.tool_name:
            named = {name for name in names if name in announced.content}
            if named and event.tool_name not in named and not trace.success:
                detail = f"{', '.join(sorted(named))} was announced, {event.tool_name} was called"
                yield Signal("reasoning_action_mismatch", SIGNAL, (announced.seq, event.seq), detail)
                return


def _last(trace: Trace) -> tuple[int, ...]:
    return (trace.events[-1].seq,) if trace.events else ()


RULES: tuple[Rule, ...] = (
    placeholder_answer,
    missing_answer_line,
    no_answer_at_all,
    went_on_after_the_answer,
    no_verification,
    wrong_verification,
    repeated_steps,
    ignored_error,
    out_of_role,
    guessed_path,
    answer_after_error,
    announced_another_tool,
    conversation_reset,
)
"""Every rule, the one that says most about a failure first."""
