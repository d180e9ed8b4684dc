"""Numbers, dates and quoted names in a text, English and Korean, as values that can be compared.

``6,200,000``, ``6.2 million``, ``620만`` and ``6200000`` are one value; ``5 April 2019``, ``2019-04-05`` and
``2019년 4월 5일`` one date. Texts are expected to be in NFKC. Whether a value is supported belongs to the benchmark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import lru_cache

_SCALES = {
    "thousand": Decimal(10**3), "million": Decimal(10**6), "billion": Decimal(10**9), "trillion": Decimal(10**12),
    "bn": Decimal(10**9), "mn": Decimal(10**6),
    "백": Decimal(10**2), "천": Decimal(10**3), "만": Decimal(10**4), "억": Decimal(10**8), "조": Decimal(10**12),
}  # fmt: skip
_EXACT = Context(prec=80)
_LONGEST_KEY = 40
_LONGEST_KEPT = 5000
"""Characters of a text whose numbers are kept for the next time: a sentence is asked about more than once."""
_DIGIT = re.compile(r"\d")

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?!,?\d)|\d{1,30})(?:\.\d{1,30})?"
# a letter before the digits makes them part of a name, as in A380
_NUMBER = re.compile(
    rf"""(?<![^\W\d가-힣])(?<![\d.])
    (?P<sign>(?<![\w)\]])[-−])?
    (?P<digits>{_DIGITS})(?!\d)(?:[eE](?P<exponent>[+-]?\d{{1,3}})(?!\w))?
    (?![A-Za-z]+\d)
    (?:(?P<korean>[ ]?[백천만억조](?:[ ]?(?:\d{{1,3}}(?:,\d{{3}})+|\d{{1,30}})?[ ]?[백천만억조]){{0,12}}
        (?:[ ]?\d[\d,]{{0,8}}(?![\d,.년월일]))?)
      |[ -]?(?P<scale>thousand|million|billion|trillion|bn|mn)\b)?
    (?P<percent>[ ]?(?:%|percent\b|per[ ]cent\b|퍼센트|프로(?![가-힣])))?""",
    re.VERBOSE | re.IGNORECASE,
)
_KOREAN_PART = re.compile(r"(?P<digits>\d[\d,]*(?:\.\d+)?)?[ ]?(?P<units>[백천만억조](?:[ ]?[백천만억조])*)?")
_SMALL = "백천"

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "January Jan", "February Feb", "March Mar", "April Apr", "May", "June Jun", "July Jul", "August Aug",
            "September Sept Sep", "October Oct", "November Nov", "December Dec",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})\b\.?"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>[12]\d{3})"
_DATES = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?<!\d)(?P<year>[12]\d{3})[ ]?년[ ]?(?P<month>[01]?\d)[ ]?월(?:[ ]?(?P<day>[0-3]?\d)[ ]?일)?",
        r"(?<!\d)(?P<month>[01]?\d)[ ]?월[ ]?(?P<day>[0-3]?\d)[ ]?일",
        r"(?<![\d.-])(?P<year>[12]\d{3})(?P<between>[-./])(?P<month>[01]?\d)(?P=between)(?P<day>[0-3]?\d)(?![\d-])",
        rf"(?<!\d){_DAY}[ ](?:of[ ])?{_MONTH}(?:,?[ ]{_YEAR}(?!\d))?",
        rf"\b{_MONTH}[ ]{_DAY}(?!\d)(?:,?[ ]{_YEAR}(?!\d))?",
        rf"\b{_MONTH},?[ ]{_YEAR}(?!\d)",
    )
)
_TIME = re.compile(r"(?<![\d:.])([0-2]?\d):([0-5]\d)(?::[0-5]\d)?(?![\d:])")
_QUOTED = re.compile(
    r"""“([^“”\n]{2,200})”|"([^"\n]{2,200})"|「([^」\n]{2,200})」|『([^』\n]{2,200})』|《([^》\n]{2,200})》
    |«([^»\n]{2,200})»|(?<!\w)‘([^‘’\n]{2,200})’(?!\w)|(?<!\w)'([^'\n]{2,200})'(?!\w)""",
    re.VERBOSE,
)
_AROUND_A_QUOTE = " \t.,;:!?"


@dataclass(frozen=True, slots=True)
class Number:
    """A number at ``start:end`` of a text.

    ``unit`` is the value of one in its last written place, trailing zeros aside: 100 for ``89,700`` and 100,000 for
    ``6.2 million``. ``plain`` tells four bare digits, which may be a year.
    """

    value: Decimal
    unit: Decimal
    percent: bool
    plain: bool
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Date:
    """A date at ``start:end`` of a text; what it leaves unsaid is ``None``."""

    year: int | None
    month: int
    day: int | None
    start: int
    end: int


def key(value: Decimal) -> str:
    """The same text for equal values, such as 1889 and 1889.0."""
    normal = value.normalize(_EXACT)
    return f"{normal:f}" if abs(normal.adjusted()) < _LONGEST_KEY else str(normal)


def dates(text: str) -> Sequence[Date]:
    """The dates of ``text`` with at least a month, in order; the longest reading of a place counts."""
    return _dates(text) if len(text) <= _LONGEST_KEPT else _dates.__wrapped__(text)


def numbers(text: str) -> Sequence[Number]:
    """The numbers of ``text`` in order, but for those of dates and times of the day; scale words are counted in."""
    return _numbers(text) if len(text) <= _LONGEST_KEPT else _numbers.__wrapped__(text)


@lru_cache(maxsize=1024)
def _dates(text: str) -> tuple[Date, ...]:
    if not _DIGIT.search(text):
        return ()
    found = [_date(match) for pattern in _DATES for match in pattern.finditer(text) if _is_date(match.groupdict())]
    return tuple(_disjoint(found))


@lru_cache(maxsize=1024)
def _numbers(text: str) -> tuple[Number, ...]:
    if not _DIGIT.search(text):
        return ()
    blank = list(text)
    for place in (*((date.start, date.end) for date in dates(text)), *(match.span() for match in _TIME.finditer(text))):
        blank[slice(*place)] = " " * (place[1] - place[0])
    return tuple(_number(match) for match in _NUMBER.finditer("".join(blank)))


def times(text: str) -> list[str]:
    """The times of the day in ``text`` as ``h:mm``."""
    return [f"{int(match[1])}:{match[2]}" for match in _TIME.finditer(text)]


def quotes(text: str) -> list[str]:
    """What stands in quotation marks of any kind, normalised by :func:`plain`; 2 to 200 characters in one line."""
    found = (next(filter(None, match.groups())) for match in _QUOTED.finditer(text))
    return [name for name in (plain(quote) for quote in found) if name]


def plain(text: str) -> str:
    """``text`` as quotations are compared: case-folded, white space collapsed, no punctuation around it."""
    return " ".join(text.casefold().split()).strip(_AROUND_A_QUOTE)


def _number(match: re.Match[str]) -> Number:
    digits, scale = match["digits"], Decimal(1)
    value = Decimal(digits.replace(",", ""))
    if match["scale"]:
        scale = _SCALES[match["scale"].lower()]
    exponent = int(match["exponent"] or 0)
    if match["korean"]:
        value, unit = _korean(f"{digits}{match['korean']}")
    else:
        value = _EXACT.multiply(value, scale).scaleb(exponent)
        unit = _EXACT.multiply(_last_place(digits), scale).scaleb(exponent)
    bare = digits.isdigit() and len(digits) == 4 and not (match["scale"] or match["korean"] or match["exponent"])
    return Number(
        value=-value if match["sign"] else value,
        unit=unit,
        percent=match["percent"] is not None,
        plain=bare and match["percent"] is None and not match["sign"],
        start=match.start(),
        end=match.end(),
    )


def _last_place(digits: str) -> Decimal:
    if "." in digits:
        return Decimal(1).scaleb(-len(digits.partition(".")[2]))
    bare = digits.replace(",", "")
    zeros = len(bare) - len(bare.rstrip("0"))
    return Decimal(1).scaleb(zeros if zeros < len(bare) else 0)


def _korean(text: str) -> tuple[Decimal, Decimal]:
    """The value of such as ``3억 5천만`` or ``3만 2천`` and that of one in its last place."""
    total = below = Decimal(0)
    unit = Decimal(1)
    for part in _KOREAN_PART.finditer(text):
        if not part["digits"] and not part["units"]:
            continue
        digits = part["digits"] or "1"
        amount, unit = Decimal(digits.replace(",", "")), _last_place(digits)
        for name in (part["units"] or "").replace(" ", ""):
            if name in _SMALL:
                amount, unit = _EXACT.multiply(amount, _SCALES[name]), _EXACT.multiply(unit, _SCALES[name])
            else:
                # 만, 억 and 조 count all that has gathered since the last of them
                total, below = _EXACT.add(total, _EXACT.multiply(_EXACT.add(below, amount), _SCALES[name])), Decimal(0)
                amount, unit = Decimal(0), _EXACT.multiply(unit, _SCALES[name])
        below = _EXACT.add(below, amount)
    return _EXACT.add(total, below), unit


def _is_date(parts: dict[str, str | None]) -> bool:
    day = parts.get("day")
    return 1 <= _month(parts["month"] or "") <= 12 and (day is None or 1 <= int(day) <= 31)


def _month(text: str) -> int:
    return int(text) if text.isdigit() else _MONTHS[text]


def _date(match: re.Match[str]) -> Date:
    parts = match.groupdict()
    year, day = parts.get("year"), parts.get("day")
    month = _month(parts["month"] or "") if _is_date(parts) else 0
    return Date(int(year) if year else None, month, int(day) if day else None, match.start(), match.end())


def _disjoint(found: list[Date]) -> list[Date]:
    kept: list[Date] = []
    for date in sorted(found, key=lambda date: (date.start, -date.end)):
        if not kept or date.start >= kept[-1].end:
            kept.append(date)
    return kept


def values(text: str) -> set[Decimal]:
    """Every number that ``text`` can be read to have, as what a tool returned is read: also the parts of a row such as
    ``120,350``, which grouped digits may be, and the years and days of dates."""
    found = {number.value for number in numbers(text)}
    found |= {Decimal(part) for part in re.findall(r"(?<![\d.])\d{1,30}(?=,\d)|(?<=\d,)\d{1,30}(?!\d)", text)}
    for date in dates(text):
        found |= {Decimal(part) for part in (date.year, date.month, date.day) if part is not None}
    return found


def spans(text: str) -> Iterator[tuple[int, int]]:
    """Where numbers, dates and times of the day stand in ``text``."""
    for number in numbers(text):
        yield number.start, number.end
    for date in dates(text):
        yield date.start, date.end
    for match in _TIME.finditer(text):
        yield match.span()
