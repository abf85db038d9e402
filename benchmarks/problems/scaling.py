"""Curves: the same work on more nodes, more elements, more examples."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from benchmarks.problems.networks import per_example, wide_graph
from benchmarks.workload import Workload, normal

NODES: Final = (10, 100, 1_000, 10_000, 100_000)
ELEMENTS: Final = tuple(10**i for i in range(9))
EXAMPLES: Final = (1, 8, 64, 512, 4096)
#: beyond so many nodes, a compiler of theirs is not asked: its time grows faster than they do
COMPILED: Final = 1_000
#: beyond so many elements, a side that keeps each value for the way back would need tens of gigabytes
KEPT: Final = 30_000_000


def many_nodes(nodes: int) -> Workload:
    """W6 with more or fewer nodes."""
    work = wide_graph(nodes, f"nodes-{nodes}")
    slow = "compiling so many nodes takes minutes"
    without = {"torch.compile": slow} if nodes >= COMPILED else {}
    without |= {"jax": slow} if nodes > 2 * COMPILED else {}
    without |= {"torch": "its way back recurses too deep", "autograd": "as PyTorch"} if nodes > 10_000 else {}
    return Workload(work.name, work.title, work.function, work.parameters, without=without, extent=nodes)


def many_elements(size: int) -> Workload:
    """Eight elementwise ops and a mean."""

    def loss(ops: Any, x: Any) -> Any:
        t = ops.tanh(x * 0.5 + 1.0)
        t = ops.exp(t * x * -0.7) + x
        return ops.mean(t * t)

    kept = "each value is kept for the way back: too much memory"
    without = {"torch": kept, "autograd": kept} if size > KEPT else {}
    title = f"eight elementwise ops on {size:,} numbers"
    return Workload(f"elements-{size}", title, loss, [normal(1, size)], without=without, extent=size)


SCALING: Final[dict[str, Callable[[], Workload]]] = {
    **{f"nodes-{n}": partial(many_nodes, n) for n in NODES},
    **{f"elements-{n}": partial(many_elements, n) for n in ELEMENTS},
    **{f"batch-{n}": partial(per_example, n) for n in EXAMPLES},
}
