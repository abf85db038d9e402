"""Resources of this machine or of its container. The default budgets are derived from them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

#: permission bits that our files and folders must not have
WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_GROUPS: Final = Path("/sys/fs/cgroup")
_OWN_GROUPS: Final = Path("/proc/self/cgroup")
_CARDS: Final = Path("/proc/driver/nvidia/gpus")


def memory_bytes() -> int:
    """Return the physical memory in bytes, or the limit of the process's control group if that is lower."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *_limits("memory", "memory.max"), *_limits("memory", "memory.limit_in_bytes")])


def cpus() -> int:
    """Return the number of processors that this process may use: its affinity, limited by its control group's quota."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([available, *_quotas()]))


def visible_gpus() -> tuple[str, ...]:
    """List the NVIDIA GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them, if the driver reports any."""
    try:
        count = len(list(_CARDS.iterdir()))
    except OSError:
        return ()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return tuple(map(str, range(count)))
    return tuple(card for card in visible.split(",") if card.strip())


def _quotas() -> Iterator[int]:
    """Yield the number of whole processors that each control group grants (cgroup v2, then v1)."""
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
    """Yield the content of a file in each control group of this process, its own first; the strictest group counts."""
    for folder in _folders(controller):
        with suppress(OSError):
            yield (folder / file).read_text(encoding="ascii").strip()


def _folders(controller: str) -> Iterator[Path]:
    """Yield the folders of the process's control group and of its parents (cgroup v2, then v1).

    In a container the own group is mounted at the root, whatever its name outside, so the root is included.
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


def cpus_per_worker(workers: int) -> int:
    """Return the number of processors per worker, at least one."""
    return max(1, cpus() // workers)


def cache_folder() -> Path | None:
    """Return the user's folder for caches; None if there is no writable home."""
    return _user_folder("XDG_CACHE_HOME", ".cache")


def state_folder() -> Path | None:
    """Return the user's folder for state; None if there is no writable home."""
    return _user_folder("XDG_STATE_HOME", ".local/state")


def _user_folder(variable: str, default_folder: str) -> Path | None:
    """Return our folder inside the one that `variable` names, or else inside `usual` in the home (XDG Base Directory).

    The specification says to ignore relative paths.
    """
    base = Path(os.environ.get(variable, ""))
    if base.is_absolute():
        return base / "gradserve"
    try:
        home = Path.home()
    except RuntimeError:
        return None
    return home / default_folder / "gradserve" if os.access(home, os.W_OK | os.X_OK) else None
