"""What this machine, or the container it runs in, can give: the ground of the default budgets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_GROUP_LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def memory_bytes() -> int:
    """Physical memory, or the limit of the control group where that is lower."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *filter(None, map(_group_limit, _GROUP_LIMITS))])


def _group_limit(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def cpus() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpus_each(workers: int) -> int:
    """The processors for each of the workers, one at least."""
    return max(1, cpus() // workers)


def cache_folder() -> Path | None:
    """Where this user's programs keep what they can make again; None where there is no home that can be written to.

    `$XDG_CACHE_HOME`, or else `~/.cache`, by the XDG Base Directory Specification, which has relative ones ignored.
    """
    stated = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if stated.is_absolute():
        return stated / "gradserve"
    try:
        home = Path.home()
    except RuntimeError:
        return None
    return home / ".cache" / "gradserve" if os.access(home, os.W_OK | os.X_OK) else None
