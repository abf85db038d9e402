"""Setup of a process of the service: its garbage collector, and its end with its parent.

State and requests are objects by the million without a cycle among them, which are freed by reference counts: the
collector would traverse them again and again, and find nothing. So the objects of the start are frozen, and the
collector runs seldom (in a worker, where no other request waits) or in short steps (in a front, where all requests wait
for Python's lock until a step is over).
"""

from __future__ import annotations

import ctypes
import gc
import signal
import sys
from collections.abc import Callable
from typing import Final

#: new objects at which a front's collector traverses them, which takes less than a millisecond; and the number of such
#: steps at which it traverses the objects of all of them
YOUNG_OBJECTS: Final = 2_000
YOUNG_STEPS: Final = 5
_PR_SET_PDEATHSIG: Final = 1


def collect_in_short_steps() -> None:
    """Set up the collector of a front: a step traverses new objects alone, and almost never all."""
    set_aside()
    gc.set_threshold(YOUNG_OBJECTS, YOUNG_STEPS, 5_000)


def collect_seldom() -> None:
    """Set up the collector of a worker, once everything is loaded."""
    gc.collect()
    set_aside()
    gc.set_threshold(50_000, 20, 100)


def set_aside() -> None:
    """Exempt all present objects from collection: they stay."""
    gc.freeze()


def ending_with_parent(sign: signal.Signals) -> Callable[[], None] | None:
    """Return a function with which a child asks for this signal once its parent is gone; None except on Linux.

    The child may call it at any time, also before its program begins. The C library is loaded here, since a forked
    child must not wait for the loader's lock.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, sign, 0, 0, 0)
