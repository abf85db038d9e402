"""Sums over examples, run block by block, and added up in a tree by position: neighbours first, level by level.

The same additions whoever has run which blocks: a run of 2^k blocks that begins at a multiple of that is a subtree.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from engine.autodiff.calls import BatchSum
from engine.compiler.example_blocks import CompiledSum
from engine.compiler.plan import Plan
from engine.ir.limits import NO_DEADLINE, Deadline
from engine.ir.op import Array, Namespace
from engine.ir.tensor_type import HostArray
from engine.runtime.interpreter import Executor, Observer

#: somebody who looks on at the run of a plan on these feeds
BlockWatch = Callable[[Plan, Mapping[Hashable, HostArray]], Observer]


class SumTree:
    """Leaves in order, each a list of arrays, added up as they come: it holds one sum a level, at most.

    The sum of n leaves is that of the first 2^k < n and that of the others, 2^k being as large as can be.
    """

    def __init__(self, xp: Namespace) -> None:
        self._xp = xp
        self._sums: list[tuple[int, Sequence[Array]]] = []

    def add(self, leaf: Sequence[Array]) -> None:
        """The next one."""
        level = 0
        while self._sums and self._sums[-1][0] == level:
            leaf = self._added(self._sums.pop()[1], leaf)
            level += 1
        self._sums.append((level, leaf))

    def total(self) -> Sequence[Array]:
        """The sum of all that came, of which there was one at least."""
        (_, found), *others = reversed(self._sums)
        for _, before in others:
            found = self._added(before, found)
        return found

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
    """The sums over the blocks of these indices, in the plans' order. `feeds` are those of `Executor.run`, of all
    examples: what all share is brought to the device once.

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
    """The sums of pieces, in order, each of as many blocks, a power of two, but for the last one, which may have fewer.

    So each is a subtree, and the additions are those that there are without pieces.
    """
    tree = SumTree(executor.xp)
    for piece in pieces:
        tree.add([executor.to_device(array) for array in piece])
    return executor.to_host(tree.total())


def finished(call: BatchSum, sums: Sequence[HostArray]) -> list[HostArray]:
    """The results of `call`, of the sums over all examples: themselves, or divided by N once, in float64 at least."""
    if not call.is_mean:
        return list(sums)
    with np.errstate(all="ignore"):
        return [np.asarray(np.divide(a, call.size, dtype=np.float64).astype(a.dtype)) for a in sums]
