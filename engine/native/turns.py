"""Work that threads share: each makes its own part of the calls, and NumPy lets the others go on meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import wait

import numpy as np

from engine.graph.op import KernelCall
from engine.native.helping_threads import helping_threads


def make_calls(calls: Sequence[KernelCall]) -> None:
    """Make them, in order."""
    for function, args in calls:
        function(*args)


def joined(calls: Sequence[KernelCall]) -> KernelCall:
    """One call that makes all of them."""
    return calls[0] if len(calls) == 1 else (make_calls, (tuple(calls),))


def make_shared(parts: Sequence[Sequence[KernelCall]]) -> None:
    """Make each part's calls in a thread of its own, the first, and those that no thread begins, in this one.

    Return when all are made. What a call raises is raised here, once no thread is at work any more.
    """
    others = [(part, helping_threads().submit(_make_quietly, part)) for part in parts[1:]]
    try:
        make_calls(parts[0])
        for part, other in others:
            if other.cancel():  # the threads are busy with other work
                make_calls(part)
    finally:
        wait([other for _, other in others if not other.cancel()])
    for _, other in others:
        if not other.cancelled():
            other.result()


def _make_quietly(calls: Sequence[KernelCall]) -> None:
    """As `make_calls`, without warnings: whether there are any is a matter of each thread."""
    with np.errstate(all="ignore"):
        make_calls(calls)
