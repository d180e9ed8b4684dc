"""A text that is one date, read: ISO and the usual written forms, English and Korean.

Dates inside a longer text, and those that are relative to a day, belong to
:mod:`~eval_pipeline.benchmarks.meeting_dates`.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata

MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
            "september sept sep", "october oct", "november nov", "december dec",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
"""English names of months and their short forms, in lower case."""
MONTH = rf"(?P<name>{'|'.join(sorted(MONTHS, key=len, reverse=True))})(?![^\W\d_])\.?"

_LONGEST = 100
_AROUND = (
    re.compile(r"[\s(]*\b(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b[.,)\s]*"),
    re.compile(r"\s*(?:\([월화수목금토일]\)|[월화수목금토일]요일)\s*"),
    # a time of the day behind the date says nothing about the day
    re.compile(r"(?:t|\s+|,\s*)\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?\s*(?:[ap]\.?m\.?)?\s*(?:z|utc|gmt|kst|[+-]\d{2}:?\d{2})?$"),
)  # fmt: skip
_YEAR_FIRST = re.compile(
    r"(?P<year>\d{4})(?:\s*(?P<sign>[-/.])\s*(?P<month>\d{1,2})\s*(?P=sign)\s*(?P<day>\d{1,2})\.?"
    r"|\s*년\s*(?P<month_ko>\d{1,2})\s*월\s*(?P<day_ko>\d{1,2})\s*일|(?P<month_8>\d{2})(?P<day_8>\d{2}))"
)
_YEAR_LAST = re.compile(r"(?P<a>\d{1,2})\s*(?P<sign>[-/. ])\s*(?P<b>\d{1,2})\s*(?P=sign)\s*'?(?P<year>\d{4}|\d{2})\.?")
_NAMED = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th)?[\s\-./,]*(?:of\s+)?{MONTH}[\s\-./,]*'?(?P<year>\d{{4}}|\d{{2}})",
        rf"{MONTH}[\s\-./]*(?P<day>\d{{1,2}})(?:st|nd|rd|th)?[\s\-./,]+'?(?P<year>\d{{4}}|\d{{2}})",
        rf"(?P<year>\d{{4}})[\s\-./,]*{MONTH}[\s\-./,]*(?P<day>\d{{1,2}})(?:st|nd|rd|th)?",
    )
)


def read_date(text: str, *, day_first: bool = False, year_first: bool = False) -> dt.date | None:
    """``text`` as a date, or ``None`` if it is none. A weekday or a time of the day beside it is passed over.

    Of two numbers before a year, ``day_first`` says which is the day; where that cannot be, the other one is. Of three
    numbers of two digits the last one is the year, or the first with ``year_first``. A year of two digits below 69
    is of this century, as in POSIX.
    """
    if len(text) > _LONGEST:
        return None
    text = unicodedata.normalize("NFKC", text).casefold().strip()
    for around in _AROUND:
        text = around.sub(" ", text).strip()
    if match := _YEAR_FIRST.fullmatch(text):
        month = match["month"] or match["month_ko"] or match["month_8"]
        return calendar_date(int(match["year"]), int(month), int(match["day"] or match["day_ko"] or match["day_8"]))
    if match := _YEAR_LAST.fullmatch(text):
        if year_first and len(match["a"]) == len(match["year"]) == 2:
            return calendar_date(full_year(match["a"]), int(match["b"]), int(match["year"]))
        return numeric_date(full_year(match["year"]), int(match["a"]), int(match["b"]), day_first=day_first)
    for pattern in _NAMED:
        if match := pattern.fullmatch(text):
            return calendar_date(full_year(match["year"]), MONTHS[match["name"]], int(match["day"]))
    return None


def numeric_date(year: int, first: int, second: int, *, day_first: bool) -> dt.date | None:
    """The date of two numbers in the order that ``day_first`` says, or else in the only one that is possible."""
    month, day = (second, first) if day_first else (first, second)
    return calendar_date(year, month, day) or calendar_date(year, day, month)


def calendar_date(year: int, month: int, day: int) -> dt.date | None:
    """The date, or ``None`` where the calendar has none."""
    try:
        return dt.date(year, month, day)
    except ValueError:
        return None


def full_year(digits: str) -> int:
    """The year that two or four ``digits`` stand for."""
    year = int(digits)
    return year if len(digits) == 4 else year + (2000 if year < 69 else 1900)
