"""The filter of system calls that every program gets: a short list of what no analysis of a file needs.

Built as the bytes of a BPF program (``struct sock_filter`` of ``linux/filter.h``) that bubblewrap's or our
launcher's child installs. A call on the list fails with EPERM; a call of another architecture ends the
program.
"""

from __future__ import annotations

import platform
import struct

# struct seccomp_data: nr at 0, arch at 4, args at 16 (eight bytes each, the lower half first).
_NR, _ARCH, _ARG0 = 0, 4, 16
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _EPERM, _ENOSYS = 0x7FFF0000, 0x80000000, 0x00050000 | 1, 0x00050000 | 38
_X32 = 0x40000000
_NEW_NAMESPACES = 0x7E020080
"""CLONE_NEW{TIME,NS,CGROUP,UTS,IPC,USER,PID,NET}."""
_AF_UNIX = 1


# Numbers of the two machines in each table, in this order; the audit architectures of linux/audit.h.
_MACHINES = ("x86_64", "aarch64")
_AUDIT = (0xC000003E, 0xC00000B7)

CONDITIONAL = {
    "clone": (56, 220),
    "clone3": (435, 435),
    "socket": (41, 198),
    "kill": (62, 129),
    "prlimit64": (302, 261),
}
"""Calls of which some uses are refused."""

REFUSED = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "init_module": (175, 105),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "memfd_create": (319, 279),
    "shmget": (29, 194),
    "pidfd_getfd": (438, 438),
    "personality": (135, 92),
    "quotactl": (179, 60),
    "memfd_secret": (447, 447),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "acct": (163, 89),
    "kcmp": (312, 272),
    "process_madvise": (440, 440),
}
"""Other processes, mounts, namespaces, keys, kernel modules, clocks, and memory that no limit counts."""

REFUSED_AMONG_OTHERS = {
    "setsid": (112, 157),
    "setpgid": (109, 154),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
    "setpriority": (141, 140),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "ioprio_set": (251, 30),
    "sched_setattr": (314, 274),
}
"""Leaving the process group, and reaching processes by more than their group."""


def program(*, shared: bool) -> bytes | None:
    """The filter for this machine, or ``None`` where its system calls are not known here.

    ``shared`` is for a program that shares processes and network with others: it gets no socket but a local
    one, signals nobody outside its process group and cannot leave that.
    """
    if platform.machine() not in _MACHINES:
        return None
    return _assemble(_MACHINES.index(platform.machine()), shared)


def _assemble(machine: int, shared: bool) -> bytes:
    clone, clone3, socket, kill, prlimit = (numbers[machine] for numbers in CONDITIONAL.values())
    code = [
        _op(_LOAD, _ARCH),
        _op(_EQUAL, _AUDIT[machine], yes=1),
        _op(_RETURN, _KILL),
        _op(_LOAD, _NR),
        _op(_AT_LEAST, _X32, no=1),
        _op(_RETURN, _EPERM),
        # The C library falls back to clone, whose flags can be seen; those of clone3 lie in memory.
        *_deny(clone3, _ENOSYS),
        *_where(clone, _ANY_BIT, _NEW_NAMESPACES, deny=True),
    ]
    for numbers in (REFUSED | REFUSED_AMONG_OTHERS if shared else REFUSED).values():
        code += _deny(numbers[machine], _EPERM)
    if shared:
        code += _where(socket, _EQUAL, _AF_UNIX, deny=False)
        # 0 is the caller's own group, or the caller itself.
        code += _where(kill, _EQUAL, 0, deny=False)
        code += _where(prlimit, _EQUAL, 0, deny=False)
    return b"".join([*code, _op(_RETURN, _ALLOW)])


def _op(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


def _deny(number: int, result: int) -> list[bytes]:
    return [_op(_EQUAL, number, no=1), _op(_RETURN, result)]


def _where(number: int, test: int, value: int, *, deny: bool) -> list[bytes]:
    """``number`` fails where its first argument passes the test (``deny``), or where it does not."""
    passed, failed = (0, 1) if deny else (1, 0)
    return [
        _op(_EQUAL, number, no=4),
        _op(_LOAD, _ARG0),
        _op(test, value, yes=passed, no=failed),
        _op(_RETURN, _EPERM),
        _op(_LOAD, _NR),
    ]
