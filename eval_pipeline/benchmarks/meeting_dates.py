"""The days that a line of minutes names, English and Korean, also relative to the day of the meeting.

A table of written forms, tried from the most to the least exact; what one has read is taken out for the next. A form
with two readings ("next Friday" of this week or of the next) gives both. No library: those that look for dates in
running text take "may" for a month and know few of the Korean forms. A text that is nothing but a date belongs to
:mod:`~eval_pipeline.benchmarks.dates`.
"""

from __future__ import annotations

import calendar
import datetime as dt
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from eval_pipeline.benchmarks.dates import MONTH, MONTHS, calendar_date, full_year, numeric_date

LONGEST = 20_000
"""Characters of a line that are looked at."""
_FRIDAY, _LAST = 4, 31


@dataclass(frozen=True, slots=True)
class _Base:
    """What a form is read against: the day of the meeting, and whether 5/4 is the fifth of April."""

    day: dt.date
    day_first: bool


_Parts: TypeAlias = Mapping[str, str]
"""The named groups of a form that have matched."""
_Reader: TypeAlias = "Callable[[_Parts, _Base], list[dt.date | None]]"
"""The days of a form: ``None`` for one that the calendar does not have, an empty list for words that name no day."""

_WEEKDAYS = {
    name: number
    for number, names in enumerate(
        ("monday mon 월", "tuesday tues tue 화", "wednesday wed 수", "thursday thurs thur thu 목", "friday fri 금",
         "saturday sat 토", "sunday sun 일")
    )
    for name in names.split()
}  # fmt: skip
_COUNTS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "한": 1, "두": 2, "세": 3, "네": 4, "일": 1, "이": 2, "삼": 3, "사": 4, "하루": 1, "이틀": 2, "사흘": 3,
    "나흘": 4, "닷새": 5, "열흘": 10, "보름": 15,
}  # fmt: skip
_STEPS = {
    "this": 0, "current": 0, "next": 1, "이번": 0, "이": 0, "금": 0, "당": 0, "다음": 1, "담": 1, "차": 1, "내": 1,
    "익": 1, "다다음": 2,
}  # fmt: skip
"""How many weeks or months ahead."""

_WEEKDAY = rf"(?P<weekday>{'|'.join(sorted((name for name in _WEEKDAYS if name.isascii()), key=len, reverse=True))})\b"
_WEEKDAY_KO = r"(?P<weekday>[월화수목금토일])요일"
_COUNT = r"(?P<count>\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten)"
_DAY = r"(?P<day>\d{1,2})"
_ORDINAL = rf"{_DAY}(?:st|nd|rd|th)"
_MONTH_NUMBER = r"(?P<month>\d{1,2})"
_ENDS = r"(?!\d|[./-]\d)"
_LATER = r"[ ](?:from (?:now|today)|later|hence|after(?: the| this)? meeting)\b"
_LATER_KO = r"[ ]?(?:뒤|후|이내|안에|안으로|내로|내에|내(?![가-힣]))"


def find_days(text: str, meeting: dt.date, *, day_first: bool = False) -> frozenset[dt.date]:
    """Every day that ``text`` names, read on the day of the ``meeting``.

    A day without a year is the next one on or after the meeting. ``day_first`` says that 5/4 is the fifth of April.
    """
    return _find_days(text[:LONGEST], _Base(meeting, day_first))


@lru_cache(maxsize=4096)
def _find_days(text: str, base: _Base) -> frozenset[dt.date]:
    text = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    found: set[dt.date] = set()
    for form, read in _FORMS:
        parts, place = [], 0
        for match in form.finditer(text):
            named = {name: value for name, value in match.groupdict().items() if value is not None}
            days = read(named, base)
            known = {day for day in days if day is not None}
            if known or not days:
                found |= known
                # no form reads across the end of a line
                parts += [text[place : match.start()], "\n"]
                place = match.end()
        text = "".join([*parts, text[place:]])
    return frozenset(found)


# the calendar


def _after(day: dt.date, days: int) -> dt.date | None:
    try:
        return day + dt.timedelta(days)
    except OverflowError:
        return None


def _of_month(base: _Base, months: int, day: int) -> dt.date | None:
    """The ``day`` of the month so many months after the meeting's, or its last one if it is shorter."""
    year, month = divmod(base.day.year * 12 + base.day.month - 1 + months, 12)
    if not (1 <= day <= _LAST and dt.MINYEAR <= year <= dt.MAXYEAR):
        return None
    return dt.date(year, month + 1, min(day, calendar.monthrange(year, month + 1)[1]))


def _of_week(base: _Base, weeks: int, weekday: int) -> dt.date | None:
    """The weekday of the calendar week, from Monday, so many weeks after the meeting's."""
    return _after(base.day, weekday - base.day.weekday() + 7 * weeks)


def _coming(base: _Base, month: int, day: int) -> dt.date | None:
    """The next such day on or after the meeting; the 29th of February may be eight years away."""
    candidates = (calendar_date(base.day.year + years, month, day) for years in range(9))
    return next((found for found in candidates if found and found >= base.day), None)


def _days_until(base: _Base, weekday: int) -> int:
    return (weekday - base.day.weekday()) % 7


def _count(word: str) -> int:
    return int(word) if word.isdigit() else _COUNTS[word]


# the readers


def _three_numbers(parts: _Parts, base: _Base) -> list[dt.date | None]:
    return [calendar_date(int(parts["year"]), int(parts["month"]), int(parts["day"]))]


def _year_last(parts: _Parts, base: _Base) -> list[dt.date | None]:
    return [numeric_date(int(parts["year"]), int(parts["a"]), int(parts["b"]), day_first=base.day_first)]


def _two_digit_year(parts: _Parts, base: _Base) -> list[dt.date | None]:
    """The year may be the first or the last of the three: both are written."""
    first, second, third = parts["a"], int(parts["b"]), parts["c"]
    return [
        calendar_date(full_year(first), second, int(third)) if len(first) == 2 else None,
        numeric_date(full_year(third), int(first), second, day_first=base.day_first) if len(third) == 2 else None,
    ]


def _named_month(parts: _Parts, base: _Base) -> list[dt.date | None]:
    month, day = MONTHS[parts["name"]], int(parts["day"])
    return [calendar_date(int(parts["year"]), month, day) if "year" in parts else _coming(base, month, day)]


def _month_and_day(parts: _Parts, base: _Base) -> list[dt.date | None]:
    return [_coming(base, int(parts["month"]), int(parts["day"]))]


def _two_numbers(parts: _Parts, base: _Base) -> list[dt.date | None]:
    first, second = int(parts["a"]), int(parts["b"])
    month, day = (second, first) if base.day_first else (first, second)
    return [_coming(base, month, day) or _coming(base, day, month)]


def _no_day(parts: _Parts, base: _Base) -> list[dt.date | None]:
    return []


def _in_days(days: int) -> _Reader:
    return lambda parts, base: [_after(base.day, days)]


def _in_so_many(parts: _Parts, base: _Base) -> list[dt.date | None]:
    number = _count(parts["count"])
    if parts["unit"] in ("month", "달", "개월"):
        return [_of_month(base, number, base.day.day)]
    return [_after(base.day, number * (7 if parts["unit"] in ("week", "주", "주일") else 1))]


def _day_words(parts: _Parts, base: _Base) -> list[dt.date | None]:
    return [_after(base.day, _COUNTS[parts["count"]])]


def _weekday(parts: _Parts, base: _Base) -> list[dt.date | None]:
    """The next such day; said on that very weekday it may also be the day itself."""
    ahead = _days_until(base, _WEEKDAYS[parts["weekday"]])
    return [_after(base.day, ahead), _after(base.day, 7) if ahead == 0 else None]


def _next_weekday(parts: _Parts, base: _Base) -> list[dt.date | None]:
    """To some "next Friday" is the first one that comes, to others the one of the next calendar week."""
    weekday = _WEEKDAYS[parts["weekday"]]
    return [_after(base.day, _days_until(base, weekday) or 7), _of_week(base, 1, weekday)]


def _weekday_of_week(parts: _Parts, base: _Base) -> list[dt.date | None]:
    return [_of_week(base, _STEPS[parts["step"]], _WEEKDAYS[parts["weekday"]])]


def _day_of_month(parts: _Parts, base: _Base) -> list[dt.date | None]:
    return [_of_month(base, _STEPS[parts["step"]], int(parts["day"]))]


def _end_of(parts: _Parts, base: _Base) -> list[dt.date | None]:
    """A week ends on its Friday, a month, a quarter and a year on their last day."""
    step = _STEPS[parts.get("step", "this")]
    match parts["unit"].strip():
        case "week":
            return [_of_week(base, step, _FRIDAY)]
        case "month" | "달" | "월":
            return [_of_month(base, step, _LAST)]
        case "quarter" | "분기":
            return [_of_month(base, -base.day.month % 3 + 3 * step, _LAST)]
        case _:
            return [calendar_date(base.day.year + step, 12, _LAST)]


def _end_of_month(parts: _Parts, base: _Base) -> list[dt.date | None]:
    month = int(parts["month"]) if "month" in parts else MONTHS[parts["name"]]
    return [_of_month(base, (month - base.day.month) % 12, _LAST) if 1 <= month <= 12 else None]


def _day_alone(parts: _Parts, base: _Base) -> list[dt.date | None]:
    """The next month that has such a day still to come."""
    day = int(parts["day"])
    candidates = (_of_month(base, months, day) for months in range(3))
    return [next((found for found in candidates if found and found.day == day and found >= base.day), None)]


_STEP = r"(?P<step>this|current|next)"
_WEEK_KO = r"(?<![가-힣])(?P<step>이번|금|다음|다다음|담|차|내)[ ]?주"
_MONTH_KO = r"(?<![가-힣])(?P<step>이번|이|금|당|다음|담|내|익)[ ]?(?P<unit>달|월)"

_FORMS: tuple[tuple[re.Pattern[str], _Reader], ...] = tuple(
    (re.compile(form), read)
    for form, read in (
        (rf"(?<![\d.-])(?P<year>\d{{4}})[ ]?[-/.][ ]?{_MONTH_NUMBER}[ ]?[-/.][ ]?{_DAY}{_ENDS}", _three_numbers),
        (rf"(?P<year>\d{{4}})[ ]?년[ ]?{_MONTH_NUMBER}[ ]?월[ ]?{_DAY}[ ]?일", _three_numbers),
        (rf"(?<![\d./-])(?P<a>\d{{1,2}})[-/.](?P<b>\d{{1,2}})[-/.](?P<year>\d{{4}}){_ENDS}", _year_last),
        (rf"(?<![\d./-])(?P<a>\d{{1,2}})([-/.])[ ]?(?P<b>\d{{1,2}})\2[ ]?(?P<c>\d{{1,2}}){_ENDS}", _two_digit_year),
        # the end of a month, before the month is read as part of something else
        (rf"\bend of {MONTH}", _end_of_month),
        (rf"(?<!\d){_MONTH_NUMBER}[ ]?월[ ]?말", _end_of_month),
        (rf"\b{_DAY}(?:st|nd|rd|th)?[ ](?:of )?{MONTH}(?:,?[ ](?P<year>\d{{4}})\b)?", _named_month),
        (rf"\b{MONTH}[ ]?(?:the )?{_DAY}(?:st|nd|rd|th)?(?!\w)(?:,?[ ](?P<year>\d{{4}})\b)?", _named_month),
        (rf"(?<!\d){_MONTH_NUMBER}[ ]?월[ ]?{_DAY}[ ]?일", _month_and_day),
        (rf"(?<![\d./-])(?P<a>\d{{1,2}})/(?P<b>\d{{1,2}}){_ENDS}", _two_numbers),
        # with a point it is a date only where a weekday or "until" follows: 1.5 is a number
        (rf"(?<![\d.]){_MONTH_NUMBER}\.[ ]?{_DAY}\.?[ ]?(?=\([월화수목금토일]\)|까지)", _month_and_day),
        # a weekday beside a date, as in 2 May (Friday), tells no other day
        (rf"\n[ ,]*\(?(?:{_WEEKDAY}|{_WEEKDAY_KO.replace('weekday', 'same')}|[월화수목금토일]\))", _no_day),
        (rf"(?:\b{_WEEKDAY}|{_WEEKDAY_KO.replace('weekday', 'same')})[ ,]*\(?(?=\n)", _no_day),
        # relative to today
        (rf"\b{_COUNT} (?P<unit>day|week|month)s?(?:' time\b|{_LATER})", _in_so_many),
        (r"\bday after tomorrow\b|(?<![가-힣])(?:내일[ ]?)?모레", _in_days(2)),
        (r"(?<![가-힣])글피", _in_days(3)),
        (r"\btomorrow\b|(?<![가-힣])(?:내일|명일|익일)", _in_days(1)),
        (r"\btoday\b|(?<![가-힣])(?:오늘|금일|당일)", _in_days(0)),
        (rf"\b(?:in|within) {_COUNT} (?P<unit>day|week|month)s?\b", _in_so_many),
        (rf"(?<!\d)(?P<count>\d{{1,3}}|한|두|세|네|일|이|삼|사)[ ]?(?P<unit>주일?|개월|달){_LATER_KO}", _in_so_many),
        (rf"(?<!\d)(?P<count>\d{{1,3}})(?P<unit>일){_LATER_KO}", _in_so_many),
        (rf"(?<![가-힣])(?P<count>하루|이틀|사흘|나흘|닷새|열흘|보름){_LATER_KO}", _day_words),
        # weekdays
        (rf"\b{_STEP} week(?:'s)?,?(?: on)? {_WEEKDAY}", _weekday_of_week),
        (rf"\b{_WEEKDAY},?(?: of)? {_STEP} week\b", _weekday_of_week),
        (rf"{_WEEK_KO}[ ]?(?P<weekday>[월화수목금토일])(?:요일|(?![가-힣]))", _weekday_of_week),
        (rf"\bnext {_WEEKDAY}", _next_weekday),
        (rf"(?<![가-힣])다음[ ]?{_WEEKDAY_KO}", _next_weekday),
        # months
        (rf"\b{_ORDINAL}(?: of)? {_STEP} month\b", _day_of_month),
        (rf"\b{_STEP} month (?:on )?(?:the )?{_ORDINAL}\b", _day_of_month),
        (rf"{_MONTH_KO}[ ]?{_DAY}[ ]?일", _day_of_month),
        (rf"{_MONTH_KO}[ ]?말", _end_of),
        (rf"\bend of (?:the )?(?:{_STEP} )?(?P<unit>week|month|quarter|year)\b", _end_of),
        (r"\b(?P<unit>month|quarter|year)[ -]end\b", _end_of),
        (r"(?<![가-힣])(?P<unit>월|분기[ ]?|연)말", _end_of),
        (rf"\b{_WEEKDAY}", _weekday),
        (_WEEKDAY_KO, _weekday),
        (rf"\bthe {_ORDINAL}\b", _day_alone),
        (rf"(?<![\d월.]){_DAY}일(?!간|차|째|치|분|[ ]?동안)", _day_alone),
    )
)
