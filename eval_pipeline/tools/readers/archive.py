"""Zip archives: the check that every Office file passes before it is unpacked, and the listing of a plain
.zip.

An archive's directory says how large each member becomes, and Python stops at that size, so that a bomb can
be refused before a byte of it is unpacked.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

from eval_pipeline.tools.errors import UnreadableFileError

MAX_UNPACKED = 256 * 1024 * 1024
"""Bytes of all members together."""
MAX_MEMBERS = 10_000
_RATIO_FROM = 32 * 1024 * 1024
_MAX_RATIO = 100
"""How many times larger an archive may become, from ``_RATIO_FROM`` bytes on; sheets of text stay below 50.
"""
_PROLOGUE = 64 * 1024


def check_office(path: Path) -> None:
    """Refuse an archive that no Office program writes.

    Raises:
        UnreadableFileError: too many members, too large when unpacked, encrypted, or XML that declares entities.
    """
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        unpacked = sum(member.file_size for member in members)
        if len(members) > MAX_MEMBERS:
            raise UnreadableFileError(f"{path.name} has {len(members)} members, at most {MAX_MEMBERS} are unpacked")
        if unpacked > MAX_UNPACKED or (unpacked > _RATIO_FROM and unpacked > _MAX_RATIO * path.stat().st_size):
            raise UnreadableFileError(
                f"{path.name} would unpack to {unpacked} bytes from {path.stat().st_size} and is not unpacked"
            )
        for member in members:
            if member.flag_bits & 1:
                raise UnreadableFileError(f"{path.name} is encrypted and cannot be read without its password")
            if member.filename.endswith((".xml", ".rels")):
                _check_xml(archive, member, path.name)


def _check_xml(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> None:
    with archive.open(member) as file:
        # NUL is dropped so that a declaration in UTF-16 is seen too.
        start = file.read(_PROLOGUE).replace(b"\0", b"")
    if b"<!DOCTYPE" in start or b"<!ENTITY" in start:
        raise UnreadableFileError(f"{name} declares XML entities, which no Office file does, and is not read")


def listing(path: Path) -> Iterator[str]:
    """The names and sizes of the members; nothing is unpacked."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    yield f"Archive: {len(members)} members; their content is not read here"
    for member in members:
        locked = " (encrypted)" if member.flag_bits & 1 else ""
        yield f"{member.file_size} bytes | {member.filename}{locked}"
