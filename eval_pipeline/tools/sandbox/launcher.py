"""The program that puts a limit on itself and then becomes the model's program. Runs alone, with nothing of
ours loaded.

It is passed to the interpreter as text, since it also runs where our package cannot be seen. A JSON object on
its standard input says what to do; :mod:`eval_pipeline.tools.sandbox.command` writes it and documents its
fields. Only what must happen in the child belongs here: everything that can be computed before is.

Exit status: that of the program, or 128 + the number of the signal that ended it; 125 where the sandbox could
not be set up, with a line on stderr that begins ``sandbox:``.
"""

# pathlib takes longer to import than all that is done here.
# ruff: noqa: PTH102, PTH103, PTH106, PTH112, PTH123, PTH211

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import struct
import sys
import time
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 22, 24, 36, 38
SECCOMP_MODE_FILTER = 2
LAST_CAPABILITY = 63
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = (
    *(0x00020000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000),
)
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = (
    *(1, 2, 4, 8, 32, 4096, 16384, 1 << 18),
)
MNT_DETACH = 2
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
SYS_MOUNT_SETATTR, SYS_LANDLOCK_CREATE, SYS_LANDLOCK_ADD, SYS_LANDLOCK_RESTRICT = 442, 444, 445, 446
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID, MOUNT_ATTR_NODEV = 1, 2, 4
NEW_ROOT = "/sys"
"""Where the new file system is built: always there, and nothing that is to be seen lies in it."""
SETUP_FAILED = 125


def main() -> int:
    config = json.load(sys.stdin.buffer)
    os.umask(0o022)
    if config["level"] == "bwrap":
        # Outside of the walls that bubblewrap should have put up, nothing may be run or written.
        if os.getpid() != 1:
            return SETUP_FAILED
        as_init(config)
    if os.getppid() != config["parent"]:
        return SETUP_FAILED
    if config["level"] == "namespaces":
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        return in_namespaces(config)
    return among_others(config)


def checked(result: int, what: str) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return result


# Namespaces


def in_namespaces(config: dict[str, Any]) -> int:
    flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS
    uid, gid = os.getuid(), os.getgid()
    checked(LIBC.unshare(flags | (CLONE_NEWUSER if config["user_namespace"] else 0)), "unshare")
    if config["user_namespace"]:
        write("/proc/self/setgroups", "deny")
        write("/proc/self/uid_map", f"{uid} {uid} 1")
        write("/proc/self/gid_map", f"{gid} {gid} 1")
    alive, held = os.pipe()
    init = os.fork()
    if init:
        return status(os.waitpid(init, 0)[1])
    os.close(held)
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if select.select([alive], [], [], 0)[0]:
        os._exit(SETUP_FAILED)
    build(config["steps"])
    as_init(config)
    return SETUP_FAILED


def as_init(config: dict[str, Any]) -> None:
    """Be process 1 of a process table: run the program and end with it, and the kernel ends all others in the table.

    It keeps its user: a change would undo the signal that ends it with its parent, and nobody in there can reach it.
    """
    program = os.fork()
    if not program:
        become(config)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        pid, ended = os.wait()
        if pid == program:
            os._exit(status(ended))


def build(steps: list[list[Any]]) -> None:
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    mount("tmpfs", NEW_ROOT, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=755")
    for kind, path, source, size, mode in steps:
        target = NEW_ROOT + path
        if kind == "folder":
            os.makedirs(target, exist_ok=True)
        elif kind == "link":
            os.symlink(source, target)
        elif kind == "tmpfs":
            os.makedirs(target, exist_ok=True)
            options = f"size={size},nr_inodes=20k,mode={mode:o}"
            mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV, options)
        elif kind == "proc":
            os.makedirs(target, exist_ok=True)
            # Some containers refuse a process table of one's own; a program can do without.
            with contextlib.suppress(OSError):
                mount("proc", target, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
        elif kind in ("bind", "device"):
            make_target(source, target)
            mount(source, target, None, MS_BIND | MS_REC)
            if kind == "bind":
                make_readonly(target, AT_RECURSIVE)
        elif path != "/":
            make_readonly(target)
    old = f"{NEW_ROOT}/.old"
    os.mkdir(old)
    checked(LIBC.pivot_root(NEW_ROOT.encode(), old.encode()), "pivot_root")
    os.chdir("/")
    checked(LIBC.umount2(b"/.old", MNT_DETACH), "umount")
    os.rmdir("/.old")
    make_readonly("/")


def make_target(source: str, target: str) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.close(os.open(target, os.O_CREAT | os.O_RDONLY, 0o644))


def make_readonly(target: str, depth: int = 0) -> None:
    attributes = struct.pack("=QQQQ", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0, 0, 0)
    if LIBC.syscall(SYS_MOUNT_SETATTR, AT_FDCWD, target.encode(), depth, attributes, len(attributes)) == 0:
        return
    # A kernel before 5.12: flags that the mount has already must be given again.
    kept = os.statvfs(target).f_flag & (MS_NOSUID | MS_NODEV | MS_NOEXEC | 1024 | 2048)
    mount(None, target, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | kept)


def mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    texts = [text.encode() if text is not None else None for text in (source, target, kind, options)]
    checked(LIBC.mount(texts[0], texts[1], texts[2], flags, texts[3]), f"mount {target}")


# Without a process table of its own


def among_others(config: dict[str, Any]) -> int:
    # What the program leaves behind becomes a child of this process, which ends it.
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)
    program = os.fork()
    if not program:
        become(config)
    signal.signal(signal.SIGTERM, lambda *_: end_group(program))
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != config["parent"]:
        end_group(program)
    ended = os.waitid(os.P_PID, program, os.WEXITED | os.WNOWAIT)
    end_group(program)
    end_children()
    if os.getppid() != config["parent"]:
        # Nobody is left to clean up.
        os.execv("/bin/rm", ["rm", "-rf", "--", config["cwd"]])
    if ended is None:
        return SETUP_FAILED
    return ended.si_status if ended.si_code == os.CLD_EXITED else 128 + ended.si_status


def end_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def end_children() -> None:
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), open("/proc/thread-self/children") as children:
            for child in children.read().split():
                os.kill(int(child), signal.SIGKILL)
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.005)
        except ChildProcessError:
            return


# What becomes the program


def become(config: dict[str, Any]) -> None:
    """Take on every limit, then run the program; returns never."""
    try:
        with contextlib.suppress(PermissionError):
            os.setsid()
        for name, value in config["limits"].items():
            limit(getattr(resource, name), value)
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        drop(config["uid"])
        checked(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
        os.makedirs(config["cwd"], exist_ok=True)
        os.chdir(config["cwd"])
        write("main.py", config["code"])
        if config["rules"]:
            restrict_files(config["rules"])
        if config["filter"]:
            filter_calls(bytes.fromhex(config["filter"]))
        os.execve(config["argv"][0], config["argv"], config["env"])
    except BaseException as error:
        os.write(2, f"sandbox: {error}\n".encode(errors="replace"))
    finally:
        os._exit(SETUP_FAILED)


def limit(kind: int, value: int) -> None:
    # Who started us may have been given less, and only root could raise that again.
    highest = resource.getrlimit(kind)[1]
    value = value if highest == resource.RLIM_INFINITY else min(value, highest)
    resource.setrlimit(kind, (value, value))


def drop(uid: int | None) -> None:
    """Give up every privilege, for good; ``uid`` is a user that owns nothing."""
    for capability in range(LAST_CAPABILITY + 1):
        LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)


def restrict_files(rules: list[list[Any]]) -> None:
    """Landlock: nothing may be opened but what a rule (path, access rights) allows."""
    version = checked(LIBC.syscall(SYS_LANDLOCK_CREATE, None, 0, 1), "landlock")
    handled = 0x1FFF | (0x2000 if version >= 2 else 0) | (0x4000 if version >= 3 else 0)
    handled |= 0x8000 if version >= 5 else 0
    # TCP since version 4; abstract sockets and signals of others since version 6.
    size = 8 if version < 4 else 16 if version < 6 else 24
    attributes = struct.pack("=QQQ", handled, 3, 3)[:size]
    ruleset = checked(LIBC.syscall(SYS_LANDLOCK_CREATE, attributes, size, 0), "landlock")
    for path, access in rules:
        with contextlib.suppress(FileNotFoundError):
            fd = os.open(path, os.O_PATH)
            rule = struct.pack("=Qi", access & handled, fd)
            checked(LIBC.syscall(SYS_LANDLOCK_ADD, ruleset, 1, rule, 0), f"landlock {path}")
            os.close(fd)
    checked(LIBC.syscall(SYS_LANDLOCK_RESTRICT, ruleset, 0), "landlock")


def filter_calls(program: bytes) -> None:
    """Seccomp: the filter of system calls, for this process and all that it starts."""
    code = ctypes.create_string_buffer(program, len(program))
    pointer = ctypes.addressof(code)
    head = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8, pointer))
    checked(LIBC.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(head), 0, 0), "seccomp")


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)


def status(ended: int) -> int:
    code = os.waitstatus_to_exitcode(ended)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    try:
        code = main()
    except BaseException as error:
        os.write(2, f"sandbox: {error}\n".encode(errors="replace"))
        code = SETUP_FAILED
    os._exit(code)
