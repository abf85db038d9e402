"""If, Loop and Scan: bodies as functions, which `cond`, `scan` and `while` run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import GraphProto

from gradserve_client.graph import Graph, Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import several
from gradserve_client.onnx.bodies import Given, Made, require_same
from gradserve_client.onnx.call import Call, Said
from gradserve_client.onnx.families.table import RULES
from gradserve_client.onnx.scope import Known, Value


def _told(values: Sequence[Value]) -> list[Any]:
    return [np.asarray(value.example) for value in values]


def _outputs(made: Made) -> Sequence[Node]:
    return made.nodes


@RULES("If")
def if_(call: Call) -> Said:
    """Both branches, of which one runs; or, where the condition is known, that one's nodes alone."""
    branches = [call.body("then_branch"), call.body("else_branch")]
    counts = [len(branch.output) for branch in branches]
    if counts[0] != counts[1]:
        raise Blocked(f"its branches have {counts[0]} and {counts[1]} results")
    if call.value().known is not Known.DATA:
        return call.bodies.inline(branches[0] if bool(call.static(0, "condition").reshape(-1)[0]) else branches[1])
    consts = call.bodies.consts(*branches)
    then, otherwise = (call.bodies.function(branch, consts, [], _outputs) for branch in branches)
    for i, (one, other) in enumerate(zip(_told(then[1].outputs), _told(otherwise[1].outputs), strict=True)):
        require_same(f"result {i} of its branches", one, other)
    operands = [call.scope.node_of(const) for const in consts]
    predicate = call.node().reshape(shape=[])
    found = call.graph.cond(predicate, *operands, then=then[0], otherwise=otherwise[0])
    return several(found, len(branches[0].output))


@RULES("Loop")
def loop(call: Call) -> Said:
    """A `scan` where all iterations run, else a `while` whose condition is a carry."""
    body = call.body("body")
    iteration, condition, *names = (each.name for each in body.input)
    carried = [call.value(i) for i in range(2, len(call))]
    consts = call.bodies.consts(body)
    given = [Given(name, np.asarray(value.example), value.roots) for name, value in zip(names, carried, strict=True)]
    counter = Given(iteration, np.asarray(0, np.int64))
    begins = not call.has(1) or (call.value(1).known is not Known.DATA and bool(call.static(1, "condition").all()))
    if begins:
        first = call.bodies.tried(body, consts, [*given, counter], **{condition: np.True_}).outputs[0]
        if first.known is Known.CONSTANT and bool(np.all(first.example)):
            return _for(call, body, consts, given, counter, condition)
    return _while(call, body, consts, given, counter, condition)


def _for(call: Call, body: GraphProto, consts: list[Value], given: list[Given], counter: Given, condition: str) -> Said:
    """As many iterations as are stated."""
    if not call.has(0):
        raise Blocked("it never ends: it has neither a bound nor a condition")
    steps = int(call.static(0, "number of iterations").reshape(-1)[0])
    fixed = {condition: np.True_}
    function, made = call.bodies.function(body, consts, [*given, counter], lambda made: made.nodes[1:], **fixed)
    _require_carried(given, made.outputs[1:])
    numbers = call.constant(np.arange(steps), np.int64)
    operands = [*(call.scope.node_of(const) for const in consts), *(call.node(i + 2) for i in range(len(given)))]
    found = call.graph.scan(*operands, numbers, body=function, carries=len(given), sequences=1)
    return several(found, len(made.outputs) - 1)


def _require_carried(given: Sequence[Given], after: Sequence[Value]) -> None:
    for each, value in zip(given, after, strict=False):
        require_same(f"what it carries as {each.name!r}", each.example, np.asarray(value.example))


def _while(
    call: Call, body: GraphProto, consts: list[Value], given: list[Given], counter: Given, condition: str
) -> Said:
    """The carries are the iteration's number, the condition, and the model's own."""
    if len(body.output) - 1 > len(given):
        if call.has(1):
            call.static(1, "condition")
        raise Blocked("how many rows its stacked results have depends on the data, as its condition does")
    most = _bound(call)
    holds = Given(condition, np.asarray(True))
    everything = [counter, holds, *given]

    def step(made: Made) -> Sequence[Node]:
        one = made.scope.graph.constant(np.asarray(1, np.int64))
        after, *carried = made.nodes
        return [made.parameters[0].add(one), after.reshape(shape=[]), *carried]

    function, made = call.bodies.function(body, consts, everything, step)
    _require_carried(given, made.outputs[1:])
    test = call.graph.function(_condition(len(consts), len(everything), call.has(0)), "goes_on")
    limit = [call.node(0).reshape(shape=[]).cast("int64")] if call.has(0) else []
    start = [call.constant(0, np.int64), call.node(1).reshape(shape=[]) if call.has(1) else call.constant(np.True_)]
    passed = [call.scope.node_of(const) for const in consts]
    function = call.graph.function(_behind(function, len(limit)), "step") if limit else function
    operands = [*limit, *passed, *start, *(call.node(i + 2) for i in range(len(given)))]
    found = call.graph.while_(*operands, condition=test, body=function, carries=len(everything), max_steps=most)
    return [found.get_output(i + 2) for i in range(len(given))]


def _bound(call: Call) -> int:
    """How many iterations there are at most."""
    stated = call.bodies.max_steps
    if call.has(0) and call.value(0).known is not Known.DATA:
        steps = int(call.static(0, "number of iterations").reshape(-1)[0])
        return steps if stated is None else min(steps, stated)
    if stated is None:
        raise Blocked("it goes on until its data say otherwise", "state a bound as `max_steps`")
    return stated


def _condition(consts: int, carries: int, limited: bool) -> Any:
    """Of the limit, the consts and the carries: whether to go on."""

    def write(graph: Graph) -> Node:
        limit = graph.input() if limited else None
        for _ in range(consts):
            graph.input()
        number, holds, *_ = (graph.input() for _ in range(carries))
        return holds if limit is None else holds.logical_and(number.less(limit))

    return write


def _behind(function: Any, more: int) -> Any:
    """A function with further consts in front of its own, which it does not read."""

    def write(graph: Graph) -> Sequence[Node]:
        for _ in range(more):
            graph.input()
        found = graph.call(*(graph.input() for _ in function.parameters), body=function)
        return several(found, len(function.outputs))

    return write


@RULES("Scan", since=9)
def scan(call: Call) -> Said:
    """States are carries; sequences are brought to axis 0, and turned where they are read backwards."""
    body = call.body("body")
    count = call.attrs["num_scan_inputs"]
    states = len(call) - count
    stacks = len(body.output) - states
    axes = call.attrs.get("scan_input_axes") or [0] * count
    backwards = call.attrs.get("scan_input_directions") or [0] * count
    names = [each.name for each in body.input]
    examples = [np.moveaxis(np.asarray(call.value(states + i).example), axes[i], 0) for i in range(count)]
    given = [Given(names[i], np.asarray(call.value(i).example), call.value(i).roots) for i in range(states)]
    entries = [
        Given(names[states + i], _entry(example), call.value(states + i).roots) for i, example in enumerate(examples)
    ]
    consts = call.bodies.consts(body)
    function, made = call.bodies.function(body, consts, [*given, *entries], _outputs)
    _require_carried(given, made.outputs)
    sequences = [_first_axis(call, states + i, axes[i], bool(backwards[i])) for i in range(count)]
    operands = [*(call.scope.node_of(const) for const in consts), *(call.node(i) for i in range(states)), *sequences]
    found = several(call.graph.scan(*operands, body=function, carries=states, sequences=count), states + stacks)
    return found[:states] + [_placed(call, found[states + i], states + i, i) for i in range(stacks)]


def _entry(example: Any) -> Any:
    """The first of a sequence, or zeros where it has none."""
    return example[0] if len(example) else np.zeros(example.shape[1:], example.dtype)


def _first_axis(call: Call, i: int, axis: int, backwards: bool) -> Node:
    rank = call.rank(i)
    node, axis = call.node(i), axis % rank
    if axis:
        node = node.transpose(axes=[axis, *(k for k in range(rank) if k != axis)])
    return node.flip(axes=[0]) if backwards else node


def _placed(call: Call, stack: Node, result: int, i: int) -> Node:
    """A stack with its steps on the axis that is stated, and in the order."""
    axes, backwards = call.attrs.get("scan_output_axes"), call.attrs.get("scan_output_directions")
    if backwards and backwards[i]:
        stack = stack.flip(axes=[0])
    rank = len(call.result_shape(result)) if call.asked(result) else 0
    axis = axes[i] % rank if axes and rank else 0
    if not axis:
        return stack
    order = [*range(1, rank)]
    order.insert(axis, 0)
    return stack.transpose(axes=order)
