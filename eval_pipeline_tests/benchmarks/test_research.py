"""Research: the worked cases, every form of a citation, the evidence of a run, the task file, and the sample suite."""

from __future__ import annotations

import importlib.util
import json
import time
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.benchmarks.base import Answer, Evidence, Score, Task
from eval_pipeline.benchmarks.registry import BENCHMARKS
from eval_pipeline.benchmarks.research import Research
from eval_pipeline.benchmarks.research_evidence import canonical_url, store_of
from eval_pipeline.benchmarks.research_grounding import Grounding, ground
from eval_pipeline.benchmarks.research_kiwi import KiwiReader, best_reader
from eval_pipeline.benchmarks.research_words import PlainReader, Reader
from eval_pipeline.errors import TaskDataError
from eval_pipeline_tests.benchmarks.hostile_texts import HOSTILE
from eval_pipeline_tests.benchmarks.sample_runs import played, view
from eval_pipeline_tests.conftest import Database

TOWER = "The tower opened in 1889 and is 330 metres tall."
RIVER = "The river Seine flows through Paris."
TICKETS = "Ticket sales reached 6,200,000 visitors in 2019."
TASK = Task("t", "research", 1, "?", "")
PLAIN: Reader = PlainReader()
has_kiwi = importlib.util.find_spec("kiwipiepy") is not None
READERS = [
    pytest.param("rules", id="rules"),
    pytest.param("kiwi", id="kiwi", marks=pytest.mark.skipif(not has_kiwi, reason="the extra korean is not installed")),
]
each_reader = pytest.mark.parametrize("reading", READERS)
_KIWI: list[Reader] = []


def reader(reading: str) -> Reader:
    if reading == "rules":
        return PLAIN
    if not _KIWI:
        _KIWI.append(KiwiReader())
    return _KIWI[0]


def fetched(*texts: str) -> tuple[Evidence, ...]:
    return tuple(Evidence("fetch_document", {"doc_id": f"d{n}"}, text) for n, text in enumerate(texts, 1))


def scored(answer: str, evidence: Sequence[Evidence], reading: str = "rules", **thresholds: float) -> Score:
    return Research(reader(reading)).score(TASK, Answer(None, answer, tuple(evidence)), thresholds)


def grounded(answer: str, *texts: str, reading: str = "rules") -> Grounding:
    return ground(answer, store_of(fetched(*texts)), reader(reading))


WORKED = [
    ("The tower opened in 1889 [1].", 1, 1, 1),
    ("The tower opened in 1889 [2].", 0, 0, 0),
    ("The tower opened in 1889.", None, 0, 0),
    ("The tower opened in 1887 [1].", 0, 0, 0),
    ("The tower opened in 1889 [7].", 0, 0, 0),
    ("The tower opened in 1889 [1][7].", 0.5, 1, 0.667),
    ("The tower opened in 1889 [1][2].", 0.5, 1, 0.667),
    ("The tower opened in 1889 [1, 2].", 0.5, 1, 0.667),
    ("The tower opened in 1889 [1-3].", 0.333, 1, 0.5),
    ("The tower opened in 1889 [1]. The river Seine flows through Paris [2].", 1, 1, 1),
    ("The tower opened in 1889 [1]. The river Seine flows through Paris.", 1, 0.5, 0.667),
    ("The tower opened in 1889 and ticket sales reached 6200000 visitors in 2019 [1][3].", 1, 1, 1),
    ("Visitors love it [1].", 0, 0, 0),
    ("", None, None, 0),
    ("[1][2][3]", None, None, 0),
    ("The tower was never opened in 1889 [1].", 1, 1, 1),  # known false accept
    ("The structure was inaugurated in 1889 [1].", 0, 0, 0),  # known false reject
]


@each_reader
@pytest.mark.parametrize(("answer", "precision", "recall", "f1"), WORKED)
def test_the_worked_cases_have_their_stated_values(
    answer: str, precision: float | None, recall: float | None, f1: float, reading: str
) -> None:
    found = grounded(answer, TOWER, RIVER, TICKETS, reading=reading)
    rounded = [None if value is None else round(value, 3) for value in (found.precision, found.recall, found.f1)]
    assert rounded == [precision, recall, f1]

    score = scored(answer, fetched(TOWER, RIVER, TICKETS), reading)
    assert score.metrics["grounding_f1_lexical"] == pytest.approx(f1, abs=5e-4)
    assert score.metrics.get("citation_precision") == pytest.approx(precision, abs=5e-4)
    assert score.metrics.get("citation_recall") == pytest.approx(recall, abs=5e-4)
    assert score.format_valid == bool(found.citations)
    assert score.success == (f1 >= 0.5)


def evidence_of_a_search() -> tuple[Evidence, ...]:
    listed = (
        "2 of 9 documents match, the best first:\n\n"
        f"[doc:paris/tower] The tower\nurl: https://Example.org:443/Tower/?utm_source=x#top\n\n{TOWER}\n\n"
        f"[doc:강] 센 강\n\n{RIVER}"
    )
    return (Evidence("search_documents", {"query": "tower"}, listed),)


@pytest.mark.parametrize(
    "marker",
    [
        "[1]", " [1]", "[^1]", "[ 1 ]", "[doc:paris/tower]", "[Doc: PARIS/tower]", "(https://example.org/Tower)",
        "https://example.org/Tower", "<https://example.org/Tower/>", "[here](https://example.org/Tower)",
        "[1](https://example.org/Tower)", "[[1]](https://example.org/Tower)", "[https://example.org/Tower]",
        "（https://example.org/Tower）", "［1］", "[1, 1]", "[1-1]", "[doc:paris/tower; doc:paris/tower]",
        "[doc:The tower]",
        "(https://example.org/Tower?utm_medium=y&utm_campaign=z#part)", '[here](https://example.org/Tower "The tower")',
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["The tower opened in 1889 {}.", "The tower opened in 1889. {}", "- Opened 1889 {}"])
def test_every_form_of_a_citation_means_its_document(marker: str, place: str) -> None:
    found = ground(place.format(marker), store_of(evidence_of_a_search()), PLAIN)
    assert [(len(judged.citations), judged.supported) for judged in found.claims] == [(1, True)]
    assert found.citations[0].document is not None
    assert found.citations[0].document.number == 1
    assert found.precision == 1


@pytest.mark.parametrize(
    ("marker", "targets"),
    [
        ("[1][2]", [1, 2]), ("[1, 2]", [1, 2]), ("[1;2]", [1, 2]), ("[1-3]", [1, 2, 3]), ("[1–2, 5]", [1, 2, 5]),
        ("[1-9999]", ["1-9999"]), ("[3-1]", ["3-1"]), ("[doc:a][doc:b]", ["a", "b"]), ("[doc:a, doc:b]", ["a", "b"]),
        ("[doc:a, 2]", ["a", 2]), ("[2019]", []), ("[sic]", []), ("[a, 1]", []), ("[]", []),
        ("![picture](https://a.example/x.png)", []), ("https://a.example/b_(c).", ["https://a.example/b_(c)"]),
        ("(see https://a.example/b)", ["https://a.example/b"]), ("ftp://a.example", []),
        ("https://a.example/강/다리에서", ["https://a.example/강/다리에서"]),
        ("https://a.example/b에서", ["https://a.example/b"]),
    ],
)  # fmt: skip
def test_a_marker_is_read_as_what_it_names(marker: str, targets: list[int | str]) -> None:
    found = grounded(f"The tower opened in the spring {marker}", TOWER)
    assert [citation.target for citation in found.citations] == targets


def test_a_citation_of_one_document_by_number_and_by_id_counts_once() -> None:
    found = ground("The tower opened in 1889 [1][doc:paris/tower].", store_of(evidence_of_a_search()), PLAIN)
    assert (len(found.citations), found.precision) == (1, 1)


@pytest.mark.parametrize("title", ["## References", "**Sources:**", "참고 문헌", "출처:", "References", "# 참고자료"])
@pytest.mark.parametrize(
    "entries",
    [
        "[1] [doc:d2] The river\n[2] [doc:d1]",
        "1. doc:d2\n2. doc:d1, the tower",
        "- [1]: [doc:d2]\n- [2]: [doc:d1]",
        "- [doc:d2]\n- [doc:d1]",
        "[^1]: d2\n[^2]: d1",
    ],
)
def test_the_answers_own_list_says_what_its_numbers_mean(title: str, entries: str) -> None:
    answer = f"The tower opened in 1889 [2].\nThe river Seine flows through Paris [1].\n\n{title}\n\n{entries}\n"
    found = grounded(answer, TOWER, RIVER)
    assert (len(found.claims), found.precision, found.recall) == (2, 1, 1)


def test_a_number_that_the_list_does_not_have_is_never_one_of_the_run() -> None:
    found = grounded("The tower opened in 1889 [1].\n\n## References\n[2] [doc:d1]\n", TOWER)
    assert (found.valid, found.f1) == (0, 0)


def test_a_definition_works_without_a_heading_and_ends_nothing() -> None:
    answer = (
        "The tower opened in 1889 [1].\n\n[1]: https://example.org/tower\n\nThe river Seine flows through Paris [2]."
    )
    evidence = (
        Evidence("fetch_document", {"url": "https://example.org/tower/"}, TOWER),
        Evidence("fetch_document", {"doc_id": "river"}, RIVER),
    )
    found = ground(answer, store_of(evidence), PLAIN)
    assert [judged.supported for judged in found.claims] == [True, False]


def test_prose_behind_a_list_of_references_is_judged_again() -> None:
    found = grounded("The tower opened in 1889 [1].\n\n## Sources\n[1] [doc:d1]\n\nThe tower is made of cheese.", TOWER)
    assert [judged.supported for judged in found.claims] == [True, False]


@pytest.mark.parametrize(
    "text",
    [
        "# The tower opened in 1889", "**The tower and its visitors**", "Here is the answer to your question.",
        "Sources: [1], [2]",
        "The main findings about the tower are these:", "Yes indeed.", "The documents do not say who built the tower.",
        "문서에는 누가 지었는지 나와 있지 않다.", "다음은 탑에 대한 답이다.",
        "| name | year |\n|---|---|", "---", "In summary.",
    ],
)  # fmt: skip
def test_what_states_nothing_is_no_claim(text: str) -> None:
    assert grounded(text, TOWER).claims == ()


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("- The tower opened in 1889 [1]\n- The tower is 330 metres tall [1]", 2),
        ("| what | source |\n|---|---|\n| The tower opened in 1889. It is 330 metres tall | [1] |", 1),
        ("1. The tower opened in 1889 [1]. It is 330 metres tall [1].", 2),
        ("```\nThe tower opened in 1889 [1].\n```", 1),
        ("> The tower opened in 1889 [1].", 1),
    ],
)
def test_list_items_rows_and_quotations_are_claims(text: str, claims: int) -> None:
    found = grounded(text, TOWER)
    assert (len(found.claims), found.f1) == (claims, 1)


class TestSupport:
    @pytest.mark.parametrize(
        ("claim", "source"),
        [
            ("Sales reached 6.2 million visitors", TICKETS),
            ("Ticket sales reached 620만 visitors", TICKETS),
            ("The bridge opened on 5 April 2019", "The bridge was opened on 2019-04-05."),
            ("The bridge opened in April 2019", "The bridge was opened on 5 April 2019."),
            ("The bridge opened in April 2019", "In 2019 the bridge was opened. It was on 5 April."),
            ('The sign says "No Entry"', "Over the door stands a sign that says no  entry to everybody."),
            ("THE TOWER OPENED IN 1889", TOWER),
            ("The tower's height is 330 metres", TOWER + " Its height is well known."),
        ],
    )
    def test_values_are_compared_and_not_their_spelling(self, claim: str, source: str) -> None:
        assert grounded(f"{claim} [1].", source).f1 == 1

    @pytest.mark.parametrize(
        ("claim", "source", "missing"),
        [
            (
                "The bridge opened on 6 April 2019",
                "The bridge was opened on 5 April 2019.",
                "4월 6일 is not in what it cites",
            ),
            ("The bridge opened on 5 April 2020", "The bridge was opened on 5 April 2019.", "2020 is not"),
            ('The sign says "No Exit"', "A sign says no entry.", "the quotation 'no exit' is not"),
            ("The temperature is -5 degrees here", "The temperature is 5 degrees here.", "-5 is not"),
            ("Blue whales sing at night", TOWER, "0 of its 4 words"),
        ],
    )
    def test_what_is_lacking_is_said(self, claim: str, source: str, missing: str) -> None:
        (judged,) = grounded(f"{claim} [1].", source).claims
        assert not judged.supported
        assert missing in judged.missing

    def test_words_count_only_if_they_stand_close_together(self) -> None:
        filler = "Nothing else happened that week. " * 5
        apart = f"The tower stood there. {filler}Many visitors came. {filler}The doors opened early."
        assert grounded("The tower opened early for many visitors [1].", apart).f1 == 0
        near = "The tower stood there. Many visitors came. The doors opened early."
        assert grounded("The tower opened early for many visitors [1].", near).f1 == 1

    def test_passages_of_one_document_are_one_text(self) -> None:
        evidence = (
            *evidence_of_a_search(),
            Evidence("fetch_document", {"doc_id": "paris/tower"}, "It is made of iron plates."),
        )
        store = store_of(evidence)
        assert len(store.documents) == 2
        assert ground("It is made of iron plates [1].", store, PLAIN).f1 == 1

    def test_a_document_that_adds_nothing_is_no_right_citation_but_either_of_two_that_both_do_is(self) -> None:
        assert grounded("The tower opened in 1889 [1][2].", TOWER, TOWER + " Truly.").precision == 1
        assert grounded(
            "The tower opened in 1889 [1][2][3].", TOWER, RIVER, TOWER + " Truly."
        ).precision == pytest.approx(2 / 3)

    def test_the_share_of_words_is_a_threshold_of_the_suite(self) -> None:
        answer = "The tower was never opened in 1889 [1]."
        assert scored(answer, fetched(TOWER)).success
        assert not scored(answer, fetched(TOWER), word_overlap=0.8).success


class TestKorean:
    SOURCE = "한강대교는 1917년에 개통되었다. 길이는 1,005미터이며 하루 평균 8만 2천 대의 차량이 지난다."

    @each_reader
    @pytest.mark.parametrize(
        "claim",
        [
            "한강대교는 1917년에 개통되었다",
            "1917년에 개통된 한강대교",
            "한강대교의 길이는 1005미터이다",
            "하루 평균 82,000대의 차량이 한강대교를 지난다",
        ],
    )  # fmt: skip
    def test_particles_and_endings_make_no_difference(self, claim: str, reading: str) -> None:
        assert grounded(f"{claim} [1].", self.SOURCE, reading=reading).f1 == 1

    @each_reader
    @pytest.mark.parametrize("claim", ["한강대교는 1918년에 개통되었다", "고양이가 지붕에서 낮잠을 즐긴다"])
    def test_other_numbers_and_other_words_are_not_supported(self, claim: str, reading: str) -> None:
        assert grounded(f"{claim} [1].", self.SOURCE, reading=reading).f1 == 0

    @each_reader
    def test_sentences_are_told_apart_and_their_marks_stay_with_them(self, reading: str) -> None:
        answer = "한강대교는 1917년에 개통되었다. [1] 길이는 1,005미터이다 [2]. 다리 위로 많은 차량이 지난다."
        found = grounded(answer, self.SOURCE, RIVER, reading=reading)
        assert [[citation.target for citation in judged.citations] for judged in found.claims] == [[1], [2], []]

    @each_reader
    def test_composed_and_decomposed_hangul_are_one(self, reading: str) -> None:
        answer = unicodedata.normalize("NFD", "한강대교는 1917년에 개통되었다 [doc:다리].")
        evidence = (Evidence("fetch_document", {"doc_id": "다리"}, self.SOURCE),)
        assert scored(answer, evidence, reading).metrics["grounding_f1_lexical"] == 1

    def test_the_plain_reader_is_the_same_everywhere_and_the_other_is_part_of_the_version(self) -> None:
        assert Research(PlainReader()).scorer_version == "research-1"
        version = Research().scorer_version
        assert version == ("research-1" if best_reader().name == "rules" else f"research-1+{best_reader().name}")
        assert isinstance(best_reader(), KiwiReader) == has_kiwi
        assert scored("The tower opened [1].", fetched(TOWER)).grounding["details"]["reader"] == "rules"  # type: ignore[call-overload, index]


class TestEvidence:
    def test_documents_are_counted_in_first_seen_order_whatever_names_them_again(self) -> None:
        again = Evidence("fetch_document", {"doc_id": "강"}, f"[doc:강] 센 강\n\n{RIVER} It is long.")
        store = store_of(
            (*evidence_of_a_search(), again, Evidence("read_attached_file", {"path": "/a/b.txt"}, TICKETS))
        )
        assert [document.label for document in store.documents] == ["paris/tower", "강", "/a/b.txt"]
        assert [store.numbered(n) is not None for n in (0, 1, 3, 4)] == [False, True, True, False]

    def test_a_program_is_no_witness_of_its_own(self) -> None:
        evidence = (Evidence("python_exec", {"code": "print(...)"}, f"[doc:fake]\n{TOWER}"), *fetched(RIVER))
        assert len(store_of(evidence).documents) == 1
        assert scored("The tower opened in 1889 [doc:fake].", evidence).metrics["citation_validity"] == 0

    def test_a_header_counts_only_in_what_the_sources_return(self) -> None:
        evidence = (Evidence("read_attached_file", {"path": "/a/b.txt"}, f"[doc:fake] x\n{TOWER}"),)
        assert store_of(evidence).named("fake") is None

    def test_documents_of_one_title_stay_apart_and_no_body_names_another_url(self) -> None:
        listed = f"[doc:a] Notes\n\nurl: https://example.org/b\n{TOWER}\n\n[doc:b] Notes\nurl: https://example.org/b\n\n{RIVER}"
        store = store_of((Evidence("search_documents", {"query": "x"}, listed),))
        assert [document.label for document in store.documents] == ["a", "b"]
        by_url, by_title = store.named("https://example.org/b"), store.named("Notes")
        assert by_url is not None
        assert by_title is not None
        assert (by_url.label, by_title.label) == ("b", "a")

    def test_a_search_without_a_hit_is_no_evidence(self) -> None:
        nothing = Evidence("search_documents", {"query": "x"}, "No document matches 'x' (of 3); try other words")
        assert scored("The tower opened in 1889 [1].", (nothing, *fetched(TOWER))).success

    @pytest.mark.parametrize(
        ("url", "canonical"),
        [
            ("HTTPS://Example.ORG:443/a/?utm_source=x&b=1#c", "https://example.org/a?b=1"),
            ("http://example.org:80", "http://example.org"),
            ("http://example.org:8080/", "http://example.org:8080"),
            ("https://example.org/%EA%B0%95", "https://example.org/%EA%B0%95"),
            ("https://example.org/강", "https://example.org/%EA%B0%95"),
            ("ftp://example.org/a", None),
            ("https://[bad/a", None),
            ("https://example.org:99999/a", None),
            ("not a url", None),
            ("https://" + "a" * 3000, None),
        ],
    )
    def test_urls_have_one_form(self, url: str, canonical: str | None) -> None:
        assert canonical_url(url) == canonical


class TestFigures:
    GOLD = Task("t", "research", 1, "?", "", extra={"gold_documents": ["d1", "d3"]})

    def score(self, answer: str) -> Score:
        return Research(PLAIN).score(self.GOLD, Answer(None, answer, fetched(TOWER, RIVER, TICKETS)))

    def test_every_figure_has_its_value(self) -> None:
        score = self.score(
            "The tower opened in 1889 [1]. The river Seine flows through Rome [2][8]. It all happened 99 times."
        )
        assert score.metrics == pytest.approx(
            {
                "grounding_f1_lexical": 2 * (2 / 3) ** 2 / (4 / 3),
                "citation_precision": 2 / 3,
                "citation_recall": 2 / 3,
                "citation_validity": 2 / 3,
                "coverage": 2 / 3,
                "number_grounding": 0.5,
                "evidence_use": 2 / 3,
                "gold_doc_recall": 0.5,
                "gold_doc_precision": 0.5,
            }
        )
        row = dict(score.grounding)
        details = row.pop("details")
        assert row == {
            "evidence": 3, "claims": 3, "claims_cited": 2, "claims_supported": 2, "citations": 3, "citations_valid": 2,
            "citation_precision": 2 / 3, "citation_recall": 2 / 3,
            "grounding_f1": score.metrics["grounding_f1_lexical"],
        }  # fmt: skip
        json.dumps(details, allow_nan=False)
        assert "F1 0.67: 2 of 3 claims supported, 2 of 3 citations right" in score.reason
        assert "It all happened 99 times." in score.reason

    def test_figures_without_a_denominator_are_left_out(self) -> None:
        score = Research(PLAIN).score(TASK, Answer(None, "", ()))
        assert score.metrics == {"grounding_f1_lexical": 0}
        assert score.reason == "no answer"

    def test_a_program_may_ground_a_number_of_the_view(self) -> None:
        computed = Evidence("python_exec", {}, "together 99")
        score = Research(PLAIN).score(TASK, Answer(None, "The tower opened 99 times [1].", (*fetched(TOWER), computed)))
        assert score.metrics["number_grounding"] == 1
        assert not score.success


WORDS = st.sampled_from(
    ["tower", "river", "bridge", "opened", "closed", "tall", "1889", "330", "fish", "다리는", "강이", "열렸다", "길이"]
)
SENTENCES = st.lists(WORDS, min_size=3, max_size=12).map(" ".join)


@settings(max_examples=60, deadline=None)
@given(st.lists(SENTENCES, min_size=1, max_size=6))
def test_an_answer_of_the_documents_own_sentences_scores_full(texts: list[str]) -> None:
    answer = "\n".join(f"- {text} [doc:d{n}]." for n, text in enumerate(texts, 1))
    score = scored(answer, fetched(*(f"{text}." for text in texts)))
    claims = score.grounding["claims"]
    assert score.metrics["grounding_f1_lexical"] == (1 if claims else 0)


@settings(max_examples=60, deadline=None)
@given(st.lists(SENTENCES, min_size=2, max_size=5), st.randoms(use_true_random=False))
def test_the_order_of_claims_and_of_documents_known_by_id_makes_no_difference(texts: list[str], random: object) -> None:
    lines = [f"- {text} [doc:d{n}]." for n, text in enumerate(texts, 1)] + [
        "- fish market closed in the rain [doc:d1]."
    ]
    evidence = list(fetched(*(f"{text}." for text in texts)))
    before = scored("\n".join(lines), evidence).metrics
    random.shuffle(lines)  # type: ignore[attr-defined]
    random.shuffle(evidence)  # type: ignore[attr-defined]
    assert scored("\n".join(lines), evidence).metrics == pytest.approx(before)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=300), st.text(max_size=300))
def test_no_text_raises_and_every_figure_is_in_range(answer: str, source: str) -> None:
    score = scored(answer, fetched(source, TOWER))
    assert all(0 <= value <= 1 for value in score.metrics.values())
    assert not (score.success and not score.format_valid)
    assert len(score.reason.splitlines()) == 1
    json.dumps(score.grounding, allow_nan=False).encode()
    json.dumps(score.grounding, ensure_ascii=False).encode()
    assert "\\u0000" not in json.dumps(score.grounding)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_answer_is_scored_or_refused_in_bounded_time(name: str) -> None:
    begin = time.perf_counter()
    score = scored(HOSTILE[name], fetched(TOWER, RIVER, TICKETS, HOSTILE["many numbers"][:20_000]))
    assert time.perf_counter() - begin < 60
    assert 0 <= score.metrics["grounding_f1_lexical"] <= 1
    if len(HOSTILE[name]) > 200_000:
        assert "too long to be judged" in score.reason


class TestTaskFile:
    def write(self, folder: Path, *rows: dict[str, object], names: Sequence[str] = ("a.md", "sub/b.txt")) -> Path:
        for name in names:
            path = folder / "materials" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("text", encoding="utf-8")
        lines = [json.dumps({"task_id": f"t{n}", "question": "Why?", **row}) for n, row in enumerate(rows)]
        (folder / "tasks.jsonl").write_text("\n".join(lines), encoding="utf-8")
        return folder

    def test_a_task_names_its_documents_and_the_ones_that_should_be_cited(self, tmp_path: Path) -> None:
        self.write(tmp_path, {"materials": ["a.md", "sub"], "gold_documents": ["sub/b"]}, {"materials": ["sub"]})
        first, second = Research().load(tmp_path)
        assert [material.name for material in first.materials] == ["a.md", "sub/b.txt"]
        assert (first.gold, first.extra) == ("sub/b", {"gold_documents": ["sub/b"]})
        assert (second.gold, second.extra) == ("", {})
        assert first.content_hash != second.content_hash

    @pytest.mark.parametrize(
        ("row", "names", "said"),
        [
            ({}, ("a.md",), "field 'materials' names no document"),
            (
                {"materials": ["a b.md"]},
                ("a b.md",),
                "field 'materials' names 'a b.md'; a document is a .txt or .md file",
            ),
            ({"materials": ["a.pdf"]}, ("a.pdf",), "a document is a .txt or .md file"),
            ({"materials": ["a.md", "a.txt"]}, ("a.md", "a.txt"), "'a.txt' and 'a.md' have one id"),
            ({"materials": ["a.md"], "gold_documents": "a"}, ("a.md",), "is 'a'; write a list of document ids"),
            ({"materials": ["a.md"], "gold_documents": ["a", "a"]}, ("a.md",), "write each document id once"),
            ({"materials": ["a.md"], "gold_documents": [1]}, ("a.md",), "has 1; write each"),
            (
                {"materials": ["a.md"], "gold_documents": ["b"]},
                ("a.md",),
                "has 'b', which is none of the task's materials",
            ),
            ({"materials": ["a.md"], "gold": "x"}, ("a.md",), "there is no field 'gold'"),
            ({"materials": ["../a.md"]}, ("a.md",), "write a path below"),
        ],
    )
    def test_what_cannot_be_used_is_one_line(
        self, row: dict[str, object], names: Sequence[str], said: str, tmp_path: Path
    ) -> None:
        with pytest.raises(TaskDataError) as caught:
            Research().load(self.write(tmp_path, row, names=names))
        assert said in str(caught.value)
        assert "tasks.jsonl line 1" in str(caught.value)
        assert len(str(caught.value).splitlines()) == 1


async def test_the_sample_suite_comes_out_as_its_scripts_tell(database: Database) -> None:
    runs = await played(database, "research")
    assert {task_id: (run.row.success, run.row.format_valid) for task_id, run in runs.items()} == {
        "sample-research-lighthouse": (True, True),
        "sample-research-ferry-fares": (True, True),
        "sample-research-tram": (True, True),
        "sample-research-archive": (True, True),
        "sample-research-storm": (False, True),
        "sample-research-fish-market": (False, False),
    }
    for task_id, run in runs.items():
        assert run.row.status == "completed"
        assert run.row.scorer_version == BENCHMARKS["research"].scorer_version
        assert run.row.tool_calls >= 1
        if run.row.success:
            assert run.metrics["grounding_f1_lexical"] == run.metrics["gold_doc_recall"] == 1, task_id
    assert "'The storm flooded 221 houses in the lower town.' (221 is not in what it cites)" in str(
        runs["sample-research-storm"].row.score_reason
    )
    assert "no citation" in str(runs["sample-research-fish-market"].row.score_reason)

    grounding = view(database, "v_research_grounding")
    assert set(grounding) == set(runs)
    storm = grounding["sample-research-storm"]
    assert (storm.claims, storm.citations, storm.citations_valid, storm.grounding_f1) == (3, 3, 2, 0)
    assert storm.details["claims"][0]["missing"] == "221 is not in what it cites"
    assert grounding["sample-research-lighthouse"].citation_coverage == 1
