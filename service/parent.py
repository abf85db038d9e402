"""End of a process with its parent, however that ends."""

from __future__ import annotations

import ctypes
import signal
import sys
from collections.abc import Callable
from typing import Final

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
