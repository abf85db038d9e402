"""Comparison of a graph with and without passes: the difference of results, and the number of nodes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine import Graph, Limits
from engine.compiler.plan import make_plan
from engine.ir.attributes import key
from engine.ir.passes import PASSES, Pass, dce, run_passes, switched
from tests.contract.cases import EXECUTOR
from tests.passes.questions import Array, Question

LIMITS = Limits()
NAMES = list(dict.fromkeys(apply.__name__ for apply in PASSES))
ALL_ON = "all"

#: all passes on; each one on by itself; each one off by itself
SWITCHED: Mapping[str, Sequence[Pass]] = {
    ALL_ON: PASSES,
    **{f"only {name}": switched(set(NAMES) - {name}) for name in NAMES},
    **{f"all but {name}": switched({name}) for name in NAMES},
}


def sample(number: int) -> dict[str, Sequence[Pass]]:
    """The choices for the question of this number: all passes on; one on by itself; another one off."""
    alone, without = NAMES[number % len(NAMES)], NAMES[(number + 1) % len(NAMES)]
    return {choice: SWITCHED[choice] for choice in (ALL_ON, f"only {alone}", f"all but {without}")}


@dataclass
class Compared:
    """One question under every choice of passes: the nodes without and with all passes, and the largest difference.

    `nodes` counts the nodes that outputs need, by the name of the choice.
    """

    question: Question
    before: int
    nodes: dict[str, int] = field(default_factory=dict)
    differences: dict[str, float] = field(default_factory=dict)

    @property
    def after(self) -> int:
        """Nodes with all passes."""
        return self.nodes[ALL_ON]


def compare(question: Question, choices: Mapping[str, Sequence[Pass]] = SWITCHED) -> Compared:
    """Run the question without passes, and under each choice; equal graphs run once."""
    expected = results(question.graph, question)
    compared = Compared(question, len(question.graph.nodes))
    cache: dict[Hashable, float] = {}
    for name, passes in choices.items():
        graph = run_passes(question.graph, passes)[0]
        structure = structure_key(graph)
        if structure not in cache:
            cache[structure] = difference(results(graph, question), expected)
        compared.nodes[name] = len(graph.nodes) if name == ALL_ON else len(dce(graph).nodes)
        compared.differences[name] = cache[structure]
    return compared


def results(graph: Graph, question: Question) -> list[Array]:
    """The results of the graph."""
    return EXECUTOR.run(make_plan(graph, LIMITS), question.feeds)


def structure_key(graph: Graph) -> Hashable:
    """A key of the structure that determines the graph's results."""
    nodes = ((n.op.name, n.operands, *((name, key(value)) for name, value in n.attrs.items())) for n in graph.nodes)
    return tuple(nodes), graph.outputs


def difference(actual: Sequence[Array], expected: Sequence[Array]) -> float:
    """The largest relative difference of any element; infinite where shapes, dtypes, NaNs or infinities differ.

    Small elements, which may be left over from cancellation, are compared with a thousandth of the largest, or of one.
    """
    return max((_array_difference(a, b) for a, b in zip(actual, expected, strict=True)), default=0.0)


def _array_difference(a: Array, b: Array) -> float:
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return np.inf
    differ = ~((a == b) | ((a != a) & (b != b)))  # noqa: PLR0124 - NaN alone is not itself
    if not differ.any():
        return 0.0
    if b.dtype.kind != "f" or not np.isfinite([a[differ], b[differ]]).all():
        return np.inf
    sizes = np.abs(b[np.isfinite(b)])
    scale = np.maximum(np.abs(b[differ]), min(sizes.max(), 1.0) / 1000)
    with np.errstate(divide="ignore", over="ignore"):
        return float((np.abs(a[differ] - b[differ]) / scale).max())
