"""Work that waits together is committed together, and each piece ends as if it had been alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import wait as wait_for

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from eval_pipeline.execution.group_commit import GroupCommit
from eval_pipeline_tests.conftest import Database


@pytest.fixture
def commits(database: Database) -> Iterator[GroupCommit]:
    with database.engine.begin() as connection:
        connection.execute(text("create table notes (word text primary key, transaction bigint)"))
    commits = GroupCommit(database.engine)
    yield commits
    commits.close()


def writing(word: str) -> Callable[[Connection], str]:
    def work(connection: Connection) -> str:
        connection.execute(text("insert into notes values (:word, txid_current())"), {"word": word})
        return word

    return work


def stored(database: Database) -> dict[str, int]:
    with database.engine.connect() as connection:
        return {row.word: row.transaction for row in connection.execute(text("select * from notes"))}


class Gate:
    """Keeps the thread busy, so that what is submitted meanwhile waits together."""

    def __init__(self, commits: GroupCommit) -> None:
        self._open = threading.Event()
        self.ended = commits.submit(lambda _connection: self._open.wait(20))
        time.sleep(0.1)

    def open(self) -> None:
        self._open.set()


def test_what_waits_together_is_one_transaction(database: Database, commits: GroupCommit) -> None:
    gate = Gate(commits)
    futures = [commits.submit(writing(word)) for word in "abcdef"]
    assert stored(database) == {}
    gate.open()
    assert [future.result(10) for future in futures] == list("abcdef")
    assert len(set(stored(database).values())) == 1


def test_one_that_fails_fails_alone(database: Database, commits: GroupCommit) -> None:
    gate = Gate(commits)
    futures = [commits.submit(writing(word)) for word in ("a", "b", "a", "c")]
    gate.open()
    wait_for(futures, 10)
    assert [future.exception() is None for future in futures] == [True, True, False, True]
    assert isinstance(futures[2].exception(), IntegrityError)
    assert set(stored(database)) == {"a", "b", "c"}
    # each was done again in a transaction of its own
    assert len(set(stored(database).values())) == 3


def test_whatever_a_piece_raises_is_its_own(database: Database, commits: GroupCommit) -> None:
    def broken(_connection: Connection) -> None:
        raise KeyError("mine")

    gate = Gate(commits)
    bad, good = commits.submit(broken), commits.submit(writing("good"))
    gate.open()
    assert good.result(10) == "good"
    with pytest.raises(KeyError, match="mine"):
        bad.result(10)


def test_a_thread_that_is_stuck_is_left_behind(database: Database, commits: GroupCommit) -> None:
    gate = Gate(commits)
    waiting = commits.submit(writing("later"))
    commits.abandon_if_stuck(60)
    with pytest.raises(TimeoutError):
        waiting.result(0.3)
    commits.abandon_if_stuck(0.05)
    assert waiting.result(10) == "later"
    gate.open()
    assert gate.ended.result(10)
    assert commits.submit(writing("after")).result(10) == "after"


def test_the_thread_ends_with_the_launch(database: Database, commits: GroupCommit) -> None:
    assert commits.submit(writing("one")).result(10) == "one"
    commits.close()
    end = time.monotonic() + 10
    while any(thread.name == "commits" for thread in threading.enumerate()):
        assert time.monotonic() < end
        time.sleep(0.02)
