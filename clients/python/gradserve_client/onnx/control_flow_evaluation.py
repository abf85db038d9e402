"""Evaluation of `If`, `Loop` and `Scan` for the example: one step at a time, one node of a body at a time.

ONNX's reference evaluator has these ops, but it concatenates the outputs of a `Loop`'s steps along an existing axis,
and its `Scan` supports neither axes nor directions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, helper

from gradserve_client.importing import Budget
from gradserve_client.onnx.reading import array_of
from gradserve_client.onnx.sizes import held_bytes

#: returns the outputs of a node for the values of the names that it reads, in these opsets, and charges a budget
Evaluate = Callable[[NodeProto, Mapping[str, Any], Mapping[str, int], Budget], list[Any]]


def is_control_flow(node: NodeProto) -> bool:
    """Return whether a node runs bodies and is evaluated here."""
    return node.domain in {"", "ai.onnx"} and node.op_type in {"If", "Loop", "Scan"}


def run_stepwise(
    node: NodeProto, values: Mapping[str, Any], opsets: Mapping[str, int], evaluate: Evaluate, budget: Budget
) -> list[Any]:
    """Return all outputs of a control-flow node, including outputs that are not requested."""
    attrs = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    operands = [values[name] if name else None for name in node.input]

    def run(body: GraphProto, inputs: Sequence[Any]) -> list[Any]:
        budget.add_steps()
        # the values of an iteration are released when it ends
        with budget.temporary():
            return _body_outputs(body, inputs, values, lambda each, seen: evaluate(each, seen, opsets, budget))

    if node.op_type == "If":
        return run(attrs["then_branch" if bool(np.all(operands[0])) else "else_branch"], [])
    with budget.temporary():
        if node.op_type == "Loop":
            return _loop(operands, attrs["body"], run, budget)
        return _scan(operands, attrs, run, budget)


def _body_outputs(
    body: GraphProto,
    inputs: Sequence[Any],
    outer_values: Mapping[str, Any],
    evaluate: Callable[[NodeProto, Mapping[str, Any]], list[Any]],
) -> list[Any]:
    """Return the outputs of a body for its inputs and the values of the scope around it."""
    values = {**outer_values, **{each.name: array_of(each) for each in body.initializer}}
    values |= {each.name: value for each, value in zip(body.input, inputs, strict=True)}
    for node in body.node:
        values |= dict(zip(node.output, evaluate(node, values), strict=True))
    return [values[each.name] for each in body.output]


Run = Callable[[GraphProto, Sequence[Any]], list[Any]]


def _loop(operands: Sequence[Any], body: GraphProto, run: Run, budget: Budget) -> list[Any]:
    max_steps, condition, *carried = [*operands, None][: max(2, len(operands))]
    running = True if condition is None else bool(np.all(condition))
    rows: list[list[Any]] = []
    step = 0
    while running and (max_steps is None or step < int(np.max(max_steps))):
        next_condition, *after = run(body, [np.asarray(step, np.int64), np.asarray(True), *carried])
        carried, row = after[: len(carried)], after[len(carried) :]
        rows.append(row)
        budget.hold(held_bytes(row))
        running, step = bool(np.all(next_condition)), step + 1
    template = rows[0] if rows else run(body, [np.asarray(0, np.int64), np.asarray(True), *carried])[1 + len(carried) :]
    return [*carried, *_stacks(rows, template)]


def _scan(operands: Sequence[Any], attrs: Mapping[str, Any], run: Run, budget: Budget) -> list[Any]:
    body, count = attrs["body"], attrs["num_scan_inputs"]
    states, sequences = [*operands[:-count]], operands[-count:]
    axes = attrs.get("scan_input_axes") or [0] * count
    backwards = attrs.get("scan_input_directions") or [0] * count
    first_axis = [np.moveaxis(each, axis, 0) for each, axis in zip(sequences, axes, strict=True)]
    ordered = [each[::-1] if backward else each for each, backward in zip(first_axis, backwards, strict=True)]
    rows: list[list[Any]] = []
    for entries in zip(*ordered, strict=True):
        after = run(body, [*states, *entries])
        states, row = after[: len(states)], after[len(states) :]
        rows.append(row)
        budget.hold(held_bytes(row))
    zero_entries = [np.zeros(each.shape[1:], each.dtype) for each in ordered]
    template = rows[0] if rows else run(body, [*states, *zero_entries])[len(states) :]
    stacks = _stacks(rows, template)
    out_axes = attrs.get("scan_output_axes") or [0] * len(stacks)
    out_backwards = attrs.get("scan_output_directions") or [0] * len(stacks)
    outputs = zip(stacks, out_axes, out_backwards, strict=True)
    return [*states, *(np.moveaxis(stack[::-1] if backward else stack, 0, axis) for stack, axis, backward in outputs)]


def _stacks(rows: Sequence[Sequence[Any]], template: Sequence[Any]) -> list[Any]:
    """Stack the rows of all steps. Without any step, return empty stacks of the types of `template`."""
    return [
        np.stack([row[i] for row in rows]) if rows else np.zeros((0, *np.shape(each)), np.asarray(each).dtype)
        for i, each in enumerate(template)
    ]
