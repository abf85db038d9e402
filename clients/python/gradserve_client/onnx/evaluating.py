"""ONNX's reference evaluator, a node at a time: what folds constants, and finds shapes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from onnx import NodeProto, ValueInfoProto, helper
from onnx.reference import ReferenceEvaluator

from gradserve_client.errors import GradserveError
from gradserve_client.importing import Blocked, Budget
from gradserve_client.onnx.expanding import bodies_of, read_around
from gradserve_client.onnx.families.refused import CLASSICAL, NOT_RUN, REFUSED
from gradserve_client.onnx.mended import mended, renamed
from gradserve_client.onnx.sizes import held_bytes, loop_steps, needed_bytes
from gradserve_client.onnx.stepping import is_stepped, stepped

#: the newest version of the format that this onnx reads
_IR_VERSION: Final = 8
#: a node that reads and writes this much counts as a further step
_BYTES_OF_A_STEP: Final = 2**20


def evaluated(node: NodeProto, values: Mapping[str, Any], opsets: Mapping[str, int], budget: Budget) -> list[Any]:
    """The outputs of a node for these values of the names that it reads, those that its bodies read among them.

    Raises Blocked where the evaluator cannot, and ImportRefused before what exceeds the budget is computed.
    """
    try:
        # it warns of divisions by zero, and of what is to change in NumPy
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = _outputs(node, values, opsets, budget)
    except (Blocked, GradserveError):
        raise
    except Exception as error:
        said = str(error).strip().splitlines()
        told = f"{type(error).__name__}: {said[0][:160]}" if said else type(error).__name__
        raise Blocked(f"ONNX's reference evaluator cannot run it ({told})") from error
    if len(node.output) > len(found):
        raise Blocked(f"it has {len(node.output)} outputs, and ONNX's evaluator gives {len(found)}")
    outputs = [_as_array(found[i]) if name else None for i, name in enumerate(node.output)]
    budget.hold(held_bytes(outputs))
    return outputs


def _outputs(node: NodeProto, values: Mapping[str, Any], opsets: Mapping[str, int], budget: Budget) -> list[Any]:
    """All outputs of a node, by whom it takes."""
    budget.add_steps()
    if is_stepped(node):
        return stepped(node, values, opsets, evaluated, budget)
    _require_bounded(node)
    needed = needed_bytes(node, values, opsets)
    budget.require(needed)
    read = held_bytes(values[name] for name in node.input if name)
    budget.add_steps(loop_steps(node, values) + (needed + read) // _BYTES_OF_A_STEP)
    found = mended(node, values)
    return _by_reference(node, values, opsets) if found is None else found


def _require_bounded(node: NodeProto) -> None:
    """Raise Blocked for a node whose cost does not follow from the sizes of its operands and results."""
    if node.domain == "ai.onnx.ml":
        raise Blocked(*CLASSICAL)
    if node.op_type in NOT_RUN:
        raise Blocked(*REFUSED[node.op_type])
    if bodies_of(node):
        raise Blocked("it runs a body, and the importer runs those of If, Loop and Scan alone")


def _by_reference(node: NodeProto, values: Mapping[str, Any], opsets: Mapping[str, int]) -> list[Any]:
    """All outputs of a node, None in place of those that nobody asks for."""
    node, opsets = renamed(node, opsets)
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
    """A name with the type of its value: what ONNX defines an op by may depend on that."""
    if not isinstance(value, np.ndarray):
        return ValueInfoProto(name=name)
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)


def _as_array(found: Any) -> Any:
    """Arrays as they are, numbers as arrays; sequences and what is absent are left alone."""
    return np.asarray(found) if isinstance(found, np.generic | bool | int | float) else found
