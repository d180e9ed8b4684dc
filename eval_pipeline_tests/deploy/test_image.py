"""The image: what its file says, its build steps executed as plain shell, and its commands in what came of them."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.deploy.chart import ROOT
from eval_pipeline_tests.deploy.dockerfile import OF_THE_SYSTEM, Build, Stage, parse

FILE = ROOT / "deploy" / "Dockerfile"
STAGES = parse(FILE)
FINAL = STAGES[-1]


def test_every_stage_has_a_base_of_one_version_that_is_the_tests_own() -> None:
    versions = {stage.base for stage in STAGES}
    assert len(versions) == 1
    assert f"python:{sys.version_info.major}.{sys.version_info.minor}-" in versions.pop()


def test_the_image_is_not_roots_and_has_no_entry_point() -> None:
    user = FINAL.last("USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    # nothing is run, and so nothing is made, after the change of user
    names = [name for name, _ in FINAL.steps]
    assert "RUN" not in names[names.index("USER") :]
    assert "ENTRYPOINT" not in names


def test_no_secret_and_no_host_is_in_the_image_or_its_steps() -> None:
    text = FILE.read_text(encoding="utf-8")
    assert not re.search(r"https?://|index-url|EVAL_PG_DSN|API_KEY|PASSWORD", text)
    assert not any(name == "ARG" for stage in STAGES for name, _ in stage.steps)


def _sent(path: str) -> bool:
    """Whether the builder is sent ``path``, after the ignore file: the last pattern that fits decides."""
    sent = True
    for line in FILE.with_name("Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        pattern = line.removeprefix("!").removeprefix("**/")
        parts = path.split("/")
        fits = [fnmatch.fnmatch("/".join(parts[: end + 1]), pattern) for end in range(len(parts))]
        if line.startswith("**/"):
            fits = [fnmatch.fnmatch(part, pattern) for part in parts]
        if any(fits):
            sent = line.startswith("!")
    return sent


def test_the_builder_is_sent_what_it_copies_and_no_keys() -> None:
    sources = [
        word
        for stage in STAGES
        for name, arguments in stage.steps
        if name == "COPY" and "--from" not in arguments
        for word in arguments.split()[:-1]
    ]
    assert sources
    assert [source for source in sources if not (ROOT / source).exists() or not _sent(source)] == []
    assert _sent("eval_pipeline/teams/v1-baseline.yaml")
    for path in (
        ".env",
        "deploy/.env",
        "deploy/settings.env",
        "eval_pipeline/.env",
        ".git/config",
        ".eval_pipeline/pg",
    ):
        assert not _sent(path), path


def test_only_steps_that_change_the_system_are_left_out_below() -> None:
    left = [text for _, text in FINAL.steps + STAGES[0].steps if text.startswith(OF_THE_SYSTEM)]
    assert len(left) == 2
    assert re.search(r"install -y --no-install-recommends bubblewrap\b", left[0])
    assert f"--uid {FINAL.last('USER').partition(':')[0]}" in left[1]


@pytest.fixture(scope="module")
def built() -> Iterator[Build]:
    """The image's files, built from the checkout in a fresh folder that every user may read."""
    folder = Path(tempfile.mkdtemp(prefix="eval-pipeline-image-")).resolve()
    folder.chmod(0o755)
    build = Build(STAGES, ROOT, folder)
    for stage in STAGES:
        build.run(stage)
    yield build
    shutil.rmtree(folder, ignore_errors=True)


def _in(build: Build, *command: str) -> str:
    # the programs of the image, and not those that this process would find
    program = shutil.which(command[0], path=build.environment["PATH"].partition(":")[0])
    assert program, f"{command[0]} is not in the image"
    ended = subprocess.run(
        [program, *command[1:]], env=build.environment, cwd=build.workdir, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _with_port(stage: Stage, instruction: str, port: int) -> list[str]:
    return [str(port) if word == "4000" else word for word in stage.command(instruction)]


@pytest.mark.slow
def test_the_images_user_may_read_all_of_it_and_write_its_home_alone(built: Build) -> None:
    user, group = map(int, FINAL.last("USER").split(":"))
    state = built.workdir / ".eval_pipeline"
    if os.geteuid() == 0:
        assert (state.stat().st_uid, state.stat().st_gid) == (user, group)
    environment = Path(built.environment["PATH"].partition(":")[0]).parent.resolve()
    modes = {path: path.stat().st_mode for path in environment.rglob("*") if not path.is_symlink()}
    assert len(modes) > 1000
    assert [path for path, mode in modes.items() if not mode & stat.S_IROTH or mode & stat.S_IWOTH] == []


@pytest.mark.slow
def test_the_steps_of_the_image_make_a_code_server_that_is_healthy(built: Build, empty_database: Database) -> None:
    assert len(built.executed) == 3
    installed = _in(
        built, "python3", "-c", "import eval_pipeline, dagster_k8s, kiwipiepy; print(eval_pipeline.__file__)"
    )
    assert str(ROOT) not in installed

    for program in ("dagster", "dagster-webserver", "dagster-daemon"):
        assert "1.13" in _in(built, program, "--version")
    assert "smoke-llm" in _in(built, "eval-pipeline", "--help")

    built.environment["EVAL_PG_DSN"] = empty_database.dsn
    for module in ("eval_pipeline.definitions", "eval_pipeline.definitions_k8s"):
        _in(built, "dagster", "definitions", "validate", "-m", module)

    port = _free_port()
    server = subprocess.Popen(
        _with_port(FINAL, "CMD", port), env=built.environment, cwd=built.workdir, stdout=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 120
        healthy = _with_port(FINAL, "HEALTHCHECK", port)
        while subprocess.run(healthy, env=built.environment, capture_output=True, check=False).returncode != 0:
            assert server.poll() is None, "the code server ended"
            assert time.monotonic() < deadline, "the code server is not healthy"
    finally:
        server.terminate()
        server.wait(60)
