from __future__ import annotations

import inspect
import shutil
import subprocess
import sys
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest

import eval_pipeline
from eval_pipeline.tools.context import ToolContext
from eval_pipeline.tools.registry import TOOLS, register

PACKAGE = Path(eval_pipeline.__file__).parent


@pytest.fixture
def attachment(tmp_path: Path) -> Path:
    file = tmp_path / "notes.txt"
    file.write_text("total: 42")
    return file


@pytest.mark.parametrize(
    ("key", "name", "parameter"),
    [
        ("read_attached_file.text", "read_attached_file", "path"),
        ("read_attached_file.multi", "read_attached_file", "path"),
        ("python_calc", "python_calc", "expression"),
        ("python_exec", "python_exec", "code"),
    ],
)
def test_a_bound_tool_has_the_name_and_the_typed_parameter_that_the_model_is_told(
    key: str, name: str, parameter: str
) -> None:
    bound = TOOLS[key].bind(ToolContext())

    assert TOOLS[key].name == bound.__name__ == name
    assert list(inspect.signature(bound).parameters) == [parameter]
    assert typing.get_type_hints(bound) == {parameter: str, "return": str}
    assert inspect.iscoroutinefunction(bound)
    assert bound.__doc__
    assert len(TOOLS[key].description) > 40


async def test_bound_tools_answer(attachment: Path) -> None:
    context = ToolContext(attachment=attachment)

    assert await TOOLS["read_attached_file.text"].bind(context)(path=str(attachment)) == "total: 42"
    assert await TOOLS["read_attached_file.multi"].bind(context)(path=str(attachment)) == "total: 42"
    assert await TOOLS["python_calc"].bind(context)(expression="6 * 7") == "42"
    assert await TOOLS["python_exec"].bind(context)(code=f"print(open({str(attachment)!r}).read())") == "total: 42"


async def test_a_run_without_attachment_finds_no_file(attachment: Path) -> None:
    for key in ("read_attached_file.text", "read_attached_file.multi"):
        with pytest.raises(FileNotFoundError):
            await TOOLS[key].bind(ToolContext())(path=str(attachment))


@pytest.fixture
def added() -> Iterator[str]:
    key = "added_by_a_test"
    register(key, name="added", description="An example.", sources=("tools/calc.py",))(lambda _: _answer)
    yield key
    del TOOLS[key]


async def _answer() -> str:
    return "yes"


async def test_another_tool_can_be_registered(added: str) -> None:
    assert await TOOLS[added].bind(ToolContext())() == "yes"
    assert TOOLS[added].source_hash != TOOLS["python_calc"].source_hash


def test_a_key_names_one_tool(added: str) -> None:
    with pytest.raises(ValueError, match="two tools are registered as 'added_by_a_test'"):
        register(added, name="x", description="x", sources=())(lambda _: _answer)


def hashes_of(package: Path) -> dict[str, str]:
    code = "from eval_pipeline.tools.registry import TOOLS\nfor k, t in TOOLS.items(): print(k, t.source_hash)"
    ended = subprocess.run(
        [sys.executable, "-B", "-c", code], capture_output=True, text=True, check=True, cwd=package.parent
    )
    return dict(line.split() for line in ended.stdout.splitlines())


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in ("__init__.py", "errors.py", "ids.py", "jsontypes.py"):
        (tmp_path / "eval_pipeline").mkdir(exist_ok=True)
        shutil.copy(PACKAGE / name, tmp_path / "eval_pipeline" / name)
    for name in ("tools", "benchmarks"):
        shutil.copytree(PACKAGE / name, tmp_path / "eval_pipeline" / name)
    return tmp_path / "eval_pipeline"


def test_hashes_do_not_depend_on_place_or_line_ends(copy: Path) -> None:
    for file in copy.rglob("*.py"):
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))

    assert hashes_of(copy) == {key: tool.source_hash for key, tool in TOOLS.items()}


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        ("tools/calc.py", {"python_calc"}),
        ("tools/read_text.py", {"read_attached_file.text", "read_attached_file.multi"}),
        ("tools/readers/pdf.py", {"read_attached_file.multi"}),
        ("tools/sandbox/launcher.py", {"python_exec"}),
        ("tools/python_exec.py", {"python_exec"}),
        ("tools/corpus.py", {"search_documents", "fetch_document"}),
        ("tools/source_tree.py", {"list_source", "read_source", "search_source"}),
        ("tools/source_grep.py", {"search_source"}),
    ],
)
def test_a_changed_source_changes_the_hashes_of_its_tools_alone(copy: Path, source: str, changed: set[str]) -> None:
    with (copy / source).open("a") as file:
        file.write("\n# changed\n")

    ours = {key: tool.source_hash for key, tool in TOOLS.items()}
    assert {key for key, value in hashes_of(copy).items() if value != ours[key]} == changed
