from __future__ import annotations

import time
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.tools.sql.statements import Dialect, statements, with_sort_keys


def texts(sql: str, dialect: Dialect = "sqlite") -> list[str]:
    return [statement.text for statement in statements(sql, dialect)]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select 1", ["select 1"]),
        ("select 1;", ["select 1"]),
        ("  select 1 ;;; ", ["select 1"]),
        ("select 1; select 2", ["select 1", "select 2"]),
        ("select ';'", ["select ';'"]),
        ("select 'it''s; so'", ["select 'it''s; so'"]),
        ('select ";" from "a;b"', ['select ";" from "a;b"']),
        ("select [a;b] from `c;d`", ["select [a;b] from `c;d`"]),
        ("-- first; still first\nselect 1", ["select 1"]),
        ("select 1 -- ; end", ["select 1"]),
        ("select /* ; */ 1", ["select /* ; */ 1"]),
        ("/* never; closed", []),
        ("-- nothing", []),
        ("", []),
        (";", []),
        ("select 'never; closed", ["select 'never; closed"]),
        ("select 한글 from 표; select 2", ["select 한글 from 표", "select 2"]),
    ],
)
def test_statements_are_split_where_a_semicolon_separates_them(sql: str, expected: list[str]) -> None:
    assert texts(sql) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select $$a;b$$", ["select $$a;b$$"]),
        ("select $q$a;$$;b$q$; select 2", ["select $q$a;$$;b$q$", "select 2"]),
        (r"select E'a\';b'", [r"select E'a\';b'"]),
        ("select /* a /* b; */ ; */ 1", ["select /* a /* b; */ ; */ 1"]),
        ("select a[1;2]", ["select a[1", "2]"]),
    ],
)
def test_postgres_quotes_in_ways_of_its_own(sql: str, expected: list[str]) -> None:
    assert texts(sql, "postgres") == expected


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
@settings(deadline=None)
@given(text=st.text(alphabet=st.sampled_from(list("a1 ;'\"`[]()$-/*\n,.Eeé한\0\\")), max_size=60))
def test_any_text_is_cut_without_losing_a_character_that_matters(dialect: Dialect, text: str) -> None:
    found = statements(text, dialect)
    for statement in found:
        assert statement.text in text
        assert "".join(token.text for token in statement.tokens) != ""
        place = statement.tokens[0].start
        for token in statement.tokens:
            assert token.start >= place
            assert text[token.start : token.end] == token.text
            place = token.end


@pytest.mark.parametrize("piece", ["(", "'", "/*", "''", "$a$", ";", "-", "select ", "\\'", '"', "[", "1.", "é"])
def test_huge_texts_take_time_in_proportion(piece: str) -> None:
    begin = time.perf_counter()
    for dialect in get_args(Dialect):
        statements(piece * (200_000 // len(piece)), dialect)
    assert time.perf_counter() - begin < 20


@pytest.mark.parametrize(
    ("sql", "columns", "added", "numbers"),
    [
        ("select a, b from t{} order by a", ["a", "b"], "", [0]),
        ("select a, b from t{} order by 2 desc, 1", ["a", "b"], "", [1, 0]),
        ('select a as "X y" from t{} order by "x Y" asc', ["X y"], "", [0]),
        ("select a from t{} union select a from u order by a", ["a"], "", [0]),
        ("select 1{} order by 1", ["1"], "", [0]),
        ("select a{} from t order by b", ["a"], ", b", [1]),
        ("select a{} from t order by b*2 desc nulls last", ["a"], ", b*2", [1]),
        ("select a{} from t order by f(b, c), a limit 3", ["a"], ", f(b, c)", [1, 0]),
        ("select a, (select max(x) from u order by 1){} from t where c in (select d from v) order by e",
         ["a", "max"], ", e", [2]),
        ("with q as (select 1 as z from t order by z) select a{} from q order by b, c", ["a"], ", b, c", [1, 2]),
        ("select a is distinct from b{} from t order by c", ["?"], ", c", [1]),
    ],
)  # fmt: skip
def test_what_a_query_sorts_by_becomes_columns(sql: str, columns: list[str], added: str, numbers: list[int]) -> None:
    (statement,) = statements(sql.format(""))
    assert with_sort_keys(statement, columns) == (sql.format(added), numbers)


@pytest.mark.parametrize(
    "sql",
    [
        "select a from t",
        "select a from (select a from t order by a)",
        "select a from t union select a from u order by b",
        "select distinct a from t order by b",
        "select a from t order by b collate nocase",
        "select a from t order by 7",
        "select a from t order by",
        "select 1 order by b",
    ],
)
def test_what_a_query_sorts_by_cannot_always_be_told(sql: str) -> None:
    (statement,) = statements(sql)
    assert with_sort_keys(statement, ["a"]) is None
