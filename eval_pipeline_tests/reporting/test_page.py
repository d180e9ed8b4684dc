"""What a page says, whatever the batch came to, and that it is whole, alone with itself and safe."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from itertools import pairwise

import pytest

from eval_pipeline.db.accounting import Accounting, Ending, Handover, RoleFigures
from eval_pipeline.ids import BatchTeam
from eval_pipeline.reporting.markdown import report_markdown
from eval_pipeline.reporting.material import (
    Contrast,
    Entry,
    Event,
    Examined,
    Material,
    Moved,
    Part,
    PassK,
    Run,
    Shift,
    Signal,
    Tool,
)
from eval_pipeline.reporting.page import GuardNote, render
from eval_pipeline.stats.rates import Interval
from eval_pipeline_tests.reporting.materials import material_of, with_try
from eval_pipeline_tests.reporting.pages import Page
from eval_pipeline_tests.reporting.test_escaping import HOSTILE
from eval_pipeline_tests.reporting.test_rates import crashed, ended
from eval_pipeline_tests.reporting.test_transcripts import a_try, said, traced


def page_of(material: Material, note: GuardNote | None = None, baseline_page: str | None = None) -> Page:
    return Page(render(material, note or GuardNote(), baseline_page))


def contrast(**changes: object) -> Contrast:
    plain = Contrast(
        before=BatchTeam("b0", "v1"),
        scripted=False,
        verdict="better",
        words="b1@v2 is better than b0@v1: +26.3 points (95 % interval +4.5 to +48.1) over 19 tasks.",
        tasks=19,
        unpaired=1,
        rate_before=0.579,
        rate_after=0.842,
        difference=Shift(19, 0.263, Interval(0.045, 0.481)),
        test="McNemar exact",
        p_value=0.0625,
        tokens=Shift(19, 1223.0, Interval(-210.0, 2657.0)),
        latency_ms=Shift(19, -286.0, None),
        levels=(Part("level 1", 7, 0.5, 0.75, 0.25, Interval(-0.2, 0.6)),),
        attachments=(Part("xlsx", 3, 0.75, 0.5, -0.25, None),),
        gained=(Moved("won", 1, 0.0, 1.0, None, None),),
        lost=(Moved("gone", 2, 1.0, 0.5, ended("x", True).run_id, None),),
        other_differences=(),
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


MIXED = material_of(
    ended("right", True),
    replace(ended("wrong", False), answer="41", gold="42", level=2),
    replace(ended("no-line", False), format_valid=False),
    replace(crashed("gone"), error_message="the endpoint did not answer"),
    replace(ended("open", True), status="running", success=None),
)


class TestWhatItSays:
    def test_the_headline_has_the_rate_its_interval_and_both_denominators(self) -> None:
        text = page_of(MIXED).text
        assert "33.3 %" in text
        assert "1 of 3 completed runs gave the right answer" in text
        # Wilson's interval of 1 of 3
        assert "between 6.1 and 79.2 % (Wilson)" in text
        assert "pass@1 of planned 20.0 % 20.0 to 60.0 % if what has no verdict were wrong, or right" in text

    def test_a_batch_under_way_and_one_with_crashes_are_called_so(self) -> None:
        text = page_of(MIXED).text
        assert "1 run is under way: these figures will change." in text
        assert "Not comparable. 1 of 5 runs crashed (20.0 %); at most 5 % may." in text

    def test_a_scripted_model_is_named_at_the_top_in_the_title_and_at_every_run(self) -> None:
        material = replace(MIXED, scripted=True, model="scripted")
        page = page_of(material)
        assert page.text.index("Scripted model.") < page.text.index("Evaluation report")
        assert "(scripted model)" in page.text
        assert page.all("div", id="transcript-body", data_scripted="")
        assert "SCRIPTED MODEL" in report_markdown(material)
        assert "cripted" not in page_of(MIXED).text

    def test_every_run_has_a_row_with_what_it_is_filtered_by(self) -> None:
        rows = page_of(MIXED).rows
        assert {key: row["data-verdict"] for key, row in rows.items()} == {
            "right#1": "right",
            "wrong#1": "wrong",
            "no-line#1": "no valid answer",
            "gone#1": "crashed",
            "open#1": "running",
        }
        assert rows["wrong#1"]["data-level"] == "2"
        assert rows["gone#1"]["data-class"] == "crashed: timeout"

    def test_a_wrong_answer_stands_beside_the_gold_answer_unless_that_is_withheld(self) -> None:
        assert "41 gold 42" in page_of(MIXED).text
        withheld = replace(MIXED, runs=tuple(replace(run, gold=None) for run in MIXED.runs))
        assert "gold" not in page_of(withheld).text.split("About this page")[0]

    def test_failures_are_counted_by_class_by_ending_and_by_what_was_seen(self) -> None:
        signal = Signal("step_repetition", "decided", "rules", (2,), "alike")
        flag = Signal("answer_key_file", "signal", "contamination", (1,), "metadata.jsonl was asked for")
        run = replace(MIXED.runs[1], signals=(signal,), flags=(flag,), terminated_by="max_messages")
        page = page_of(replace(MIXED, runs=(MIXED.runs[0], run, *MIXED.runs[2:]), examined=Examined(4, 3, 4)))
        assert "step repetition repeats finished steps without need rules 1 1 1" in page.text
        assert "1 trace has not been looked at yet" in page.text
        assert "answer key file contamination 1 0 1" in page.text
        assert page.rows["wrong#1"]["data-mode"] == "step_repetition answer_key_file"
        assert page.all("a", data_filter="ended", data_value="max_messages")
        assert page.all("a", data_filter="class", data_value="crashed: timeout")

    def test_traces_that_nobody_looked_at_are_not_called_clean(self) -> None:
        assert "No rule has looked at these traces yet" in page_of(MIXED).text
        looked = replace(MIXED, examined=Examined(4, 4, 4))
        assert "The rules saw no failure mode in 4 traces." in page_of(looked).text

    def test_the_comparison_says_no_more_than_its_words_and_leads_to_both_runs(self) -> None:
        page = page_of(replace(MIXED, contrast=contrast(), no_contrast=None), baseline_page="b0@v1.html")
        assert "+26.3 points (95 % interval +4.5 to +48.1) over 19 tasks" in page.text
        assert "McNemar exact p = 0.0625" in page.text
        assert "left out 1 task without a verdict on one side" in page.text
        assert {"#run/won/1", "#run/gone/2"} <= {link["href"] for link in page.all("a", class_="run-link")}

    def test_a_link_to_the_baselines_page_is_only_there_when_the_page_is(self) -> None:
        moved = Moved("won", 1, 0.0, 1.0, a_try().run_id, None)
        material = replace(MIXED, contrast=contrast(gained=(moved,)), no_contrast=None)
        with_page = page_of(material, baseline_page="b0@v1.html").all("a", class_="before-link")
        assert [link["href"] for link in with_page] == ["b0@v1.html#run/won/1"]
        without = page_of(material)
        assert without.all("a", class_="before-link") == []
        assert f"eval-pipeline trace {moved.run_before}" in without.text

    def test_what_else_differs_is_listed(self) -> None:
        differs = contrast(other_differences=("model: then a, now b",))
        assert "model: then a, now b" in page_of(replace(MIXED, contrast=differs, no_contrast=None)).text

    def test_several_attempts_show_pass_at_k_and_the_clustered_interval(self) -> None:
        runs = [ended(f"t{task}", (task + attempt) % 3 == 0, attempt) for task in range(6) for attempt in (1, 2, 3)]
        text = page_of(material_of(*runs, passk=(PassK(1, 6, 0.3333, 0.3333), PassK(3, 6, 1.0, 0.0)))).text
        assert "clustered by task" in text or "Wilson, one trial per task" in text
        assert "3 100.0 % 0.0 % 6" in text
        assert "up to 3 attempts a task" in text

    def test_roles_hand_overs_and_endings_are_shown(self) -> None:
        roles = (
            RoleFigures("planner", 5, 1, 900, 100, 1000, None, 2_000, 5, 0, 0, 0, 0),
            RoleFigures("selector", 9, 0, 2_900, 100, 3000, None, 1_000, 0, 0, 0, 9, 2),
        )
        handovers = (Handover("user", "planner", "NEEDS_PLANNING", 7, 5), Handover("planner", "critic", "X", 3, 2))
        accounting = Accounting(roles, handovers, (Ending("completed", "approve", "critic", 3, 1),))
        text = page_of(replace(MIXED, accounting=accounting, tools=(Tool("python_exec", 4, 1, 20.0),))).text
        assert "planner 5 1 900 100 25.0 % 2.0 s 5 0" in text
        assert "selector 9 0 2,900 100 75.0 % 1.0 s 0 0 2" in text
        assert "user 7 planner 3" in text
        assert "approve critic 3 1" in text
        assert "python_exec 4 1 error (25.0 %)" in text

    def test_cost_is_shown_in_place_of_tokens_where_there_are_prices(self) -> None:
        runs = (replace(ended("a", True), cost=0.5, all_tokens=10), replace(ended("b", False), cost=2.0))
        text = page_of(material_of(*runs)).text
        assert "Cost against success" in text
        assert "median 0.5" in text
        assert "Tokens against success" in page_of(MIXED).text

    def test_the_contract_is_there_field_by_field_with_its_hash(self) -> None:
        page = page_of(replace(MIXED, contract=(Entry("llm_seed", "7"), Entry("model", "model-one"))))
        assert "llm_seed 7 model model-one" in page.text
        assert "b" * 64 in page.text

    def test_runs_with_several_tries_are_listed_with_how_each_ended(self) -> None:
        first = a_try(live=False, status="crashed", error_class="rate_limit")
        run = replace(ended("again", True), tries=(first, a_try(try_no=2)))
        text = page_of(material_of(run)).text
        assert "2 tries for 1 planned run" in text
        assert "2 tries: rate limit, completed" in text

    def test_the_guards_work_is_told(self) -> None:
        note = GuardNote(("golds", "attachments"), {"gold answer": 3, "key": 1}, ("picture.png",))
        text = page_of(MIXED, note).text
        assert "gold answers and the lines and cells of attachments of 8 characters or more" in text
        assert "Replaced: gold answer 3 times, key 1 time." in text
        assert "picture.png" in text
        assert "Nothing had to be replaced." in page_of(MIXED).text

    def test_a_page_that_leaves_texts_out_says_so(self) -> None:
        assert "Texts longer than" not in page_of(MIXED).text
        assert "Texts longer than 20,000 characters" in page_of(material_of(traced(said(0, "x" * 20_001)))).text
        assert "after 400 events" in page_of(material_of(traced(said(0, "x"), more=401))).text

    def test_the_same_in_short_is_markdown(self) -> None:
        text = report_markdown(replace(MIXED, contrast=contrast(), no_contrast=None)).replace("\u00a0", " ")
        assert "| pass@1 of completed | 33.3 % | 6.1 to 79.2 % |" in text
        assert "**better**: b1@v2 is better than b0@v1" in text
        assert "| won | 0.0 % | 100.0 % | +100.0 |" in text
        assert "| crashed: timeout | 1 | 20.0 % |" in text
        assert "**Not comparable:** 1 of 5 runs crashed." in text


class TestEmptyAndBroken:
    def test_a_batch_in_which_nothing_was_planned_is_a_page_all_the_same(self) -> None:
        page = page_of(material_of())
        assert "No run has completed yet, so there is no rate." in page.text
        assert "Nothing was planned yet." in page.text
        assert page.traces == {"runs": [], "lengths": {}, "texts": []}
        assert report_markdown(material_of())

    def test_a_batch_in_which_every_run_crashed_has_no_rate_and_says_why(self) -> None:
        material = material_of(crashed("a"), crashed("b"))
        text = page_of(material).text
        assert "No run has completed yet" in text
        assert "Not comparable. 2 of 2 runs crashed (100.0 %)" in text
        assert "pass@1 of planned 0.0 % 0.0 to 100.0 %" in text
        assert "crashed: timeout 2 100.0 %" in text
        assert "2 of 2 runs crashed" in report_markdown(material)

    def test_a_planned_batch_that_has_not_begun_is_shown_as_that(self) -> None:
        waiting = replace(crashed("a"), status=None, error_class=None)
        page = page_of(material_of(waiting))
        assert page.rows["a#1"]["data-verdict"] == "not started"
        assert "0 of 1" in page.text

    def test_figures_of_nothing_at_all_do_not_break_a_plot(self) -> None:
        runs = (
            replace(ended("a", True), latency_ms=0, all_tokens=0),
            replace(ended("b", False), latency_ms=0, all_tokens=0),
        )
        assert page_of(material_of(*runs)).all("circle", class_="point")

    def test_hangul_is_itself_everywhere(self) -> None:
        run = replace(
            with_try(ended("과제".encode().hex(), True), events=(said(0, "막차는 23:04에 있습니다"),)),
            question="막차는 몇 시입니까?",
            answer="이십삼 시",
        )
        page = page_of(material_of(run, change="계획자에게 더 알려 준다"))
        assert "막차는 몇 시입니까?" in page.text
        assert "이십삼 시" in page.text
        assert "계획자에게 더 알려 준다" in page.text
        assert "막차는 23:04에 있습니다" in page.traces["texts"]


def hostile(text: str) -> Material:
    """A material in which every foreign text is ``text``."""
    event = Event(0, "tool_call", text, text, text, text, 9, True, text, text, text, text, text)
    run: Run = replace(
        ended("t", False),
        question=text,
        gold=text,
        file_name=text,
        error_message=text,
        answer=text,
        score_reason=text,
        tries=(a_try(error_message=text, events=(event,)),),
        signals=(Signal("step_repetition", "decided", "rules", (0,), text),),
    )
    accounting = Accounting(
        (RoleFigures(text, 1, 0, 1, 1, 2, None, 1, 1, 0, 0, 0, 0),),
        (Handover(text, text, text, 1, 1),),
        (Ending("completed", text, text, 1, 0),),
    )
    parts = (Part(text, 1, 0.0, 1.0, 1.0, None),)
    return material_of(
        run,
        change=text,
        model=text,
        tools=(Tool(text, 1, 1, None),),
        accounting=accounting,
        contract=(Entry("model", text),),
        circumstances=(Entry("host", text),),
        contrast=contrast(levels=parts, attachments=parts, other_differences=(text,)),
        no_contrast=None,
    )


class TestSafety:
    @pytest.mark.parametrize("text", HOSTILE)
    def test_no_foreign_text_becomes_markup(self, text: str) -> None:
        harmless, page = page_of(hostile("nothing special")), page_of(hostile(text), GuardNote((), {}, (text,)))
        with_note = page_of(hostile("nothing special"), GuardNote((), {}, ("nothing special",)))
        assert [tag for tag, _ in page.elements] == [tag for tag, _ in with_note.elements]
        assert len(page.scripts) == 2
        assert page.scripts[1] == harmless.scripts[1]
        assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
        assert not page.open

    def test_the_policy_allows_this_style_and_this_script_alone(self) -> None:
        page = page_of(MIXED)
        (policy,) = [one["content"] for one in page.all("meta") if one.get("http-equiv") == "Content-Security-Policy"]
        rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
        assert rules["default-src"] == "'none'"
        for directive, content in (("script-src", page.scripts[1]), ("style-src", page.styles[0])):
            digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
            assert rules[directive] == f"'sha256-{digest}'"
        assert rules["base-uri"] == rules["form-action"] == "'none'"

    def test_nothing_is_taken_from_anywhere(self) -> None:
        page = page_of(replace(MIXED, contrast=contrast(), no_contrast=None), baseline_page="b0@v1.html")
        for _, attributes in page.elements:
            for name in ("src", "href", "data", "action", "poster", "srcset"):
                value = attributes.get(name, "#")
                assert value.startswith(("#", "data:,", "b0@v1.html#")), f"{name}={value}"
        assert not any("style" in attributes for _, attributes in page.elements)
        assert not re.search(r"@import|url\(", page.styles[0])
        assert not re.search(
            r"fetch\(|XMLHttpRequest|import\(|innerHTML|outerHTML|document\.write|eval\(", page.scripts[1]
        )

    def test_text_that_runs_the_other_way_is_shown_as_it_is_written(self) -> None:
        assert "a\\u202egnp.exe" in page_of(hostile("a\u202egnp.exe")).text

    def test_lone_surrogates_and_nul_do_not_stop_the_page(self) -> None:
        assert render(hostile("\ud800\0\udfff"), GuardNote()).decode("utf-8")


class TestForEveryReader:
    def test_it_has_landmarks_headings_in_order_and_labels(self) -> None:
        page = page_of(replace(MIXED, contrast=contrast(), no_contrast=None))
        assert [tag for tag, _ in page.elements if tag in ("header", "nav", "main", "footer")][:3] == [
            "header",
            "nav",
            "main",
        ]
        levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after - before <= 1 for before, after in pairwise(levels))
        for plot in page.all("svg", class_="plot"):
            assert plot["role"] == "img"
            assert plot["aria-label"]
        ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
        assert len(ids) == len(set(ids))
        for section in page.all("section"):
            assert section["aria-labelledby"] in ids
        targets = {link["href"][1:] for link in page.all("a") if re.fullmatch("#[a-z]+", link["href"])}
        assert targets <= set(ids)

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_every_colour_of_text_is_readable_on_both_grounds(self, scheme: str) -> None:
        style = page_of(MIXED).styles[0]
        blocks = re.findall(r":root \{(.*?)\n\s*\}", style, re.DOTALL)
        colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", blocks[0]))
        if scheme == "dark":
            colours |= dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", blocks[1]))
        for name in ("ink", "soft", "faint", "accent", "right", "wrong", "no-answer", "crashed", "open"):
            for ground in ("paper", "card"):
                assert _contrast(colours[name], colours[ground]) >= 4.5, f"{name} on {ground}"
        # text on a coloured pill
        for name in ("right", "wrong", "no-answer", "open"):
            assert _contrast(colours["card"], colours[name]) >= 4.5


def _contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours after WCAG 2.2."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
