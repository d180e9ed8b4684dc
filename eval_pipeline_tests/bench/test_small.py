"""The benchmarks go through, small. What they measure is for whoever runs them; that they can be run is held here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from eval_pipeline_tests.bench.__main__ import NAMES
from eval_pipeline_tests.bench.figures import Figure, drawn

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_goes_through(name: str, tmp_path: Path) -> None:
    written = tmp_path / "figures.json"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("EVAL_", "DAGSTER_"))}
    done = subprocess.run(
        [sys.executable, "-m", "eval_pipeline_tests.bench", name, "--size", "small", "--json", str(written)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=Path(__file__).parents[2],
    )
    # 1 is a target that was not met, and small figures meet none but by chance
    assert done.returncode in (0, 1), done.stderr
    document = json.loads(written.read_text())
    figures = [Figure(**figure) for figure in document["figures"][name]]
    assert figures
    assert all(figure.value >= 0 for figure in figures)
    assert document["surroundings"]["cores"] == os.cpu_count()
    assert drawn(name, figures).row_count == len(figures)


def test_a_benchmark_that_there_is_not_is_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "eval_pipeline_tests.bench", "nothing"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "there is no benchmark nothing" in done.stderr
