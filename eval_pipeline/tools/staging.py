"""Puts a task's attachment where its runs find it: read-only, alone, and at the same path in every run.

The path is ``<stage_dir>/<task_id>/<file_name>``. Several runs and processes may stage one task at once.
Which part of a file a tool shows belongs to the tools.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
import unicodedata
from pathlib import Path, PurePosixPath

from eval_pipeline.benchmarks.base import Attachment, Material, Task
from eval_pipeline.errors import TaskDataError
from eval_pipeline.ids import check_id, shown

_CHUNK = 1024 * 1024
_MAX_NAME_BYTES = 255
_INCOMING = ".incoming"
"""Where copies are made, beside the tasks' folders: no task id begins with a point."""
_MATERIALS = ".materials"
"""Where the materials of all tasks are, likewise."""


def stage(task_id: str, attachment: Attachment, stage_dir: Path) -> Path:
    """Copy the attachment to its place, unless it is there already with the same content; the absolute path.

    Whatever else lies in the task's folder is removed: an edited task may have had another file.

    Raises:
        IdError: ``task_id`` is no task id.
        TaskDataError: the file's name is not a plain name, its content is not what was loaded, or it cannot
            be copied.
    """
    check_id(task_id, "task id", "staging an attachment")
    name = _plain_name(task_id, attachment.file_name)
    folder = stage_dir.absolute() / task_id
    target = folder / name
    try:
        _make_folder(task_id, folder)
        if not _holds(target, attachment):
            _put(task_id, attachment, target, stage_dir.absolute() / _INCOMING)
        _leave_only(folder, name)
    except OSError as error:
        raise TaskDataError(
            f"task {task_id}: {shown(name)} cannot be staged: {error.filename or folder}: {error.strerror}; "
            "check the file and EVAL_STAGE_DIR"
        ) from error
    return target


def _plain_name(task_id: str, file_name: str) -> str:
    name = unicodedata.normalize("NFC", file_name)
    printable = name.isprintable() and "\ufffd" not in name
    too_long = printable and len(name.encode()) > _MAX_NAME_BYTES
    if not name or name in (".", "..") or "/" in name or "\\" in name or not printable or too_long:
        raise TaskDataError(f"task {task_id}: {shown(file_name)} is no file name; use a plain name without a folder")
    return name


def _make_folder(task_id: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if folder.is_symlink():
        raise TaskDataError(f"task {task_id}: {folder} is a link and is not staged into; remove it")


def _holds(target: Path, attachment: Attachment) -> bool:
    try:
        # A link would lead a tool out of the folder; a pipe would never answer.
        fd = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size != attachment.size:
            return False
        with open(fd, "rb", closefd=False) as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == attachment.sha256
    finally:
        os.close(fd)


def _put(task_id: str, attachment: Attachment, target: Path, incoming: Path) -> None:
    incoming.mkdir(exist_ok=True)
    fd, name = tempfile.mkstemp(dir=incoming)
    copy = Path(name)
    try:
        digest = hashlib.sha256()
        with open(fd, "wb") as out, attachment.path.open("rb") as source:  # noqa: PTH123
            while chunk := source.read(_CHUNK):
                digest.update(chunk)
                out.write(chunk)
            os.fchmod(fd, 0o444)
        if digest.hexdigest() != attachment.sha256:
            raise TaskDataError(
                f"task {task_id}: {attachment.path} has changed since the suite was loaded; load the suite again"
            )
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        # In one step: who reads at this moment sees the old file or the new one.
        copy.replace(target)
    finally:
        copy.unlink(missing_ok=True)


def _leave_only(folder: Path, name: str) -> None:
    for entry in os.scandir(folder):
        if entry.name == name:
            continue
        # Another process may be removing it too.
        with contextlib.suppress(FileNotFoundError):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                Path(entry.path).unlink()


def stage_materials(task: Task, stage_dir: Path) -> Path:
    """Copy the task's materials to a folder of their own, read-only, unless they are there; the absolute path.

    The folder is named by the materials' content, so that an edited task never meets the files of an older one. It
    appears by a rename, whole or not at all.

    Raises:
        IdError: the task's id is no task id.
        TaskDataError: a name leaves the folder, the content is not what was loaded, or it cannot be copied.
    """
    check_id(task.task_id, "task id", "staging materials")
    digest = hashlib.sha256()
    for material in sorted(task.materials, key=lambda one: one.name):
        digest.update(f"{material.name}\0{material.sha256}\n".encode())
    target = stage_dir.absolute() / _MATERIALS / task.task_id / digest.hexdigest()[:16]
    if target.is_dir():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        incoming = Path(tempfile.mkdtemp(dir=target.parent, prefix=".incoming-"))
        try:
            for material in task.materials:
                _copy_material(task.task_id, material, incoming)
            incoming.chmod(0o755)
            with contextlib.suppress(OSError):  # another process has put the same folder there in between
                incoming.rename(target)
        finally:
            shutil.rmtree(incoming, ignore_errors=True)
    except OSError as error:
        raise TaskDataError(
            f"task {task.task_id}: its materials cannot be staged in {target.parent}: {error.strerror}; "
            "check EVAL_STAGE_DIR"
        ) from error
    return target


def _copy_material(task_id: str, material: Material, folder: Path) -> None:
    parts = PurePosixPath(material.name).parts
    if not parts or any(part in ("..", "/") for part in parts) or "\0" in material.name or "\\" in material.name:
        raise TaskDataError(f"task {task_id}: {shown(material.name)} is no name of a material; write a path below it")
    content = material.path.read_bytes()
    if hashlib.sha256(content).hexdigest() != material.sha256:
        raise TaskDataError(f"task {task_id}: {shown(material.name)} has changed since it was loaded; load it again")
    place = folder.joinpath(*parts)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    place.chmod(0o444)
