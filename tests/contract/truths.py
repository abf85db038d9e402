"""What is known of each op from elsewhere, and whether the engine agrees: asked of the engine itself, with no service.

An op states truths beside its samples; tests/reference has those of the ops that are in its tables.
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
    """A graph that the engine answers itself. No pass simplifies it, so that every op in it runs."""

    client: Any = None

    def add(self, op: str, *operands: int, **attrs: Any) -> int:
        """A node; arrays among the attributes stay arrays."""
        self.nodes.append({"op": op, "operands": operands, "attrs": attrs})
        return len(self.nodes) - 1

    def forward(self, *outputs: int) -> list[Array]:
        """The values of these nodes."""
        builder, values = self._built(outputs)
        return self._run(builder, [values[i] for i in outputs])

    def gradients(self, of: int, wrt: Sequence[int], cotangent: Any = None) -> list[Array]:
        """The value of `of` and its gradients by `wrt`."""
        builder, values = self._built((of, *wrt))
        y = values[of]
        seed = builder.constant(np.asarray(cotangent, y.dtype))
        return self._run(builder, [y, *vjp_or_zeros(builder, [(y, seed)], [values[i] for i in wrt])])

    def _built(self, roots: Sequence[int]) -> tuple[Builder, dict[int, Value]]:
        ops, needed = registry().ops, self.needed(roots)
        said = [Statement(ops[n["op"]], tuple(n.get("operands", ())), n.get("attrs", {})) for n in self.nodes]
        types = {i: TensorType.of(a) for i, a in self.feeds.items() if i in needed}
        builder, values = Program(registry(), said, opset=LATEST).build(types, roots)
        typed = expand_grad(builder.graph([values[i] for i in roots]))
        writing = Builder(registry(), LIMITS, nodes=list(typed.nodes))
        return writing, dict(zip(roots, map(writing.value, typed.outputs), strict=True))

    def _run(self, builder: Builder, outputs: list[Value]) -> list[Array]:
        return EXECUTOR.run(make_plan(builder.graph(outputs), LIMITS), self.feeds)


def facts(op: Definition) -> list[Fact]:
    """All truths of an op, its own first; of the tables, those at extreme points only where there are no others.

    Those of a class that it derives from are another op's.
    """
    table = [c for c in ALL if c.op == op.name]
    return [*vars(type(op)).get("truths", ()), *([c for c in table if c.label != "special"] or table)]


def speaks_of_gradient(fact: Fact) -> bool:
    """Whether a fact says what a gradient is."""
    if isinstance(fact, Truth):
        return fact.gradients is not None
    return any(x.dtype.kind in "fc" for x in fact.arrays) and any(y.dtype.kind in "fc" for y in fact.values())


def check(op: Definition, fact: Fact) -> None:
    """Fails where the engine's value or gradient is not what the fact says."""
    if isinstance(fact, Case):
        agreement.check(OnEngine(), fact, op.name)
    else:
        check_stated(op, fact)


def check_stated(op: Definition, truth: Truth) -> None:
    """As `check`, of a truth that the op states itself."""
    stated = case(op.name, lambda *_, **__: truth.value, *truth.operands, **truth.attrs)
    g, values = OnEngine(), stated.values()
    leaves, outputs = stated.written(g, op.name)
    for found, value in zip(g.forward(*outputs), values, strict=True):
        agree(f"the value of {op.name}, {truth.source}", found, value)
    if truth.gradients is not None:
        assert len(truth.gradients) == len(leaves), f"a truth of {op.name} must state one gradient an operand, or None"
        known = {i: x for i, x in zip(leaves, truth.gradients, strict=True) if g.feeds[i].dtype.kind in "fc"}
        found = pulled(g, dict(zip(outputs, cotangents(truth, values), strict=True)), list(known))
        for i, gradient in known.items():
            wanted = np.zeros(g.feeds[i].shape) if gradient is None else np.asarray(gradient)
            agree(f"the gradient of {op.name} by operand {i}, {truth.source}", found[i], wanted)


def agree(what: str, found: Array, wanted: Array) -> None:
    assert found.shape == wanted.shape, f"{what}: shape {wanted.shape}, but got {found.shape}"
    if found.dtype.kind in "iu":  # a word of 32 bits that is one more is as close as floats that are right
        np.testing.assert_array_equal(found, wanted, what)
    np.testing.assert_allclose(found, wanted, **agreement.CLOSE, err_msg=what)


def cotangents(truth: Truth, values: Sequence[Array]) -> list[Array]:
    """One for each result: as stated, or 1 everywhere."""
    if truth.cotangent is None:
        return [np.ones_like(y) for y in values]
    return [np.asarray(c) for c in (truth.cotangent if isinstance(truth.cotangent, tuple) else (truth.cotangent,))]


def pulled(g: Graph, seeds: dict[int, Array], wrt: list[int]) -> dict[int, Array]:
    """The gradients of Σ sum(result · cotangent) over the results that are differentiable, by each of `wrt`."""
    parts = [g.gradients(node, wrt, c)[1:] for node, c in seeds.items() if g.forward(node)[0].dtype.kind in "fc"]
    return {i: sum(found) for i, found in zip(wrt, zip(*parts, strict=True), strict=True)}
