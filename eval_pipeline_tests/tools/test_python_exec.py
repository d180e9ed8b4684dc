"""What the model is told about its program; how the program is kept apart is tested in the folder ``sandbox``."""

from __future__ import annotations

import pytest

from eval_pipeline.errors import SettingsError
from eval_pipeline.tools import python_exec
from eval_pipeline.tools.errors import CodeFailedError, ToolTimeoutError
from eval_pipeline.tools.python_exec import run_python
from eval_pipeline.tools.sandbox import probe


async def execute(code: str, seconds: float = 20) -> str:
    return await run_python(code, None, seconds=seconds, sandbox_minimum="limits")


async def test_what_is_printed_is_the_result() -> None:
    assert await execute("print('합계', 89706.0)") == "합계 89706.0"


async def test_stdout_and_stderr_come_in_their_order() -> None:
    code = "import sys\nprint('one')\nprint('two', file=sys.stderr)\nprint('three')"

    assert (await execute(code)).split() == ["one", "two", "three"]


@pytest.mark.parametrize("code", ["x = 1", "", "# nothing"])
async def test_silence_is_told(code: str) -> None:
    assert "printed nothing" in await execute(code)


async def test_an_exception_is_an_error_that_ends_with_its_traceback() -> None:
    with pytest.raises(CodeFailedError, match="failed with exit status 1") as error:
        await execute("print('before')\nprices = {}\nprices['latte']")

    text = str(error.value)
    assert "before" in text
    assert 'main.py", line 3' in text
    assert text.endswith("KeyError: 'latte'")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import sys; sys.exit(3)", "exit status 3 and printed nothing"),
        ("import sys; sys.exit('no data')", "exit status 1\nno data"),
        ("def (", "SyntaxError"),
        ("a\0b", "null bytes"),
        ("import os; os.abort()", "signal SIG"),
        ("def f(): f()\nf()", "RecursionError"),
        ("input()", "EOFError"),
    ],
)
async def test_how_a_program_failed_is_told(code: str, told: str) -> None:
    with pytest.raises(CodeFailedError) as error:
        await execute(code)

    assert told in str(error.value)


async def test_what_was_printed_before_the_time_ran_out_is_told() -> None:
    with pytest.raises(ToolTimeoutError, match=r"longer than 1 s\nstep 1$"):
        await execute("print('step 1')\nwhile True: pass", seconds=1)


async def test_exiting_with_zero_is_no_error() -> None:
    assert await execute("print(1)\nimport sys; sys.exit(0)") == "1"


async def test_code_that_is_no_text_is_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        await execute("print('\ud800')")


async def test_code_without_end_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 200000"):
        await execute("#" * (python_exec.MAX_CODE + 1))


async def test_the_longest_code_runs() -> None:
    assert await execute("print(1)\n" + "#" * (python_exec.MAX_CODE - 9)) == "1"


async def test_windows_line_ends_run() -> None:
    assert await execute("for i in range(2):\r\n    print(i)\r\n") == "0\n1"


async def test_output_of_a_failed_program_is_cut_and_keeps_its_traceback() -> None:
    with pytest.raises(CodeFailedError) as error:
        await execute("for i in range(9999): print(i)\n1/0")

    assert len(str(error.value)) < 8200
    assert str(error.value).endswith("ZeroDivisionError: division by zero")


async def test_a_machine_below_the_minimum_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "way", lambda level: probe.Way(level, False) if level == "limits" else None)

    with pytest.raises(SettingsError, match="EVAL_SANDBOX_MINIMUM asks for namespaces"):
        await run_python("print(1)", None, seconds=5, sandbox_minimum="namespaces")
