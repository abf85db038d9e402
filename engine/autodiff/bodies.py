"""Bodies: functions that ops run, and the transforms of these: tidy, narrow, batch, differentiate.

Every transform begins with a tidy body: its `grad` nodes are written out, and what its results do not need is gone.
What is made of a body is kept with it (`Body.made`), so that each is made once.
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

# Whole numbers that floats are compared with, as floats: compiled kernels read no others.
#
# `x < 0` of a client that has no float there compares with an int64. Inside a loop that alone would have Python step
# through it.

_COMPARISONS: Final = frozenset({"equal", "not_equal", "greater", "greater_equal", "less", "less_equal"})


def compared_as_floats(graph: Graph) -> Graph:
    """`graph` with the same results: only numbers that the other side's dtype has are written in it."""
    if not any(node.op.name in _COMPARISONS for node in graph.nodes):
        return graph
    builder = Builder(graph.registry, NO_LIMITS)

    def alike(node: Node, operands: Sequence[Value]) -> Value | None:
        if node.op.name not in _COMPARISONS:
            return None
        floats = [x.dtype for x in operands if x.type.is_float]
        return builder.copy(node, [_as_float(x, floats[0]) for x in operands] if len(floats) == 1 else operands)

    return builder.rewrite(graph, alike)


def _as_float(x: Value, dtype: DType) -> Value:
    """Write a constant that is one whole number in a float dtype, if that has the number."""
    node = x.node
    if node.op.name not in ("constant", "full") or node.type.dtype.name not in INTEGERS:
        return x
    stated = np.asarray(node.attrs["value" if node.op.name == "constant" else "fill"])
    if stated.size != 1:
        return x
    number = int(stated.item())
    with np.errstate(over="ignore"):
        rounded = float(np.float64(number).astype(dtype))
    return x.builder.full(x.shape, rounded, dtype) if rounded == number else x


def tidy(body: Body) -> Body:
    """The body, its gradients written out. Raises EngineError for what they find wrong."""
    limits, deadline = body.budget.limits, body.budget.deadline
    return body.made(
        "tidy", lambda: derived(body, compared_as_floats(expand_grad(body.graph, limits, deadline)), body.inputs)
    )


def derived(body: Body, graph: Graph, inputs: Sequence[TensorType]) -> Body:
    """A tidy body that is made of another one, within what that may have. Raises TooManyNodes, DeadlineExceeded."""
    budget = body.budget
    allowance = Allowance(budget.limits.flops, budget.deadline, stops_stay=True)
    tidied = body.derived(optimise(graph, allowance), inputs)
    tidied.made("tidy", lambda: tidied)
    return tidied


# Ops that run functions without the results that nobody reads, nor what these alone need.
#
# A rule of derivatives writes the cotangents of all operands at once. Without this, what nobody asked for would be run,
# and forward mode would read the cotangents that it only pretends to have.


def inputs_of(body: Body, results: Iterable[int]) -> frozenset[int]:
    """The inputs that these results depend on."""
    asked = tuple(sorted(results))
    return body.made(("needed", asked), lambda: frozenset(map(int, _of(body, asked).feeds)))  # type: ignore[arg-type]


def narrow(body: Body, results: Sequence[int], inputs: Sequence[int]) -> Body:
    """The body of these inputs, among which all are that these results, the only ones, need."""
    if len(results) == len(body.outputs) and len(inputs) == len(body.inputs):
        return body
    return body.made(("narrow", tuple(results), tuple(inputs)), lambda: _narrowed(body, tuple(results), inputs))


def step_needs(
    body: Body, consts: int, carries: int, read: Iterable[int], also: Set[int] = frozenset()
) -> tuple[list[int], list[int]]:
    """Return the results of a step that are needed for those read after a loop, and the inputs that these need.

    `also` are inputs that something else reads at each step.
    """
    results = set(read)
    inputs = set(also)
    # A carry that a step reads is a result of the step before, which needs inputs of its own: until none is new.
    while True:
        results |= {i - consts for i in inputs if consts <= i < consts + carries}
        more = inputs_of(body, results) | {consts + k for k in results if k < carries}
        if more <= inputs:
            return sorted(results), sorted(inputs)
        inputs |= more


def _of(body: Body, results: tuple[int, ...]) -> Graph:
    graph = tidy(body).graph
    return dce(graph.rewritten(graph.nodes, [graph.outputs[k] for k in results]))


def _narrowed(body: Body, results: tuple[int, ...], inputs: Sequence[int]) -> Body:
    graph, places = _of(body, results), {i: place for place, i in enumerate(inputs)}
    nodes = [
        node._replace(attrs={"feed": places[node.attrs["feed"]]}) if node.is_leaf else node for node in graph.nodes
    ]
    narrowed = body.derived(graph.rewritten(nodes, graph.outputs), [body.inputs[i] for i in inputs])
    narrowed.made("tidy", lambda: narrowed)
    return narrowed


class BatchedBody(NamedTuple):
    """A body of operands of which some have a leading axis N, and which of its results have one."""

    body: Body
    mapped: tuple[bool, ...]


def batched(body: Body, mapped: Sequence[bool], size: int, wanted: Sequence[bool] | None = None) -> BatchedBody:
    """The body where the `mapped` inputs have a leading axis of extent `size`, and so every result that depends on one.

    Those that are `wanted` have it in any case; None: all have.
    """
    wanted = tuple(wanted) if wanted is not None else (True,) * len(body.graph.outputs)
    asked = tuple(mapped), size, wanted
    return body.made(("batched", *asked), lambda: _batched(body, *asked))


def _batched(body: Body, mapped: tuple[bool, ...], size: int, wanted: tuple[bool, ...]) -> BatchedBody:
    source, budget = tidy(body), body.budget
    depends: list[bool] = []
    for node in source.graph.nodes:
        depends.append(mapped[node.attrs["feed"]] if node.is_leaf else any(depends[i] for i in node.operands))
    has_axis = tuple([w or depends[i] for w, i in zip(wanted, source.graph.outputs, strict=True)])
    feeds = {i for i, m in enumerate(mapped) if m}
    graph = vmap(source.graph, feeds, size, budget.limits, budget.deadline, has_axis)
    types = [t.with_shape((size, *t.shape)) if m else t for t, m in zip(body.inputs, mapped, strict=True)]
    return BatchedBody(derived(body, graph, types), has_axis)


class BodyBack(NamedTuple):
    """A body of the operands, then of the cotangents of some results; it gives those of the operands `reached`."""

    body: Body
    reached: tuple[int, ...]

    @property
    def used_inputs(self) -> frozenset[int]:
        """The inputs that any of its results depends on."""
        return frozenset(int(feed) for feed in self.body.graph.feeds)  # type: ignore[call-overload]


def way_back(body: Body, given: tuple[int, ...]) -> BodyBack:
    """Differentiate a body for cotangents of the results `given`. It computes the way there again, as far as needed."""

    def make() -> BodyBack:
        source = tidy(body)
        builder = body.budget.builder(body.graph.registry)
        leaves = [builder.leaf(type, i) for i, type in enumerate(body.inputs)]
        results = source.inline_into(builder, leaves)
        seeds = [(results[k], builder.leaf(results[k].type, len(leaves) + p)) for p, k in enumerate(given)]
        floats = [i for i, type in enumerate(body.inputs) if type.is_differentiable]
        gradients = zip(floats, vjp(builder, seeds, [leaves[i] for i in floats]), strict=True)
        reached = {i: g for i, g in gradients if g is not None}
        graph = builder.graph(list(reached.values()))
        types = [*body.inputs, *(seed.type for _, seed in seeds)]
        return BodyBack(derived(body, graph, types), tuple(reached))

    return body.made(("way back", given), make)


def paths(body: Body) -> tuple[frozenset[int], ...]:
    """Return, for each result, the inputs that it may depend on differentiably."""

    def make() -> tuple[frozenset[int], ...]:
        graph, reach = tidy(body).graph, list[frozenset[int]]()
        for node in graph.nodes:
            reach.append(_reach(node, reach))
        return tuple([reach[i] for i in graph.outputs])

    return body.made("paths", make)


def _reach(node: Node, reach: list[frozenset[int]]) -> frozenset[int]:
    if not any(type.is_differentiable for type in node.types):
        return frozenset()
    if node.is_leaf:
        return frozenset([int(node.attrs["feed"])])
    if not node.op.is_differentiable:
        return frozenset()
    return frozenset().union(*[reach[i] for i in node.operands])
