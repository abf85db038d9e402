"""Bodies: functions that ops run, and their transforms: tidy, narrow, batch, differentiate.

Every transform starts from a tidy body: `grad` nodes written out, dead code removed. Results of transforms are cached
in the body (`Body.cached`), so each is computed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Final, NamedTuple

import numpy as np

from engine.autodiff.vjp import expand_grad, vjp
from engine.autodiff.vmap import vmap
from engine.ir.graph import Builder, Graph, Node, Value
from engine.ir.passes import Allowance, dce, optimise
from engine.ir.program import Body
from engine.ir.run_context import NO_LIMITS
from engine.ir.tensor_type import INTEGERS, DType, TensorType

# Comparisons of floats with integer constants: the constants become floats, since compiled kernels read no integers.
#
# A client's `x < 0` compares with an int64 constant. In a loop, that one node would keep the whole body from being
# compiled, and Python would run it step by step.

_COMPARISONS: Final = frozenset({"equal", "not_equal", "greater", "greater_equal", "less", "less_equal"})


def compare_as_floats(graph: Graph) -> Graph:
    """Write integer constants that floats are compared with as floats, if the float dtype holds them exactly."""
    if not any(node.op.name in _COMPARISONS for node in graph.nodes):
        return graph
    builder = Builder(graph.registry, NO_LIMITS)

    def replace(node: Node, operands: Sequence[Value]) -> Value | None:
        if node.op.name not in _COMPARISONS:
            return None
        floats = [x.dtype for x in operands if x.type.is_float]
        return builder.copy(node, [_as_float(x, floats[0]) for x in operands] if len(floats) == 1 else operands)

    return builder.rewrite(graph, replace)


def _as_float(x: Value, dtype: DType) -> Value:
    """Return a one-element integer constant in a float dtype if the dtype holds it exactly; else `x`."""
    node = x.node
    if node.op.name not in ("constant", "full") or node.type.dtype.name not in INTEGERS:
        return x
    constant = np.asarray(node.attrs["value" if node.op.name == "constant" else "fill"])
    if constant.size != 1:
        return x
    number = int(constant.item())
    with np.errstate(over="ignore"):
        rounded = float(np.float64(number).astype(dtype))
    return x.builder.full(x.shape, rounded, dtype) if rounded == number else x


def tidy(body: Body) -> Body:
    """Return the body with its gradients written out. Raises the EngineError of a gradient that is invalid."""
    limits, deadline = body.budget.limits, body.budget.deadline
    return body.cached(
        "tidy", lambda: derive_body(body, compare_as_floats(expand_grad(body.graph, limits, deadline)), body.inputs)
    )


def derive_body(body: Body, graph: Graph, inputs: Sequence[TensorType]) -> Body:
    """Return a tidy body of `graph`, within the budget of the body it derives from.

    Raises TooManyNodes, DeadlineExceeded.
    """
    budget = body.budget
    allowance = Allowance(budget.limits.flops, budget.deadline, keep_stops=True)
    result = body.derived(optimise(graph, allowance), inputs)
    # `result` is tidy already: `tidy(result)` must return it as it is, and not count its nodes again.
    result.cached("tidy", lambda: result)
    return result


# Narrowing: remove unread results of a body, and the nodes that only they need.
#
# A derivative rule emits the cotangents of all operands at once. Without narrowing, the unused ones would run, and
# forward mode would read the dummy cotangents that it seeds reverse mode with.


def required_inputs(body: Body, results: Iterable[int]) -> frozenset[int]:
    """Return the inputs that these results depend on."""
    selected = tuple(sorted(results))
    return body.cached(("needed", selected), lambda: frozenset(map(int, _subgraph(body, selected).feeds)))  # type: ignore[arg-type]


def narrow(body: Body, results: Sequence[int], inputs: Sequence[int]) -> Body:
    """Return the body of these inputs and results only. The inputs must include all that the results need."""
    if len(results) == len(body.outputs) and len(inputs) == len(body.inputs):
        return body
    return body.cached(("narrow", tuple(results), tuple(inputs)), lambda: _narrowed(body, tuple(results), inputs))


def required_by_step(
    body: Body, consts: int, carries: int, read: Iterable[int], also: Set[int] = frozenset()
) -> tuple[list[int], list[int]]:
    """Return the results of a step that are needed to compute those read after a loop, and the inputs that these need.

    `also` are inputs that something else reads at each step.
    """
    results = set(read)
    inputs = set(also)
    # A carry that a step reads is a result of the previous step, which needs inputs of its own: find the fixed point.
    while True:
        results |= {i - consts for i in inputs if consts <= i < consts + carries}
        needed = required_inputs(body, results) | {consts + k for k in results if k < carries}
        if needed <= inputs:
            return sorted(results), sorted(inputs)
        inputs |= needed


def _subgraph(body: Body, results: tuple[int, ...]) -> Graph:
    graph = tidy(body).graph
    return dce(graph.with_nodes(graph.nodes, [graph.outputs[k] for k in results]))


def _narrowed(body: Body, results: tuple[int, ...], inputs: Sequence[int]) -> Body:
    graph, positions = _subgraph(body, results), {i: position for position, i in enumerate(inputs)}
    nodes = [
        node._replace(attrs={"feed": positions[node.attrs["feed"]]}) if node.is_leaf else node for node in graph.nodes
    ]
    narrowed = body.derived(graph.with_nodes(nodes, graph.outputs), [body.inputs[i] for i in inputs])
    narrowed.cached("tidy", lambda: narrowed)
    return narrowed


class BatchedBody(NamedTuple):
    """Body whose mapped operands have a leading axis N, and which of its results have one."""

    body: Body
    mapped: tuple[bool, ...]


def batched(body: Body, mapped: Sequence[bool], size: int, mapped_outputs: Sequence[bool] | None = None) -> BatchedBody:
    """Return the body with a leading axis of extent `size` on `mapped` inputs and on results that depend on them.

    Results in `mapped_outputs` get the axis in any case; None means all results.
    """
    mapped_outputs = tuple(mapped_outputs) if mapped_outputs is not None else (True,) * len(body.graph.outputs)
    arguments = tuple(mapped), size, mapped_outputs
    # Loops are batched repeatedly with other flags, until the mapped carries are found, and often in several places.
    return body.cached(("batched", *arguments), lambda: _batched(body, *arguments))


def _batched(body: Body, mapped: tuple[bool, ...], size: int, mapped_outputs: tuple[bool, ...]) -> BatchedBody:
    source, budget = tidy(body), body.budget
    # Decide which results have the axis before writing the body: the types of carries must be the same at each step.
    depends: list[bool] = []
    for node in source.graph.nodes:
        depends.append(mapped[node.attrs["feed"]] if node.is_leaf else any(depends[i] for i in node.operands))
    has_axis = tuple([m or depends[i] for m, i in zip(mapped_outputs, source.graph.outputs, strict=True)])
    feeds = {i for i, m in enumerate(mapped) if m}
    graph = vmap(source.graph, feeds, size, budget.limits, budget.deadline, has_axis)
    types = [t.with_shape((size, *t.shape)) if m else t for t, m in zip(body.inputs, mapped, strict=True)]
    return BatchedBody(derive_body(body, graph, types), has_axis)


class BackwardBody(NamedTuple):
    """Backward body: from the operands, then cotangents of some results, to the cotangents of operands `reached`."""

    body: Body
    reached: tuple[int, ...]

    @property
    def used_inputs(self) -> frozenset[int]:
        """The inputs that any of its results depends on."""
        return frozenset(int(feed) for feed in self.body.graph.feeds)  # type: ignore[call-overload]


def differentiate_body(body: Body, given: tuple[int, ...]) -> BackwardBody:
    """Differentiate a body, given cotangents of the results `given`. It recomputes the forward values that it needs."""

    def make() -> BackwardBody:
        source = tidy(body)
        builder = body.budget.builder(body.graph.registry)
        leaves = [builder.leaf(type, i) for i, type in enumerate(body.inputs)]
        results = source.inline_into(builder, leaves)
        seeds = [(results[k], builder.leaf(results[k].type, len(leaves) + p)) for p, k in enumerate(given)]
        # The forward nodes stand in the same graph, so the backward body depends on nothing outside it; the passes in
        # `derive_body` then remove the forward nodes that no gradient reads.
        floats = [i for i, type in enumerate(body.inputs) if type.is_differentiable]
        gradients = zip(floats, vjp(builder, seeds, [leaves[i] for i in floats]), strict=True)
        reached = {i: g for i, g in gradients if g is not None}
        # Operands without a path are left out of the results, so that loops carry and stack nothing for them.
        graph = builder.graph(list(reached.values()))
        types = [*body.inputs, *(seed.type for _, seed in seeds)]
        return BackwardBody(derive_body(body, graph, types), tuple(reached))

    return body.cached(("way back", given), make)


def differentiable_inputs(body: Body) -> tuple[frozenset[int], ...]:
    """Return, for each result, the inputs on which it may depend differentiably."""

    def make() -> tuple[frozenset[int], ...]:
        graph, reach = tidy(body).graph, list[frozenset[int]]()
        for node in graph.nodes:
            reach.append(_reach(node, reach))
        return tuple([reach[i] for i in graph.outputs])

    return body.cached("paths", make)


# A superset of the true dependence is safe: a carry taken as active without need costs zeros, but a missed one would
# lose a gradient.
def _reach(node: Node, reach: list[frozenset[int]]) -> frozenset[int]:
    if not any(type.is_differentiable for type in node.types):
        return frozenset()
    if node.is_leaf:
        return frozenset([int(node.attrs["feed"])])
    if not node.op.is_differentiable:
        return frozenset()
    return frozenset().union(*[reach[i] for i in node.operands])
