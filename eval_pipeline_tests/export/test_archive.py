"""A month goes into files and comes back as it was, and nothing is deleted that is not in a file that was read back."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import NullPool, create_engine, insert, select, text, update

from eval_pipeline.db import embedded, tables
from eval_pipeline.db.checks import run_checks
from eval_pipeline.db.engine import engine
from eval_pipeline.db.event_partitions import make_months, months_present
from eval_pipeline.export import archive as archiving
from eval_pipeline.export.archive import alone, archive
from eval_pipeline.export.archive_files import MANIFEST, SOURCES, ArchiveError, content_of, read_file, verified
from eval_pipeline.export.restore import restore
from eval_pipeline.run_ids import Month, new_run_id
from eval_pipeline.settings import load_settings
from eval_pipeline_tests.conftest import Database, fresh_database, own_tables
from eval_pipeline_tests.db.builders import Rows
from eval_pipeline_tests.export.planted import (
    BOTH,
    FEBRUARY,
    HUGE,
    JANUARY,
    MARCH,
    ODD,
    ODD_JSON,
    ONLY_JANUARY,
    everything,
    plant,
)

pytest.importorskip("pyarrow")
_FULL_AT = 1_000
"""Bytes; the smallest of the files is longer."""
FILES = {"events.parquet", "model_calls.parquet", "texts.parquet", MANIFEST}
EVENTS_OF_JANUARY = 3 * (3 + len(ODD) + len(ODD_JSON) + 3)
EVENTS_OF_FEBRUARY = 3 * (3 + len(ODD) + len(ODD_JSON) + 1)


@pytest.fixture(scope="module")
def planted_template(
    postgres: embedded.Server, migrated_template: str
) -> Iterator[tuple[str, dict[Month, list[UUID]]]]:
    """The database that is copied, and its runs. January and February have partitions, March has none."""
    with fresh_database(postgres, migrated_template) as url:
        pool = create_engine(own_tables(url), poolclass=NullPool)
        make_months(pool, [JANUARY, FEBRUARY])
        with pool.begin() as connection:
            runs = plant(connection)
        yield str(url.database), runs


@pytest.fixture
def months(planted_template: tuple[str, dict[Month, list[UUID]]]) -> dict[Month, list[UUID]]:
    """What is planted in the database of a test that asks for this."""
    return planted_template[1]


@pytest.fixture
def database(
    postgres: embedded.Server,
    clean_environment: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Iterator[Database]:
    """A copy of what is planted for a test that asks for the months, else a migrated database with nothing in it."""
    if "months" in request.fixturenames:
        template, _ = request.getfixturevalue("planted_template")
    else:
        template = request.getfixturevalue("migrated_template")
    with fresh_database(postgres, template) as url:
        monkeypatch.setenv("EVAL_PG_DSN", url.render_as_string(hide_password=False))
        settings = load_settings()
        pool = engine(settings)
        yield Database(url.render_as_string(hide_password=False), settings, pool)
        pool.dispose()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An empty folder."""
    folder = tmp_path / "archive"
    folder.mkdir()
    return folder


def stored(database: Database) -> dict[str, list[tuple[object, ...]]]:
    with database.engine.connect() as connection:
        return everything(connection)


def remembered(database: Database) -> dict[str, tuple[bool, bool]]:
    """By month, whether its rows and its texts are dropped."""
    table = tables.archived_months
    with database.engine.connect() as connection:
        rows = connection.execute(select(table)).all()
    return {row.month: (row.dropped_at is not None, row.texts_dropped_at is not None) for row in rows}


def refused(work: Callable[[], object]) -> str:
    with pytest.raises(ArchiveError) as caught:
        work()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_months_before_one_go_and_come_back_the_same(
    database: Database, months: dict[Month, list[UUID]], place: Path
) -> None:
    before = stored(database)
    done = archive(database.engine, MARCH, place)
    assert [(str(one.month), one.events, one.model_calls, one.texts, one.dropped) for one in done] == [
        ("2025-01", EVENTS_OF_JANUARY, 9, 3, True),
        ("2025-02", EVENTS_OF_FEBRUARY, 9, 1, True),
    ]
    for month in (JANUARY, FEBRUARY):
        assert {path.name for path in (place / str(month)).iterdir()} == FILES
    assert {path.name for path in place.iterdir()} == {"2025-01", "2025-02"}
    left = stored(database)
    assert {row[0] for row in left["events"]} == {row[0] for row in left["model_calls"]} == set(months[MARCH])
    # the text that March needs as well stays
    assert [row[1] for row in left["texts"]] == [BOTH]
    with database.engine.connect() as connection:
        assert not {JANUARY, FEBRUARY} & set(months_present(connection))
        assert connection.scalar(text("select count(*) from runs where status = 'completed'")) == 7
    assert remembered(database) == {"2025-01": (True, True), "2025-02": (True, True)}
    assert all(result.passed for result in run_checks(database.engine))

    for month in (FEBRUARY, JANUARY):
        back = restore(database.engine, place / str(month))
        assert (back.month, back.dropped) == (month, False)
    assert stored(database) == before
    assert remembered(database) == {"2025-01": (False, False), "2025-02": (False, False)}
    with database.engine.connect() as connection:
        places = connection.scalars(
            text("select distinct tableoid::regclass::text from events where run_id < :march"),
            {"march": MARCH.first_id},
        )
        assert set(places) == {"events_2025_01", "events_2025_02"}


def test_a_month_that_came_back_goes_again_into_the_same_files(
    database: Database, months: dict[Month, list[UUID]], place: Path
) -> None:
    archive(database.engine, FEBRUARY, place)
    manifest = (place / "2025-01" / MANIFEST).read_bytes()
    restore(database.engine, place / "2025-01")
    (again,) = archive(database.engine, FEBRUARY, place)
    assert again.folder == place / "2025-01"
    assert (place / "2025-01" / MANIFEST).read_bytes() == manifest
    assert {path.name for path in place.iterdir()} == {"2025-01"}
    assert remembered(database) == {"2025-01": (True, True)}


def test_other_programs_read_the_files(database: Database, months: dict[Month, list[UUID]], place: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    archive(database.engine, FEBRUARY, place)
    events = parquet.read_table(place / "2025-01" / "events.parquet")
    assert {str(field.type) for field in events.schema} == {"string", "int32", "int64", "timestamp[us, tz=UTC]"}
    rows = [row for row in events.to_pylist() if row["run_id"] == str(months[JANUARY][0])]
    assert [row["content"] for row in rows[3 : 3 + len(ODD)]] == list(ODD)
    written = [row["payload"] for row in rows[3 + len(ODD) : 3 + len(ODD) + len(ODD_JSON)]]
    with database.engine.connect() as connection:
        as_stored = [connection.scalar(text("select cast(:value as jsonb)::text"), {"value": one}) for one in ODD_JSON]
    assert written == as_stored
    column = parquet.ParquetFile(place / "2025-01" / "texts.parquet").metadata.row_group(0).column(1)
    assert column.compression == "ZSTD"
    texts = parquet.read_table(place / "2025-01" / "texts.parquet").to_pylist()
    assert {row["body"] for row in texts} == {BOTH, ONLY_JANUARY, HUGE}
    manifest = json.loads((place / "2025-01" / MANIFEST).read_text())
    assert manifest["month"] == "2025-01"
    for name, entry in manifest["files"].items():
        data = (place / "2025-01" / f"{name}.parquet").read_bytes()
        assert entry["sha256"] == hashlib.sha256(data).hexdigest()
    assert manifest["files"]["events"]["rows"] == EVENTS_OF_JANUARY


def test_with_keep_the_files_are_written_and_the_database_is_as_it_was(
    database: Database, months: dict[Month, list[UUID]], place: Path
) -> None:
    before = stored(database)
    done = archive(database.engine, FEBRUARY, place, keep=True)
    assert [(one.month, one.dropped) for one in done] == [(JANUARY, False)]
    assert stored(database) == before
    assert remembered(database) == {"2025-01": (False, False)}
    assert "has traces in the database" in refused(lambda: restore(database.engine, place / "2025-01"))
    assert [one.dropped for one in archive(database.engine, FEBRUARY, place)] == [True]
    assert remembered(database) == {"2025-01": (True, True)}


def test_a_month_that_has_no_partition_is_archived_as_well_and_ids_of_version_4_stay(
    database: Database, months: dict[Month, list[UUID]], place: Path
) -> None:
    of_march = UUID(int=MARCH.first_id.int + (4 << 76))
    of_before = UUID(int=Month(2024, 5).first_id.int + (4 << 76))
    with database.engine.begin() as connection:
        rows = Rows(connection)
        for attempt, run_id in enumerate((of_before, uuid4()), start=100):
            rows.cell(attempt=attempt)
            rows.completed(attempt=attempt, run_id=run_id)
            rows.event(run_id, 0)
    done = archive(database.engine, MARCH.next(), place)
    assert [one.month for one in done] == [JANUARY, FEBRUARY, MARCH]
    assert len(stored(database)["events"]) == 2
    assert of_march not in {row[0] for row in stored(database)["events"]}
    restore(database.engine, place / "2025-03")
    assert {row[0] for row in stored(database)["model_calls"]} == set(months[MARCH])


def test_a_month_with_a_run_that_has_not_ended_is_refused_with_all_others(
    database: Database, months: dict[Month, list[UUID]], place: Path
) -> None:
    before = stored(database)
    with database.engine.begin() as connection:
        rows = Rows(connection)
        rows.cell(attempt=50)
        rows.run(attempt=50, run_id=new_run_id((FEBRUARY.end_id.int >> 80) - 1))
    assert "2025-02 has 1 run that has not ended" in refused(lambda: archive(database.engine, MARCH, place))
    assert stored(database) == before
    assert remembered(database) == {}
    assert list(place.iterdir()) == []
    assert [one.month for one in archive(database.engine, FEBRUARY, place)] == [JANUARY]


def test_the_present_month_stays_and_a_future_one_is_refused(database: Database, place: Path) -> None:
    present = Month.of(datetime.now(UTC))
    with database.engine.begin() as connection:
        rows = Rows(connection)
        rows.one_run()
        run_id = new_run_id()
        rows.cell(attempt=2)
        rows.completed(attempt=2, run_id=run_id)
        rows.event(run_id, 0)
    assert "is in the future" in refused(lambda: archive(database.engine, present.next(), place))
    assert archive(database.engine, present, place) == []
    assert len(stored(database)["events"]) == 1


def test_nothing_to_archive_is_no_error(database: Database, place: Path) -> None:
    assert archive(database.engine, JANUARY, place / "new" / "folder") == []
    assert remembered(database) == {}


def changed_byte(folder: Path) -> None:
    data = bytearray((folder / "events.parquet").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "events.parquet").write_bytes(data)


def cut_short(folder: Path) -> None:
    data = (folder / "texts.parquet").read_bytes()
    (folder / "texts.parquet").write_bytes(data[:-10])


def missing(folder: Path) -> None:
    (folder / "model_calls.parquet").unlink()


def no_manifest(folder: Path) -> None:
    (folder / MANIFEST).unlink()


def other_rows_under_a_new_hash(folder: Path) -> None:
    """As one would do who knows how the manifest is made."""
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = parquet.read_table(folder / "events.parquet")
    parquet.write_table(rows.slice(1), folder / "events.parquet")
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["files"]["events"]["sha256"] = hashlib.sha256((folder / "events.parquet").read_bytes()).hexdigest()
    (folder / MANIFEST).write_text(json.dumps(manifest))


def a_whole_other_archive(folder: Path) -> None:
    """Whole in itself, and not what this database has dropped."""
    other_rows_under_a_new_hash(folder)
    manifest = json.loads((folder / MANIFEST).read_text())
    source = next(source for source in SOURCES if source.name == "events")
    content = content_of(source, read_file(folder, source))
    manifest["files"]["events"] |= {"rows": content.rows, "content_sha256": content.content_sha256}
    (folder / MANIFEST).write_text(json.dumps(manifest))
    verified(folder)


TAMPERED = {
    "one bit of a file": (changed_byte, "is not the file that was archived"),
    "a file cut short": (cut_short, "is not the file that was archived"),
    "a file missing": (missing, "the archive is not whole"),
    "no manifest": (no_manifest, "cannot be read"),
    "other rows under a hash of their own": (other_rows_under_a_new_hash, "rows that are not the"),
    "another archive": (a_whole_other_archive, "is not the archive of 2025-01 that this database remembers"),
}


@pytest.mark.parametrize(("tamper", "said"), TAMPERED.values(), ids=TAMPERED.keys())
def test_a_tampered_archive_is_not_restored(
    database: Database, months: dict[Month, list[UUID]], place: Path, tamper: Callable[[Path], None], said: str
) -> None:
    archive(database.engine, FEBRUARY, place)
    left = stored(database)
    tamper(place / "2025-01")
    assert said in refused(lambda: restore(database.engine, place / "2025-01"))
    assert stored(database) == left
    assert remembered(database) == {"2025-01": (True, True)}


MANIFESTS = {
    "no JSON": "{",
    "a list": "[]",
    "deep": "[" * 100_000,
    "another month": '{"format": 1, "month": "../../etc", "schema_version": 12, "files": {}}',
    "another format": '{"format": 2}',
    "no files": '{"format": 1, "month": "2025-01", "schema_version": 12, "files": {}}',
    "nothing": "",
    "not UTF-8": "\udcff",
    "huge": '"' + "x" * 2_000_000 + '"',
}


@pytest.mark.parametrize("manifest", MANIFESTS.values(), ids=MANIFESTS.keys())
def test_what_is_no_manifest_is_one_line(database: Database, place: Path, manifest: str) -> None:
    (place / MANIFEST).write_bytes(manifest.encode("utf-8", "surrogateescape"))
    assert len(refused(lambda: restore(database.engine, place))) < 1000


def test_a_folder_that_is_not_there_is_one_line(database: Database, place: Path) -> None:
    assert "manifest.json cannot be read" in refused(lambda: restore(database.engine, place / "2025-01"))


def test_a_folder_with_something_else_in_it_is_left_alone(
    database: Database, months: dict[Month, list[UUID]], place: Path
) -> None:
    before = stored(database)
    there = place / "2025-01"
    there.mkdir()
    (there / "mine.txt").write_text("mine")
    refused(lambda: archive(database.engine, FEBRUARY, place))
    assert (there / "mine.txt").read_text() == "mine"
    shutil.rmtree(there)
    archive(database.engine, FEBRUARY, place, keep=True)
    with database.engine.begin() as connection:
        connection.execute(update(tables.events).where(tables.events.c.seq == 0).values(content="changed"))
    assert "is there already and holds something else" in refused(lambda: archive(database.engine, FEBRUARY, place))
    assert {path.name for path in place.iterdir()} == {"2025-01"}
    assert len(stored(database)["events"]) == len(before["events"])
    (place / "file").write_text("in the way")
    assert "--to: " in refused(lambda: archive(database.engine, FEBRUARY, place / "file"))


@pytest.fixture
def full_disk() -> Iterator[None]:
    """No file of this process may be longer than a kilobyte, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FULL_AT, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_the_database_as_it_was_and_no_part(
    database: Database, months: dict[Month, list[UUID]], place: Path, full_disk: None
) -> None:
    before = stored(database)
    said = refused(lambda: archive(database.engine, FEBRUARY, place))
    assert "cannot be written" in said
    assert "nothing was deleted" in said
    assert stored(database) == before
    assert remembered(database) == {}
    assert list(place.iterdir()) == []


def test_what_is_read_back_wrong_is_not_deleted(
    database: Database, months: dict[Month, list[UUID]], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = stored(database)

    def rot(folder: Path) -> object:
        changed_byte(folder)
        return verified(folder)

    monkeypatch.setattr(archiving, "verified", rot)
    assert "is not the file that was archived" in refused(lambda: archive(database.engine, FEBRUARY, place))
    assert stored(database) == before
    assert list(place.iterdir()) == []


def test_a_reader_that_stays_keeps_a_month_and_the_files_serve_later(
    database: Database, months: dict[Month, list[UUID]], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = stored(database)
    monkeypatch.setattr(archiving, "GIVE_UP_AFTER_S", 1.0)
    with database.engine.begin() as reader:
        reader.execute(text("select count(*) from events"))
        said = refused(lambda: archive(database.engine, FEBRUARY, place))
        assert "could not be dropped, since somebody is reading events" in said
        assert remembered(database) == {}
    assert stored(database) == before
    assert [one.month for one in archive(database.engine, FEBRUARY, place)] == [JANUARY]


def test_writers_of_the_present_go_on_while_a_month_is_archived(
    database: Database, months: dict[Month, list[UUID]], place: Path
) -> None:
    run_id = new_run_id()
    with database.engine.begin() as connection:
        rows = Rows(connection)
        rows.cell(attempt=50)
        rows.run(attempt=50, run_id=run_id)
    ended, errors, written = threading.Event(), [], []

    def write() -> None:
        while not ended.is_set():
            try:
                with database.engine.begin() as connection:
                    Rows(connection).event(run_id, len(written))
                written.append(1)
            except Exception as error:
                errors.append(error)
                return

    writer = threading.Thread(target=write)
    writer.start()
    archive(database.engine, MARCH, place)
    for month in (JANUARY, FEBRUARY):
        restore(database.engine, place / str(month))
    ended.set()
    writer.join(60)
    assert errors == []
    assert len([row for row in stored(database)["events"] if row[0] == run_id]) == len(written) > 0


def test_two_at_once_do_not_archive_the_same(database: Database, months: dict[Month, list[UUID]], place: Path) -> None:
    with alone(database.engine):
        assert "another process is archiving" in refused(lambda: archive(database.engine, MARCH, place))
    archive(database.engine, MARCH, place)
    with alone(database.engine):
        assert "another process" in refused(lambda: restore(database.engine, place / "2025-01"))


def test_texts_that_a_killed_process_left_go_next_time(
    database: Database, months: dict[Month, list[UUID]], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class KilledError(BaseException):
        pass

    def killed(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(archiving, "_delete_texts", killed)
        archive(database.engine, FEBRUARY, place)
    assert remembered(database) == {"2025-01": (True, False)}
    assert len(stored(database)["texts"]) == 3
    assert archive(database.engine, JANUARY, place) == []
    assert remembered(database) == {"2025-01": (True, True)}
    assert [row[1] for row in stored(database)["texts"]] == [BOTH]


def test_a_killed_archive_deletes_nothing_and_the_next_one_does_it(
    database: Database, months: dict[Month, list[UUID]], place: Path
) -> None:
    before = stored(database)
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from eval_pipeline.db.engine import engine\n"
        "from eval_pipeline.export import archive\n"
        "from eval_pipeline.run_ids import Month\n"
        "from eval_pipeline.settings import load_settings\n"
        "archive._drop = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "archive.archive(engine(load_settings()), Month(2025, 2), Path(sys.argv[1]))\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    ended = subprocess.run([sys.executable, "-c", program, str(place)], env=environment, timeout=120, check=False)
    assert ended.returncode == -9
    assert stored(database) == before
    assert remembered(database) == {}
    assert [one.month for one in archive(database.engine, FEBRUARY, place)] == [JANUARY]
    restore(database.engine, place / "2025-01")
    assert stored(database) == before


def test_a_run_that_is_gone_keeps_its_month_from_coming_back(
    database: Database, months: dict[Month, list[UUID]], place: Path
) -> None:
    archive(database.engine, FEBRUARY, place)
    with database.engine.begin() as connection:
        connection.execute(text("delete from runs where run_id = :run"), {"run": months[JANUARY][1]})
    left = stored(database)
    said = refused(lambda: restore(database.engine, place / "2025-01"))
    assert "cannot be restored" in said
    assert "nothing was restored" in said
    assert stored(database) == left


def test_another_database_with_the_same_runs_takes_a_month(
    database: Database, months: dict[Month, list[UUID]], place: Path
) -> None:
    before = stored(database)
    archive(database.engine, FEBRUARY, place)
    with database.engine.begin() as connection:
        connection.execute(text("delete from archived_months"))
        # of another day, as a text is that somebody else has needed meanwhile
        values = {"sha256": hashlib.sha256(ONLY_JANUARY.encode()).hexdigest(), "body": ONLY_JANUARY}
        moment = datetime.now(UTC) - timedelta(days=1)
        connection.execute(insert(tables.texts).values(values | {"length": len(ONLY_JANUARY), "stored_at": moment}))
    restore(database.engine, place / "2025-01")
    assert stored(database) == before
    assert remembered(database) == {"2025-01": (False, False)}


def test_without_pyarrow_it_is_one_line_that_says_what_to_do(
    database: Database, months: dict[Month, list[UUID]], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    assert "needs the package pyarrow" in refused(lambda: archive(database.engine, MARCH, place))
    assert "needs the package pyarrow" in refused(lambda: restore(database.engine, place))


def test_a_role_that_may_not_drop_is_told_so_in_one_line(
    database: Database, months: dict[Month, list[UUID]], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = f"reader_{database.engine.url.database}"
    with database.engine.begin() as connection:
        connection.exec_driver_sql(f"create role {role} login")
        connection.exec_driver_sql(f"grant usage on schema eval_ph1 to {role}")
        connection.exec_driver_sql(f"grant select, insert on all tables in schema eval_ph1 to {role}")
    before = stored(database)
    monkeypatch.setenv("EVAL_PG_DSN", database.dsn.replace("postgres@", f"{role}@"))
    pool = engine(load_settings())
    for until in (FEBRUARY, MARCH.next()):
        said = refused(lambda until=until: archive(pool, until, place))  # type: ignore[misc]
        assert "permission denied" in said
        assert "nothing was deleted" in said
    pool.dispose()
    assert stored(database) == before
    assert list(place.iterdir()) == []


def test_a_moment_that_no_file_can_hold_keeps_its_month(
    database: Database, months: dict[Month, list[UUID]], place: Path
) -> None:
    with database.engine.begin() as connection:
        odd = text("update events set ts = 'infinity' where run_id = :run and seq = 7")
        connection.execute(odd, {"run": months[JANUARY][1]})
    assert "2025-01 cannot be archived" in refused(lambda: archive(database.engine, FEBRUARY, place))
    assert list(place.iterdir()) == []
    with database.engine.connect() as connection:
        assert connection.scalar(text("select count(*) from events")) > EVENTS_OF_JANUARY


def test_a_folder_whose_name_is_no_unicode_is_refused(database: Database, place: Path) -> None:
    odd = place / os.fsdecode(b"\xff")
    assert "--to: the folder" in refused(lambda: archive(database.engine, MARCH, odd))
    assert "--restore: the folder" in refused(lambda: restore(database.engine, odd))
