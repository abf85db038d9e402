"""If, Loop and Scan: their bodies become functions, which `cond`, `scan` and `while` run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import GraphProto

from gradserve_client.graph import Graph, Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import outputs_of
from gradserve_client.onnx.bodies import BodyInput, TranslatedBody, require_same
from gradserve_client.onnx.call import Call, RuleResult
from gradserve_client.onnx.families.table import RULES
from gradserve_client.onnx.scope import Known, Value


def _examples(values: Sequence[Value]) -> list[Any]:
    return [np.asarray(value.example) for value in values]


def _outputs(translated: TranslatedBody) -> Sequence[Node]:
    return translated.nodes


@RULES("If")
def if_(call: Call) -> RuleResult:
    """Translate both branches to a `cond`. If the condition is known, translate only the nodes of that branch."""
    branches = [call.body("then_branch"), call.body("else_branch")]
    counts = [len(branch.output) for branch in branches]
    if counts[0] != counts[1]:
        raise Blocked(f"its branches have different numbers of results, {counts[0]} and {counts[1]}")
    if call.value().known is not Known.DATA:
        return call.bodies.inline(branches[0] if bool(call.static(0, "condition").reshape(-1)[0]) else branches[1])
    consts = call.bodies.consts(*branches)
    then, otherwise = (call.bodies.function(branch, consts, [], _outputs) for branch in branches)
    for i, (then_example, else_example) in enumerate(
        zip(_examples(then[1].outputs), _examples(otherwise[1].outputs), strict=True)
    ):
        require_same(f"result {i} of its branches", then_example, else_example)
    operands = [call.scope.node_of(const) for const in consts]
    predicate = call.node().reshape(shape=[])
    results = call.graph.cond(predicate, *operands, then=then[0], otherwise=otherwise[0])
    return outputs_of(results, len(branches[0].output))


@RULES("Loop")
def loop(call: Call) -> RuleResult:
    """Translate to a `scan` if all iterations run, else to a `while` whose condition is a carry."""
    body = call.body("body")
    iteration, condition, *names = (each.name for each in body.input)
    carried = [call.value(i) for i in range(2, len(call))]
    consts = call.bodies.consts(body)
    carries = [
        BodyInput(name, np.asarray(value.example), value.roots) for name, value in zip(names, carried, strict=True)
    ]
    counter = BodyInput(iteration, np.asarray(0, np.int64))
    starts = not call.has(1) or (call.value(1).known is not Known.DATA and bool(call.static(1, "condition").all()))
    if starts:
        # with the condition fixed to true, a constant true as the next condition means that all iterations run
        next_condition = call.bodies.trial(body, consts, [*carries, counter], **{condition: np.True_}).outputs[0]
        if next_condition.known is Known.CONSTANT and bool(np.all(next_condition.example)):
            return _for(call, body, consts, carries, counter, condition)
    return _while(call, body, consts, carries, counter, condition)


def _for(
    call: Call, body: GraphProto, consts: list[Value], carries: list[BodyInput], counter: BodyInput, condition: str
) -> RuleResult:
    """Translate to a scan with the stated number of iterations."""
    if not call.has(0):
        raise Blocked("it never ends: it has neither a bound nor a condition")
    steps = int(call.static(0, "number of iterations").reshape(-1)[0])
    fixed = {condition: np.True_}
    function, translated = call.bodies.function(
        body, consts, [*carries, counter], lambda translated: translated.nodes[1:], **fixed
    )
    _require_carried(carries, translated.outputs[1:])
    counters = call.constant(np.arange(steps), np.int64)
    operands = [*(call.scope.node_of(const) for const in consts), *(call.node(i + 2) for i in range(len(carries)))]
    results = call.graph.scan(*operands, counters, body=function, carries=len(carries), sequences=1)
    return outputs_of(results, len(translated.outputs) - 1)


def _require_carried(carried: Sequence[BodyInput], after: Sequence[Value]) -> None:
    for each, value in zip(carried, after, strict=False):
        require_same(f"its carry {each.name!r}", each.example, np.asarray(value.example))


def _while(
    call: Call,
    body: GraphProto,
    consts: list[Value],
    model_carries: list[BodyInput],
    counter: BodyInput,
    condition: str,
) -> RuleResult:
    """Translate to a `while`. Its carries are the iteration counter, the condition, and the model's own carries."""
    if len(body.output) - 1 > len(model_carries):
        if call.has(1):
            call.static(1, "condition")
        raise Blocked("the number of rows of its stacked results depends on the data, as its condition does")
    max_steps = _bound(call)
    condition_input = BodyInput(condition, np.asarray(True))
    carries = [counter, condition_input, *model_carries]

    def step(translated: TranslatedBody) -> Sequence[Node]:
        one = translated.scope.graph.constant(np.asarray(1, np.int64))
        after, *carried = translated.nodes
        return [translated.parameters[0].add(one), after.reshape(shape=[]), *carried]

    function, translated = call.bodies.function(body, consts, carries, step)
    _require_carried(model_carries, translated.outputs[1:])
    test = call.graph.function(_condition(len(consts), len(carries), call.has(0)), "goes_on")
    limit = [call.node(0).reshape(shape=[]).cast("int64")] if call.has(0) else []
    start = [call.constant(0, np.int64), call.node(1).reshape(shape=[]) if call.has(1) else call.constant(np.True_)]
    const_nodes = [call.scope.node_of(const) for const in consts]
    function = call.graph.function(_with_unused_consts(function, len(limit)), "step") if limit else function
    operands = [*limit, *const_nodes, *start, *(call.node(i + 2) for i in range(len(model_carries)))]
    results = call.graph.while_(*operands, condition=test, body=function, carries=len(carries), max_steps=max_steps)
    return [results.get_output(i + 2) for i in range(len(model_carries))]


def _bound(call: Call) -> int:
    """Return an upper bound on the number of iterations."""
    max_steps = call.bodies.max_steps
    if call.has(0) and call.value(0).known is not Known.DATA:
        steps = int(call.static(0, "number of iterations").reshape(-1)[0])
        return steps if max_steps is None else min(steps, max_steps)
    if max_steps is None:
        raise Blocked("the number of its steps depends on the data", "pass a bound as `max_steps`")
    return max_steps


def _condition(consts: int, carries: int, limited: bool) -> Any:
    """Return the condition function of the limit, the consts and the carries."""

    def write(graph: Graph) -> Node:
        limit = graph.input() if limited else None
        for _ in range(consts):
            graph.input()
        counter, running, *_ = (graph.input() for _ in range(carries))
        return running if limit is None else running.logical_and(counter.less(limit))

    return write


def _with_unused_consts(function: Any, count: int) -> Any:
    """Wrap a function with further consts in front of its own, which it ignores."""

    def write(graph: Graph) -> Sequence[Node]:
        for _ in range(count):
            graph.input()
        results = graph.call(*(graph.input() for _ in function.parameters), body=function)
        return outputs_of(results, len(function.outputs))

    return write


@RULES("Scan", since=9)
def scan(call: Call) -> RuleResult:
    """Translate states to carries. Move sequences to axis 0, and reverse those that are read backwards."""
    body = call.body("body")
    count = call.attrs["num_scan_inputs"]
    states = len(call) - count
    stacks = len(body.output) - states
    axes = call.attrs.get("scan_input_axes") or [0] * count
    backwards = call.attrs.get("scan_input_directions") or [0] * count
    names = [each.name for each in body.input]
    examples = [np.moveaxis(np.asarray(call.value(states + i).example), axes[i], 0) for i in range(count)]
    state_inputs = [BodyInput(names[i], np.asarray(call.value(i).example), call.value(i).roots) for i in range(states)]
    entry_inputs = [
        BodyInput(names[states + i], _entry(example), call.value(states + i).roots)
        for i, example in enumerate(examples)
    ]
    consts = call.bodies.consts(body)
    function, translated = call.bodies.function(body, consts, [*state_inputs, *entry_inputs], _outputs)
    _require_carried(state_inputs, translated.outputs)
    sequences = [_first_axis(call, states + i, axes[i], bool(backwards[i])) for i in range(count)]
    operands = [*(call.scope.node_of(const) for const in consts), *(call.node(i) for i in range(states)), *sequences]
    results = outputs_of(call.graph.scan(*operands, body=function, carries=states, sequences=count), states + stacks)
    return results[:states] + [_placed(call, results[states + i], states + i, i) for i in range(stacks)]


def _entry(example: Any) -> Any:
    """Return the first entry of a sequence, or zeros if it is empty."""
    return example[0] if len(example) else np.zeros(example.shape[1:], example.dtype)


def _first_axis(call: Call, i: int, axis: int, backwards: bool) -> Node:
    rank = call.rank(i)
    node, axis = call.node(i), axis % rank
    if axis:
        node = node.transpose(axes=[axis, *(k for k in range(rank) if k != axis)])
    return node.flip(axes=[0]) if backwards else node


def _placed(call: Call, stack: Node, result: int, i: int) -> Node:
    """Move the steps of a stack to the stated axis, in the stated direction."""
    axes, backwards = call.attrs.get("scan_output_axes"), call.attrs.get("scan_output_directions")
    if backwards and backwards[i]:
        stack = stack.flip(axes=[0])
    rank = len(call.result_shape(result)) if call.is_requested(result) else 0
    axis = axes[i] % rank if axes and rank else 0
    if not axis:
        return stack
    order = [*range(1, rank)]
    order.insert(axis, 0)
    return stack.transpose(axes=order)
