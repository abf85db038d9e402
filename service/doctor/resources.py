"""Checks of the host: its resources, the software that computes, and what confines workers."""

from __future__ import annotations

import ctypes
import os
import resource
import time
from pathlib import Path
from typing import Final

import service
from service import machine
from service.doctor.diagnosis import Diagnosis, broken, doubtful, fine
from service.pool.footprint import settled, settled_at_most
from service.settings import Settings, flag
from service.sizes import readable
from service.web.lifetime import descriptors_of

_MEMORY: Final = Path("/proc/meminfo")
#: budgets are rarely used up together: so many times the memory they may be
_BELIEVED: Final = 1.25
#: what the system says of a clock that nobody sets (adjtimex)
_NOT_SYNCHRONISED: Final = 5


def processors(settings: Settings) -> Diagnosis:
    """Check the processors of the machine, and those that this process may use."""
    usable, there = machine.cpus(), os.cpu_count() or 1
    says = f"{usable} of {there} processors may be used, by {settings.workers} workers"
    if settings.workers > usable:
        return doubtful(says, f"more workers than processors wait for each other: {flag('workers')} {usable}")
    return fine(says)


def memory(settings: Settings) -> Diagnosis:
    """Check what the budgets allow together against the memory that there is."""
    whole, free = machine.memory_bytes(), _free_bytes()
    executions = settings.workers * settings.max_bytes
    allowed = executions + settings.plan_cache_bytes + settings.held_bytes + settings.max_tensor_bytes
    says = f"budgets of {_rounded(allowed)} in {_rounded(whole)} of memory, of which {_rounded(free)} are free"
    if executions > whole:
        return broken(says, f"executions alone may take more than there is: lower {flag('max_bytes')}")
    if allowed > _BELIEVED * whole:
        return doubtful(says, f"lower {flag('max_bytes')}, {flag('max_tensor_bytes')} or {flag('held_bytes')}")
    if free < settings.max_bytes:
        return doubtful(says, f"one execution may take {readable(settings.max_bytes)}: stop what else runs here")
    return fine(says)


def caches(settings: Settings) -> Diagnosis:
    """Check the memory that the processes settle at, beside bodies, tensors and executions."""
    usual, most, whole = settled(settings), settled_at_most(settings), machine.memory_bytes()
    parts = f"the front at {_mebibytes(usual.front)}, {usual.workers} workers at {_mebibytes(usual.worker)} each"
    says = (
        f"memory settles at some {_mebibytes(usual.whole)} with small graphs, {_mebibytes(most.whole)} at most: {parts}"
    )
    if usual.whole > whole:
        return doubtful(says, f"that is more than there is: lower {flag('workers')}")
    if most.whole > whole:
        return doubtful(says, f"that may be more than there is: lower {flag('plan_cache_bytes')}")
    return fine(says)


def descriptors(settings: Settings) -> Diagnosis:
    """Files and sockets at a time: a server takes as many as it may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = descriptors_of(settings)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        lower = f"lower {flag('max_connections')} or {flag('max_tensors')}"
        says = f"{hard} descriptors for {settings.max_connections} connections and {settings.max_tensors} tensors"
        return doubtful(says, f"raise it to {wanted} (ulimit -Hn, LimitNOFILE=), or {lower}")
    return fine(f"{'any number of' if hard == resource.RLIM_INFINITY else hard} descriptors")


def clock(_: Settings) -> Diagnosis:
    """The time of day: certificates, logs and answers that are kept for a while go by it."""
    shown = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    if time.time() < Path(service.__file__).stat().st_mtime - 86_400:
        return broken(f"it is {shown}, which is before gradserve was installed", "set the clock")
    if _synchronised() is False:
        return doubtful(f"it is {shown}, by a clock that nobody keeps right", "run chrony, or systemd-timesyncd")
    return fine(f"it is {shown}")


def _synchronised() -> bool | None:
    """Return whether the system's clock follows another one; None if it does not say."""
    adjust = getattr(ctypes.CDLL(None), "adjtimex", None)
    if adjust is None:
        return None
    state: int = adjust(ctypes.create_string_buffer(512))  # modes 0: only asks
    return None if state < 0 else state != _NOT_SYNCHRONISED


def _free_bytes() -> int:
    """Memory that programs can have now, without others being pushed out, and no more than a container may."""
    try:
        lines = dict(line.split(":") for line in _MEMORY.read_text(encoding="ascii").splitlines())
        return min(machine.memory_bytes(), 1024 * int(lines["MemAvailable"].split()[0]))
    except (OSError, KeyError, ValueError):
        return machine.memory_bytes()


def _mebibytes(size: int) -> str:
    return f"{size / (1 << 20):,.0f} MiB"


def _rounded(size: float) -> str:
    return f"{size / (1 << 30):.1f} GiB"
