"""An installed package without its checkout: everything it needs is in the wheel, and it works from any folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from eval_pipeline.db import embedded

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder outside pytest's own, which is closed to the system user that PostgreSQL runs as under root."""
    made = Path(tempfile.mkdtemp(prefix="eval-pipeline-wheel-")).resolve()
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="module")
def wheel(folder: Path) -> Path:
    if not (ROOT / "pyproject.toml").is_file():
        pytest.skip("there is no checkout to build a wheel from")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q", "-w", str(folder)]
    subprocess.run([*command, str(ROOT)], check=True, timeout=300)
    (built,) = folder.glob("eval_pipeline-*.whl")
    return built


@dataclass(frozen=True)
class Installation:
    """A virtual environment with the wheel in it, and a person's empty home directory."""

    programs: Path
    home: Path

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment from a folder that holds nothing."""
        elsewhere = self.home / "elsewhere"
        elsewhere.mkdir(exist_ok=True)
        program, *arguments = command
        return subprocess.run(
            [self.programs / program, *arguments],
            cwd=elsewhere,
            env=_environment(self.home),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )


def _environment(home: Path) -> Mapping[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("EVAL_", "DAGSTER_", "PYTHON"))}
    return {**kept, "HOME": str(home)}


@pytest.fixture(scope="module")
def installation(wheel: Path, folder: Path) -> Iterator[Installation]:
    """The dependencies are those of this environment; the package itself, and only it, is the wheel's."""
    venv, home = folder / "venv", folder / "person"
    home.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True, timeout=300)
    python = venv / "bin" / "python"
    shown = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    # a path in a .pth file brings in what lies there, but not the editable installs that lie elsewhere
    Path(shown.stdout.strip(), "dependencies.pth").write_text(
        "\n".join(dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib")))
    )
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", "-q"]
    subprocess.run([*command, str(wheel)], check=True, timeout=300)
    yield Installation(venv / "bin", home)
    embedded.stop(home / ".eval_pipeline" / ".eval_pipeline" / "pg")


def _files(below: Path) -> set[str]:
    return {
        path.relative_to(below).as_posix()
        for path in below.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_holds_the_whole_package_and_what_lies_beside_it(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {f"eval_pipeline/{name}" for name in _files(ROOT / "eval_pipeline")}
    wanted |= {f"eval_pipeline/_sql/{name}" for name in _files(ROOT / "sql")}
    wanted |= {f"eval_pipeline/_home/{name}" for name in ("dagster.yaml", "workspace.yaml", "suites.yaml")}
    assert wanted - names == set()
    for part in ("_sql/001_init.sql", "teams/v5-multitool.yaml", "sample_data/tasks/metadata.jsonl"):
        assert f"eval_pipeline/{part}" in names


def test_the_wheel_holds_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"eval_pipeline"}
    assert [name for name in names if name.endswith((".pyc", ".env")) or "__pycache__" in name] == []


def test_an_installed_package_sets_up_loads_and_runs_from_any_folder(installation: Installation) -> None:
    where = installation.run("python", "-c", "import eval_pipeline; print(eval_pipeline.__file__)")
    assert str(ROOT) not in where.stdout
    done = installation.run("eval-pipeline", "init-db", "--json")
    assert done.returncode == 0, done.stderr
    assert "init" in json.loads(done.stdout)["applied"]

    done = installation.run("eval-pipeline", "load", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["suite"] == "sample"

    command = ("eval-pipeline", "run", "--suite", "sample", "--batch", "w", "--team", "v4-prompt-fix", "--limit", "2")
    done = installation.run(*command)
    assert done.returncode == 0, done.stderr
    assert "planned=2 started=2 completed=2 crashed=0" in done.stdout + done.stderr
    assert _files(installation.home / ".eval_pipeline") >= {"dagster.yaml", "workspace.yaml"}
    assert _files(installation.home / "elsewhere") == set()


def test_an_installed_package_has_dagster_definitions_that_load(installation: Installation) -> None:
    done = installation.run("python", "-m", "dagster", "definitions", "validate", "-m", "eval_pipeline.definitions")
    assert done.returncode == 0, done.stderr
