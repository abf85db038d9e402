"""Rewrites that make a body compilable: cast integers to the floats they are computed with, make rows contiguous.

The results have the same bits, except that sums are in the order in which kernels add up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final

from engine.graph.dtypes import has_loops
from engine.graph.ir import Builder, Graph, Node, Value
from engine.graph.limits import NO_LIMITS
from engine.graph.op import Definition
from engine.graph.tensor_type import BOOL, FLOAT64, DType, Shape, promote
from engine.loops.program import Scalars
from engine.oplib.accumulate import count
from engine.oplib.elementwise import Elementwise
from engine.oplib.permutation import permute, shaped, unpermute
from engine.oplib.rowwise import Rowwise
from engine.ops.any_all import AllTrue, AnyTrue
from engine.ops.cat import Cat
from engine.ops.logsumexp import Norm
from engine.ops.sum import Sum
from engine.ops.update_slice import UpdateSlice
from engine.passes.dce import dce

#: truth as numbers: any is the largest, all the least; and how many is a sum, which is exact
_OF_TRUTH: Final[Mapping[type[Definition], str]] = MappingProxyType({AnyTrue: "max", AllTrue: "min", Sum: "sum"})
#: sizes whose squares, and sums of these, are far from the ends of a float's range
_MODERATE: Final = {"float32": (1e-15, 1e15), "float64": (1e-140, 1e140)}
#: of a node on these operands, what it is written as; None where it stays
_Write = Callable[[Node, Sequence[Value]], Value | None]


def for_loops(graph: Graph) -> Graph:
    """`graph` with such nodes written anew; itself, where there are none."""
    graph = _rewritten(graph, _of_one_dtype)
    return _rewritten(graph, partial(_in_rows, _row_lengths(graph)))


def _rewritten(graph: Graph, write_node: _Write) -> Graph:
    def written(node: Node, operands: Sequence[Value]) -> Value | None:
        return write_node(node, operands) if _has_elements(node, operands) else None

    found = Builder(graph.registry, NO_LIMITS).rewrite(graph, written)
    return graph if found is graph else dce(found)


def _has_elements(node: Node, operands: Sequence[Value]) -> bool:
    """Whether a node has operands and one result, and all of them have elements."""
    types = [*node.types, *(type for x in operands for type in x.node.types)]
    return bool(operands) and not node.op.several and all(type.size for type in types)


# dtypes


def _of_one_dtype(node: Node, operands: Sequence[Value]) -> Value | None:
    """Rewrite a node in the dtype that kernels compute in, or that is copied."""
    op, dtype = node.op, node.type.dtype
    if isinstance(op, Norm) and has_loops(dtype):
        return _norm(node, _as(operands[0], dtype))
    if type(op) in _OF_TRUTH and (dtype == BOOL or operands[0].dtype == BOOL):
        truth = _as(_as(operands[0], BOOL), FLOAT64)
        return _as(getattr(truth, _OF_TRUTH[type(op)])(**node.attrs), dtype)
    if isinstance(op, (Cat, UpdateSlice)) or (isinstance(op, Rowwise) and has_loops(dtype)):
        return _emitted(node, operands, [_as(x, dtype) for x in operands])
    return _of_elements(node, op, operands) if isinstance(op, Elementwise) else None


def _of_elements(node: Node, op: Elementwise, operands: Sequence[Value]) -> Value | None:
    """Integers cast to the float that they are computed with, as the op does; a bool, which kernels read, stays."""
    floats: list[Scalars] = ["float" for _ in operands]
    reads = op.reads(*floats)
    numbers = [x.dtype for x, type in zip(operands, reads, strict=True) if type == "float"]
    common = node.type.dtype if node.type.dtype != BOOL else promote(*numbers) if numbers else FLOAT64
    if not has_loops(common):
        return None
    wanted = [common if type == "float" else BOOL for type in reads]
    cast = [_as(x, dtype) if x.dtype.kind in "iu" else x for x, dtype in zip(operands, wanted, strict=True)]
    return _emitted(node, operands, cast)


def _as(x: Value, dtype: DType) -> Value:
    return x if x.dtype == dtype else x.cast(dtype=dtype)


def _emitted(node: Node, operands: Sequence[Value], cast: Sequence[Value]) -> Value | None:
    """The node on what its operands were cast to; None where they were not, or it would not be what it is."""
    if all(x is y for x, y in zip(operands, cast, strict=True)):
        return None
    found = cast[0].builder.emit(node.op, cast, node.attrs)
    return found if found.type == node.type else None


def _norm(node: Node, x: Value) -> Value:
    """√Σ x², of x / max |x| where squares might leave the range."""
    axes = node.attrs["axes"]
    largest = x.abs().max(axes=axes, keepdims=True)
    low, high = _MODERATE[x.dtype.name]
    is_extreme = (largest < low).logical_or(largest > high).logical_and(largest > 0).logical_and(largest < math.inf)
    scale = is_extreme.where(largest, 1.0)
    return shaped((x / scale).square().sum(axes=axes, keepdims=True).sqrt() * scale, node.type.shape)


# rows


def _row_lengths(graph: Graph) -> Mapping[tuple[Shape, DType], set[int]]:
    """Numbers of trailing axes that make a row, by the shape and dtype of what is reduced."""
    found: dict[tuple[Shape, DType], set[int]] = {}
    for node in graph.nodes:
        if isinstance(node.op, Rowwise):
            x = graph.nodes[node.operands[0]].type
            axes = _axes(node, x.ndim)
            is_trailing = _is_trailing(axes, x.ndim)
            if is_trailing or _is_added_up(node, axes):
                found.setdefault((x.shape, x.dtype), set()).add(len(axes) if is_trailing else x.ndim - len(axes))
    return found


def _axes(node: Node, rank: int) -> Shape:
    assert isinstance(node.op, Rowwise)
    return tuple(node.op.row_axes(node.attrs)) if rank else ()


def _is_trailing(axes: Shape, rank: int) -> bool:
    return axes == tuple(range(rank - len(axes), rank))


def _is_added_up(node: Node, axes: Shape) -> bool:
    """Whether it is a sum over leading axes, for which kernels have a way of their own."""
    assert isinstance(node.op, Rowwise)
    return axes == tuple(range(len(axes))) and node.op.divisor(1) is not None


def _in_rows(lengths: Mapping[tuple[Shape, DType], set[int]], node: Node, operands: Sequence[Value]) -> Value | None:
    """A row's elements side by side, where they lie across memory; and of a mean, the sum and its quotient."""
    x, op = operands[0], node.op
    if not isinstance(op, Rowwise) or x.dtype != node.type.dtype or not has_loops(x.dtype):
        return None
    axes = _axes(node, x.ndim)
    if not axes:
        if op.is_one_of_one or not op.reduces:
            return None
        # A number as a row.
        return x.builder.emit(op, (x.reshape(shape=(1,)),), {**node.attrs, "axes": (0,), "keepdims": False})
    divisor = op.divisor(count(x.shape, axes)) if op.reduces else None
    if divisor is None or divisor == 1:
        return _turned(lengths, node, x, axes)
    total = x.sum(axes=axes, keepdims=node.attrs["keepdims"])
    turned = _turned(lengths, total.node, x, axes)
    return (total if turned is None else turned) / divisor


def _turned(lengths: Mapping[tuple[Shape, DType], set[int]], node: Node, x: Value, axes: Shape) -> Value | None:
    """Reduce a copy with the axes of a row behind the others; None where kernels can have it as it is.

    A kernel has rows of one length: where there are several, sums over leading axes are turned, and of others the axes
    are made one.
    """
    is_alone = len(lengths.get((x.shape, x.dtype), ())) < 2
    if _is_trailing(axes, x.ndim) and (is_alone or len(axes) == 1):
        return None
    if _is_added_up(node, axes) and is_alone:
        return None
    order = [*(a for a in range(x.ndim) if a not in axes), *axes]
    rows = x if order == list(range(x.ndim)) else permute(x, order).identity()
    if not node.op.reduces:  # type: ignore[attr-defined]  # a Rowwise has it
        return unpermute(x.builder.emit(node.op, (rows,), {**node.attrs, "axis": x.ndim - 1}), order)
    kept = tuple(x.shape[a] for a in order[: x.ndim - len(axes)])
    rows = rows.reshape(shape=(*kept, -1))
    found = x.builder.emit(node.op, (rows,), {**node.attrs, "axes": (len(kept),), "keepdims": False})
    return shaped(found, node.type.shape)
