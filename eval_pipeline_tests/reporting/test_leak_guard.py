"""The leak guard replaces protected strings in every foreign text, and refuses finished bytes that hold one."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.reporting.leak_guard import MARKERS, Kind, LeakError, LeakGuard
from eval_pipeline.reporting.material import OWN

GOLD = 'Rivière "Bleue" & <Noire>, 12/7 €'
KOREAN = "서울특별시 강남구 역삼동"
KEY = "sk-Xy12/34+56=="

FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "HTML": html.escape,
    "HTML, quotes kept": lambda text: html.escape(text, quote=False),
    "HTML, decimal references": lambda text: "".join(f"&#{ord(sign)};" for sign in text),
    "HTML, hexadecimal references": lambda text: "".join(f"&#x{ord(sign):X};" for sign in text),
    "JSON, ASCII": lambda text: json.dumps(text)[1:-1],
    "JSON, Unicode": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "JSON, every character": lambda text: "".join(f"\\u{ord(sign):04x}" for sign in text),
    "JSON inside JSON": lambda text: json.dumps(json.dumps(text))[1:-1].removeprefix('\\"').removesuffix('\\"'),
    "JSON, every character, inside JSON": lambda text: "".join(f"\\\\u{ord(sign):04x}" for sign in text),
    "JSON inside HTML": lambda text: html.escape(json.dumps(text)[1:-1]),
    "HTML inside JSON": lambda text: json.dumps(html.escape(text))[1:-1],
    "URL": lambda text: quote(text, safe=""),
    "URL, slashes kept": quote,
    "URL, a form's": quote_plus,
    "URL, lower case": lambda text: re.sub("%..", lambda found: found[0].lower(), quote(text, safe="")),
    "Markdown": lambda text: "".join(f"\\{sign}" if sign in '|*_`<&"' else sign for sign in text),
}


@dataclass(frozen=True)
class Note:
    ours: str = field(metadata=OWN)
    theirs: str
    parts: tuple[str | int | None, ...] = ()
    named: Mapping[str, str] = field(default_factory=dict)


def guard(*golds: str, **more: Kind) -> LeakGuard:
    return LeakGuard({**dict.fromkeys(golds, "gold answer"), **more})  # type: ignore[arg-type]


def nothing_of_its_own() -> dict[Kind, str]:
    return {"key": "", "gold answer": "", "attachment": ""}


class TestReplacing:
    def test_every_foreign_text_is_reached_and_our_own_is_left_alone(self) -> None:
        ours = guard("protected")
        note = Note("protected", "is protected", ("protected", 3, None), {"protected key": "a protected value"})
        marker = MARKERS["gold answer"]
        assert ours.replace(note) == Note(
            "protected", f"is {marker}", (marker, 3, None), {f"{marker} key": f"a {marker} value"}
        )
        assert ours.replaced == {"gold answer": 4}

    def test_occurrences_are_counted_by_kind(self) -> None:
        ours = LeakGuard({KEY: "key", "Lantern Pier": "gold answer", "row of a table": "attachment"})
        text = f"{KEY}{KEY} at Lantern Pier, a row of a table"
        assert ours.replace(text) == (
            "[key withheld][key withheld] at [gold answer withheld], a [attachment text withheld]"
        )
        assert ours.replaced == {"key": 2, "gold answer": 1, "attachment": 1}

    def test_the_longest_of_several_is_taken_and_what_overlaps_it_does_not_come_back(self) -> None:
        ours = guard("abcdefgh", "abcdefgh ijkl", "ijkl mnop")
        assert ours.replace("abcdefgh ijkl mnop") == "[gold answer withheld] mnop"

    @pytest.mark.parametrize("form", ["NFC", "NFD"])
    def test_hangul_is_found_in_either_normal_form(self, form: str) -> None:
        text = unicodedata.normalize(form, f"답은 {KOREAN}입니다")
        assert KOREAN not in unicodedata.normalize("NFC", guard(KOREAN).replace(text))

    @pytest.mark.parametrize("form", FORMS)
    def test_a_model_that_writes_one_in_another_form_does_not_make_the_report_impossible(self, form: str) -> None:
        for secret in (GOLD, KOREAN, KEY, 'say "hi"\nand go'):
            ours = guard(secret)
            text = ours.replace(f"before {FORMS[form](secret)} after")
            assert MARKERS["gold answer"] in text
            assert ours.replaced == {"gold answer": 1}
            # neither as HTML nor in an island
            for finished in (html.escape(text), json.dumps(text), json.dumps(text, ensure_ascii=False)):
                assert ours.leaks(finished.encode()) == {}

    def test_arguments_stay_json_when_a_string_in_them_is_replaced(self) -> None:
        text = json.dumps({"code": f"print('{GOLD}')\nprint(1)"})
        assert json.loads(guard(GOLD).replace(text)) == {"code": f"print('{MARKERS['gold answer']}')\nprint(1)"}

    def test_without_protected_strings_nothing_is_touched(self) -> None:
        note = Note("a", "b")
        assert guard().replace(note) is note

    @given(st.data())
    def test_many_strings_are_replaced_as_few_are(self, data: st.DataObject) -> None:
        letters = st.text("ab한 ", min_size=8, max_size=12)
        needles = data.draw(st.lists(letters, min_size=1, max_size=5, unique=True))
        text = data.draw(st.lists(st.sampled_from([*needles, "a", "b", " ", "한"]), max_size=20).map("".join))
        # so many more that they are looked for in the other way; none of them is in the text
        others = [f"zzzzzzz{number:04}" for number in range(70)]
        few, many = guard(*needles), guard(*needles, *others)
        assert few.replace(text) == many.replace(text)
        assert few.replaced == many.replaced
        assert not guard(*needles).leaks(few.replace(text).encode())


class TestLastCheck:
    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("secret", [GOLD, KOREAN, KEY, "line one\nline two"])
    def test_a_leak_behind_the_replacement_is_caught_however_it_is_written(self, secret: str, form: str) -> None:
        finished = f'<td data-x="1">before {FORMS[form](secret)} after</td>'.encode()
        assert guard(secret).leaks(finished) == {secret: "gold answer"}

    @pytest.mark.parametrize("form", FORMS)
    def test_among_many_protected_strings_it_is_caught_as_well(self, form: str) -> None:
        others = [f"another protected string {number}" for number in range(100)]
        assert list(guard(GOLD, *others).leaks(FORMS[form](GOLD).encode())) == [GOLD]

    def test_a_refusal_counts_and_names_nothing(self) -> None:
        ours = LeakGuard({KEY: "key", KOREAN: "gold answer", GOLD: "gold answer"})
        finished = f"{KEY} {KOREAN} {GOLD}".encode()
        with pytest.raises(LeakError) as caught:
            ours.refuse(finished, "report b@t.html", nothing_of_its_own)
        message = str(caught.value)
        assert message == (
            "report b@t.html is not published, since it still holds protected strings (gold answer: 2, key: 1); "
            "a password that is also a part of an id has to be changed; every result is kept, "
            "see eval-pipeline status and trace"
        )

    def test_what_the_report_says_by_itself_is_no_leak_for_that_kind_alone(self) -> None:
        ours = LeakGuard({"baseline": "gold answer", "completed": "key"})
        finished = b"v1-baseline completed"
        ours.refuse(finished, "x", lambda: {"key": "runs completed", "gold answer": "v1-baseline", "attachment": ""})
        with pytest.raises(LeakError, match=r"\(key: 1\)"):
            ours.refuse(finished, "x", lambda: {"key": "", "gold answer": "v1-baseline", "attachment": "completed"})

    def test_clean_bytes_pass_and_nobody_is_asked_what_is_own(self) -> None:
        def never() -> dict[Kind, str]:
            raise AssertionError

        guard(GOLD).refuse(b"nothing of the kind, %E2%82%AC &amp; \\u003c", "x", never)

    def test_bytes_that_are_no_text_do_not_hide_a_leak(self) -> None:
        assert guard("Lantern Pier").leaks(b"\xff\xfe Lantern Pier \x80")
