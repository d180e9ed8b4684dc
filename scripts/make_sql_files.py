"""Writes the databases of the sql sample tasks: ``python scripts/make_sql_files.py [folder]``.

The files in ``eval_pipeline/sample_data/sql/files`` come from here and nowhere else. Two runs with one version of
SQLite give the same bytes; with another version, the same content. Questions and gold queries stand in ``tasks.jsonl``.
"""

from __future__ import annotations

import datetime as dt
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

FILES = Path(__file__).parents[1] / "eval_pipeline" / "sample_data" / "sql" / "files"

NOODLE_BAR = """
create table branches (id integer primary key, name text not null, city text not null, opened text not null);
create table dishes (id integer primary key, name text not null, kind text not null, price integer not null);
create table sales (
    id integer primary key,
    branch_id integer not null references branches,
    dish_id integer not null references dishes,
    day text not null,
    portions integer not null
);
"""
BRANCHES = [
    (1, "Harbour", "Busan", "2019-04-02"),
    (2, "Old Market", "Busan", "2021-09-15"),
    (3, "Riverside", "Seoul", "2018-01-20"),
    (4, "Station", "Daejeon", "2023-06-01"),
    (5, "Campus", "Seoul", "2026-03-28"),
]
DISHES = [
    (1, "knife-cut noodles", "soup", 8500),
    (2, "cold buckwheat noodles", "cold", 9500),
    (3, "bean-paste noodles", "dry", 7000),
    (4, "seafood noodles", "soup", 11000),
    (5, "dumplings", "side", 5000),
    (6, "seaweed soup", "side", 3500),
]

LIBRARY = """
create table 회원 (회원번호 integer primary key, 이름 text not null, 동 text not null, 가입일 text not null);
create table 도서 (
    도서번호 integer primary key, 제목 text not null, 저자 text not null, 분류 text not null, 출간연도 integer
);
create table 대출 (
    대출번호 integer primary key,
    회원번호 integer not null references 회원,
    도서번호 integer not null references 도서,
    대출일 text not null,
    반납일 text
);
create view 대출중 as select * from 대출 where 반납일 is null;
"""
MEMBERS = [
    (1, "김하늘", "연지동", "2023-03-11"),
    (2, "박서준", "송정동", "2024-07-02"),
    (3, "이도윤", "연지동", "2022-11-29"),
    (4, "최지우", "달맞이동", "2025-01-17"),
    (5, "정유나", "송정동", "2021-05-30"),
    (6, "한별", "연지동", "2026-02-08"),
]
BOOKS = [
    (101, "바람의 길목", "윤가온", "소설", 2019),
    (102, "느린 여행", "오세린", "수필", 2021),
    (103, "별을 세는 밤", "윤가온", "소설", 2023),
    (104, "처음 만나는 통계", "문정훈", "과학", 2020),
    (105, "텃밭의 열두 달", "서미래", "실용", None),
    (106, "조용한 항구", "남궁현", "소설", 2015),
    (107, "우주의 끝에서", "문정훈", "과학", 2024),
    (108, "옛 지도 이야기", "백두리", "역사", 2018),
]
LOANS = [
    (1, 1, 101, "2026-02-03", "2026-02-14"),
    (2, 2, 104, "2026-02-05", "2026-03-01"),
    (3, 1, 103, "2026-02-20", None),
    (4, 3, 101, "2026-02-21", "2026-03-02"),
    (5, 4, 102, "2026-02-27", "2026-03-09"),
    (6, 5, 106, "2026-03-01", None),
    (7, 2, 103, "2026-03-04", "2026-03-18"),
    (8, 3, 107, "2026-03-10", None),
    (9, 5, 101, "2026-03-11", "2026-03-25"),
    (10, 6, 104, "2026-03-15", "2026-03-29"),
    (11, 4, 106, "2026-03-28", None),
    (12, 6, 101, "2026-03-30", None),
]

WEATHER = """
create table stations (code text primary key, name text not null, altitude_m integer not null);
create table readings (
    station text not null references stations,
    at text not null,
    temperature real,
    wind real,
    primary key (station, at)
);
"""
STATIONS = [("A1", "Lighthouse", 12), ("B2", "Reservoir", 240), ("C3", "Pass", 905), ("D4", "Airfield", 31)]


def numbers(seed: int) -> Iterator[int]:
    """Numbers from 0 to 9999 without a pattern to see, the same on every machine."""
    state = seed
    while True:
        state = (state * 1103515245 + 12345) % 2**31
        yield state // 65536 % 10000


def sales() -> Iterator[tuple[int, int, int, str, int]]:
    random = numbers(7)
    number = 0
    for day in range(45):
        date = dt.date(2026, 2, 15) + dt.timedelta(days=day)
        for branch, *_ in BRANCHES[:4]:
            for dish in sorted({1 + next(random) % 6 for _ in range(3)}):
                if (branch, dish) in {(1, 6), (2, 6), (2, 2)}:
                    continue
                number += 1
                yield number, branch, dish, date.isoformat(), 1 + next(random) % 14


def readings() -> Iterator[tuple[str, str, float | None, float | None]]:
    random = numbers(11)
    for code, _, altitude in STATIONS:
        for hour in range(0, 24 * 6, 3):
            at = dt.datetime(2026, 3, 2) + dt.timedelta(hours=hour)
            temperature = 11 - altitude / 150 + next(random) % 90 / 10 - 4.5
            wind = next(random) % 130 / 10
            lost = next(random) % 9 == 0
            calm = next(random) % 12 == 0
            yield code, at.isoformat(" ", "minutes"), None if lost else round(temperature, 1), None if calm else wind


DATABASES = {
    "noodle_bar.sqlite": (NOODLE_BAR, {"branches": BRANCHES, "dishes": DISHES, "sales": list(sales())}),
    "동네도서관.sqlite": (LIBRARY, {"회원": MEMBERS, "도서": BOOKS, "대출": LOANS}),
    "weather.sqlite": (WEATHER, {"stations": STATIONS, "readings": list(readings())}),
}


def write(path: Path, schema: str, tables: dict[str, list[tuple[object, ...]]]) -> None:
    """Make the database ``path`` anew, with ``schema`` and the rows of ``tables``."""
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.execute("pragma page_size = 4096")
    connection.executescript(schema)
    for table, rows in tables.items():
        places = ", ".join("?" * len(rows[0]))
        connection.executemany(f"insert into {table} values ({places})", rows)  # noqa: S608 - both are ours
    connection.commit()
    connection.execute("vacuum")
    connection.close()


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, (schema, tables) in DATABASES.items():
        write(folder / name, schema, tables)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FILES)
