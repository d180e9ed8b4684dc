"""The embedded server among processes that start, end and are killed."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from eval_pipeline.db import embedded, file_locks, postmaster
from eval_pipeline.errors import DatabaseError
from eval_pipeline_tests.conftest import FOLDER

PROJECT = Path(__file__).parents[2]
PATIENCE_S = 60
HOLD = """
import sys
from pathlib import Path
from eval_pipeline.db import embedded
found = embedded.server(Path(sys.argv[1]))
print(found.pid, flush=True)
sys.stdin.read()
"""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root changes users")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


@pytest.fixture(scope="session")
def set_up(postgres: embedded.Server) -> Path:
    """A data directory that is set up and at rest, to be copied."""
    place = Path(tempfile.mkdtemp(dir=os.environ[FOLDER]), "pg")
    embedded.server(place)
    embedded.stop(place)
    return place


@pytest.fixture
def data_dir(folder: Path, set_up: Path) -> Iterator[Path]:
    copy(set_up, folder / "pg")
    yield folder / "pg"
    embedded.stop(folder / "pg")


def copy(set_up: Path, place: Path) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", set_up, place], check=True)
    return place


@pytest.fixture
def empty(folder: Path) -> Iterator[Path]:
    yield folder / "pg"
    embedded.stop(folder / "pg")


def connect(found: embedded.Server) -> psycopg.Connection:
    return psycopg.connect(
        host=str(found.socket_dir), port=found.port, user=embedded.SUPERUSER, dbname="postgres", autocommit=True
    )


def answer(found: embedded.Server, statement: str) -> object:
    with connect(found) as connection:
        row = connection.execute(statement.encode()).fetchone()
        assert row is not None
        return row[0]


class Holder:
    """Another process that uses the server until it is let go or killed."""

    def __init__(self, data_dir: Path, program: str = HOLD) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, str(data_dir)],
            env=os.environ | {"PYTHONPATH": str(PROJECT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def server_pid(self) -> int:
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())

    def let_go(self) -> None:
        self.process.communicate("", timeout=PATIENCE_S)
        assert self.process.returncode == 0

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=PATIENCE_S)


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_server_starts_on_an_empty_folder_and_is_joined_after_that(empty: Path) -> None:
    first = embedded.server(empty)
    assert answer(first, "show server_encoding") == "UTF8"
    assert answer(first, "show max_connections") == str(embedded.MAX_CONNECTIONS)
    assert answer(first, "show listen_addresses") == ""
    assert embedded.server(empty) == first
    assert first.url("eval").render_as_string() == (
        f"postgresql://postgres@/eval?host={str(empty).replace('/', '%2F')}&port=5432"
    )


def test_four_processes_at_once_share_one_server_and_the_last_one_stops_it(empty: Path) -> None:
    holders = [Holder(empty) for _ in range(4)]
    pids = {holder.server_pid() for holder in holders}
    assert len(pids) == 1
    (pid,) = pids
    for holder in holders:
        assert is_running(pid)
        holder.let_go()
    assert not is_running(pid)


def test_a_process_that_is_killed_does_not_keep_the_server(data_dir: Path) -> None:
    killed = Holder(data_dir)
    pid = killed.server_pid()
    killed.kill()
    assert is_running(pid)
    last = Holder(data_dir)
    assert last.server_pid() == pid
    last.let_go()
    assert not is_running(pid)


def test_a_forked_child_that_ends_does_not_stop_the_server(data_dir: Path) -> None:
    program = HOLD.replace(
        "sys.stdin.read()",
        "import os\nif os.fork() == 0: sys.exit(0)\nos.wait()\nsys.stdin.read()",
    )
    holder = Holder(data_dir, program)
    pid = holder.server_pid()
    time.sleep(0.5)
    assert is_running(pid)
    holder.let_go()
    assert not is_running(pid)


def test_stop_takes_the_server_from_everyone_and_it_can_be_started_again(data_dir: Path) -> None:
    holder = Holder(data_dir)
    pid = holder.server_pid()
    assert embedded.stop(data_dir)
    assert not is_running(pid)
    assert not embedded.stop(data_dir)
    again = embedded.server(data_dir)
    holder.let_go()
    # the other one was not the last after all
    assert answer(again, "select 1") == 1


def test_stopping_what_was_never_started_makes_nothing(tmp_path: Path) -> None:
    assert not embedded.stop(tmp_path / "nothing" / "pg")
    assert list(tmp_path.iterdir()) == []


def kill(found: embedded.Server) -> None:
    os.kill(found.pid, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE_S
    while is_running(found.pid):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_killed_server_is_started_again_with_what_was_committed(data_dir: Path) -> None:
    first = embedded.server(data_dir)
    with connect(first) as connection:
        connection.execute("create table kept (n integer)")
        connection.execute("insert into kept values (7)")
    kill(first)
    second = embedded.server(data_dir)
    assert second.pid != first.pid
    assert answer(second, "select n from kept") == 7


def test_a_killed_server_is_started_again_while_it_is_a_zombie(data_dir: Path) -> None:
    holder = Holder(data_dir)
    pid = holder.server_pid()
    os.kill(pid, signal.SIGKILL)
    while is_running(pid):
        time.sleep(0.02)
    # its parent is the holder, who does not look after it
    assert psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    found = embedded.server(data_dir)
    assert psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    assert answer(found, "select 1") == 1
    holder.let_go()


def test_a_backend_that_outlives_its_killed_server_is_ended_first(data_dir: Path) -> None:
    first = embedded.server(data_dir)
    connection = connect(first)
    backend = connection.info.backend_pid
    # it computes, and so does not notice that its postmaster is gone
    connection.pgconn.send_query(b"select count(*) from generate_series(1, 100000000000)")
    kill(first)
    assert is_running(backend)
    second = embedded.server(data_dir)
    assert answer(second, "select 1") == 1
    assert not is_running(backend)
    connection.close()


def test_a_pid_that_now_belongs_to_another_program_does_not_keep_the_server_down(data_dir: Path) -> None:
    first = embedded.server(data_dir)
    kill(first)
    pid_file = data_dir / "postmaster.pid"
    pid_file.write_text(pid_file.read_text().replace(str(first.pid), str(os.getpid()), 1))
    assert answer(embedded.server(data_dir), "select 1") == 1


@pytest.mark.parametrize("left", ["", "4711\n", "x\n\n\n\n\n\n\n\n"])
def test_a_pid_file_that_was_not_written_to_its_end_does_not_keep_the_server_down(data_dir: Path, left: str) -> None:
    embedded.server(data_dir)
    embedded.stop(data_dir)
    (data_dir / "postmaster.pid").write_text(left)
    assert answer(embedded.server(data_dir), "select 1") == 1


def test_a_server_whose_pid_cannot_be_seen_is_known_by_its_socket(data_dir: Path) -> None:
    """As from another container that shares the folder."""
    found = embedded.server(data_dir)
    unseen = postmaster.Postmaster(os.getpid(), found.socket_dir, found.port, "ready")
    assert postmaster.is_alive(data_dir, unseen)
    embedded.stop(data_dir)
    assert not postmaster.is_alive(data_dir, unseen)


def test_a_folder_deleted_under_a_running_server_gets_a_new_one(data_dir: Path) -> None:
    first = embedded.server(data_dir)
    subprocess.run(["rm", "-rf", data_dir], check=True)
    second = embedded.server(data_dir)
    assert answer(second, "select 1") == 1
    assert not is_running(first.pid)


@pytest.mark.parametrize(
    "name",
    ["deep" * 40, "two words", "한글 폴더", "comma,colon:quote'\"", "percent%20 & $HOME `id`"],
    ids=["long", "space", "hangul", "punctuation", "shell"],
)
def test_any_path_will_do(folder: Path, set_up: Path, name: str) -> None:
    data_dir = copy(set_up, folder / name / "pg")
    try:
        found = embedded.server(data_dir)
        assert answer(found, "show data_directory") == str(data_dir)
        assert found.socket_dir != data_dir
        assert stat.S_IMODE(found.socket_dir.stat().st_mode) == 0o700
    finally:
        embedded.stop(data_dir)
    assert not found.socket_dir.exists()


def test_two_servers_with_long_paths_keep_apart(folder: Path, set_up: Path) -> None:
    places = [copy(set_up, folder / ("deep" * 40) / name) for name in ("one", "two")]
    try:
        servers = [embedded.server(place) for place in places]
        assert [answer(found, "show data_directory") for found in servers] == list(map(str, places))
    finally:
        for place in places:
            embedded.stop(place)


def test_only_the_servers_user_and_root_can_open_its_socket(data_dir: Path) -> None:
    found = embedded.server(data_dir)
    path = found.socket_dir / f".s.PGSQL.{found.port}"
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE(data_dir.stat().st_mode) == 0o700


@on_linux
def test_the_server_inherits_neither_keys_nor_settings(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVAL_LLM_API_KEY", "sk-secret")
    monkeypatch.setenv("PGPORT", "9999")
    monkeypatch.setenv("LC_ALL", "xx_XX.UTF-8")
    found = embedded.server(data_dir)
    assert found.port == 5432
    inherited = psutil.Process(found.pid).environ()
    assert inherited.keys().isdisjoint(os.environ.keys() - {"PATH", "LC_ALL"})
    assert inherited["LC_ALL"] == "C"


@as_root
def test_for_root_the_parents_are_made_enterable_and_not_readable(folder: Path, set_up: Path) -> None:
    private = folder / "private"
    copy(set_up, private / "inner" / "pg")
    private.chmod(0o700)
    try:
        found = embedded.server(private / "inner" / "pg")
        assert psutil.Process(found.pid).username() == embedded.SYSTEM_USER
        assert stat.S_IMODE(private.stat().st_mode) == 0o701
    finally:
        embedded.stop(private / "inner" / "pg")


@as_root
def test_an_ordinary_user_runs_the_server_as_itself_and_root_goes_on_with_it(folder: Path, set_up: Path) -> None:
    uid = set_up.stat().st_uid
    data_dir = folder / "pg"
    os.chown(folder, uid, -1)
    child = os.fork()
    if child == 0:
        os.setgid(uid)
        os.setuid(uid)
        try:
            found = embedded.server(data_dir)
            same = psutil.Process(found.pid).uids().real == uid
            embedded.stop(data_dir)
        finally:
            os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    found = embedded.server(data_dir)
    assert psutil.Process(found.pid).uids().real == uid
    embedded.stop(data_dir)


@as_root
def test_a_server_of_another_user_is_said_in_one_line(folder: Path, data_dir: Path) -> None:
    embedded.server(data_dir)
    embedded.stop(data_dir)
    folder.chmod(0o755)
    nobody = 65534
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgid(nobody)
        os.setuid(nobody)
        try:
            embedded.server(data_dir)
        except DatabaseError as exc:
            os.write(writing, str(exc).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    assert "cannot be opened (Permission denied)" in said
    assert "\n" not in said


def refused(attempt: Callable[[], object]) -> str:
    with pytest.raises(DatabaseError) as caught:
        attempt()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_set_up_that_was_cut_off_is_begun_again(empty: Path) -> None:
    unfinished = empty.with_name("pg.unfinished")
    unfinished.mkdir()
    (unfinished / "PG_VERSION").write_text("18\n")
    assert answer(embedded.server(empty), "select 1") == 1
    assert not unfinished.exists()


def test_a_folder_with_other_things_in_it_is_left_alone(empty: Path) -> None:
    empty.mkdir()
    (empty / "thesis.txt").write_text("years of work")
    said = refused(lambda: embedded.server(empty))
    assert said.startswith(f"{empty}: is not empty and holds no PostgreSQL data")
    assert (empty / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize(
    ("version", "message"), [("9\n", "no embedded PostgreSQL 9 is installed"), ("", "holds no version of PostgreSQL")]
)
def test_data_of_a_version_that_cannot_be_run_are_refused(empty: Path, version: str, message: str) -> None:
    empty.mkdir()
    (empty / "PG_VERSION").write_text(version)
    assert message in refused(lambda: embedded.server(empty))


def test_data_that_do_not_start_are_said_in_one_line_with_the_servers_reason(data_dir: Path) -> None:
    embedded.server(data_dir)
    embedded.stop(data_dir)
    with (data_dir / "postgresql.auto.conf").open("a") as file:
        file.write("shared_buffers = 'a lot'\n")
    said = refused(lambda: embedded.server(data_dir))
    assert said.startswith(f"the embedded PostgreSQL in {data_dir} did not start: ")
    assert "FATAL" in said
    assert f"see {data_dir / 'log'}" in said


def test_a_home_that_is_a_file_is_said_in_one_line(folder: Path) -> None:
    (folder / "file").write_text("")
    said = refused(lambda: embedded.server(folder / "file" / "pg"))
    assert said.startswith(f"{folder / 'file'}: the folder of the embedded PostgreSQL cannot be made")


def test_a_lock_that_someone_keeps_is_given_up_with_one_line(tmp_path: Path) -> None:
    with file_locks.exclusive(tmp_path / "lock", 1):
        said = refused(lambda: file_locks.exclusive(tmp_path / "lock", 0.2).__enter__())
    assert said.startswith(f"{tmp_path / 'lock'}: another process has held this lock")


def test_a_socket_folder_that_a_stranger_made_first_is_not_used(
    folder: Path, set_up: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_dir = copy(set_up, folder / "two words" / "pg")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    found = embedded.server(data_dir)
    embedded.stop(data_dir)
    place = found.socket_dir
    assert place.parent == folder
    subprocess.run(["rm", "-rf", place], check=True)
    (folder / "elsewhere").mkdir()
    place.symlink_to(folder / "elsewhere")
    assert refused(lambda: embedded.server(data_dir)).startswith(f"{place}: belongs to another user")


def test_a_path_that_is_just_short_enough_holds_the_socket(folder: Path, set_up: Path) -> None:
    room = 104 - len("/.s.PGSQL.5432") - 1 - len(str(folder)) - 1
    data_dir = copy(set_up, folder / ("p" * room))
    try:
        assert embedded.server(data_dir).socket_dir == data_dir
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(data_dir / ".s.PGSQL.5432"))
    finally:
        embedded.stop(data_dir)
