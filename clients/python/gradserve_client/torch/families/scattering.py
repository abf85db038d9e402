"""Writing at index tensors."""

from __future__ import annotations

from typing import Final

import numpy as np
import torch

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import size
from gradserve_client.torch.call import Call, Results, require
from gradserve_client.torch.families.helpers import move_from_front, move_to_front
from gradserve_client.torch.families.indexing import Indices, indices_of
from gradserve_client.torch.families.table import RULES


@RULES("index_put", "_unsafe_index_put")
def index_put(call: Call) -> Results:
    """Write or add values at positions. For a mask, values go to the true positions one after another."""
    masks = [each for each in call["indices"] if each is not None and each.type.dtype == "bool"]
    if masks and masks[0].constant is None:
        return _put_masked(call)
    indices, values = indices_of(call), call.node_as("values", call.dtype())
    if call["accumulate"]:
        require(call.dtype() != "bool", "it adds bools", "convert them to integers")
        return call.graph.index_add(call.node(), *indices.indices, values, **indices.attributes)
    _require_distinct(indices)
    return call.graph.index_set(call.node(), *indices.indices, values, **indices.attributes)


def _require_distinct(indices: Indices) -> None:
    """Raise Blocked if constant positions repeat: which value remains is undefined in PyTorch."""
    if indices.constants is None:
        return
    tuples = torch.stack([each.reshape(-1) for each in torch.broadcast_tensors(*indices.constants)])
    if tuples.unique(dim=1).shape[1] != tuples.shape[1]:
        raise Blocked("it writes a position more than once", "write each position once, or accumulate")


def _put_masked(call: Call) -> Results:
    """Write where a mask over the first axes is true: values that broadcast, or one entry per true position."""
    indices = call["indices"]
    mask, rest = indices[0], call.shape()[len(indices[0].type.shape) :]
    if len(indices) != 1:
        raise Blocked("it combines a mask that depends on the data with other indices", "choose with torch.where")
    node, values = call.node_as("values", call.dtype()), call.value("values").type.shape
    if len(values) > len(rest):
        node = (
            node.squeeze(axes=[0])
            if values[0] == 1
            else _values_of_mask(call, node, mask.node_in(call.graph), values[0])
        )
    if call["accumulate"]:
        node = call.node().add(node)
    expanded_mask = mask.node_in(call.graph).reshape(shape=[*mask.type.shape, *[1] * len(rest)])
    return expanded_mask.where(node, call.node())


def _values_of_mask(call: Call, values: Node, mask: Node, count: int) -> Node:
    """Assign values to the true positions of a mask in row-major order, by their cumulative count."""
    flat = mask.reshape(shape=[-1]).cast("int64").cumsum(0).sub(call.constant(1, "int64"))
    positions = flat.maximum(call.constant(0, "int64")).minimum(call.constant(max(0, count - 1), "int64"))
    return values.embedding(positions).reshape(shape=list(call.shape()))


def _all_axes(call: Call, index: Node) -> list[Node]:
    """Extend an index along one axis to all axes. On the other axes, an entry keeps its own position."""
    extents, axis = call.shape("index"), call.axis()
    return [
        index if i == axis else call.constant(np.arange(n).reshape([-1, *[1] * (len(extents) - 1 - i)]), "int64")
        for i, n in enumerate(extents)
    ]


@RULES("scatter.src", "scatter.value")
def scatter(call: Call) -> Results:
    """Write elements at positions along an axis."""
    if not call.rank():
        return call.value("src") if call.op == "scatter.src" else call.constant(call["value"], call.dtype())
    values = _source(call) if call.op == "scatter.src" else call.constant(call["value"], call.dtype())
    return call.graph.index_set(call.node(), *_all_axes(call, call.node_as("index", "int64")), values)


def _source(call: Call) -> Node:
    """Return the part of the source that the positions cover."""
    source = call.node("src")
    return source if call.shape("src") == call.shape("index") else source.slice(stops=list(call.shape("index")))


@RULES("scatter_add")
def scatter_add(call: Call) -> Results:
    """Add elements at positions along an axis."""
    if not call.rank():
        return call.node().add(call.node("src"))
    return call.node().scatter_add(call.node_as("index", "int64"), _source(call), axis=call.axis())


#: PyTorch's name of a reduction and the op over segments
_SEGMENT_OPS: Final = {
    "sum": "segment_sum",
    "mean": "segment_mean",
    "prod": "segment_prod",
    "amax": "segment_max",
    "amin": "segment_min",
}


@RULES("scatter_reduce.two")
def scatter_reduce(call: Call) -> Results:
    """Reduce elements at positions, with or without the existing ones. Each element of the tensor is a segment."""
    require(call.rank() > 0, "its operand is a scalar")
    positions = _all_axes(call, call.node_as("index", "int64"))
    shape = [*call.shape()]
    segment_ids = call.constant(0, "int64")
    for i, position in enumerate(positions):
        segment_ids = segment_ids.add(position.mul(call.constant(size(shape[i + 1 :]), "int64")))
    result = _reduce_segments(
        call,
        call.node().reshape(shape=[-1]),
        segment_ids.reshape(shape=[-1]),
        _source(call).reshape(shape=[-1]),
        size(shape),
    )
    return result.reshape(shape=shape)


@RULES("index_reduce")
def index_reduce(call: Call) -> Results:
    """Reduce slices at positions, with or without the existing ones. Each slice along the axis is a segment."""
    require(call.rank() > 0, "its operand is a scalar")
    axis, rank = call.axis(), call.rank()
    table, rows = (move_to_front(call.node(name), axis, rank) for name in ("self", "source"))
    return move_from_front(
        _reduce_segments(call, table, call.node_as("index", "int64"), rows, call.shape()[axis]), axis, rank
    )


def _reduce_segments(call: Call, table: Node, ids: Node, rows: Node, count: int) -> Node:
    """Reduce the rows of each segment, with or without the table's row. Empty segments keep the table's row."""
    dtype, mode = call.dtype(), call["reduce"]
    require(mode != "mean" or call.value().type.is_float, "it takes means of integers", "convert them to floats")
    all_rows, all_ids = rows, ids
    if call["include_self"]:
        all_rows = call.graph.cat(table, rows, axis=0)
        all_ids = call.graph.cat(call.constant(np.arange(count), "int64"), ids, axis=0)
    reduced: Node = call.graph.op(_SEGMENT_OPS[mode], all_rows, all_ids, segments=count)
    # segment_sum and segment_prod return int64 for integers
    reduced = reduced.cast(dtype) if mode in ("sum", "prod") and not call.value().type.is_float else reduced
    if call["include_self"]:
        return reduced
    is_updated = call.graph.index_set(call.graph.full(shape=[count], dtype="bool"), ids, call.constant(True, "bool"))
    return is_updated.reshape(shape=[count, *[1] * _row_rank(call)]).where(reduced, table)


def _row_rank(call: Call) -> int:
    """Return the number of axes of a row."""
    return call.rank() - 1 if call.op == "index_reduce" else 0


@RULES("masked_scatter")
def masked_scatter(call: Call) -> Results:
    """Write the elements of the source one after another where the mask is true."""
    mask = call.node("mask").broadcast_to(shape=list(call.result.shape))
    source = call.node("source").reshape(shape=[-1])
    return mask.where(_values_of_mask(call, source, mask, size(call.shape("source"))), call.node())
