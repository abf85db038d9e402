"""Resources of this machine, or the container it runs in, from which the default budgets are derived."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

#: permission bits that files and folders of ours must not have
WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_GROUPS: Final = Path("/sys/fs/cgroup")
_OWN_GROUPS: Final = Path("/proc/self/cgroup")
_CARDS: Final = Path("/proc/driver/nvidia/gpus")


def memory_bytes() -> int:
    """Return the physical memory, or the limit of a control group of this process if that is lower."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *_limits("memory", "memory.max"), *_limits("memory", "memory.limit_in_bytes")])


def cpus() -> int:
    """Count the processors that this process may use: by its affinity, or by the quota of its control group."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([available, *_quotas()]))


def cards() -> tuple[str, ...]:
    """List the NVIDIA GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them, as far as the driver says."""
    try:
        count = len(list(_CARDS.iterdir()))
    except OSError:
        return ()
    stated = os.environ.get("CUDA_VISIBLE_DEVICES")
    if stated is None:
        return tuple(map(str, range(count)))
    return tuple(card for card in stated.split(",") if card.strip())


def _quotas() -> Iterator[int]:
    """Yield the whole processors that control groups grant, by version 2 and by version 1."""
    for text in _texts("cpu", "cpu.max"):
        quota, _, period = text.partition(" ")
        if quota.isdigit() and period.isdigit():
            yield int(quota) // int(period)
    for quota, period in zip(_texts("cpu", "cpu.cfs_quota_us"), _texts("cpu", "cpu.cfs_period_us"), strict=False):
        if quota.isdigit() and period.isdigit():  # -1: unlimited
            yield int(quota) // int(period)


def _limits(controller: str, file: str) -> Iterator[int]:
    return (int(text) for text in _texts(controller, file) if text.isdigit())


def _texts(controller: str, file: str) -> Iterator[str]:
    """Read a file in each control group that this process is in, its own first: the strictest one counts."""
    for folder in _folders(controller):
        with suppress(OSError):
            yield (folder / file).read_text(encoding="ascii").strip()


def _folders(controller: str) -> Iterator[Path]:
    """Yield the folders of the process's control group and of its parents, version 2 and version 1.

    In a container, its own group is at the root, whatever its name outside, so the root is one of them.
    """
    try:
        lines = _OWN_GROUPS.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    for root, owner in ((_GROUPS, ""), (_GROUPS / controller, controller)):
        paths = [path for _, names, path in (line.split(":", 2) for line in lines) if owner in names.split(",")]
        for path in paths or ["/"]:
            own = root / path.lstrip("/")
            yield from (folder for folder in (own, *own.parents) if folder.is_relative_to(root))


def cpus_each(workers: int) -> int:
    """Return the processors for each of the workers, one at least."""
    return max(1, cpus() // workers)


def cache_folder() -> Path | None:
    """Return this user's folder for caches; None if there is no home that can be written to."""
    return _folder_of_the_user("XDG_CACHE_HOME", ".cache")


def state_folder() -> Path | None:
    """Return this user's folder for state; None if there is no home that can be written to."""
    return _folder_of_the_user("XDG_STATE_HOME", ".local/state")


def _folder_of_the_user(variable: str, usual: str) -> Path | None:
    """Return our folder in the one that a variable names, or else in a usual one of the home (XDG Base Directory).

    By that specification, relative paths are ignored.
    """
    stated = Path(os.environ.get(variable, ""))
    if stated.is_absolute():
        return stated / "gradserve"
    try:
        home = Path.home()
    except RuntimeError:
        return None
    return home / usual / "gradserve" if os.access(home, os.W_OK | os.X_OK) else None
