"""Threads that help the one that calls a kernel: pieces of its blocks are claimed by whoever is free."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

#: pieces a thread finds, if all are as fast: the fewer, the longer the others wait for the last one
PIECES_PER_THREAD = 4


def run_in_pieces(function: Callable[[int, int, int], object], tables: list[int], blocks: int) -> None:
    """Call `function(first, past, table)` for all blocks, in pieces, from as many threads as there are tables.

    The calling thread takes part, and waits for no helper that has not begun: so it does no harm to be out of them.
    A thread has its table to itself.
    """
    pieces = min(blocks, PIECES_PER_THREAD * len(tables))
    claims = iter(range(pieces))  # next() is one step under the interpreter's lock

    def work(table: int) -> None:
        for piece in claims:
            function(piece * blocks // pieces, (piece + 1) * blocks // pieces, table)

    helpers = [helping_threads().submit(work, table) for table in tables[1:]]
    work(tables[0])
    for helper in helpers:
        if not helper.cancel():
            helper.result()


@cache
def helping_threads() -> ThreadPoolExecutor:
    """They are started when there is work for them, and have no floating-point warnings turned off."""
    return ThreadPoolExecutor(max(1, os.cpu_count() or 1), "loops")
