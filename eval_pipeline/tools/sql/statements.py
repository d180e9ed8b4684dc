"""SQL text cut into tokens: how many statements it holds, and by what its last ``ORDER BY`` sorts.

Pure and linear in the length of the text; the text may be anything. It is no guard: what a statement may do is decided
where it runs. Nothing here knows the grammar beyond that of strings, names, comments and parentheses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Dialect = Literal["sqlite", "postgres"]

_ANY = r"""
    (?P<space>\s++)
  | (?P<line>--[^\n]*+)
  | (?P<block>/\*)
  | (?P<number>(?:\d++\.?\d*+|\.\d++)(?:[eE][+-]?\d++)?)
  | (?P<quoted>"(?:[^"]++|"")*+(?:"|\Z){names})
  | (?P<string>{strings}'(?:[^']++|'')*+(?:'|\Z))
  | (?P<word>[^\W\d][\w$]*+)
  | (?P<sign>.)
"""
_TOKENS: dict[Dialect, re.Pattern[str]] = {
    "sqlite": re.compile(
        _ANY.format(names=r"|`(?:[^`]++|``)*+(?:`|\Z)|\[[^\]]*+(?:\]|\Z)", strings=""), re.DOTALL | re.VERBOSE
    ),
    "postgres": re.compile(
        _ANY.format(names="", strings=r"[eE]'(?:[^'\\]++|\\.|'')*+(?:'|\Z)|\$(?P<tag>\w*+)\$.*?(?:\$(?P=tag)\$|\Z)|"),
        re.DOTALL | re.VERBOSE,
    ),
}
_COMMENT_END = re.compile(r"/\*|\*/")
_SET_WORDS = frozenset({"UNION", "EXCEPT", "INTERSECT"})
_AFTER_ORDER = frozenset({"LIMIT", "OFFSET", "FETCH", "FOR"})


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of SQL that is neither white space nor comment, with its place in the text.

    ``kind`` is ``word``, ``quoted`` (a name in quotes), ``string``, ``number`` or ``sign``; ``depth`` counts the
    parentheses around it.
    """

    kind: str
    text: str
    start: int
    end: int
    depth: int

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text.upper() in words


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement: its text without what separates it from others, and its tokens."""

    text: str
    tokens: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class SortKey:
    """What an ``ORDER BY`` sorts by: a column of the result by its number from 0, or an expression."""

    column: int | None
    expression: str


def statements(sql: str, dialect: Dialect = "sqlite") -> list[Statement]:
    """The statements of ``sql``; what has only comments in it is none."""
    found: list[Statement] = []
    tokens: list[Token] = []
    for token in _tokens(sql, dialect):
        if token.text == ";" and token.kind == "sign":
            _add(found, sql, tokens)
            tokens = []
        else:
            tokens.append(token)
    _add(found, sql, tokens)
    return found


def with_sort_keys(statement: Statement, columns: list[str]) -> tuple[str, list[int]] | None:
    """``statement`` with what it sorts by as columns of its result, and the numbers of these columns from 0.

    ``columns`` are the names in its result as it stands. Keys that are no column of it yet are put behind the last one.
    ``None`` where that cannot be done: it does not sort, or sorts in a way that its text does not show.
    """
    order = _last_order(statement.tokens)
    if order is None:
        return None
    keys = [_key(tokens, statement, columns) for tokens in _sort_terms(statement.tokens[order + 2 :])]
    if None in keys:
        return None
    added = [key.expression for key in keys if key is not None and key.column is None]
    numbers, following = [], len(columns)
    for key in keys:
        if key is not None and key.column is not None:
            numbers.append(key.column)
        else:
            numbers.append(following)
            following += 1
    if not added:
        return statement.text, numbers
    place = _end_of_columns(statement.tokens, order)
    if place is None:
        return None
    cut = place - statement.tokens[0].start
    return f"{statement.text[:cut].rstrip()}, {', '.join(added)} {statement.text[cut:]}", numbers


def _tokens(sql: str, dialect: Dialect) -> Iterator[Token]:
    pattern, position, depth = _TOKENS[dialect], 0, 0
    while position < len(sql):
        match = pattern.match(sql, position)
        assert match is not None and match.lastgroup is not None
        kind, start, position = _kind(match), position, match.end()
        if kind == "block":
            position = _comment_end(sql, position, nested=dialect == "postgres")
        elif kind not in ("space", "line"):
            text = match[0]
            depth -= text == ")"
            yield Token(kind, text, start, position, depth)
            depth += text == "("


def _kind(match: re.Match[str]) -> str:
    # the tag of a dollar-quoted string is a group inside it, and the last one to match
    return "string" if match.lastgroup == "tag" else str(match.lastgroup)


def _comment_end(sql: str, position: int, *, nested: bool) -> int:
    depth = 1
    for mark in _COMMENT_END.finditer(sql, position):
        if mark[0] == "*/":
            depth -= 1
        elif nested:
            depth += 1
        if not depth:
            return mark.end()
    return len(sql)


def _add(found: list[Statement], sql: str, tokens: list[Token]) -> None:
    if tokens:
        found.append(Statement(sql[tokens[0].start : tokens[-1].end], tuple(tokens)))


def _last_order(tokens: tuple[Token, ...]) -> int | None:
    """The index of the last ``ORDER BY`` outside all parentheses."""
    for index in range(len(tokens) - 2, 0, -1):
        if tokens[index].depth == 0 and tokens[index].is_word("ORDER") and tokens[index + 1].is_word("BY"):
            return index
    return None


def _sort_terms(tokens: tuple[Token, ...]) -> Iterator[list[Token]]:
    term: list[Token] = []
    for token in tokens:
        if token.depth == 0 and token.is_word(*_AFTER_ORDER):
            break
        if token.depth == 0 and token.text == ",":
            yield term
            term = []
        else:
            term.append(token)
    yield term


def _key(term: list[Token], statement: Statement, columns: list[str]) -> SortKey | None:
    if len(term) > 2 and term[-2].is_word("NULLS") and term[-1].is_word("FIRST", "LAST"):
        term = term[:-2]
    if len(term) > 1 and term[-1].is_word("ASC", "DESC"):
        term = term[:-1]
    # a collation makes texts equal that differ, and USING sorts by an operator of one's own
    if not term or any(token.depth == 0 and token.is_word("COLLATE", "USING") for token in term):
        return None
    start = statement.tokens[0].start
    expression = statement.text[term[0].start - start : term[-1].end - start]
    if len(term) == 1 and term[0].kind == "number":
        number = int(term[0].text) if term[0].text.isdecimal() and len(term[0].text) < 6 else 0
        return SortKey(number - 1, expression) if 1 <= number <= len(columns) else None
    if len(term) == 1 and term[0].kind in ("word", "quoted"):
        name = _bare(term[0]).casefold()
        places = [place for place, column in enumerate(columns) if column.casefold() == name]
        if places:
            return SortKey(places[0], expression)
    return SortKey(None, expression)


def _bare(token: Token) -> str:
    if token.kind == "word" or len(token.text) < 2:
        return token.text
    return token.text[1:-1].replace(token.text[0] * 2, token.text[0])


def _end_of_columns(tokens: tuple[Token, ...], order: int) -> int | None:
    """Where further columns can be put in: before the ``FROM`` of a simple ``SELECT``."""
    outer = [index for index in range(order) if tokens[index].depth == 0]
    selects = [index for index in outer if tokens[index].is_word("SELECT")]
    if len(selects) != 1 or any(tokens[index].is_word(*_SET_WORDS) for index in outer):
        return None
    if tokens[selects[0] + 1].is_word("DISTINCT"):
        return None
    for index in outer:
        # IS DISTINCT FROM is an operator
        if index > selects[0] and tokens[index].is_word("FROM") and not tokens[index - 1].is_word("DISTINCT"):
            return tokens[index].start
    return None
