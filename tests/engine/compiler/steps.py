"""Work of a job in executed lines of Python, counted rather than timed."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any


def steps_of(job: Callable[[], object]) -> int:
    """Count the lines of Python that a job runs, without finalizers that a garbage collection would run in between."""
    count, before = 0, sys.gettrace()

    def trace(*_: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    collects = gc.isenabled()
    gc.disable()
    sys.settrace(trace)
    try:
        job()
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return count
