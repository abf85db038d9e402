"""Work that threads share: each makes its own part of the calls, and NumPy lets the others go on meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import lru_cache

import numpy as np

from engine.graph.op import KernelCall


def make_calls(calls: Sequence[KernelCall]) -> None:
    """Make them, in order."""
    for function, args in calls:
        function(*args)


def joined(calls: Sequence[KernelCall]) -> KernelCall:
    """One call that makes all of them."""
    return calls[0] if len(calls) == 1 else (make_calls, (tuple(calls),))


def make_shared(parts: Sequence[Sequence[KernelCall]]) -> None:
    """Make each part's calls in a thread of its own, the first in this one; return when all are made.

    What a call raises is raised here, once no thread is at work any more.
    """
    others = [_pool(len(parts) - 1).submit(_make_quietly, part) for part in parts[1:]]
    try:
        make_calls(parts[0])
    finally:
        wait(others)
    for other in others:
        other.result()


def _make_quietly(calls: Sequence[KernelCall]) -> None:
    """As `make_calls`, without warnings: whether there are any is a matter of each thread."""
    with np.errstate(all="ignore"):
        make_calls(calls)


@lru_cache(maxsize=8)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="loop")
