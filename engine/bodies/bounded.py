"""Loops of a known length of which only the first steps are taken, in ops of the registry."""

from __future__ import annotations

from engine.bodies.stepwise import zeros
from engine.graph.body import Body
from engine.graph.tensor_type import INT64, TensorType


def bounded(body: Body, consts: int, carries: int) -> Body:
    """A step of the consts, then a count; of carries; of the step's number, then sequences.

    It is the body's where its number is below the count. Elsewhere carries stay, and its stacks get zeros.
    """
    return body.made(("bounded", consts, carries), lambda: _bounded(body, consts, carries))


def _bounded(body: Body, consts: int, carries: int) -> Body:
    whole, behind = TensorType((), INT64), consts + carries
    inputs = body.inputs
    types = [*inputs[:consts], whole, *inputs[consts:behind], whole, *inputs[behind:]]
    builder = body.budget.builder(body.graph.registry)
    leaves = [builder.leaf(type, i) for i, type in enumerate(types)]
    count, number = leaves.pop(consts), leaves.pop(behind)
    attrs = {"then": body, "otherwise": _standing(body, consts, carries)}
    step = builder.emit(builder.registry.ops["cond"], [number.less(count), *leaves], attrs)
    return body.derived(builder.graph([step.output(k) for k in range(len(body.outputs))]), types)


def _standing(body: Body, consts: int, carries: int) -> Body:
    """Return the body of a step that is not taken."""
    builder = body.budget.builder(body.graph.registry)
    leaves = [builder.leaf(type, i) for i, type in enumerate(body.inputs)]
    nothing = [zeros(builder, type) for type in body.outputs[carries:]]
    return body.derived(builder.graph([*leaves[consts : consts + carries], *nothing]), body.inputs)
