"""What `If`, `Loop` and `Scan` give for the example: a step at a time, each node of a body by itself.

ONNX's reference evaluator has these ops, but stacks what a `Loop` gives at each step along an axis that it has already,
and knows of a `Scan` neither axes nor directions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, helper

from gradserve_client.importing import Budget
from gradserve_client.onnx.reading import array_of
from gradserve_client.onnx.sizes import held_bytes

#: gives the outputs of a node for values of the names that it reads, in these opsets, and charges a budget
Evaluate = Callable[[NodeProto, Mapping[str, Any], Mapping[str, int], Budget], list[Any]]


def is_stepped(node: NodeProto) -> bool:
    """Whether it runs bodies, and is run here."""
    return node.domain in {"", "ai.onnx"} and node.op_type in {"If", "Loop", "Scan"}


def stepped(
    node: NodeProto, values: Mapping[str, Any], opsets: Mapping[str, int], evaluate: Evaluate, budget: Budget
) -> list[Any]:
    """All outputs of such a node, those too that nobody asks for."""
    attrs = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    operands = [values[name] if name else None for name in node.input]

    def run(body: GraphProto, given: Sequence[Any]) -> list[Any]:
        budget.add_steps()
        # what its nodes give is released with the iteration
        with budget.temporary():
            return _body_outputs(body, given, values, lambda each, seen: evaluate(each, seen, opsets, budget))

    if node.op_type == "If":
        return run(attrs["then_branch" if bool(np.all(operands[0])) else "else_branch"], [])
    with budget.temporary():
        if node.op_type == "Loop":
            return _loop(operands, attrs["body"], run, budget)
        return _scan(operands, attrs, run, budget)


def _body_outputs(
    body: GraphProto,
    given: Sequence[Any],
    around: Mapping[str, Any],
    evaluate: Callable[[NodeProto, Mapping[str, Any]], list[Any]],
) -> list[Any]:
    """The outputs of a body for its inputs, and what it reads around."""
    values = {**around, **{each.name: array_of(each) for each in body.initializer}}
    values |= {each.name: value for each, value in zip(body.input, given, strict=True)}
    for node in body.node:
        values |= dict(zip(node.output, evaluate(node, values), strict=True))
    return [values[each.name] for each in body.output]


Run = Callable[[GraphProto, Sequence[Any]], list[Any]]


def _loop(operands: Sequence[Any], body: GraphProto, run: Run, budget: Budget) -> list[Any]:
    most, holds, *carried = [*operands, None][: max(2, len(operands))]
    goes_on = True if holds is None else bool(np.all(holds))
    rows: list[list[Any]] = []
    step = 0
    while goes_on and (most is None or step < int(np.max(most))):
        again, *after = run(body, [np.asarray(step, np.int64), np.asarray(True), *carried])
        carried, row = after[: len(carried)], after[len(carried) :]
        rows.append(row)
        budget.hold(held_bytes(row))
        goes_on, step = bool(np.all(again)), step + 1
    like = rows[0] if rows else run(body, [np.asarray(0, np.int64), np.asarray(True), *carried])[1 + len(carried) :]
    return [*carried, *_stacks(rows, like)]


def _scan(operands: Sequence[Any], attrs: Mapping[str, Any], run: Run, budget: Budget) -> list[Any]:
    body, count = attrs["body"], attrs["num_scan_inputs"]
    states, sequences = [*operands[:-count]], operands[-count:]
    axes = attrs.get("scan_input_axes") or [0] * count
    backwards = attrs.get("scan_input_directions") or [0] * count
    moved = [np.moveaxis(each, axis, 0) for each, axis in zip(sequences, axes, strict=True)]
    turned = [each[::-1] if back else each for each, back in zip(moved, backwards, strict=True)]
    rows: list[list[Any]] = []
    for entries in zip(*turned, strict=True):
        after = run(body, [*states, *entries])
        states, row = after[: len(states)], after[len(states) :]
        rows.append(row)
        budget.hold(held_bytes(row))
    nothing = [np.zeros(each.shape[1:], each.dtype) for each in turned]
    like = rows[0] if rows else run(body, [*states, *nothing])[len(states) :]
    stacks = _stacks(rows, like)
    out_axes = attrs.get("scan_output_axes") or [0] * len(stacks)
    out_backwards = attrs.get("scan_output_directions") or [0] * len(stacks)
    placed = zip(stacks, out_axes, out_backwards, strict=True)
    return [*states, *(np.moveaxis(stack[::-1] if back else stack, 0, axis) for stack, axis, back in placed)]


def _stacks(rows: Sequence[Sequence[Any]], like: Sequence[Any]) -> list[Any]:
    """What came of each step, one behind the other; where there was none, of the types of `like`."""
    return [
        np.stack([row[i] for row in rows]) if rows else np.zeros((0, *np.shape(each)), np.asarray(each).dtype)
        for i, each in enumerate(like)
    ]
