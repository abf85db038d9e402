"""Process setup: garbage collector tuning, and termination together with the parent process.

State and requests are millions of objects without reference cycles, freed by reference counting. Full collections
would traverse them repeatedly and free nothing. So the objects that exist after startup are frozen, and the collector
runs rarely (in a worker, where no other request waits) or in short steps (in the front, where every request waits for
the GIL until a step is over).
"""

from __future__ import annotations

import ctypes
import gc
import signal
import sys
from collections.abc import Callable
from typing import Final

#: generation 0 threshold of a front (a collection of that many objects takes less than a millisecond), and number of
#: such collections before generation 1 is collected
YOUNG_OBJECTS: Final = 2_000
YOUNG_STEPS: Final = 5
_PR_SET_PDEATHSIG: Final = 1


def tune_front_gc() -> None:
    """Set up the collector of a front: it traverses only new objects, and almost never all of them."""
    freeze_objects()
    gc.set_threshold(YOUNG_OBJECTS, YOUNG_STEPS, 5_000)


def tune_worker_gc() -> None:
    """Set up the collector of a worker. Call it when everything is loaded."""
    gc.collect()
    freeze_objects()
    gc.set_threshold(50_000, 20, 100)


def freeze_objects() -> None:
    """Exempt all existing objects from collection."""
    gc.freeze()


def parent_death_signal(sign: signal.Signals) -> Callable[[], None] | None:
    """Return a function that makes the calling child receive this signal when its parent dies; None except on Linux.

    The child may call it at any time, also before `exec`. The C library is loaded here because a forked child must not
    wait for the loader's lock.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, sign, 0, 0, 0)
