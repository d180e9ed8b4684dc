"""What any text becomes in a page: nothing in it ends a script, starts a tag, or hides from its reader."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from eval_pipeline.reporting.escaping import finalize, island, shown_text
from eval_pipeline.reporting.svg import element

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "]]>",
    "\u2028\u2029",
    "\ud800 and \udfff alone",
    "a\0b\x1b[31mred",
    "\u202egnp.exe",
    "&lt;img src=x onerror=alert(1)&gt;",
    "'\"`${alert(1)}",
    "한글 😀 e\u0301",
)


class _Islands(HTMLParser):
    """Reads the texts of script elements, and counts every tag."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.mark.parametrize("text", HOSTILE)
def test_an_island_is_one_element_that_reads_back_as_the_text(text: str) -> None:
    page = f'<script type="application/json">{island({text: [text]})}</script><p>after</p>'
    page.encode("utf-8")
    parser = _Islands()
    parser.feed(page)
    assert parser.tags == ["script", "p"]
    assert json.loads(parser.texts[0]) == {text: [text]}


_values = st.recursive(
    st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@given(_values)
def test_any_value_comes_back_from_its_island_and_holds_no_markup(value: object) -> None:
    text = island(value)  # type: ignore[arg-type]
    assert not set(text) & set("<>&'\u2028\u2029")
    assert json.loads(text) == value


@pytest.mark.parametrize("text", HOSTILE)
def test_a_shown_text_has_no_character_that_misleads_its_reader(text: str) -> None:
    shown = shown_text(text)
    shown.encode("utf-8")
    assert not any(ord(sign) < 32 and sign not in "\n\t" for sign in shown)
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029\x7f")


def test_what_a_template_prints_is_shown_and_our_own_markup_is_left_alone() -> None:
    assert finalize("a\u202eb") == "a\\u202eb"
    assert finalize(None) == "–"
    assert finalize(3) == 3
    markup = Markup("<b>\t</b>")
    assert finalize(markup) is markup


def test_an_element_escapes_its_attributes_and_its_texts() -> None:
    made = element("text", '</text><script>"', class_='x" onload="alert(1)', x=1.5, data_run=None)
    assert made == ('<text class="x&#34; onload=&#34;alert(1)" x="1.5">&lt;/text&gt;&lt;script&gt;&#34;</text>')
