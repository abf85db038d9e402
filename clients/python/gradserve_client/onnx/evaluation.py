"""ONNX's reference evaluator, run node by node to fold constants and to find shapes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from onnx import NodeProto, ValueInfoProto, helper
from onnx.reference import ReferenceEvaluator

from gradserve_client.errors import GradserveError
from gradserve_client.importing import Blocked, Budget
from gradserve_client.onnx.control_flow_evaluation import is_control_flow, run_stepwise
from gradserve_client.onnx.evaluator_fixes import corrected_outputs, with_current_name
from gradserve_client.onnx.families.unsupported import CLASSICAL, NOT_RUN, UNSUPPORTED
from gradserve_client.onnx.functions import bodies_of, read_around
from gradserve_client.onnx.sizes import held_bytes, loop_steps, needed_bytes

#: IR version of the one-node models that the evaluator runs
_IR_VERSION: Final = 8
#: bytes read and written that count as one further step of the budget
_BYTES_OF_A_STEP: Final = 2**20


def evaluate_node(node: NodeProto, values: Mapping[str, Any], opsets: Mapping[str, int], budget: Budget) -> list[Any]:
    """Return the outputs of a node for the values of the names that it and its bodies read.

    Raises Blocked if the evaluator fails, and ImportRefused, before it computes anything, if the node exceeds the
    budget.
    """
    try:
        # the evaluator triggers NumPy warnings about divisions by zero and deprecations
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            results = _outputs(node, values, opsets, budget)
    except (Blocked, GradserveError):
        raise
    except Exception as error:
        message = str(error).strip().splitlines()
        cause = f"{type(error).__name__}: {message[0][:160]}" if message else type(error).__name__
        raise Blocked(f"ONNX's reference evaluator cannot run it ({cause})") from error
    if len(node.output) > len(results):
        raise Blocked(f"it has {len(node.output)} outputs, but ONNX's evaluator returns {len(results)}")
    outputs = [_as_array(results[i]) if name else None for i, name in enumerate(node.output)]
    budget.hold(held_bytes(outputs))
    return outputs


def _outputs(node: NodeProto, values: Mapping[str, Any], opsets: Mapping[str, int], budget: Budget) -> list[Any]:
    """Return all outputs of a node, computed by our own code for ops that need it, else by ONNX's evaluator."""
    budget.add_steps()
    if is_control_flow(node):
        return run_stepwise(node, values, opsets, evaluate_node, budget)
    _require_bounded(node)
    needed = needed_bytes(node, values, opsets)
    budget.require(needed)
    read_bytes = held_bytes(values[name] for name in node.input if name)
    budget.add_steps(loop_steps(node, values) + (needed + read_bytes) // _BYTES_OF_A_STEP)
    outputs = corrected_outputs(node, values)
    return _by_reference(node, values, opsets) if outputs is None else outputs


def _require_bounded(node: NodeProto) -> None:
    """Raise Blocked for a node whose cost does not follow from the sizes of its operands and results."""
    if node.domain == "ai.onnx.ml":
        raise Blocked(*CLASSICAL)
    if node.op_type in NOT_RUN:
        raise Blocked(*UNSUPPORTED[node.op_type])
    if bodies_of(node):
        raise Blocked("it runs a body, but the importer runs only those of If, Loop and Scan")


def _by_reference(node: NodeProto, values: Mapping[str, Any], opsets: Mapping[str, int]) -> list[Any]:
    """Return all outputs of a node as ONNX's evaluator computes them, with None for outputs that are not requested."""
    node, opsets = with_current_name(node, opsets)
    read = [name for name in dict.fromkeys([*node.input, *read_around(bodies_of(node).values())]) if name]
    graph = helper.make_graph(
        [node],
        "one",
        [_typed(name, values[name]) for name in read],
        [ValueInfoProto(name=name) for name in node.output if name],
    )
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    model = helper.make_model(graph, opset_imports=imports, ir_version=_IR_VERSION)
    results = iter(ReferenceEvaluator(model).run(None, {name: values[name] for name in read}))
    return [next(results) if name else None for name in node.output]


def _typed(name: str, value: Any) -> ValueInfoProto:
    """Return a name with the type of its value, since ONNX's definition of an op may depend on it."""
    if not isinstance(value, np.ndarray):
        return ValueInfoProto(name=name)
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)


def _as_array(value: Any) -> Any:
    """Convert a number to an array. Return arrays, sequences and None unchanged."""
    return np.asarray(value) if isinstance(value, np.generic | bool | int | float) else value
