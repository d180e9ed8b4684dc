"""The recipe of ``docs/ci.md`` as a CI job would run it: every command of its first block, with its exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from eval_pipeline_tests.conftest import Database

DOCUMENT = Path(__file__).parents[1] / "docs" / "ci.md"
_BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)

pytestmark = pytest.mark.slow


def recipe() -> str:
    (block, *_) = _BLOCK.findall(DOCUMENT.read_text(encoding="utf-8"))
    return str(block)


def job(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    programs = Path(sys.executable).parent
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "CI_COMMIT": "0a1b2c3"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_the_recipe_runs_as_it_stands_and_a_bound_that_is_missed_ends_the_job(
    database: Database, clean_environment: Path
) -> None:
    done = job(recipe(), clean_environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((clean_environment / "gate.json").read_text())["passed"] is True
    suite = ElementTree.parse(clean_environment / "gate.xml").getroot()
    assert suite.get("name") == "ci-0a1b2c3@v4-prompt-fix"
    assert suite.get("errors") == "0"

    strict = recipe().replace("--min-pass 0.4", "--min-pass 1")
    assert strict != recipe()
    assert job(strict, clean_environment).returncode == 1
