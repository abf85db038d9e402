"""Sums over examples, run block by block and added up in a tree by position: neighbours first, level by level.

The additions are the same whoever runs which blocks: 2^k blocks from a multiple of 2^k on are a subtree.
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

#: makes the observer of the run of a plan on these feeds
BlockWatch = Callable[[Plan, Mapping[Hashable, HostArray]], Observer]


class SumTree:
    """Sum of leaves, each a list of arrays, added up as they come: it holds at most one sum a level.

    The sum of n leaves is the sum of the first 2^k, plus the sum of the others, for the largest 2^k < n.
    """

    def __init__(self, xp: Namespace) -> None:
        self._xp = xp
        self._sums: list[tuple[int, Sequence[Array]]] = []

    def add(self, leaf: Sequence[Array]) -> None:
        """Add the next leaf."""
        level = 0
        while self._sums and self._sums[-1][0] == level:
            leaf = self._added(self._sums.pop()[1], leaf)
            level += 1
        self._sums.append((level, leaf))

    def total(self) -> Sequence[Array]:
        """Return the sum of all leaves, of which there was one at least."""
        (_, total), *others = reversed(self._sums)
        for _, before in others:
            total = self._added(before, total)
        return total

    def _added(self, left: Sequence[Array], right: Sequence[Array]) -> Sequence[Array]:
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
    """Compute the sums over the blocks of these indices, in the plans' order. `feeds` are those of `Executor.run`, of
    all examples; those that all blocks share are copied to the device once.

    Raises as `Executor.run`.
    """
    mapped = {node for node, _ in call.mapped}
    needed = set(compiled.full.plan.feeds)
    shared = {feed: executor.to_device(feeds[feed]) for feed in needed - mapped if feed in feeds}
    tree = SumTree(executor.xp)
    for index in indices:
        rows, plan = compiled.blocks.rows(index), compiled.plan(index)
        block = {feed: feeds[feed][rows] for feed in needed & mapped}
        looks_on = None if watch is None else watch(plan, {**feeds, **block})
        there: dict[Hashable, Any] = {feed: executor.to_device(array) for feed, array in block.items()}
        tree.add(executor.execute(plan, {**shared, **there}, deadline, looks_on))
    return executor.to_host(tree.total())


def add_pieces(executor: Executor, pieces: Iterable[Sequence[HostArray]]) -> list[HostArray]:
    """Add up pieces, in order, each of the same power of two of blocks; the last one may have fewer.

    So each piece is a subtree, and the additions are the same as without pieces.
    """
    tree = SumTree(executor.xp)
    for piece in pieces:
        tree.add([executor.to_device(array) for array in piece])
    return executor.to_host(tree.total())


def finished(call: BatchSum, sums: Sequence[HostArray]) -> list[HostArray]:
    """Make the results of `call` from the sums over all examples: a mean is divided once, in float64 at least."""
    if not call.is_mean:
        return list(sums)
    with np.errstate(all="ignore"):
        return [np.asarray(np.divide(a, call.size, dtype=np.float64).astype(a.dtype)) for a in sums]
