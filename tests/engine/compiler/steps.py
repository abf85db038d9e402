"""How much work a job is, counted rather than timed."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any


def steps_of(job: Callable[[], object]) -> int:
    """Lines of Python that a job runs, without those that a collection of others' garbage would run in its middle."""
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
