"""Work shared among threads: chunks of it, claimed by whichever is free."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Final, TypeVar

import numpy as np

#: chunks a thread finds, if all are as fast: the fewer, the longer the others wait for the last one
CHUNKS_PER_THREAD: Final = 4
Own = TypeVar("Own")


def share(work: Callable[[int, int, Own], object], count: int, owns: Sequence[Own]) -> None:
    """Call `work(first, past, own)` for the items 0 to `count`, in chunks, in as many threads as there are `owns`.

    A thread has its own of these to itself. The calling one takes part, and waits for none that has not begun: so it
    does no harm to be out of them. What `work` raises is raised here, once no thread is at work any more.
    """
    chunks = min(count, CHUNKS_PER_THREAD * len(owns))
    claims = iter(range(chunks))  # next() is one step under the interpreter's lock

    def claim(own: Own) -> None:
        for chunk in claims:
            work(chunk * count // chunks, (chunk + 1) * count // chunks, own)

    helpers = [helping_threads().submit(_quietly, claim, own) for own in owns[1:]]
    try:
        claim(owns[0])
    finally:
        raised = [helper.exception() for helper in helpers if not helper.cancel()]  # waits for each
    for error in raised:
        if error is not None:
            raise error


@cache
def helping_threads() -> ThreadPoolExecutor:
    """They are started when there is work for them."""
    return ThreadPoolExecutor(max(1, os.cpu_count() or 1), "loops")


def _quietly(claim: Callable[[Own], object], own: Own) -> None:
    """Without floating-point warnings: whether there are any is a matter of each thread."""
    with np.errstate(all="ignore"):
        claim(own)
