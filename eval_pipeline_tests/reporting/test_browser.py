"""A page in a real Chromium: nothing of a model runs, the keyboard reaches everything, nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from eval_pipeline.ids import TaskAttempt
from eval_pipeline.reporting.material import Event, Material, Run, Signal
from eval_pipeline.reporting.page import GuardNote, render
from eval_pipeline_tests.browser.chromium import opened_browser
from eval_pipeline_tests.reporting.materials import material_of
from eval_pipeline_tests.reporting.test_page import MIXED, contrast, hostile
from eval_pipeline_tests.reporting.test_rates import crashed, ended
from eval_pipeline_tests.reporting.test_transcripts import a_try, said

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request

pytestmark = pytest.mark.browser

ATTACKS = (
    "<script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    "</script><script>window.hacked=1</script>",
    "</textarea></title></style><svg onload=window.hacked=1>",
    '"><iframe src=javascript:parent.hacked=1></iframe>',
    "' autofocus onfocus=window.hacked=1 x='",
    "javascript:window.hacked=1",
    "{{constructor.constructor('window.hacked=1')()}}",
    "<a href=javascript:window.hacked=1 id=close>x</a><base href=https://example.invalid/>",
    "<meta http-equiv=refresh content='0;url=https://example.invalid/'>",
    "<link rel=stylesheet href=https://example.invalid/x.css><style>*{display:none}</style>",
    "\u2028window.hacked=1\u2029",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened_browser() as browser:
        yield browser


class Shown:
    """A page on the screen. What it logs, breaks or asks the network for is remembered."""

    def __init__(self, browser: Browser, folder: Path, material: Material, width: int = 1280) -> None:
        path = folder / "page.html"
        path.write_bytes(render(material, GuardNote()))
        self.page: Page = browser.new_page(viewport={"width": width, "height": 800})
        self.page.set_default_timeout(20_000)
        self.complaints: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._asked)
        self.page.goto(path.as_uri())

    def _asked(self, request: Request) -> None:
        if not request.url.startswith(("file:///", "data:,")):
            self.complaints.append(request.url)

    def rows(self) -> list[str]:
        """The cells of the rows that can be seen, from top to bottom."""
        found: list[str] = self.page.eval_on_selector_all(
            "#table tbody tr", "rows => rows.filter(row => row.offsetParent !== null).map(row => row.dataset.run)"
        )
        return found

    def open(self, task_id: str) -> None:
        """Open the transcript of a task's first attempt from the table."""
        self.page.click(f"tr[data-run='{task_id}#1'] a.run-link")
        self.page.wait_for_selector("#transcript[open] .ev")

    def dialog_text(self) -> str:
        return self.page.locator("#transcript").inner_text()

    def focused(self) -> str:
        text: str = self.page.evaluate("(document.activeElement.textContent || document.activeElement.id).trim()")
        return text

    def tab_to(self, name: str, *, most: int = 80) -> None:
        """Press Tab until what is named so has the focus."""
        for _ in range(most):
            self.page.keyboard.press("Tab")
            if self.focused() == name:
                return
        raise AssertionError(f"{name!r} cannot be reached with Tab")


def batch() -> Material:
    """Three runs with traces, one of them crashed, one wrong with signals."""
    message = Event(0, "agent_message", "user", text="질문입니다")
    choice = Event(
        1, "selector_decision", "selector", target="planner", text="Nobody has planned.", reason="NEEDS_PLANNING"
    )
    call = Event(
        2, "tool_call", "executor", arguments='{"code": "print(1)\\nprint(2)"}', tool="python_exec", call_id="c"
    )
    result = Event(3, "tool_result", "executor", text="long line\n" * 60, tool="python_exec", length=9_000, cut=True)
    repeat = Event(4, "agent_message", "executor", text="long line\n" * 60)
    answer = replace(said(5, "So it is.\nFINAL ANSWER: 42"), tokens_in=100, tokens_out=5, latency_ms=1500)
    failed = Event(6, "tool_error", "executor", text="no such file", tool="python_exec", error_type="FileNotFoundError")
    end = Event(7, "final_answer", "team", text="42", ended_by="approve", arguments="approve")
    events = (message, choice, call, result, repeat, answer, failed, end)
    first = a_try(run_id=UUID(int=1), live=False, status="crashed", error_class="timeout", error_message="too slow")
    right = replace(
        ended("alpha", True),
        run_id=UUID(int=2),
        all_tokens=900,
        latency_ms=20,
        answer="42",
        tries=(first, a_try(run_id=UUID(int=2), try_no=2, events=events)),
    )
    signal = Signal("step_repetition", "decided", "rules", (1,), "said the same twice")
    wrong = replace(
        ended("beta", False),
        run_id=UUID(int=3),
        level=2,
        all_tokens=10_000,
        latency_ms=5,
        question="어느 나무입니까?",
        signals=(signal,),
        tries=(a_try(run_id=UUID(int=3), events=(said(0, "one"), said(1, "two"))),),
    )
    gone: Run = replace(crashed("gamma"), run_id=UUID(int=4), all_tokens=20, tries=(a_try(run_id=UUID(int=4)),))
    return material_of(right, wrong, gone, contrast=contrast(gained=(), lost=()), no_contrast=None)


@pytest.fixture
def shown(browser: Browser, tmp_path: Path) -> Iterator[Shown]:
    shown = Shown(browser, tmp_path, batch())
    yield shown
    assert shown.complaints == []
    shown.page.close()


def hostile_batch() -> Material:
    """A run for every attack, in which it is every foreign text; the batch's own texts are all of them."""
    runs = []
    for number, attack in enumerate(ATTACKS):
        (run,) = hostile(attack).runs
        runs.append(replace(run, cell=TaskAttempt(f"t{number}", 1)))
    every = hostile("\n".join(ATTACKS))
    return replace(every, runs=tuple(runs), figures=replace(every.figures, planned=len(runs), completed=len(runs)))


class TestHostileText:
    def test_nothing_that_a_model_wrote_runs_or_reaches_out(self, browser: Browser, tmp_path: Path) -> None:
        shown = Shown(browser, tmp_path, hostile_batch())
        page = shown.page
        foreign = "iframe, base, img, object, embed, form:not(.filters), meta[http-equiv=refresh], link[rel=stylesheet]"
        for number, attack in enumerate(ATTACKS):
            page.fill("#search", f"t{number}#1")
            shown.open(f"t{number}")
            # it is there to be read
            assert attack.strip("\u2028\u2029")[:20] in shown.dialog_text()
            assert page.evaluate("window.hacked") is None, attack
            assert page.evaluate("document.querySelectorAll('script').length") == 2, attack
            assert page.evaluate(f"document.querySelectorAll('{foreign}').length") == 0, attack
            page.keyboard.press("Escape")
        assert shown.complaints == []
        page.close()

    def test_the_policy_stops_what_would_get_in_by_a_mistake_of_ours(self, browser: Browser, tmp_path: Path) -> None:
        shown = Shown(browser, tmp_path, MIXED)
        path = tmp_path / "page.html"
        planted = "<script>window.hacked=1</script><img src=x onerror=window.hacked=1><style>body{color:red}</style>"
        path.write_text(path.read_text().replace("<main>", f"<main>{planted}"))
        shown.page.goto(path.as_uri())
        assert shown.page.evaluate("window.hacked") is None
        assert shown.page.evaluate("getComputedStyle(document.body).color") != "rgb(255, 0, 0)"
        shown.page.close()


class TestTable:
    def test_it_is_searched_in_questions_too_filtered_and_reset(self, shown: Shown) -> None:
        assert shown.rows() == ["alpha#1", "beta#1", "gamma#1"]
        shown.page.fill("#search", "나무")
        assert shown.rows() == ["beta#1"]
        assert shown.page.inner_text("#shown") == "1 of 3 runs"
        shown.page.fill("#search", "no such thing")
        assert shown.rows() == []
        shown.page.click("#reset")
        assert shown.rows() == ["alpha#1", "beta#1", "gamma#1"]
        shown.page.select_option("#filter-verdict", "crashed")
        assert shown.rows() == ["gamma#1"]
        shown.page.click("button[type=reset]")
        shown.page.select_option("#filter-mode", "step_repetition")
        assert shown.rows() == ["beta#1"]

    def test_it_is_sorted_both_ways_with_what_is_unknown_at_the_end(self, shown: Shown) -> None:
        tokens = "#table button[data-sort=latency]"
        shown.page.click(tokens)
        assert shown.rows() == ["alpha#1", "beta#1", "gamma#1"]
        assert shown.page.get_attribute("#table th:has(> button[data-sort=latency])", "aria-sort") == "descending"
        shown.page.click(tokens)
        assert shown.rows() == ["beta#1", "alpha#1", "gamma#1"]
        shown.page.click("#table button[data-sort=task]")
        assert shown.rows() == ["alpha#1", "beta#1", "gamma#1"]

    def test_a_failure_class_leads_to_its_runs(self, shown: Shown) -> None:
        shown.page.click("a.filter-link[data-value='crashed: timeout']")
        assert shown.rows() == ["gamma#1"]
        assert shown.page.input_value("#filter-class") == "crashed: timeout"


class TestTranscript:
    def test_it_shows_who_spoke_why_and_what_the_tools_did(self, shown: Shown) -> None:
        shown.open("alpha")
        text = " ".join(shown.dialog_text().split())
        for words in (
            "alpha#1",
            "selector → planner NEEDS_PLANNING Nobody has planned.",
            "executor calls python_exec",
            "code print(1) print(2)",
            "python_exec returned",
            "repeats what the tool said above",
            "python_exec failed FileNotFoundError",
            "100 + 5 tokens · +1.5 s",
            "The end approve",
            "600 of 9,000 characters are shown",
        ):
            assert words in text
        assert shown.page.inner_text("#transcript mark") == "FINAL ANSWER: 42"

    def test_long_texts_unfold(self, shown: Shown) -> None:
        shown.open("alpha")
        more = shown.page.locator("#transcript .more")
        assert more.get_attribute("aria-expanded") == "false"
        height = shown.page.locator("#transcript .long pre").evaluate("one => one.clientHeight")
        more.click()
        assert more.inner_text() == "Show less"
        assert shown.page.locator("#transcript .long pre").evaluate("one => one.clientHeight") > height

    def test_earlier_tries_are_a_button_away(self, shown: Shown) -> None:
        shown.open("alpha")
        shown.page.click("text=Try 1: timeout")
        assert "too slow" in shown.dialog_text()
        shown.page.click("text=Try 2: completed (counts)")
        assert "too slow" not in shown.dialog_text()

    def test_a_signal_leads_to_its_event(self, shown: Shown) -> None:
        shown.open("beta")
        assert "decided step repetition said the same twice" in " ".join(shown.dialog_text().split())
        shown.page.click("#transcript button:has-text('event 1')")
        assert shown.page.evaluate("document.activeElement.dataset.n") == "1"

    def test_an_address_opens_its_run_and_a_wrong_one_opens_none(self, shown: Shown) -> None:
        address = shown.page.url.partition("#")[0]
        shown.page.goto(f"{address}#run/beta/1")
        shown.page.wait_for_selector("#transcript[open]")
        assert shown.page.inner_text("#transcript-title") == "beta#1"
        for wrong in ("#run/nobody/1", "#run/%E0%A4%A/1", "#run/alpha", "#<img>"):
            shown.page.goto(f"{address}{wrong}")
            assert not shown.page.locator("#transcript").is_visible()


class TestKeyboard:
    def test_everything_is_reached_used_and_left_without_a_mouse(self, shown: Shown) -> None:
        page = shown.page
        page.keyboard.press("Tab")
        assert shown.focused() == "Skip to the figures"
        shown.tab_to("search")
        page.keyboard.type("a")
        shown.tab_to("Verdict")
        page.keyboard.press("Enter")
        assert page.get_attribute("#table th", "aria-sort") == "ascending"
        shown.tab_to("beta")
        page.keyboard.press("Enter")
        page.wait_for_selector("#transcript[open]")
        assert shown.focused() == "beta#1"
        for key, title in (("k", "alpha#1"), ("j", "beta#1")):
            page.keyboard.press(key)
            page.wait_for_selector(f"#transcript-title:text-is('{title}')")
        page.keyboard.press("Escape")
        assert not page.locator("#transcript").is_visible()
        assert shown.focused() == "beta"

    def test_whoever_has_the_focus_can_be_seen(self, shown: Shown) -> None:
        for name in ("Plots", "search", "Task", "alpha"):
            shown.tab_to(name)
            assert shown.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


class TestShape:
    @pytest.mark.parametrize("width", [420, 1280])
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_nothing_is_wider_than_the_window(self, browser: Browser, tmp_path: Path, width: int, scheme: str) -> None:
        long = "가" * 300 + "x" * 600
        material = batch()
        runs = (
            replace(material.runs[0], question=long, answer=long, gold=long, file_name=long),
            *material.runs[1:],
        )
        shown = Shown(browser, tmp_path, replace(material, runs=runs, change=long, model=long), width)
        shown.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert shown.page.evaluate("document.documentElement.scrollWidth") == width
        shown.page.click("#table a.run-link")
        shown.page.wait_for_selector("#transcript[open] .ev")
        assert shown.page.evaluate("document.querySelector('#transcript').scrollWidth") <= width
        assert shown.complaints == []
        shown.page.close()

    def test_whoever_wants_no_motion_gets_none(self, shown: Shown) -> None:
        shown.page.emulate_media(reduced_motion="reduce")
        shown.open("alpha")
        assert shown.page.evaluate("getComputedStyle(document.querySelector('#transcript')).animationName") == "none"
        assert shown.page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
