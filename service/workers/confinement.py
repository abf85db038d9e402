"""Confinement of a worker by the kernel: Landlock limits the files, seccomp the system calls.

Both last until the process ends, and bind whatever code runs in it and every thread that starts later. Landlock does
not bind threads that exist already. So confinement comes first, before NumPy starts the threads of its BLAS, and this
module imports nothing but the standard library.

Sources: landlock(7), seccomp(2); numbers of system calls: Linux's `unistd_64.h` for x86-64, `asm-generic/unistd.h`.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import stat
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

#: variable in which the front tells a worker its allowed files; without it, the worker is not confined
CONFINED_TO: Final = "GRADSERVE_CONFINED_TO"


class AllowedFiles(NamedTuple):
    """Files, and folders with everything below them, that may be read; those that may be written; and usable devices.

    Nothing else can be opened. Paths that do not exist are skipped.
    """

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()

    def text(self) -> str:
        """Encode the value for a worker."""
        return json.dumps(self._asdict())

    @classmethod
    def parse(cls, text: str) -> AllowedFiles:
        """Decode a text of `text`."""
        return cls(**{name: tuple(paths) for name, paths in json.loads(text).items()})


class KernelSupport(NamedTuple):
    """Support of this kernel: version of the Landlock interface, 0 for none; and whether seccomp filters work."""

    landlock: int
    filters: bool

    @property
    def missing(self) -> list[str]:
        """Phrases for the restrictions that do not hold on this machine, as ends of a sentence."""
        needed = {
            1: "access to files is not restricted (no Landlock)",
            _NET: "only the system call filter blocks TCP (Landlock before 4)",
            _SCOPES: "only the system call filter blocks signals to other processes (Landlock before 6)",
        }
        missing = [says for version, says in needed.items() if self.landlock < version][: None if self.landlock else 1]
        return missing if self.filters else [*missing, "system calls are not filtered (no seccomp)"]


def confine_from_environment() -> None:
    """Confine this process to the files in the environment variable, if it is set."""
    if text := os.environ.pop(CONFINED_TO, None):
        # From here on, the folder of a clone cannot be listed, and Python lists it again whenever a file appears in it.
        # So the packages must be imported, whose own folders can be read. None of them loads NumPy.
        for package in ("engine", "schemas", "service"):
            import_module(package)
        confine(AllowedFiles.parse(text))


def confine(allowed: AllowedFiles) -> KernelSupport:
    """Confine this process, which must have a single thread, for good; return the support that was used.

    Raises OSError if the kernel refuses something that it supports, RuntimeError if there are other threads.
    """
    offered = kernel_support()
    if offered.landlock and len(list(Path("/proc/self/task").iterdir())) > 1:
        raise RuntimeError("confine a process before it starts threads: existing threads would stay unconfined")
    # Without this flag, the kernel lets only root restrict a process: a setuid program could gain rights otherwise.
    _call(_PRCTL, _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if offered.landlock:
        _restrict_files(allowed, offered.landlock)
    if offered.filters:
        _install_filter(system_call_filter(platform.machine(), os.getpid()))
    return offered


def kernel_support() -> KernelSupport:
    """Return what the kernel supports; nothing is confined."""
    if not sys.platform.startswith("linux"):
        return KernelSupport(0, filters=False)
    version = _syscall(_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_VERSION)
    machine = _MACHINES.get(platform.machine())
    if machine is None or sys.maxsize < 1 << 32:
        return KernelSupport(max(0, version), filters=False)
    action = ctypes.c_uint32(_FAILS)
    result = _syscall(machine.calls["seccomp"], _SECCOMP_GET_ACTION_AVAIL, 0, ctypes.byref(action))
    return KernelSupport(max(0, version), filters=result == 0)


def forbid_tracing() -> None:
    """Keep other processes of this user from reading or tracing this one: its memory has keys and callers' data."""
    if sys.platform.startswith("linux"):
        _call(_PRCTL, _PR_SET_DUMPABLE, 0, 0, 0, 0)


_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF = 444, 445, 446  # on every architecture
_LANDLOCK_VERSION: Final = 1
_PATH_BENEATH: Final = 1
#: first versions with rights for TCP, and with scopes for signals and abstract sockets
_NET, _SCOPES = 4, 6

_EXECUTE, _WRITE, _READ, _LIST, _REMOVE_FOLDER, _REMOVE, _MAKE_FOLDER, _MAKE = 1, 2, 4, 8, 16, 32, 128, 256
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_FILE_ONLY: Final = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
#: rights for files and folders that exist from each version on
_FILE_RIGHTS: Final = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_BIND_AND_CONNECT: Final = 3
_SOCKETS_AND_SIGNALS: Final = 3

_READING: Final = _READ | _LIST
_WRITING: Final = _READING | _WRITE | _TRUNCATE | _MAKE | _REMOVE | _MAKE_FOLDER | _REMOVE_FOLDER
_USING: Final = _READING | _WRITE | _IOCTL

#: descriptors that keep rules on files of /proc in force: their inodes are new ones once nobody has them open
_open_proc_files: Final[list[int]] = []


def _restrict_files(allowed: AllowedFiles, version: int) -> None:
    rights = _FILE_RIGHTS[max(known for known in _FILE_RIGHTS if known <= version)]
    # The struct has grown with the versions. The kernel takes a shorter one, but no field that it does not know.
    attributes = struct.pack(
        "QQQ", rights, _BIND_AND_CONNECT if version >= _NET else 0, _SOCKETS_AND_SIGNALS if version >= _SCOPES else 0
    )
    size = 8 * (1 + (version >= _NET) + (version >= _SCOPES))
    rules = _call(_LANDLOCK_CREATE_RULESET, attributes, size, 0)
    for paths, granted in (allowed.reads, _READING), (allowed.writes, _WRITING), (allowed.devices, _USING):
        for path in paths:
            _add_rule(rules, path, granted & rights)
    _call(_LANDLOCK_RESTRICT_SELF, rules, 0)
    os.close(rules)


def _add_rule(rules: int, path: str, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not stat.S_ISDIR(os.fstat(opened).st_mode):
        rights &= _FILE_ONLY
    _call(_LANDLOCK_ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", rights, opened), 0)
    if path.startswith("/proc/"):
        _open_proc_files.append(opened)
    else:
        os.close(opened)


class _Machine(NamedTuple):
    """Processor architecture: its number in the audit interface, and its numbers of system calls."""

    audit: int
    calls: Mapping[str, int]


#: last system call that this list was checked for; later ones may do anything
_LAST: Final = 462
#: system calls that a worker does not need, by what they would allow it
_REFUSED_CALLS: Final = {
    "start programs and processes": "execve execveat fork vfork",
    "look into other processes, and act on them": (
        "ptrace process_vm_readv process_vm_writev process_madvise process_mrelease kcmp pidfd_open pidfd_getfd "
        "pidfd_send_signal tkill migrate_pages move_pages sched_setaffinity sched_setscheduler sched_setparam "
        "sched_setattr setpriority ioprio_set perf_event_open"
    ),
    "talk to others than the front, by sockets and memory of its own": (
        "socket socketpair connect bind listen accept accept4 shmget shmat shmctl semget msgget mq_open"
    ),
    "have more rights, or another view of the system": (
        "unshare setns setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid setgroups capset "
        "personality mount umount2 pivot_root chroot move_mount fsopen fsconfig fsmount fspick open_tree mount_setattr "
        "name_to_handle_at open_by_handle_at quotactl quotactl_fd swapon swapoff acct fanotify_init "
        "inotify_init inotify_init1 inotify_add_watch"
    ),
    "change whose a file is and who may read it, at which Landlock does not look": (
        "chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat setxattr lsetxattr fsetxattr "
        "removexattr lremovexattr fremovexattr mknod mknodat"
    ),
    "reach parts of the kernel that have been ways into it": (
        "bpf keyctl add_key request_key userfaultfd io_uring_setup io_uring_enter io_uring_register init_module "
        "finit_module delete_module kexec_load kexec_file_load modify_ldt iopl ioperm uselib lookup_dcookie nfsservctl"
    ),
    "run the machine": (
        "reboot sethostname setdomainname syslog settimeofday clock_settime clock_adjtime adjtimex vhangup"
    ),
}

_SAME_ON_BOTH: Final = {
    "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_open": 434, "clone3": 435,
    "pidfd_getfd": 438, "process_madvise": 440, "mount_setattr": 442, "quotactl_fd": 443, "process_mrelease": 448,
    "fchmodat2": 452,
}  # fmt: skip
_X86_64: Final = {
    "ioctl": 16, "shmget": 29, "shmat": 30, "shmctl": 31, "socket": 41, "connect": 42, "accept": 43, "bind": 49,
    "listen": 50, "socketpair": 53, "clone": 56, "fork": 57, "vfork": 58, "execve": 59, "kill": 62, "semget": 64,
    "msgget": 68, "fcntl": 72, "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94, "ptrace": 101,
    "syslog": 103, "setuid": 105, "setgid": 106, "setreuid": 113, "setregid": 114, "setgroups": 116, "setresuid": 117,
    "setresgid": 119, "setfsuid": 122, "setfsgid": 123, "capset": 126, "rt_sigqueueinfo": 129, "mknod": 133,
    "uselib": 134, "personality": 135, "setpriority": 141, "sched_setparam": 142, "sched_setscheduler": 144,
    "vhangup": 153, "modify_ldt": 154, "pivot_root": 155, "adjtimex": 159, "chroot": 161, "acct": 163,
    "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169, "sethostname": 170,
    "setdomainname": 171, "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176, "quotactl": 179,
    "nfsservctl": 180, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197, "lremovexattr": 198,
    "fremovexattr": 199, "tkill": 200, "sched_setaffinity": 203, "lookup_dcookie": 212, "clock_settime": 227,
    "tgkill": 234, "mq_open": 240, "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250,
    "ioprio_set": 251, "inotify_init": 253, "inotify_add_watch": 254, "migrate_pages": 256, "mknodat": 259,
    "fchownat": 260, "fchmodat": 268, "unshare": 272, "move_pages": 279, "accept4": 288, "inotify_init1": 294,
    "rt_tgsigqueueinfo": 297, "perf_event_open": 298, "fanotify_init": 300, "prlimit64": 302, "name_to_handle_at": 303,
    "open_by_handle_at": 304, "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311,
    "kcmp": 312, "finit_module": 313, "sched_setattr": 314, "seccomp": 317, "kexec_file_load": 320, "bpf": 321,
    "execveat": 322, "userfaultfd": 323,
}  # fmt: skip
_AARCH64: Final = {
    "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16,
    "lookup_dcookie": 18, "fcntl": 25, "inotify_init1": 26, "inotify_add_watch": 27, "ioctl": 29, "ioprio_set": 30,
    "mknodat": 33, "umount2": 39, "mount": 40, "pivot_root": 41, "nfsservctl": 42, "chroot": 51, "fchmod": 52,
    "fchmodat": 53, "fchownat": 54, "fchown": 55, "vhangup": 58, "quotactl": 60, "acct": 89, "capset": 91,
    "personality": 92, "unshare": 97, "kexec_load": 104, "init_module": 105, "delete_module": 106, "clock_settime": 112,
    "syslog": 116, "ptrace": 117, "sched_setparam": 118, "sched_setscheduler": 119, "sched_setaffinity": 122,
    "kill": 129, "tkill": 130, "tgkill": 131, "rt_sigqueueinfo": 138, "setpriority": 140, "reboot": 142,
    "setregid": 143, "setgid": 144, "setreuid": 145, "setuid": 146, "setresuid": 147, "setresgid": 149,
    "setfsuid": 151, "setfsgid": 152, "setgroups": 159, "sethostname": 161, "setdomainname": 162, "settimeofday": 170,
    "adjtimex": 171, "mq_open": 180, "msgget": 186, "semget": 190, "shmget": 194, "shmctl": 195, "shmat": 196,
    "socket": 198, "socketpair": 199, "bind": 200, "listen": 201, "accept": 202, "connect": 203, "add_key": 217,
    "request_key": 218, "keyctl": 219, "clone": 220, "execve": 221, "swapon": 224, "swapoff": 225,
    "migrate_pages": 238, "move_pages": 239, "rt_tgsigqueueinfo": 240, "perf_event_open": 241, "accept4": 242,
    "prlimit64": 261, "fanotify_init": 262, "name_to_handle_at": 264, "open_by_handle_at": 265, "clock_adjtime": 266,
    "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "finit_module": 273,
    "sched_setattr": 274, "seccomp": 277, "bpf": 280, "execveat": 281, "userfaultfd": 282, "kexec_file_load": 294,
}  # fmt: skip
_MACHINES: Final = {
    "x86_64": _Machine(0xC000003E, {**_X86_64, **_SAME_ON_BOTH}),
    "aarch64": _Machine(0xC00000B7, {**_AARCH64, **_SAME_ON_BOTH}),
}

_ALLOWED, _FAILS, _KILLED = 0x7FFF0000, 0x00050000, 0x80000000
_REFUSED: Final = _FAILS | errno.EPERM
_UNKNOWN: Final = _FAILS | errno.ENOSYS
_SECCOMP_SET_FILTER, _SECCOMP_GET_ACTION_AVAIL = 1, 2
_ALL_THREADS: Final = 1

# Classic BPF: load a word, AND with a constant, jump if equal, jump if at least, return. Jumps only go forward.
_LOAD, _AND, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_NUMBER, _AUDIT, _ARGUMENTS = 0, 4, 16

_CLONE_THREAD: Final = 0x00010000
_CLONE_NEW_NAMESPACES: Final = 0x7E020000
#: requests that type into a terminal, or have signals sent to other processes
_REFUSED_IOCTLS: Final = (0x5412, 0x541C, 0x8901, 0x8902)  # TIOCSTI, TIOCLINUX, FIOSETOWN, SIOCSPGRP
_REFUSED_FCNTLS: Final = (8, 10, 15, 1026)  # F_SETOWN, F_SETSIG, F_SETOWN_EX, F_NOTIFY

_Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, constant


def system_call_filter(machine: str, pid: int) -> bytes:
    """Return the filter program that the kernel runs before each system call of process `pid`, on x86_64 or aarch64.

    A refused call fails with EPERM. A call that is newer than this list fails with ENOSYS, as if the kernel did not
    have it, and so does `clone3`, whose arguments a filter cannot read: libraries then use older calls. A call under
    the numbers of another architecture kills the process.
    """
    audit, calls = _MACHINES[machine]
    program: list[_Instruction] = [
        (_LOAD, 0, 0, _AUDIT),
        (_IF_EQUAL, 1, 0, audit),
        (_RETURN, 0, 0, _KILLED),
        (_LOAD, 0, 0, _NUMBER),
        (_IF_AT_LEAST, 0, 1, _LAST + 1),
        (_RETURN, 0, 0, _UNKNOWN),
    ]
    for name in " ".join(_REFUSED_CALLS.values()).split():
        if name in calls:  # some exist on one architecture only
            program += _on_call(calls[name], [(_RETURN, 0, 0, _REFUSED)])
    program += _on_call(calls["clone3"], [(_RETURN, 0, 0, _UNKNOWN)])
    # Threads may be started, but no processes, and nothing with namespaces of its own.
    masked = [_argument(0), (_AND, 0, 0, _CLONE_THREAD | _CLONE_NEW_NAMESPACES)]
    program += _on_call(calls["clone"], [*masked, *_only([_CLONE_THREAD])])
    # Signals and resource limits are for the process itself: abort() and libraries need that.
    for name in ("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"):
        program += _on_call(calls[name], [_argument(0), *_only([pid])])
    program += _on_call(calls["prlimit64"], [_argument(0), *_only([0, pid])])
    program += _on_call(calls["ioctl"], [_argument(1), *_none_of(_REFUSED_IOCTLS)])
    program += _on_call(calls["fcntl"], [_argument(1), *_none_of(_REFUSED_FCNTLS)])
    program.append((_RETURN, 0, 0, _ALLOWED))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _on_call(number: int, verdict: list[_Instruction]) -> Iterator[_Instruction]:
    """Return `verdict`, which ends the program, for one system call; its number has been loaded."""
    yield (_IF_EQUAL, 0, len(verdict), number)
    yield from verdict


def _argument(position: int) -> _Instruction:
    """Load the lower half of an argument: the kernel ignores the upper half of those checked here."""
    return _LOAD, 0, 0, _ARGUMENTS + 8 * position


def _only(values: Iterable[int]) -> Iterator[_Instruction]:
    for value in values:
        yield (_IF_EQUAL, 0, 1, value)
        yield (_RETURN, 0, 0, _ALLOWED)
    yield (_RETURN, 0, 0, _REFUSED)


def _none_of(values: Iterable[int]) -> Iterator[_Instruction]:
    for value in values:
        yield (_IF_EQUAL, 0, 1, value)
        yield (_RETURN, 0, 0, _REFUSED)
    yield (_RETURN, 0, 0, _ALLOWED)


def _install_filter(program: bytes) -> None:
    class Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("program", ctypes.c_char_p))

    calls = _MACHINES[platform.machine()].calls
    filter_ = Filter(len(program) // 8, program)
    _call(calls["seccomp"], _SECCOMP_SET_FILTER, _ALL_THREADS, ctypes.byref(filter_))


_PRCTL: Final = "prctl"
_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38


def _call(function: int | str, *arguments: Any) -> int:
    """Make a system call by number, or call a C function by name. Raises OSError."""
    result = _syscall(function, *arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot confine the worker: {os.strerror(number)}")
    return result


def _syscall(function: int | str, *arguments: Any) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    with suppress(AttributeError):
        if isinstance(function, str):
            return int(getattr(library, function)(*words))
        library.syscall.restype = ctypes.c_long
        return int(library.syscall(ctypes.c_long(function), *words))
    return -1
