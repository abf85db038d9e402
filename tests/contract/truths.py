"""Independent reference values of each op, compared with the engine directly, without the service.

An op declares truths next to its samples; tests/reference has tables with more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine import LATEST, Builder, Program, Statement, TensorType, Value, registry
from engine.autodiff.vjp import expand_grad, vjp_or_zeros
from engine.compiler.plan import make_plan
from engine.ir.op import Definition
from engine.ir.sample import Truth
from tests.contract.cases import EXECUTOR, LIMITS, Array
from tests.reference import agreement
from tests.reference.case import Case, case
from tests.reference.client import Graph
from tests.reference.families import ALL

Fact = Truth | Case


@dataclass
class OnEngine(Graph):
    """Graph that runs on the engine directly. No pass simplifies it, so that every op in it runs."""

    client: Any = None

    def add(self, op: str, *operands: int, **attrs: Any) -> int:
        """Add a node. Arrays in the attributes stay arrays."""
        self.nodes.append({"op": op, "operands": operands, "attrs": attrs})
        return len(self.nodes) - 1

    def forward(self, *outputs: int) -> list[Array]:
        """Return the values of the nodes."""
        builder, values = self._built(outputs)
        return self._run(builder, [values[i] for i in outputs])

    def gradients(self, of: int, wrt: Sequence[int], cotangent: Any = None) -> list[Array]:
        """Return the value of `of` and its gradients with respect to `wrt`."""
        builder, values = self._built((of, *wrt))
        y = values[of]
        seed = builder.constant(np.asarray(cotangent, y.dtype))
        return self._run(builder, [y, *vjp_or_zeros(builder, [(y, seed)], [values[i] for i in wrt])])

    def _built(self, roots: Sequence[int]) -> tuple[Builder, dict[int, Value]]:
        ops, needed = registry().ops, self.needed(roots)
        statements = [Statement(ops[n["op"]], tuple(n.get("operands", ())), n.get("attrs", {})) for n in self.nodes]
        types = {i: TensorType.of(a) for i, a in self.feeds.items() if i in needed}
        builder, values = Program(registry(), statements, opset=LATEST).build(types, roots)
        typed = expand_grad(builder.graph([values[i] for i in roots]))
        writing = Builder(registry(), LIMITS, nodes=list(typed.nodes))
        return writing, dict(zip(roots, map(writing.value, typed.outputs), strict=True))

    def _run(self, builder: Builder, outputs: list[Value]) -> list[Array]:
        return EXECUTOR.run(make_plan(builder.graph(outputs), LIMITS), self.feeds)


def facts(op: Definition) -> list[Fact]:
    """Return all truths of an op, its own first.

    Table rows at extreme points are used only if there are no others. Truths of a base class belong to another op.
    """
    table = [c for c in ALL if c.op == op.name]
    return [*vars(type(op)).get("truths", ()), *([c for c in table if c.label != "special"] or table)]


def states_gradient(fact: Fact) -> bool:
    """Return whether a fact gives the value of a gradient."""
    if isinstance(fact, Truth):
        return fact.gradients is not None
    return any(x.dtype.kind in "fc" for x in fact.arrays) and any(y.dtype.kind in "fc" for y in fact.values())


def check(op: Definition, fact: Fact) -> None:
    """Assert that the value and gradient of the engine match the fact."""
    if isinstance(fact, Case):
        agreement.check(OnEngine(), fact, op.name)
    else:
        check_stated(op, fact)


def check_stated(op: Definition, truth: Truth) -> None:
    """Check a truth that the op declares itself."""
    stated = case(op.name, lambda *_, **__: truth.value, *truth.operands, **truth.attrs)
    g, values = OnEngine(), stated.values()
    leaves, outputs = stated.written(g, op.name)
    for actual, value in zip(g.forward(*outputs), values, strict=True):
        agree(f"the value of {op.name}, {truth.source}", actual, value)
    if truth.gradients is not None:
        assert len(truth.gradients) == len(leaves), f"a truth of {op.name} must state one gradient an operand, or None"
        gradients_by_leaf = {
            i: x for i, x in zip(leaves, truth.gradients, strict=True) if g.feeds[i].dtype.kind in "fc"
        }
        actual = summed_gradients(
            g, dict(zip(outputs, cotangents(truth, values), strict=True)), list(gradients_by_leaf)
        )
        for i, gradient in gradients_by_leaf.items():
            expected = np.zeros(g.feeds[i].shape) if gradient is None else np.asarray(gradient)
            agree(f"the gradient of {op.name} by operand {i}, {truth.source}", actual[i], expected)


def agree(label: str, actual: Array, expected: Array) -> None:
    assert actual.shape == expected.shape, f"{label}: shape {expected.shape}, but got {actual.shape}"
    if actual.dtype.kind in "iu":  # floats within the tolerance could differ by 1 as integers
        np.testing.assert_array_equal(actual, expected, label)
    np.testing.assert_allclose(actual, expected, **agreement.CLOSE, err_msg=label)


def cotangents(truth: Truth, values: Sequence[Array]) -> list[Array]:
    """Return one cotangent for each result: as declared, or ones."""
    if truth.cotangent is None:
        return [np.ones_like(y) for y in values]
    return [np.asarray(c) for c in (truth.cotangent if isinstance(truth.cotangent, tuple) else (truth.cotangent,))]


def summed_gradients(g: Graph, seeds: dict[int, Array], wrt: list[int]) -> dict[int, Array]:
    """Return the gradients of Σ sum(result · cotangent) over the differentiable results, with respect to `wrt`."""
    parts = [g.gradients(node, wrt, c)[1:] for node, c in seeds.items() if g.forward(node)[0].dtype.kind in "fc"]
    return {i: sum(terms) for i, terms in zip(wrt, zip(*parts, strict=True), strict=True)}
