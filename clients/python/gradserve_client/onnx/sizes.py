"""Bounds on the memory of a node before it runs, from ONNX's shape inference on the values of its operands."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from onnx import NodeProto, TensorProto, TypeProto, checker, helper, numpy_helper, shape_inference

from gradserve_client.importing import Blocked
from gradserve_client.onnx.functions import schema_of
from gradserve_client.onnx.reading import array_bytes

#: maximum number of elements of an operand that states a shape: a start and an end for each of 64 axes
_SHAPE_ELEMENTS: Final = 128
#: assumed bytes of an element of unknown type, and of an element of the evaluator's intermediate arrays
_WIDE: Final = 8
_NEWEST: Final = 2**31 - 1
#: ops that ONNX's evaluator runs as a Python loop over one axis
_RECURRENT: Final = frozenset({"CausalConvWithState", "GRU", "LSTM", "LinearAttention", "RNN"})


def held_bytes(values: Iterable[Any]) -> int:
    """Return the total bytes of the arrays among values."""
    return sum(array_bytes(value.shape, value.dtype) for value in values if isinstance(value, np.ndarray))


def loop_steps(node: NodeProto, values: Mapping[str, Any]) -> int:
    """Return an upper bound on the iterations of ONNX's evaluator for a node that it loops over an axis for, else 0."""
    return max(values[node.input[0]].shape, default=0) if node.op_type in _RECURRENT else 0


def needed_bytes(node: NodeProto, values: Mapping[str, Any], opsets: Mapping[str, int]) -> int:
    """Return the bytes of a node's results and of the arrays that ONNX's evaluator allocates on the way.

    Raises Blocked if the node does not match ONNX's definition of its op.
    """
    if node.op_type == "Constant":
        return int(node.ByteSize())
    operands: list[Any] = [values[name] if name else None for name in node.input]
    if node.op_type == "Range":
        # inference refuses arrays of one element, which the evaluator takes
        start, limit, delta = (float(each.reshape(-1)[0]) for each in operands)
        return _WIDE * int(abs((limit - start) / delta))
    attrs = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    _require_sound(node, attrs, operands)
    types = _result_types(node, values, opsets)
    results = [_shape_of(types.get(name, TypeProto())) for name in node.output if name]
    total = _WIDE * sum(_working_elements(node.op_type, attrs, operands, results[0] if results else None))
    for name, shape in zip([name for name in node.output if name], results, strict=True):
        if shape is None:
            total += _WIDE * _unknown_elements(node.op_type, operands)
        else:
            total += array_bytes(shape, _dtype_of(types[name].tensor_type.elem_type))
    return total


def _require_sound(node: NodeProto, attrs: Mapping[str, Any], operands: Sequence[Any]) -> None:
    """Raise Blocked for errors that ONNX's inference does not check, and that crash the process or exhaust memory."""
    if node.op_type == "LayerNormalization":
        axis, rank = attrs.get("axis", -1), operands[0].ndim
        if not -rank <= axis < rank:
            raise Blocked(f"its axis is {axis}, but its operand has {rank} axes")
    elif node.op_type == "GatherND":
        batch, ranks = attrs.get("batch_dims", 0), [each.ndim for each in operands[:2]]
        if not 0 <= batch < min(ranks):
            raise Blocked(f"its batch_dims are {batch}, but its operands have {ranks[0]} and {ranks[1]} axes")
    elif node.op_type == "Split" and attrs.get("num_outputs", len(node.output)) != len(node.output):
        raise Blocked(f"its num_outputs is {attrs['num_outputs']}, but it has {len(node.output)} outputs")


def _result_types(node: NodeProto, values: Mapping[str, Any], opsets: Mapping[str, int]) -> Mapping[str, TypeProto]:
    """Infer the types of results.

    Exporters write some nodes in a form that only a newer version of the op allows, so the newest version is tried
    second.
    """
    arrays = {name: values[name] for name in node.input if name}
    if not all(isinstance(array, np.ndarray) for array in arrays.values()):
        return {}  # an operand is a sequence or an optional
    types = {name: _type_of(array) for name, array in arrays.items()}
    # results' shapes may depend on the values of small operands, such as the shape of a Reshape
    small = {
        name: numpy_helper.from_array(array)
        for name, array in arrays.items()
        if array.size <= _SHAPE_ELEMENTS and array.dtype.kind not in "OUS"
    }
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    failures = []
    for versions in (opsets, {node.domain: _NEWEST, "": _NEWEST}):
        schema = schema_of(node, versions)
        if schema is None:
            continue
        try:
            types_of_results: Mapping[str, TypeProto] = shape_inference.infer_node_outputs(
                schema, node, types, small, opset_imports=imports
            )
        except (shape_inference.InferenceError, checker.ValidationError) as error:
            failures.append(str(error).strip().splitlines()[0])
        else:
            return types_of_results
    raise Blocked(f"it is not as ONNX defines it: {failures[0]}" if failures else "ONNX has no such op in this opset")


def _type_of(array: Any) -> TypeProto:
    return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def _dtype_of(element: int) -> np.dtype[Any]:
    """Return the dtype of a result. For strings it is a dtype wide enough for a number in words."""
    dtype: np.dtype[Any] = helper.tensor_dtype_to_np_dtype(element)
    return np.dtype("U32") if element == TensorProto.STRING else dtype


def _shape_of(stated: TypeProto) -> list[int] | None:
    """Return the shape of a type, or None if an extent depends on the data."""
    if not stated.HasField("tensor_type") or not stated.tensor_type.HasField("shape"):
        return None
    dims = stated.tensor_type.shape.dim
    if any(dim.dim_value < 0 for dim in dims):
        # an excessive scale overflows to a negative extent, too
        raise Blocked(f"the shape of its result would be {[dim.dim_value for dim in dims]}")
    return [dim.dim_value for dim in dims] if all(dim.HasField("dim_value") for dim in dims) else None


def _count(extents: Iterable[Any]) -> int:
    return math.prod(max(1, int(extent)) for extent in extents)


def _unknown_elements(op: str, operands: Sequence[Any]) -> int:
    """Bound the number of elements of a result whose shape cannot be inferred."""
    if op == "MaxUnpool":
        return _count(operands[2])
    # ops such as Compress and NonZero select entries, or positions of entries
    arrays = [each for each in operands if isinstance(each, np.ndarray)]
    return sum(_count(each.shape) * max(1, each.ndim) for each in arrays)


def _working_elements(
    op: str, attrs: Mapping[str, Any], operands: Sequence[Any], result: Sequence[int] | None
) -> Iterator[int]:
    """Yield the sizes, in elements, of the intermediate arrays of ONNX's evaluator and of the rules."""
    if op in {"AveragePool", "Conv", "ConvInteger", "LpPool", "MaxPool", "QLinearConv"}:
        kernel = attrs.get("kernel_shape") or operands[3 if op == "QLinearConv" else 1].shape[2:]
        lead = _count(operands[0].shape[:2])
        yield lead * _padded(operands[0].shape[2:], kernel, attrs)
        # a column for each window, and the positions that it reads
        yield 3 * lead * _count(_spans(kernel, attrs)) * _count((result or ())[2:])
    elif op == "ConvTranspose":
        channels = operands[0].shape[0] * operands[1].shape[1] * attrs.get("group", 1)
        yield channels * _count(operands[1].shape[2:]) * _count(operands[0].shape[2:])
        yield channels * _padded((result or ())[2:], operands[1].shape[2:], attrs)
    elif op == "Col2Im":
        yield _count(operands[0].shape[:-2]) * operands[0].shape[-2] * _padded(operands[1], operands[2], attrs)
    elif op == "MaxUnpool":
        kernel = attrs["kernel_shape"]
        strides = attrs.get("strides") or [1] * len(kernel)
        reach = [n * s + k for n, s, k in zip(operands[0].shape[2:], strides, kernel, strict=True)]
        yield _count(operands[0].shape[:2]) * _padded(reach, kernel, attrs)
    elif op in {"Resize", "Upsample"}:
        # a matrix for each axis
        yield sum(old * new for old, new in zip(operands[0].shape, result or (), strict=True))
    elif op == "Attention":
        queries, keys = operands[0].shape, operands[1].shape[-2]
        past = operands[4].shape[-2] if len(operands) > 4 and operands[4] is not None else 0
        heads = queries[1] if len(queries) == 4 else attrs["q_num_heads"]
        yield 3 * _count([queries[0], heads, queries[-2], keys + past])
    elif op == "RoiAlign":
        extent = 2 * float(np.abs(operands[1]).max(initial=0.0)) * abs(attrs.get("spatial_scale", 1.0)) + 1
        yield _count(result or ()) * (attrs.get("sampling_ratio", 0) or math.ceil(extent)) ** 2


def _spans(kernel: Sequence[int], attrs: Mapping[str, Any]) -> list[int]:
    """Return the number of elements that a dilated window spans along each axis."""
    return [(k - 1) * d + 1 for k, d in zip(kernel, attrs.get("dilations") or [1] * len(kernel), strict=True)]


def _padded(extents: Sequence[int], kernel: Sequence[int], attrs: Mapping[str, Any]) -> int:
    """Return the number of elements after padding. Automatic padding adds at most one window on each side."""
    axes = len(kernel)
    pads = [max(0, pad) for pad in attrs.get("pads") or [0] * (2 * axes)]
    borders = zip(extents, _spans(kernel, attrs), pads[:axes], pads[axes:], strict=True)
    return _count(int(extent) + 2 * span + before + after for extent, span, before, after in borders)
