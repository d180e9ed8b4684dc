"""The filter's table of system calls against the kernel's own headers, and the program that comes of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eval_pipeline.tools.sandbox import seccomp

HEADERS = {
    "x86_64": (
        [Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), Path("/usr/include/asm/unistd_64.h")],
        r"#define __NR_(\w+)\s+(\d+)",
    ),
    "aarch64": ([Path("/usr/include/asm-generic/unistd.h")], r"#define __NR(?:3264)?_(\w+)\s+(\d+)"),
}
ALL = seccomp.REFUSED | seccomp.REFUSED_AMONG_OTHERS | seccomp.CONDITIONAL


@pytest.mark.parametrize("machine", HEADERS)
def test_every_number_is_the_kernels(machine: str) -> None:
    places, pattern = HEADERS[machine]
    header = next((place for place in places if place.exists()), None)
    if header is None:
        pytest.skip(f"the kernel's header for {machine} is not installed (linux-libc-dev)")
    numbers = {name: int(number) for name, number in re.findall(pattern, header.read_text())}
    column = list(HEADERS).index(machine)

    ours = {name: both[column] for name, both in ALL.items() if name in numbers}

    assert ours == {name: numbers[name] for name in ours}
    assert len(ours) > 60


@pytest.mark.parametrize("shared", [True, False])
def test_no_jump_leads_out_of_the_program(shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    program = seccomp.program(shared=shared)
    assert program is not None
    count = len(program) // 8

    for index in range(count):
        code, yes, no = program[index * 8], program[index * 8 + 2], program[index * 8 + 3]
        if code & 7 == 5:
            assert index + 1 + max(yes, no) < count
    assert count < 4096


def test_an_unknown_machine_has_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "s390x")

    assert seccomp.program(shared=True) is None
