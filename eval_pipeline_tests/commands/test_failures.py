"""``failures``, ``contamination`` and ``roles``: what traces tell, in a terminal and as JSON."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import text

from eval_pipeline_tests.commands.running import command
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.played import V1, V5
from eval_pipeline_tests.stub_openai import error, stub_in_a_thread
from eval_pipeline_tests.stub_openai import text as says


def test_failures_are_listed_by_mode_with_the_events_that_show_them(played: Database) -> None:
    shown = command("failures", "--batch", V1.key)
    assert shown.code == 0
    assert "(scripted" in shown.out
    assert (
        "step_repetition (decided)  sample-museum-weekend-children#1: read_attached_file was called 7 times alike "
        "[events 10, 22, 34, 46, 58, 70, 82]" in shown.out
    )
    # signals of right runs are counted and not listed
    assert "sample-floor-tiles" not in shown.out
    told = command("failures", "--batch", V1.key, "--json").json
    assert told["modes"]["fail_to_ask_for_clarification"] == 3
    assert told["judge"] is None
    assert {signal["found_by"] for signal in told["signals"]} == {"rules"}
    one = command("failures", "--batch", V1.key, "--mode", "step_repetition", "--again", "--json").json
    assert {signal["mode"] for signal in one["signals"]} == {"step_repetition"}


def test_without_an_endpoint_there_is_no_judge_and_the_rules_are_shown(played: Database) -> None:
    shown = command("failures", "--batch", V5.key, "--judge")
    assert shown.code == 0
    assert "there is no judge: EVAL_LLM_PROVIDER is scripted" in shown.notes
    assert "incorrect_verification" in shown.out


def test_a_judges_labels_stand_beside_the_rules_and_its_end_is_one_line(
    played: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = json.dumps({"modes": [{"mode": "task_derailment", "events": [2], "why": "It drifts."}]})
    with stub_in_a_thread(lambda request: says(answer) if request.number < 2 else error(401)) as stub:
        for name, value in {"PROVIDER": "openai", "BASE_URL": stub.base_url, "MODEL": "glm"}.items():
            monkeypatch.setenv(f"EVAL_LLM_{name}", value)
        first = command("failures", "--batch", V1.key, "--judge", "--judge-runs", "1", "--json").json
        rest = command("failures", "--batch", V1.key, "--judge")
    assert (first["judge"]["asked"], first["judge"]["left"]) == (1, 3)
    assert {signal["found_by"] for signal in first["signals"]} == {"rules", "judge"}
    assert "task_derailment (judge)" in rest.out
    (line,) = [line for line in rest.out.splitlines() if line.startswith("judge judge-1")]
    assert "1 runs asked about" in line
    assert "stopped: the judge's endpoint failed: auth" in line
    assert line.endswith("2 runs are left, the same command goes on")


def test_the_sample_batches_are_not_contaminated(played: Database) -> None:
    for batch_team in (V1, V5):
        told = command("contamination", "--batch", batch_team.key, "--json").json
        assert (told["runs_decided"], told["flags"]) == (0, [])
    assert "0 of 5 ended runs are flagged for certain" in command("contamination", "--batch", V1.key).out


def test_a_flagged_run_is_shown_and_left_out_of_a_comparison_on_request(played: Database) -> None:
    update = text(
        "update events set tool_args = cast(:code as jsonb) where seq = 10 and run_id in (select run_id from runs"
        " where team_id = 'v5-multitool' and task_id = 'sample-cafe-food-total')"
    )
    with played.engine.begin() as connection:
        code = json.dumps({"code": "print(open('metadata.jsonl').read())"})
        assert connection.execute(update, {"code": code}).rowcount == 1
    shown = command("contamination", "--batch", V5.key)
    assert "answer_key_file (decided)  sample-cafe-food-total#1: 'metadata.jsonl' was asked for" in shown.out
    assert "1 of 5 ended runs are flagged for certain" in shown.out
    (every,) = command("compare", V1.key, V5.key, "--json").json
    (clean,) = command("compare", V1.key, V5.key, "--without-flagged", "--json").json
    assert (every["tasks"], every["left_out_as_contaminated"]) == (3, {})
    assert (clean["tasks"], clean["left_out_as_contaminated"]) == (2, {V1.key: 0, V5.key: 1})
    assert "Left out as contaminated: 0 of 5 runs of b@v1-baseline and 1 of 5 runs of b@v5" in clean["words"]


def test_roles_say_what_each_did_and_the_selector_is_one_of_them(played: Database) -> None:
    told = command("roles", "--batch", V5.key, "--json").json
    figures = {one["role"]: one for one in told["roles"]}
    assert list(figures) == ["planner", "executor", "critic", "selector"]
    assert figures["selector"]["model_calls"] == figures["selector"]["decisions"] > 0
    with played.engine.connect() as connection:
        query = "select sum(all_tokens_in), sum(all_tokens_out), sum(model_calls) from runs where team_id = :team"
        tokens_in, tokens_out, calls = connection.execute(text(query), {"team": V5.team}).one()
    for name, total in (("tokens_in", tokens_in), ("tokens_out", tokens_out), ("model_calls", calls)):
        assert sum(one[name] for one in figures.values()) == total
    assert sum(one["runs"] for one in told["endings"]) == 5
    shown = command("roles", "--batch", V5.key)
    assert "NEEDS_VERIFICATION" in shown.out
    assert "approve" in shown.out


@pytest.mark.parametrize("name", ["failures", "contamination", "roles"])
@pytest.mark.parametrize(("key", "said"), [("b@v9", "no batch 'b@v9'"), ("b", "batch@team")])
def test_a_batch_that_is_not_there_is_one_line(database: Database, name: str, key: str, said: str) -> None:
    assert said in (command(name, "--batch", key).error or "")
