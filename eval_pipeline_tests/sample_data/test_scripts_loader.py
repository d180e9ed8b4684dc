"""Reading a script file and filling its templates, on files of the tests' own."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.errors import IdError, ScriptError
from eval_pipeline.sample_data.scripts import Call, Script, Step, fill, load_script

TASK = "sample-x"
APPROVED = "{by: critic, say: APPROVE}"


def write(folder: Path, body: str) -> Path:
    (folder / f"{TASK}.yaml").write_text(textwrap.dedent(body), encoding="utf-8")
    return folder


def one_team(folder: Path, steps: str) -> Path:
    return write(folder, f"task: {TASK}\nteams:\n  v1:\n    steps:\n" + textwrap.indent(textwrap.dedent(steps), "    "))


def refusal(folder: Path, team: str = "v1") -> str:
    with pytest.raises(ScriptError) as caught:
        load_script(team, TASK, folder)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert message.startswith(f"{TASK}.yaml")
    return message


def test_a_script_is_read_with_all_that_a_step_can_say(tmp_path: Path) -> None:
    write(
        tmp_path,
        """\
        task: sample-x
        teams:
          v1:
            steps:
              - by: planner
                say: 계획
                tokens: [540, 95]
                select: {reason_code: NEEDS_PLANNING, summary: first}
                select_raw: [nonsense, ""]
              - by: executor
                call:
                  - {name: read_attached_file, args: {path: "{{attachment}}"}}
                  - {name: python_calc, args: {n: 1}}
                when: ok
              - {by: critic, say: APPROVE, when: error}
            loop_from: 0
        """,
    )
    script = load_script("v1", TASK, tmp_path)
    assert script == Script(
        name="sample-x.yaml: team 'v1'",
        steps=(
            Step(
                "planner",
                say="계획",
                tokens=(540, 95),
                reason_code="NEEDS_PLANNING",
                summary="first",
                select_raw=("nonsense", ""),
            ),
            Step(
                "executor",
                calls=(Call("read_attached_file", {"path": "{{attachment}}"}), Call("python_calc", {"n": 1})),
                when="ok",
            ),
            Step("critic", say="APPROVE", when="error"),
        ),
        loop_from=0,
    )


def test_same_as_plays_the_other_teams_steps(tmp_path: Path) -> None:
    one_team(tmp_path, f"- {APPROVED}\n")
    path = tmp_path / f"{TASK}.yaml"
    path.write_text(path.read_text() + "  v2: {same_as: v1}\n  v3: {same_as: v2}\n  v4: {same_as: v9}\n")
    assert load_script("v2", TASK, tmp_path).steps == load_script("v1", TASK, tmp_path).steps
    assert "'v2', which has no steps of its own" in refusal(tmp_path, "v3")
    assert "'v9'" in refusal(tmp_path, "v4")


def test_an_edited_file_is_read_again(tmp_path: Path) -> None:
    one_team(tmp_path, "- {by: planner, say: one}\n")
    assert load_script("v1", TASK, tmp_path).steps[0].say == "one"
    one_team(tmp_path, "- {by: planner, say: two}\n")
    os.utime(tmp_path / f"{TASK}.yaml", ns=(1, 1))
    assert load_script("v1", TASK, tmp_path).steps[0].say == "two"


def test_a_task_or_team_without_a_script_is_told_what_to_do(tmp_path: Path) -> None:
    assert "EVAL_LLM_PROVIDER=openai" in refusal(tmp_path)
    one_team(tmp_path, f"- {APPROVED}\n")
    message = refusal(tmp_path, "my-team")
    assert "'my-team', only for v1" in message
    assert "EVAL_LLM_PROVIDER=openai" in message


@pytest.mark.parametrize("task_id", ["../secret", "a/b", "", "a\0b", "한글", ".hidden"])
def test_a_task_id_that_is_none_reaches_no_file(task_id: str, tmp_path: Path) -> None:
    with pytest.raises(IdError):
        load_script("v1", task_id, tmp_path)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("", "must be a mapping"),
        ("[1]", "must be a mapping"),
        ("task: sample-y\nteams: {}", "task is 'sample-y'"),
        ("task: sample-x\nteams: []", "teams"),
        ("task: sample-x\nteams: {}\nmore: 1", "the key 'more' is unknown"),
        ("task: sample-x\nteams: {v1: {}}", "steps must be a list"),
        ("task: sample-x\nteams: {v1: {steps: []}}", "steps must be a list"),
        ("task: sample-x\nteams: {v1: {same_as: v1, steps: []}}", "the key 'steps' is unknown"),
        ("task: sample-x\nteams: {v1: {same_as: 3}}", "same_as: is 3"),
        ("task: sample-x\nteams: {v1: {steps: 1}, v1: {steps: 1}}", "'v1'"),
        ("task: &a sample-x\nteams: *a", "alias"),
        ("{", "not valid YAML"),
    ],
)
def test_a_file_of_another_shape_is_refused_in_one_line(body: str, said: str, tmp_path: Path) -> None:
    assert said in refusal(write(tmp_path, body))


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("- 1", "step 0: is 1; it must be a mapping"),
        ("- {say: x}", "step 0: by is None"),
        ("- {by: selector, say: x}", "by is 'selector'; it must be one of planner, executor, critic"),
        ("- {by: [planner], say: x}", "by is "),
        ("- {by: planner}", "needs either say or call"),
        ("- {by: planner, say: x, call: [{name: f}]}", "needs either say or call"),
        ("- {by: planner, say: 42}", "say: is 42; it must be a text, so put it in quotes"),
        ("- {by: planner, say: x, when: never}", "when is 'never'"),
        ("- {by: planner, say: x, sya: x}", "the key 'sya' is unknown"),
        ("- {by: executor, call: []}", "at least one call"),
        ("- {by: executor, call: [{args: {}}]}", "call 0: name: is None"),
        ("- {by: executor, call: [{name: f, args: [1]}]}", "call 0: args: is [1]"),
        ("- {by: executor, call: [{name: f, arguments: {}}]}", "'arguments' is unknown"),
        ("- {by: planner, say: x, tokens: [1]}", "tokens: is [1]"),
        ("- {by: planner, say: x, tokens: [1, -1]}", "tokens"),
        ("- {by: planner, say: x, tokens: [1, true]}", "tokens"),
        ("- {by: planner, say: x, tokens: 5}", "tokens"),
        ("- {by: planner, say: x, select: {reason_code: PARSE_FAILED}}", "reason_code is 'PARSE_FAILED'"),
        ("- {by: planner, say: x, select: {next: critic}}", "'next' is unknown"),
        ("- {by: planner, say: x, select_raw: [a, b, c]}", "at most 2"),
        ("- {by: planner, say: x, select_raw: a}", "at most 2"),
        ('- {by: planner, say: "{{answer}}"}', "say: the template '{{answer}}' is unknown"),
        ('- {by: planner, say: "{{result0}}"}', "unknown"),
        ('- {by: planner, say: "{{attachment:x}}"}', "unknown"),
        ('- {by: planner, say: "{{result:(}}"}', "wrong regular expression"),
        (
            '- {by: executor, call: [{name: f, args: {a: {b: ["{{x}}"]}}}]}',
            "args: a: b: the template '{{x}}'",
        ),
    ],
)
def test_a_wrong_step_is_named_with_file_team_step_and_field(step: str, said: str, tmp_path: Path) -> None:
    message = refusal(one_team(tmp_path, step + "\n"))
    assert said in message
    assert "team 'v1': step 0" in message


@pytest.mark.parametrize("loop_from", ["-1", "2", "1.5", "true", "last"])
def test_a_loop_begins_at_a_step_that_there_is(loop_from: str, tmp_path: Path) -> None:
    one_team(tmp_path, f"- {{by: planner, say: x}}\n- {APPROVED}\n")
    path = tmp_path / f"{TASK}.yaml"
    path.write_text(path.read_text() + f"    loop_from: {loop_from}\n")
    assert "the index of a step, 0 to 1" in refusal(tmp_path)


PLANNER, EXECUTOR, CALLING = (
    "{by: planner, say: x%s}",
    "{by: executor, say: x%s}",
    "{by: executor, call: [{name: f}]%s}",
)


@pytest.mark.parametrize(
    ("steps", "loop_from", "pair"),
    [
        ([PLANNER % "", PLANNER % ""], None, (1, 0)),
        ([PLANNER % "", EXECUTOR % "", PLANNER % ""], 0, (0, 2)),
        ([PLANNER % ""], 0, (0, 0)),
        ([PLANNER % "", EXECUTOR % ", when: ok", PLANNER % ""], None, (2, 0)),
        ([CALLING % ", when: ok", PLANNER % ", when: ok", EXECUTOR % ""], None, (2, 0)),
    ],
)
def test_nobody_can_come_to_speak_twice_in_a_row(
    steps: list[str], loop_from: int | None, pair: tuple[int, int], tmp_path: Path
) -> None:
    one_team(tmp_path, "".join(f"- {step}\n" for step in steps))
    if loop_from is not None:
        path = tmp_path / f"{TASK}.yaml"
        path.write_text(path.read_text() + f"    loop_from: {loop_from}\n")
    assert "step {} can follow step {}".format(*pair) in refusal(tmp_path)


def test_steps_of_which_only_one_is_played_may_be_the_same_speakers(tmp_path: Path) -> None:
    one_team(
        tmp_path,
        f"- {CALLING % ''}\n- {PLANNER % ', when: ok'}\n- {PLANNER % ', when: error'}\n- {EXECUTOR % ''}\n",
    )
    assert len(load_script("v1", TASK, tmp_path).steps) == 4


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("no template, {single} braces and {{", "no template, {single} braces and {{"),
        ("{{attachment}}|{{attachment}}", "/stage/표.csv|/stage/표.csv"),
        ("{{result}}", "third"),
        ("{{result1}}, {{result2}}", "a=1\nb=22, unknown"),
        ("{{result4}}", "unknown"),
        ("{{result1:^b=(\\d+)}}", "22"),
        ("{{result1:^b=\\d+}}", "b=22"),
        ("{{result1:\\d{2}}}", "22"),
        ("{{result1:2}}}}", "unknown"),  # of a row of braces only the last two end the template
        ("{{result1:b=(x)?}}", "unknown"),
        ("{{result:^b=}}", "unknown"),
        ("{{result1:a=1\nb}}", "a=1\nb"),
    ],
)
def test_templates_take_their_values_from_the_run(text: str, filled: str) -> None:
    assert fill(text, "/stage/표.csv", ["a=1\nb=22", " \n", " third\n"]) == filled


def test_a_run_without_results_has_no_value_to_give() -> None:
    assert fill("FINAL ANSWER: {{result}}", None, []) == "FINAL ANSWER: unknown"


@given(st.text(st.characters(exclude_categories=())))
def test_any_output_of_a_tool_can_be_an_answer(output: str) -> None:
    assert fill("{{result}}", None, [output]) == (output.strip() or "unknown")


def test_a_tools_output_is_never_taken_for_a_template() -> None:
    output = "{{attachment}} {{result1}} \\1"
    assert fill("{{result}}", "/stage/x", [output]) == output


@pytest.mark.parametrize("text", ["{{answer}}", "{{ result }}", "{{result:[}}", "{{}}"])
def test_an_unknown_template_is_an_error_and_not_an_answer(text: str) -> None:
    with pytest.raises(ScriptError):
        fill(text, "/x", ["y"])


def test_a_run_message_without_a_path_cannot_fill_one() -> None:
    with pytest.raises(ScriptError, match="names no attachment"):
        fill("{{attachment}}", None, [])
