"""Setup of a process of the service: its garbage collector, and its end with its parent.

What both keep, and what a request makes, are objects by the million without a cycle among them, which come and go by
reference counts: the collector would go through them again and again, and find nothing. So what is there from the start
is put out of its sight, and it comes seldom (a worker, where one request runs at a time and no other waits) or in short
steps (a front, where everybody waits for Python's lock until a step is over).
"""

from __future__ import annotations

import ctypes
import gc
import signal
import sys
from collections.abc import Callable
from typing import Final

#: objects that a front's collector goes through at once, after so many new ones: less than a millisecond; and once in
#: so many times, those of all these times together
YOUNG_OBJECTS: Final = 2_000
YOUNG_STEPS: Final = 5
_STEPS_BEFORE_ALL: Final = 5_000
#: the same for a worker: new objects before the collector comes at all, and steps of the first and of the second kind
_SELDOM: Final = (50_000, 20, 100)


def collect_in_short_steps() -> None:
    """Set up a front: a step goes through new objects alone, and almost never through all."""
    set_aside()
    gc.set_threshold(YOUNG_OBJECTS, YOUNG_STEPS, _STEPS_BEFORE_ALL)


def collect_seldom() -> None:
    """Set up a worker, once everything is loaded."""
    gc.collect()
    set_aside()
    gc.set_threshold(*_SELDOM)


def set_aside() -> None:
    """Exempt all present objects from collection: they are there to stay."""
    gc.freeze()


# End of a process with its parent, however that ends.

_PR_SET_PDEATHSIG: Final = 1


def ending_with_parent(sign: signal.Signals) -> Callable[[], None] | None:
    """Return a function with which a child asks for this signal once its parent is gone; None except on Linux.

    The child may call it before its program begins, or at any time.

    The library is loaded here, since a child that has been forked off must not wait for the lock of who loads one.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, sign, 0, 0, 0)
