"""What a worker process may not do: outlive the front, push it aside, or take memory without end."""

from __future__ import annotations

import ctypes
import gc
import resource
import signal
from pathlib import Path
from typing import Final

from service.compute.replica import MOST_HELD_BYTES
from service.settings import Settings
from service.wire.json_codec import PARSED

_PR_SET_PDEATHSIG: Final = 1


def behave(settings: Settings) -> None:
    """Call it once everything is loaded: what that took is not counted."""
    limit_memory(settings)
    calm_the_collector()


def die_with_parent() -> None:
    """However the front ends, this process does as well; it may be in a kernel, where it does not read its socket."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def limit_memory(settings: Settings) -> None:
    """Behind the budgets: what they allow, on top of what is taken now. Shared memory does not count.

    RLIMIT_DATA and not RLIMIT_AS: CUDA reserves addresses that it never uses.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = data_bytes() + limit_of(settings)
    if hard == resource.RLIM_INFINITY or limit < hard:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def limit_of(settings: Settings) -> int:
    """What requests may make a worker take: an execution, its answer as values and as text, JSON, plans, tensors."""
    answer, parsed = 2 * settings.max_response_bytes, PARSED * settings.max_body_bytes
    return settings.max_bytes + settings.plan_cache_bytes + answer + parsed + MOST_HELD_BYTES


def data_bytes() -> int:
    """Private writable memory that this process has reserved."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmData:")) * 1024


def calm_the_collector() -> None:
    """Scan seldom: a request makes up to millions of small objects without a cycle among them."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
