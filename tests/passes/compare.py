"""A graph with passes and without: how far results are apart, and how many nodes are left."""

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

#: every switch on; each one on by itself; each one off by itself
SWITCHED: Mapping[str, Sequence[Pass]] = {
    ALL_ON: PASSES,
    **{f"only {name}": switched(set(NAMES) - {name}) for name in NAMES},
    **{f"all but {name}": switched({name}) for name in NAMES},
}


def sample(number: int) -> dict[str, Sequence[Pass]]:
    """Of the choices, what the question of this number is asked: all on; one alone; another one left out."""
    alone, without = NAMES[number % len(NAMES)], NAMES[(number + 1) % len(NAMES)]
    return {choice: SWITCHED[choice] for choice in (ALL_ON, f"only {alone}", f"all but {without}")}


@dataclass
class Compared:
    """One question under every choice of switches: the nodes without passes, and with all; the largest difference.

    `nodes` counts by the name of the choice, what no output needs left out.
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
    """Run the question without passes, and under each choice of them; equal graphs once."""
    expected = results(question.graph, question)
    compared = Compared(question, len(question.graph.nodes))
    known: dict[Hashable, float] = {}
    for name, passes in choices.items():
        graph = run_passes(question.graph, passes)[0]
        shown = spelled(graph)
        if shown not in known:
            known[shown] = difference(results(graph, question), expected)
        compared.nodes[name] = len(graph.nodes) if name == ALL_ON else len(dce(graph).nodes)
        compared.differences[name] = known[shown]
    return compared


def results(graph: Graph, question: Question) -> list[Array]:
    """What the graph computes."""
    return EXECUTOR.run(make_plan(graph, LIMITS), question.feeds)


def spelled(graph: Graph) -> Hashable:
    """All that decides what a graph computes."""
    nodes = ((n.op.name, n.operands, *((name, key(value)) for name, value in n.attrs.items())) for n in graph.nodes)
    return tuple(nodes), graph.outputs


def difference(found: Sequence[Array], expected: Sequence[Array]) -> float:
    """The largest relative difference of any element; infinite where shapes, dtypes, NaNs or infinities differ.

    What is left of larger numbers that cancelled is compared with a thousandth of the largest element, or of one.
    """
    return max((_apart(a, b) for a, b in zip(found, expected, strict=True)), default=0.0)


def _apart(a: Array, b: Array) -> float:
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
