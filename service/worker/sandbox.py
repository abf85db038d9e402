from __future__ import annotations

import os
import resource
import signal
from pathlib import Path
from typing import Final

from service.budget import request_bytes
from service.collector import collect_seldom
from service.parent import ending_with_parent
from service.settings import Settings, budget_of

#: the variable in which the front tells a worker its share of the memory, in bytes
SHARE: Final = "GRADSERVE_SHARE_OF_MEMORY"


def behave(settings: Settings) -> None:
    """Call it once everything is loaded: what that took is not counted."""
    limit_memory(settings)
    collect_seldom()


def die_with_parent() -> None:
    """However the front ends, this process does as well; it may be in a kernel, where it does not read its socket."""
    if (ask := ending_with_parent(signal.SIGKILL)) is not None:
        ask()


def limit_memory(settings: Settings) -> None:
    """Behind the budgets: what they allow, on top of what is taken now, and not more than this process's share.

    Shared memory does not count. RLIMIT_DATA and not RLIMIT_AS: CUDA reserves addresses that it never uses.
    """
    share = os.environ.get(SHARE)
    limit = memory_limit(settings, data_bytes(), None if share is None else int(share))
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard == resource.RLIM_INFINITY or limit < hard:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def memory_limit(settings: Settings, taken: int, share: int | None) -> int:
    """The most bytes of a worker that has `taken` so many before its first task. An execution is never too much."""
    limit = taken + limit_of(settings)
    return limit if share is None else min(limit, max(share, taken + executing_bytes(settings)))


def limit_of(settings: Settings) -> int:
    """What requests may make a worker take: an execution, its answer as values and as text, JSON, caches, tensors."""
    return executing_bytes(settings) + request_bytes(settings.max_response_bytes, settings.max_body_bytes)


def executing_bytes(settings: Settings) -> int:
    """What an execution may make a worker take, beside what comes in and goes out."""
    return settings.max_bytes + budget_of(settings).whole


def data_bytes() -> int:
    """Private writable memory that this process has reserved."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmData:")) * 1024
