"""What the README says is true: its settings, its commands, its pictures and its links."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from typer.main import get_command

from eval_pipeline import cli

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"

pytestmark = pytest.mark.skipif(not README.is_file(), reason="not run from a checkout")


@pytest.fixture(scope="module")
def readme() -> str:
    return README.read_text(encoding="utf-8")


def test_the_settings_table_is_that_of_the_code(readme: str) -> None:
    spec = importlib.util.spec_from_file_location("readme_settings", ROOT / "scripts" / "readme_settings.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    _, _, rest = readme.partition(script.BEGIN)
    table, _, _ = rest.partition(script.END)
    assert table.strip() == script.settings_table(), "run python scripts/readme_settings.py"


def test_every_command_is_in_the_readme_and_no_other(readme: str) -> None:
    commands = set(get_command(cli.app).commands)  # type: ignore[attr-defined]
    named = set(re.findall(r"eval-pipeline ([a-z][a-z-]+)", readme)) | set(
        re.findall(r"`([a-z][a-z-]+)`(?=[^|\n]*\|)", readme.partition("| command |")[2].partition("\n\n")[0])
    )
    assert commands <= named, f"not in the README: {', '.join(sorted(commands - named))}"
    assert not (set(re.findall(r"eval-pipeline ([a-z][a-z-]+)", readme)) - commands)


def test_every_picture_and_linked_file_is_there(readme: str) -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", readme)
    files = [target for target in targets if "://" not in target]
    assert [target for target in files if not (ROOT / target).is_file()] == []


def test_no_placeholder_is_left(readme: str) -> None:
    assert re.findall(r"^@[A-Z]+@$", readme, re.MULTILINE) == []
