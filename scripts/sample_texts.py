"""The plain-text attachments of the sample suite, as they are read.

:mod:`make_sample_files` encodes them and writes them to disk.
"""

from __future__ import annotations

import json

SHOP_LEDGER = """\
푸른골 가게 장부 - 2026년 3월
(금액은 원)

3월 2일 | 쌀 20kg 두 포대 | 128,000원 | 현금
3월 3일 | 참기름 세 병 | 54,000원 | 외상
3월 5일 | 김 열 봉 | 37,500원 | 카드
3월 9일 | 멸치 한 상자 | 46,200원 | 외상
3월 12일 | 고춧가루 다섯 근 | 95,000원 | 현금
3월 17일 | 꿀 두 병 | 82,000원 | 외상
3월 21일 | 미역 여섯 봉 | 28,800원 | 카드
3월 28일 | 된장 네 통 | 71,600원 | 외상
"""

LIBRARY_LOANS = """\
월,어린이실,일반실,디지털
1월,412,655,120
2월,388,610,131
3월,455,702,118
4월,430,688,109
5월,502,715,125
6월,476,690,140
7월,611,733,162
8월,648,748,171
9월,523,701,133
10월,497,684,128
11월,465,672,137
12월,539,720,155
"""

RIVER_LEVELS = """\
station\talarm\t06:00\t12:00\t18:00\t24:00
Birch Weir\tno\t112\t118\t121\t119
Cold Ford\tyes\t208\t231\t249\t255
Elm Lock\tno\t96\t95\t97\t99
Fox Bridge\tyes\t341\t338\t329\t323
Gull Sluice\tno\t150\t156\t158\t153
Heron Mill\tyes\t187\t205\t236\t250
"""

BIKE_TRIPS = (
    ("T1", "Ara", True, 6.2, 31),
    ("T2", "Ben", False, 7.9, 44),
    ("T3", "Ara", True, 3.4, 17),
    ("T4", "Chloe", True, 5.0, 26),
    ("T5", "Dae", True, 9.1, 52),
    ("T6", "Ben", False, 2.2, 12),
    ("T7", "Chloe", True, 5.7, 29),
    ("T8", "Emil", False, 11.3, 63),
)

PUMP_STATION = """\
마을 펌프장 전력 일지 (2026년 3월)

3월 1일  기존 계량기 지침 10420 kWh
3월 11일 순찰, 이상 없음
3월 17일 기존 계량기 지침 10590 kWh. 이날 계량기를 새것으로 바꿈
3월 17일 새 계량기 지침 3 kWh에서 시작
3월 31일 새 계량기 지침 151 kWh

요금표
기본요금 1600원
처음 200 kWh까지 1 kWh에 120원
200 kWh를 넘는 부분은 1 kWh에 188원
"""

GARDEN_DIARY = """\
텃밭 일기

3월 12일 맑음
울타리를 고치고 거름을 날랐다.

3월 13일 흐림
앞마당에 살구나무를 심었다. 저녁에 비가 조금 왔다.

3월 14일 맑음
뒷마당에 매실나무를 심었다. 이웃이 물을 길어다 주었다.

3월 15일 바람
담장 옆에 대추나무를 심으려다 바람이 세서 그만두었다.
"""

FERRIES = """\
vessel,from,to,days,departs,arrives,free_seats,bicycles
Haneul,Seongsan,Udo,Mon-Sat,13:10,13:25,26,yes
Bada,Seongsan,Udo,Mon-Sat,13:40,13:55,9,yes
Noeul,Seongsan,Udo,Sun,13:30,13:45,40,yes
Parang,Seongsan,Udo,Mon-Sat,13:25,13:40,31,no
Saebyeok,Seongsan,Udo,Mon-Sat,12:20,12:35,48,yes
Garam,Udo,Seongsan,Mon-Sat,13:50,14:05,52,yes
Dasom,Seongsan,Udo,Mon-Fri,13:35,13:50,33,yes
Mirae,Seongsan,Udo,Mon-Sat,14:10,14:25,60,yes
"""


def bike_trips() -> bytes:
    """One trip a line, so that the file reads well as plain text."""
    lines = [
        json.dumps({"id": trip, "rider": {"name": name, "member": member}, "km": km, "minutes": minutes})
        for trip, name, member, km, minutes in BIKE_TRIPS
    ]
    return ('{"depot": "Riverside", "trips": [\n  ' + ",\n  ".join(lines) + "\n]}\n").encode()
