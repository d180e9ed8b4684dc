"""The home folder: where it is, what it is given, and what is packaged."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import eval_pipeline
from eval_pipeline.errors import SettingsError
from eval_pipeline.home import INSTANCE_FILES, find_home, home, packaged, pg_data_dir, report_dir, stage_dir
from eval_pipeline.settings import Settings

CHECKOUT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user with an empty home directory, who stands in an empty folder, without ``DAGSTER_HOME``."""
    for name in [name for name in os.environ if name.startswith("EVAL_") and not name.startswith("EVAL_TEST_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    directory = tmp_path / "user"
    (tmp_path / "work" / "below").mkdir(parents=True)
    directory.mkdir()
    monkeypatch.setenv("HOME", str(directory))
    monkeypatch.chdir(tmp_path / "work" / "below")
    return directory


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_dagster_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work" / "dagster.yaml").touch()
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    assert home() == tmp_path
    assert names_in(tmp_path) == ["user", "work"]


def test_the_nearest_folder_upwards_with_a_dagster_yaml_comes_next(tmp_path: Path) -> None:
    (tmp_path / "dagster.yaml").touch()
    assert home() == tmp_path
    (tmp_path / "work" / "dagster.yaml").touch()
    assert home() == tmp_path / "work"
    (tmp_path / "work" / "below" / "dagster.yaml").mkdir()
    assert home() == tmp_path / "work"


def test_else_a_folder_of_the_users_is_made_with_the_packaged_files(user: Path) -> None:
    made = home()
    assert made == user / ".eval_pipeline"
    for name in INSTANCE_FILES:
        assert (made / name).read_bytes() == packaged(name).read_bytes()
    assert names_in(made) == sorted(INSTANCE_FILES)


def test_finding_the_home_makes_nothing(user: Path) -> None:
    assert find_home() == user / ".eval_pipeline"
    assert names_in(user) == []


def test_files_that_the_user_has_changed_stay(user: Path) -> None:
    (home() / "workspace.yaml").write_text("mine")
    assert (home() / "workspace.yaml").read_text() == "mine"


def test_two_that_make_the_home_at_once_both_find_it_whole(user: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        places = set(threads.map(lambda _: home(), range(16)))
    assert places == {user / ".eval_pipeline"}
    assert names_in(*places) == sorted(INSTANCE_FILES)


def test_an_empty_dagster_home_is_an_unset_one(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", "")
    assert find_home() == user / ".eval_pipeline"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("work", "DAGSTER_HOME: 'work' is not an absolute path; set the whole path"),
        ("/nowhere/at/all", "DAGSTER_HOME: '/nowhere/at/all' is not a folder; make it or set another"),
    ],
)
def test_a_dagster_home_that_is_no_folder_is_one_line(monkeypatch: pytest.MonkeyPatch, value: str, told: str) -> None:
    monkeypatch.setenv("DAGSTER_HOME", value)
    with pytest.raises(SettingsError) as caught:
        home()
    assert str(caught.value) == told


def test_a_home_that_cannot_be_made_is_one_line(user: Path) -> None:
    (user / ".eval_pipeline").write_text("a file is in the way")
    with pytest.raises(SettingsError, match=r"cannot be made the home folder.*set DAGSTER_HOME") as caught:
        home()
    assert "\n" not in str(caught.value)


def test_a_current_folder_that_is_gone_does_not_matter(
    tmp_path: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path / "work" / "below")
    shutil.rmtree(tmp_path / "work")
    assert find_home() == user / ".eval_pipeline"


def test_state_is_kept_below_the_home_unless_a_setting_says_otherwise(tmp_path: Path, user: Path) -> None:
    state = user / ".eval_pipeline" / ".eval_pipeline"
    assert stage_dir(Settings()) == state / "stage"
    assert report_dir(Settings()) == state / "reports"
    assert pg_data_dir() == state / "pg"
    moved = Settings(stage_dir=Path("stage"), report_dir=tmp_path / "reports")
    assert stage_dir(moved) == Path.cwd() / "stage"
    assert report_dir(moved) == tmp_path / "reports"


@pytest.mark.parametrize("name", [*INSTANCE_FILES, "suites.yaml"])
def test_the_packaged_files_are_found_in_a_checkout(name: str) -> None:
    assert packaged(name).is_file()


def test_the_packaged_files_are_found_in_an_installed_package(tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(
        Path(eval_pipeline.__file__).parent,
        site / "eval_pipeline",
        ignore=lambda folder, names: [
            n for n in names if Path(folder).name != "eval_pipeline" or not n.endswith(".py")
        ],
    )
    (site / "eval_pipeline" / "_home").mkdir()
    shutil.copy(CHECKOUT / "suites.yaml", site / "eval_pipeline" / "_home")
    program = "from eval_pipeline.home import packaged; print(packaged('suites.yaml'))"
    found = subprocess.run(
        [sys.executable, "-c", program],
        cwd=site,
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(site)},
    )
    assert Path(found.stdout.strip()) == site / "eval_pipeline" / "_home" / "suites.yaml"


def test_a_file_that_is_not_packaged_says_that_the_installation_is_incomplete() -> None:
    with pytest.raises(SettingsError, match=r"nothing\.yaml is missing from this installation"):
        packaged("nothing.yaml")
