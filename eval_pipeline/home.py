"""Where the pipeline lives: the home folder, the packaged files and the folders of its state.

The home is Dagster's instance folder too. What is kept below it belongs to whoever keeps it.
"""

from __future__ import annotations

import os
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from eval_pipeline.errors import SettingsError
from eval_pipeline.ids import shown

if TYPE_CHECKING:
    from eval_pipeline.settings import Settings

INSTANCE_FILES = ("dagster.yaml", "workspace.yaml")
"""What a home of our own making is given once; from then on they are its owner's."""


def find_home() -> Path:
    """The home folder, absolute; makes nothing.

    ``DAGSTER_HOME``, else the nearest folder upwards with a ``dagster.yaml``, else ``~/.eval_pipeline``.

    Raises:
        SettingsError: ``DAGSTER_HOME`` is no absolute path, or there is no home directory to fall back on.
    """
    given = os.environ.get("DAGSTER_HOME", "")
    if given:
        if not Path(given).is_absolute():
            raise SettingsError(f"DAGSTER_HOME: {shown(given)} is not an absolute path; set the whole path")
        return Path(given)
    return _nearest() or _user_home()


def home() -> Path:
    """The home folder of :func:`find_home`; the last resort is made, with its files, when it is missing.

    Raises:
        SettingsError: it is not a folder, or it cannot be made.
    """
    place = find_home()
    if os.environ.get("DAGSTER_HOME"):
        if not place.is_dir():
            raise SettingsError(f"DAGSTER_HOME: {shown(str(place))} is not a folder; make it or set another")
    elif not (place / "dagster.yaml").is_file():
        _furnish(place)
    return place


def packaged(name: str) -> Path:
    """The file ``name`` that ships with the product: in the installed package, else in the checkout's root.

    Raises:
        SettingsError: it is in neither place, so the installation is incomplete.
    """
    package = Path(str(files("eval_pipeline")))
    for path in (package / "_home" / name, package.parent / name):
        if path.is_file():
            return path
    raise SettingsError(f"{name} is missing from this installation of eval-pipeline; install it again")


def stage_dir(settings: Settings) -> Path:
    """Where attachments are staged, absolute."""
    return (settings.stage_dir or home() / ".eval_pipeline" / "stage").absolute()


def report_dir(settings: Settings) -> Path:
    """Where reports are written, absolute."""
    return (settings.report_dir or home() / ".eval_pipeline" / "reports").absolute()


def archive_dir() -> Path:
    """Where traces of old months are archived unless somebody says otherwise, absolute."""
    return home() / ".eval_pipeline" / "archive"


def pg_data_dir() -> Path:
    """Where the embedded PostgreSQL keeps its data, absolute."""
    return home() / ".eval_pipeline" / "pg"


def _nearest() -> Path | None:
    try:
        here = Path.cwd()
    except FileNotFoundError:
        return None
    for folder in (here, *here.parents):
        try:
            if (folder / "dagster.yaml").is_file():
                return folder
        except PermissionError:
            continue
    return None


def _user_home() -> Path:
    try:
        return Path.home() / ".eval_pipeline"
    except RuntimeError:
        raise SettingsError("there is no home directory; set DAGSTER_HOME to a folder of yours") from None


def _furnish(place: Path) -> None:
    """Give ``place`` the packaged files that it lacks, each whole from the moment it is there."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name in INSTANCE_FILES:
            if not (place / name).exists():
                _copy_whole(packaged(name), place / name)
    except OSError as exc:
        raise SettingsError(
            f"{place}: cannot be made the home folder ({exc.strerror}); set DAGSTER_HOME to a folder of yours"
        ) from exc


def _copy_whole(source: Path, target: Path) -> None:
    # another process may read the target at any moment, so it appears by a rename, never half written
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(source.read_bytes())
        Path(name).chmod(0o644)
        Path(name).replace(target)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
