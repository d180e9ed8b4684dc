"""Which files a program sees: the interpreter, the system's libraries, some scratch space, and one attachment.

A list of steps that both bubblewrap and our own launcher carry out; nothing is mounted here. Each folder is
named, never a parent of it: a virtual environment inside the project must not bring the project along.
"""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import eval_pipeline

SCRATCH = "/tmp"
"""Where a program may write, in its own file system."""
WORK = f"{SCRATCH}/python_exec"
_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64")
_SYSTEM_DATA = (
    *("/usr/share/zoneinfo", "/etc/localtime", "/etc/ld.so.cache", "/etc/alternatives"),
    # Libraries that look for these take "not there" for an answer, but not "not allowed".
    *("/etc/mime.types", "/etc/ssl/openssl.cnf"),
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_DEVICE_LINKS = {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}
_SHARED_MEMORY = 64 * 1024 * 1024


class Step(NamedTuple):
    """One step in building a file system.

    ``bind``: ``source`` is seen, read-only, at ``target``; ``device``: the same for a device; ``link``:
    ``target`` is a symbolic link to ``source``; ``tmpfs``: an empty folder of at most ``size`` bytes with
    ``mode``; ``proc``: the process table; ``folder``: a parent of what follows; ``seal``: ``target`` becomes
    read-only.
    """

    kind: Literal["bind", "device", "link", "tmpfs", "proc", "folder", "seal"]
    target: str
    source: str = ""
    size: int = 0
    mode: int = 0o755


def steps(attachment: Path | None, disk: int) -> list[Step]:
    """How the file system of one program is built, in this order; ``disk`` is the size of its scratch space."""
    result = [Step("tmpfs", SCRATCH, size=disk, mode=0o1777)]
    result += _runtime()
    result.append(Step("tmpfs", "/dev", size=4096))
    result += [Step("device", device, device) for device in _DEVICES if Path(device).exists()]
    result += [Step("link", f"/dev/{name}", f"/proc/self/fd{end}") for name, end in _DEVICE_LINKS.items()]
    result += [Step("tmpfs", "/dev/shm", size=_SHARED_MEMORY, mode=0o1777), Step("seal", "/dev")]
    result.append(Step("proc", "/proc"))
    if attachment is not None:
        result.append(Step("bind", str(attachment), os.path.realpath(attachment)))
    result.append(Step("seal", "/"))
    return list(_with_parents(result))


def _with_parents(steps: Iterable[Step]) -> Iterator[Step]:
    # Bubblewrap makes parents by itself, but closed to every user except its own.
    made = {"/"}
    for step in steps:
        for parent in reversed(Path(step.target).parents):
            if str(parent) not in made:
                made.add(str(parent))
                yield Step("folder", str(parent))
        made.add(step.target)
        yield step


def readable(attachment: Path | None) -> list[str]:
    """The same files as real paths, for rules that can allow a folder but not forbid what lies in it."""
    paths = [path for step in _runtime() if step.kind == "bind" for path in _without_package(step.source)]
    return [*paths, *_DEVICES, *([os.path.realpath(attachment)] if attachment else [])]


def listable() -> list[str]:
    """Folders of which the names may be read, for the interpreter to find its packages."""
    return [step.source for step in _runtime() if step.kind == "bind" and Path(step.source).is_dir()]


@cache
def _runtime() -> list[Step]:
    wanted = [*(path for path in _SYSTEM if not Path(path).is_symlink()), *_SYSTEM_DATA, *_python()]
    binds = list(_outermost(path for path in wanted if Path(path).exists()))
    links = [Step("link", path, str(Path(path).readlink())) for path in _SYSTEM if Path(path).is_symlink()]
    return [*links, *(Step("bind", path, os.path.realpath(path)) for path in binds), *_masks(binds)]


def _python() -> Iterator[str]:
    """The folders of the running interpreter: its programs, its standard library, its packages."""
    for prefix in dict.fromkeys((sys.base_prefix, sys.base_exec_prefix, sys.prefix, sys.exec_prefix)):
        yield from (f"{prefix}/{part}" for part in ("bin", "lib", "lib64", "pyvenv.cfg"))
    yield from (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    yield from site.getsitepackages()
    # An interpreter is often a link to a link: each of them must be there to be followed.
    hop = Path(sys.executable)
    while hop.is_symlink():
        yield str(hop.parent)
        hop = hop.parent / hop.readlink()
    yield str(hop.parent)


def _outermost(paths: Iterable[str]) -> Iterator[str]:
    kept: list[str] = []
    for path in sorted({os.path.normpath(path) for path in paths}):
        inside = any(path.startswith(f"{outer}/") for outer in kept)
        # A link inside what is seen already leads on by itself; a bind would replace it.
        if not inside:
            kept.append(path)
            yield path


def _without_package(path: str) -> Iterator[str]:
    hidden = os.path.realpath(Path(eval_pipeline.__file__).parent)
    if not hidden.startswith(f"{path}/"):
        yield path
        return
    for entry in os.scandir(path):
        if entry.path != hidden and not entry.is_symlink():
            yield from _without_package(entry.path)


def _masks(binds: list[str]) -> Iterator[Step]:
    """Empty folders over our own package, which holds the answers of the sample tasks."""
    package = Path(eval_pipeline.__file__).parent
    for folder in dict.fromkeys((str(package), os.path.realpath(package))):
        if any(folder.startswith(f"{bind}/") for bind in binds):
            yield Step("tmpfs", folder, size=4096)
            yield Step("seal", folder)
