"""Ids of runs, which begin with the moment they were made, and the months that they divide into.

Events lie in the database month by month, and which month a run belongs to stands in its id. Tables and partitions
themselves belong to :mod:`eval_pipeline.db.event_partitions`.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from eval_pipeline.errors import IdError
from eval_pipeline.ids import shown

_MILLISECOND_BITS = 48
_RANDOM_BITS = 128 - _MILLISECOND_BITS
_VERSION = 7
_VARIANT = 0b10
FIRST_YEAR, LAST_YEAR = 2020, 2099
"""The years whose months have a place of their own in the database; a clock that is further off has none."""
_MONTH = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])")


def new_run_id(milliseconds: int | None = None) -> UUID:
    """A new id: UUID version 7 (RFC 9562, section 5.7), 48 bits of milliseconds since 1970 and 74 random ones.

    ``milliseconds`` is now by default. Two ids of one millisecond are in no order.

    Raises:
        ValueError: the moment does not fit in 48 bits.
    """
    moment = time.time_ns() // 1_000_000 if milliseconds is None else milliseconds
    if not 0 <= moment < 1 << _MILLISECOND_BITS:
        raise ValueError(f"{moment} ms is not within 48 bits")
    value = moment << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
    value = value & ~(0xF << 76) | _VERSION << 76
    value = value & ~(0b11 << 62) | _VARIANT << 62
    return UUID(int=value)


@dataclass(frozen=True, slots=True, order=True)
class Month:
    """A calendar month in UTC. Its text is such as ``2026-11``."""

    year: int
    month: int

    def __str__(self) -> str:
        return f"{self.year:04}-{self.month:02}"

    @classmethod
    def parse(cls, text: str, where: str) -> Month:
        """Read ``2026-11``; ``where`` stands in the message.

        Raises:
            IdError: it is not of that form, or a year that has no months here.
        """
        match = _MONTH.fullmatch(text)
        if match is None or not FIRST_YEAR <= int(match[1]) <= LAST_YEAR:
            raise IdError(
                f"{where}: {shown(text)} is not a month of {FIRST_YEAR} to {LAST_YEAR} of the form YYYY-MM, "
                "such as 2026-11"
            )
        return cls(int(match[1]), int(match[2]))

    @classmethod
    def of(cls, moment: datetime) -> Month:
        """The month of an aware ``moment``, in UTC."""
        utc = moment.astimezone(UTC)
        return cls(utc.year, utc.month)

    @classmethod
    def of_run(cls, run_id: UUID) -> Month | None:
        """The month whose range ``run_id`` is in; ``None`` for one that is in none, such as most ids of version 4."""
        seconds = (run_id.int >> _RANDOM_BITS) // 1000
        if not cls(FIRST_YEAR, 1)._begins_at_s() <= seconds < cls(LAST_YEAR + 1, 1)._begins_at_s():
            return None
        return cls.of(datetime.fromtimestamp(seconds, UTC))

    def next(self) -> Month:
        return Month(self.year + self.month // 12, self.month % 12 + 1)

    def and_next(self, count: int) -> Iterator[Month]:
        """This month and the ``count`` that follow."""
        month = self
        for _ in range(count + 1):
            yield month
            month = month.next()

    def _begins_at_s(self) -> int:
        return int(datetime(self.year, self.month, 1, tzinfo=UTC).timestamp())

    @property
    def first_id(self) -> UUID:
        """The lowest id of this month, and so the first that is beyond the month before."""
        return UUID(int=self._begins_at_s() * 1000 << _RANDOM_BITS)

    @property
    def end_id(self) -> UUID:
        """The lowest id that is beyond this month."""
        return self.next().first_id
