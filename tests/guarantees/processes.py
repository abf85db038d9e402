"""Memory, processor time and priority of a server's processes, read from /proc."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

TICK = 1 / os.sysconf("SC_CLK_TCK")
#: indices of fields of /proc/PID/stat, counted from the state, which follows the name in brackets
_STATE, _PARENT, _USER, _SYSTEM, _CHILDREN_USER, _CHILDREN_SYSTEM, _NICE = 0, 1, 11, 12, 13, 14, 16


def _stat(pid: int) -> list[str] | None:
    """The fields after the name, or None if the process does not exist."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def children(pid: int) -> list[int]:
    """The living child processes."""
    pids = []
    for entry in Path("/proc").iterdir():
        fields = _stat(int(entry.name)) if entry.name.isdigit() else None
        if fields and int(fields[_PARENT]) == pid and fields[_STATE] not in "ZX":
            pids.append(int(entry.name))
    return pids


def family(pid: int) -> list[int]:
    """A process and all of its descendants."""
    return [pid, *(one for child in children(pid) for one in family(child))]


def exists(pid: int) -> bool:
    """Whether a process runs; zombies do not."""
    fields = _stat(pid)
    return fields is not None and fields[_STATE] not in "ZX"


def workers(pid: int) -> list[int]:
    """The child processes that run Python, without the compilers that they start."""
    return [child for child in children(pid) if b"python" in _command(child)]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def nice(pid: int) -> int:
    """The nice value: a larger value means a lower priority."""
    fields = _stat(pid)
    return int(fields[_NICE]) if fields else 0


def processor_seconds(root: int) -> float:
    """The processor time of a process family. The time of an ended child counts as its parent's."""
    total = 0
    for pid in family(root):
        if fields := _stat(pid):
            total += int(fields[_USER]) + int(fields[_SYSTEM])
            if pid == root:
                total += int(fields[_CHILDREN_USER]) + int(fields[_CHILDREN_SYSTEM])
    return total * TICK


def seconds_of(pids: Iterable[int]) -> float:
    """The processor time of these processes, as far as they still run."""
    fields = filter(None, map(_stat, pids))
    return sum(int(each[_USER]) + int(each[_SYSTEM]) for each in fields) * TICK


def resident(root: int) -> int:
    """The memory of a process family in bytes: anonymous memory, and shared memory counted once.

    Mapped files do not count, because their share depends on which other processes map them.
    """
    return sum(_entries(pid, "smaps_rollup", ("Pss_Anon:", "Pss_Shmem:")) for pid in family(root))


def peak(pids: Iterable[int]) -> int:
    """The sum of the peak resident bytes of these processes since `reset_peak`."""
    return sum(_entries(pid, "status", ("VmHWM:",)) for pid in pids)


def reset_peak(pids: Iterable[int]) -> None:
    """Reset the peaks to the current resident memory."""
    for pid in pids:
        Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")


def _entries(pid: int, table: str, names: tuple[str, ...]) -> int:
    try:
        text = Path(f"/proc/{pid}/{table}").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return 1024 * sum(int(line.split()[1]) for line in text.splitlines() if line.startswith(names))
