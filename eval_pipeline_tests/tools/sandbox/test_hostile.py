"""Programs that try to hurt the machine end in bounded time, and nothing of them is left."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from eval_pipeline.tools.sandbox import Limits
from eval_pipeline.tools.sandbox.command import Way
from eval_pipeline.tools.sandbox.runner import run
from eval_pipeline_tests.tools.sandbox.conftest import appeared, carrying, descendants, disappeared, orphans, quick

BOUND_S = 15
"""Far above the seconds that these programs get, far below for ever."""

FORK_BOMB = """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
ENDLESS = {
    "it loops": "while True: pass",
    "it sleeps": "import time; time.sleep(600)",
    "it bombs": FORK_BOMB,
    "it keeps both cores busy": "import os; os.fork(); os.fork()\nwhile True: pass",
    "it stops itself": "import os, signal; os.kill(0, signal.SIGSTOP)",
    "it closes its output": "import os, time; os.close(1); os.close(2); time.sleep(600)",
    "it ignores every signal": """
import signal, time
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
while True:
    time.sleep(1)
""",
}


async def test_programs_that_do_not_end_are_ended(way: Way) -> None:
    before = descendants()
    started = time.monotonic()

    results = await asyncio.gather(*(quick(way, code, seconds=2) for code in ENDLESS.values()))

    assert time.monotonic() - started < BOUND_S
    assert [ended.stopped is not None or ended.status > 128 for ended in results] == [True] * len(ENDLESS)
    assert descendants() <= before
    assert orphans() == []


async def test_no_more_processes_than_the_limit_ever_exist(way: Way) -> None:
    if os.geteuid() == 0 and not way.new_user:
        pytest.skip(f"level {way.level}: root's processes are not counted by the kernel, only looked at now and then")
    before = descendants()
    task = asyncio.ensure_future(quick(way, FORK_BOMB, processes=40, seconds=2))
    most = 0
    while not task.done():
        await asyncio.sleep(0.05)
        most = max(most, len(descendants() - before))
    await task

    assert 30 < most <= 40 + 5


@pytest.mark.parametrize(
    "code",
    [
        "x = bytearray(10 * 1024**3)",
        "x = []\nwhile True: x.append(bytearray(50 * 1024**2))",
        "import mmap; m = mmap.mmap(-1, 10 * 1024**3); m[0] = 1",
    ],
)
async def test_memory_is_limited(way: Way, code: str) -> None:
    ended = await quick(way, code, memory=500 * 2**20)

    assert ended.status == 1
    assert "MemoryError" in ended.output or "Cannot allocate memory" in ended.output


async def test_memory_of_all_processes_together_is_limited(way: Way) -> None:
    code = """
import os, time
for _ in range(8):
    if os.fork() == 0:
        x = os.urandom(1024) * (100 * 1024)
        time.sleep(600)
time.sleep(600)
"""
    ended = await quick(way, code, memory=300 * 2**20)

    assert ended.stopped is not None
    assert "MiB of memory" in ended.stopped


async def test_one_file_cannot_fill_the_disk(way: Way) -> None:
    code = "with open('big', 'wb') as file:\n    while True: file.write(bytes(1024**2))"
    ended = await quick(way, code)

    assert ended.status != 0
    assert "File too large" in ended.output or "No space left" in ended.output


async def test_many_files_cannot_fill_the_disk(way: Way) -> None:
    code = """
import itertools
for number in itertools.count():
    with open(str(number), "wb") as file:
        file.write(bytes(4 * 1024**2))
"""
    ended = await quick(way, code)

    assert "No space left" in ended.output or (ended.stopped and "wrote more than" in ended.stopped)


async def test_deeply_nested_and_closed_folders_are_removed(way: Way) -> None:
    code = """
import os
print(os.getcwd())
for depth in range(1100):
    os.mkdir("d"); os.chdir("d")
    if depth == 500:
        os.mkdir("closed", 0)
"""
    ended = await quick(way, code)

    assert ended.status == 0
    assert not await asyncio.to_thread(Path(ended.output.strip()).exists)


async def test_shared_memory_outside_of_any_count_is_refused(way: Way) -> None:
    code = """
import ctypes, os
libc = ctypes.CDLL(None)
print(libc.shmget(0, 1024**3, 0o1600), hasattr(os, "memfd_create") and libc.memfd_create(b"x", 0))
"""
    ended = await quick(way, code)

    assert ended.output.split() == ["-1", "-1"]


async def test_a_gigabyte_of_output_is_cut_and_ends_the_program(way: Way) -> None:
    started = time.monotonic()
    ended = await quick(way, "import sys\nwhile True: sys.stdout.write('x' * 100_000)")

    assert time.monotonic() - started < BOUND_S
    assert ended.stopped is not None
    assert "printed more than 8 MiB" in ended.stopped
    assert len(ended.output) <= 8000


async def test_a_daemon_does_not_outlive_the_program(way: Way, marker: str) -> None:
    code = f"""
import os, subprocess, sys
sleeper = [sys.executable, "-c", "import time; time.sleep(600)", {marker!r}]
subprocess.Popen(sleeper)
if os.fork() == 0:
    try:
        os.setsid()
    except OSError:
        pass
    if os.fork() == 0:
        subprocess.Popen(sleeper, stdin=subprocess.DEVNULL)
    os._exit(0)
os.wait()
import time; time.sleep(0.5)
print("done")
"""
    ended = await quick(way, code)

    assert ended.output.strip() == "done"
    assert carrying(marker) == []


async def test_a_child_that_keeps_the_output_open_does_not_hold_up_the_answer(way: Way) -> None:
    started = time.monotonic()
    ended = await quick(way, "import subprocess; subprocess.Popen(['sleep', '600']); print('done')")

    assert time.monotonic() - started < 3
    assert ended.output.strip() == "done"


async def test_a_cancelled_call_leaves_no_process(way: Way, marker: str) -> None:
    code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import time; time.sleep(600)', {marker!r}])"
    before = descendants()
    task = asyncio.ensure_future(run(way, code, None, Limits()))
    assert await appeared(marker)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert carrying(marker) == []
    assert descendants() <= before


async def test_the_program_cannot_signal_us(way: Way) -> None:
    code = f"""
import os, signal
for target in ({os.getpid()}, -{os.getpgrp()}, -1, {os.getppid()}):
    try:
        os.kill(target, signal.SIGCONT)
        print("sent", target)
    except OSError:
        pass
"""
    ended = await quick(way, code)

    sent = {line for line in ended.output.splitlines() if line.startswith("sent")}
    # In a process table of its own, "everybody" is nobody but itself.
    assert sent <= ({"sent -1"} if way.level in ("bwrap", "namespaces") else set()), ended.output


@pytest.mark.parametrize(
    "call",
    [
        "libc.unshare(0x10000000)",
        "libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)",
        "libc.ptrace(0, 0, 0, 0)",
        "libc.syscall(321 if os.uname().machine == 'x86_64' else 280, 0, 0, 0)",
        "libc.setuid(0) if os.getuid() else libc.setns(0, 0)",
        "libc.chroot(b'/')",
    ],
)
async def test_privileged_calls_fail(way: Way, call: str) -> None:
    ended = await quick(way, f"import ctypes, os\nlibc = ctypes.CDLL(None)\nprint({call})")

    assert ended.output.strip() == "-1"


async def test_it_has_no_capability_and_can_gain_none(way: Way) -> None:
    code = "import ctypes\nlibc = ctypes.CDLL(None)\nprint([libc.prctl(23, c, 0, 0, 0) for c in range(41)].count(1))"
    code += "\nprint(libc.prctl(39, 0, 0, 0, 0))"
    ended = await quick(way, code)

    assert ended.output.split()[1] == "1"


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL])
async def test_a_crash_is_seen_as_one(private_way: Way, number: int) -> None:
    ended = await quick(private_way, f"import os; os.kill(os.getpid(), {int(number)})")

    assert (ended.status, ended.stopped) == (128 + number, None)


async def test_a_limit_that_we_were_given_ourselves_is_kept(way: Way) -> None:
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE))"
    caller = f"""
import asyncio, resource
from eval_pipeline.tools.sandbox import Limits
from eval_pipeline.tools.sandbox.command import Way
from eval_pipeline.tools.sandbox.runner import run
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
print(asyncio.run(run({way!r}, {code!r}, None, Limits())).output)
"""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", caller, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()

    assert output.split() == [b"(100,", b"100)"]


async def test_ten_programs_at_once_do_not_disturb_each_other(way: Way) -> None:
    code = "import os; x = [os.fork() for _ in range(3)]; os._exit(0) if 0 in x else print(sum(range(1000)))"
    results = await asyncio.gather(*(quick(way, code) for _ in range(10)))

    assert {ended.output.strip() for ended in results} == {"499500"}


async def test_a_program_ends_with_the_process_that_started_it(way: Way, marker: str) -> None:
    code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import time; time.sleep(600)', {marker!r}])"
    caller = f"""
import asyncio
from eval_pipeline.tools.sandbox import Limits
from eval_pipeline.tools.sandbox.command import Way
from eval_pipeline.tools.sandbox.runner import run
asyncio.run(run({way!r}, {code!r}, None, Limits()))
"""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", caller)
    assert await appeared(f"time.sleep(600) {marker}")
    folder = Path(carrying(f"time.sleep(600) {marker}")[0].cwd())

    process.kill()
    await process.wait()

    assert await disappeared(f"time.sleep(600) {marker}")
    assert await removed(folder)


async def removed(folder: Path) -> bool:
    for _ in range(200):
        if not await asyncio.to_thread(folder.exists):
            return True
        await asyncio.sleep(0.05)
    return False
