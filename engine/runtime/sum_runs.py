"""Sums over examples: run blocks and add their results in a binary tree by position, neighbours first.

The order of additions does not depend on which process runs which blocks: 2^k blocks, starting from a multiple of 2^k,
are a subtree.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from engine.autodiff.calls import BatchSum
from engine.compiler.example_blocks import CompiledSum
from engine.compiler.plan import Plan
from engine.ir.op import Array, Namespace
from engine.ir.run_context import NO_DEADLINE, Deadline
from engine.ir.tensor_type import HostArray
from engine.runtime.interpreter import Executor, Observer

#: function that makes the observer of a run, given the plan and its feeds
BlockWatch = Callable[[Plan, Mapping[Hashable, HostArray]], Observer]


class SumTree:
    """Sum of leaves, each a list of arrays, that adds them as they arrive and holds at most one sum per level.

    The sum of n leaves is the sum of the first 2^k plus the sum of the rest, for the largest 2^k < n.
    """

    def __init__(self, xp: Namespace) -> None:
        self._xp = xp
        self._sums: list[tuple[int, Sequence[Array]]] = []

    def add(self, leaf: Sequence[Array]) -> None:
        """Add the next leaf."""
        # Like a carry in binary counting: two sums of equal level become one sum of the next level.
        level = 0
        while self._sums and self._sums[-1][0] == level:
            leaf = self._add_arrays(self._sums.pop()[1], leaf)
            level += 1
        self._sums.append((level, leaf))

    def total(self) -> Sequence[Array]:
        """Return the sum of all leaves, of which there must be at least one."""
        (_, total), *earlier_sums = reversed(self._sums)
        for _, earlier in earlier_sums:
            total = self._add_arrays(earlier, total)
        return total

    def _add_arrays(self, left: Sequence[Array], right: Sequence[Array]) -> Sequence[Array]:
        with np.errstate(all="ignore"):
            return [self._xp.asarray(self._xp.add(a, b)) for a, b in zip(left, right, strict=True)]


def run_blocks(
    executor: Executor,
    compiled: CompiledSum,
    call: BatchSum,
    feeds: Mapping[Hashable, HostArray],
    indices: range,
    deadline: Deadline = NO_DEADLINE,
    watch: BlockWatch | None = None,
) -> list[HostArray]:
    """Compute the sum over the blocks with these indices, in the plan's order of results.

    `feeds` are those of `Executor.run` for all examples. Feeds that all blocks share are copied to the device once.
    Raises the errors of `Executor.run`.
    """
    mapped = {node for node, _ in call.mapped}
    plan_feeds = set(compiled.full_block.plan.feeds)
    shared = {feed: executor.to_device(feeds[feed]) for feed in plan_feeds - mapped if feed in feeds}
    tree = SumTree(executor.xp)
    for index in indices:
        rows, plan = compiled.blocks.rows(index), compiled.plan(index)
        block = {feed: feeds[feed][rows] for feed in plan_feeds & mapped}
        observer = None if watch is None else watch(plan, {**feeds, **block})
        on_device: dict[Hashable, Any] = {feed: executor.to_device(array) for feed, array in block.items()}
        tree.add(executor.execute(plan, {**shared, **on_device}, deadline, observer))
    return executor.to_host(tree.total())


def add_pieces(executor: Executor, pieces: Iterable[Sequence[HostArray]]) -> list[HostArray]:
    """Add pieces in order. Each is the sum over the same power of two of blocks, except the last, which may be smaller.

    So each piece is a subtree, and the additions are the same as without pieces.
    """
    tree = SumTree(executor.xp)
    for piece in pieces:
        tree.add([executor.to_device(array) for array in piece])
    return executor.to_host(tree.total())


def finish_sum(call: BatchSum, sums: Sequence[HostArray]) -> list[HostArray]:
    """Return the results of `call` from the sums over all examples. A mean is divided once, in float64 at least."""
    if not call.is_mean:
        return list(sums)
    with np.errstate(all="ignore"):
        return [np.asarray(np.divide(a, call.size, dtype=np.float64).astype(a.dtype)) for a in sums]
