"""What a program can and cannot see, at every level."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
from pathlib import Path

import pytest

import eval_pipeline
from eval_pipeline.tools.sandbox.command import Way
from eval_pipeline_tests.tools.sandbox.conftest import quick

READ = """
import json
seen = {}
for path in PATHS:
    try:
        with open(path, "rb") as file:
            seen[path] = len(file.read(10))
    except OSError as error:
        seen[path] = type(error).__name__
print(json.dumps(seen))
"""


async def read_all(way: Way, paths: list[str], attachment: Path | None = None) -> dict[str, object]:
    ended = await quick(way, f"PATHS = {paths!r}\n{READ}", attachment)
    assert ended.status == 0, ended.output
    return json.loads(ended.output)


async def test_the_attachment_can_be_read_at_its_own_path(way: Way, attachment: Path) -> None:
    ended = await quick(way, f"import pandas; print(pandas.read_csv({str(attachment)!r})['price'].sum())", attachment)

    assert (ended.status, ended.output.strip()) == (0, "4.5")


async def test_the_attachment_cannot_be_changed_where_files_are_walled(walled_way: Way, attachment: Path) -> None:
    code = f"import os\ntry:\n    os.chmod({str(attachment)!r}, 0o666)\nexcept OSError:\n    pass\n"
    ended = await quick(walled_way, f"{code}open({str(attachment)!r}, 'a').write('x')", attachment)

    assert ended.status == 1
    assert (await asyncio.to_thread(attachment.read_text)) == "item,price\nlatte,4.5\n"


async def test_neither_answer_key_nor_another_task_nor_our_own_package_can_be_read(
    walled_way: Way, attachment: Path, tmp_path: Path
) -> None:
    key = tmp_path / "metadata.jsonl"
    key.write_text('{"Final answer": "42"}')
    other = attachment.parent.parent / "task-2" / "other.csv"
    other.parent.mkdir()
    other.write_text("another task's file")
    beside = attachment.with_name("beside.txt")
    beside.write_text("in the same folder")
    package = Path(eval_pipeline.__file__)
    paths = [key, other, beside, package, package.parent / "sample_data" / "__init__.py"]

    seen = await read_all(walled_way, [*map(str, paths), str(attachment)], attachment)

    assert seen.pop(str(attachment)) == 10
    assert set(seen.values()) <= {"FileNotFoundError", "PermissionError"}, seen


async def test_only_the_attachment_is_listed_in_the_stage_folder(private_way: Way, attachment: Path) -> None:
    (attachment.parent.parent / "task-2").mkdir()
    stage = attachment.parent.parent
    ended = await quick(private_way, f"import os; print(os.listdir({str(stage)!r}))", attachment)

    assert ended.output.strip() == "['task-1']"


async def test_home_and_the_working_folder_of_the_project_are_not_there(private_way: Way) -> None:
    folders = [str(Path.home() / ".ssh"), str(Path.cwd()), os.environ.get("DAGSTER_HOME", "/nowhere"), "/etc/passwd"]
    ended = await quick(private_way, f"import os; print([os.path.exists(p) for p in {folders!r}])")

    assert ended.output.strip() == "[False, False, False, False]"


async def test_no_variable_of_ours_reaches_the_program(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVAL_LLM_API_KEY", "canary-5b1f")
    monkeypatch.setenv("PYTHONPATH", "/canary-5b1f")
    code = "import os, sys; print(dict(os.environ), sys.path, open('/proc/self/environ').read() if PROC else '')"
    ended = await quick(way, f"PROC = {way.level != 'landlock'}\n{code}")

    assert ended.status == 0, ended.output
    assert "canary" not in ended.output
    assert "EVAL_" not in ended.output


async def test_no_process_of_ours_can_be_asked_for_its_environment(
    walled_way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
import glob
found = []
for path in [f"/proc/{pid}/environ" for pid in [*PIDS, *range(1, 400)]]:
    try:
        found.append(open(path, "rb").read())
    except OSError:
        pass
print(b"DAGSTER" in b"".join(found) or b"PYTEST" in b"".join(found), len(found))
"""
    ended = await quick(walled_way, f"PIDS = {[os.getpid(), os.getppid()]}\n{code}")

    assert ended.output.startswith("False"), ended.output


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6"])
async def test_there_is_no_network_and_no_way_to_this_machine(way: Way, family: str) -> None:
    listening = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        listening.set()
        address = ("127.0.0.1", server.getsockname()[1]) if family == "AF_INET" else ("::1", server.getsockname()[1])
        code = f"import socket; socket.socket(socket.{family}).connect({address!r}); print('connected')"
        ended = await quick(way, code)

    assert ended.status == 1, ended.output
    assert "connected" not in ended.output.splitlines()


async def test_an_abstract_socket_of_the_machine_cannot_be_reached(walled_way: Way) -> None:
    name = f"\0eval-pipeline-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        ended = await quick(walled_way, f"import socket; socket.socket(socket.AF_UNIX).connect({name!r})")

    assert ended.status == 1, ended.output


async def test_the_system_and_the_interpreter_are_read_only(walled_way: Way) -> None:
    code = """
import os, sys, sysconfig
for folder in ("/", "/usr/lib", sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), "/dev"):
    try:
        open(os.path.join(folder, "written-by-a-model"), "w").close()
        print("wrote", folder)
    except OSError:
        pass
"""
    ended = await quick(walled_way, code)

    assert (ended.status, ended.output) == (0, "")


async def test_scratch_files_can_be_written_and_are_gone_in_the_next_program(way: Way) -> None:
    write = "import os, tempfile; open('mine', 'w').write('x'); print(os.listdir(), tempfile.mkstemp()[1] != '')"
    first = await quick(way, write)
    second = await quick(way, "import os; print(os.listdir())")

    assert first.output.strip() == "['main.py', 'mine'] True" or first.output.strip() == "['mine', 'main.py'] True"
    assert second.output.strip() == "['main.py']"


async def test_what_models_use_can_be_imported(way: Way) -> None:
    code = "import pandas, openpyxl, numpy, sqlite3, ssl, json, decimal, zoneinfo, xml.etree.ElementTree, csv\n"
    code += "import multiprocessing, subprocess\nprint(zoneinfo.ZoneInfo('Asia/Seoul'))\n"
    code += "print(subprocess.run(['echo', 'hi'], capture_output=True, text=True).stdout)"
    ended = await quick(way, code)

    assert ended.output.split() == ["Asia/Seoul", "hi"], ended.output
