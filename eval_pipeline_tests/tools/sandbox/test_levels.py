"""Which level is taken, and what is said where a setting asks for more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from eval_pipeline.errors import SettingsError
from eval_pipeline.tools.sandbox import LEVELS, Level, best_level, filesystem, probe, require


def offer(monkeypatch: pytest.MonkeyPatch, *levels: str) -> None:
    monkeypatch.setattr(probe, "way", lambda level: probe.Way(level, False) if level in levels else None)


def test_the_strongest_level_that_works_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    for number, level in enumerate(LEVELS):
        offer(monkeypatch, *LEVELS[number:])
        assert best_level() == level


@pytest.mark.parametrize("best", LEVELS)
@pytest.mark.parametrize("minimum", LEVELS)
def test_a_minimum_is_met_by_itself_and_by_what_is_stronger(
    monkeypatch: pytest.MonkeyPatch, best: Level, minimum: Level
) -> None:
    offer(monkeypatch, best)
    if LEVELS.index(best) <= LEVELS.index(minimum):
        assert require(minimum) == best
    else:
        with pytest.raises(SettingsError, match=f"EVAL_SANDBOX_MINIMUM asks for {minimum}, .* no more than {best}"):
            require(minimum)


@pytest.mark.parametrize("minimum", ["", "docker", "BWRAP", "limits\n"])
def test_an_unknown_minimum_is_named_with_the_known_ones(minimum: str) -> None:
    with pytest.raises(SettingsError, match=r"EVAL_SANDBOX_MINIMUM is .*limits, landlock, namespaces, bwrap") as error:
        require(minimum)
    assert "\n" not in str(error.value)


def test_a_machine_that_offers_nothing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch)

    with pytest.raises(SettingsError, match="python_exec cannot run here"):
        best_level()


def test_a_bubblewrap_that_does_not_work_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    code = "from eval_pipeline.tools.sandbox.probe import way; print(way('bwrap'), way('limits') is not None)"

    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ended.stdout.strip() == "None True"


def test_a_bubblewrap_that_only_pretends_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretender = tmp_path / "bwrap"
    pretender.write_text(f'#!/bin/sh\nwhile [ "$1" != "{sys.executable}" ]; do shift; done\nexec "$@"\n')
    pretender.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    code = "from eval_pipeline.tools.sandbox.probe import way; print(way('bwrap'))"

    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ended.stdout.strip() == "None"
    assert not Path(filesystem.WORK).exists()
