"""Writing at positions that tensors hold."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import size
from gradserve_client.torch.call import Call, Said, blocked_unless
from gradserve_client.torch.families.helpers import from_front, highest, lowest, to_front
from gradserve_client.torch.families.indexing import Places, places_of, table_of
from gradserve_client.torch.families.table import RULES


@RULES("index_put", "_unsafe_index_put")
def index_put(call: Call) -> Said:
    """Values at positions, in place of what was there or added to it. Where a mask holds, a number."""
    masks = [each for each in call["indices"] if each is not None and each.type.dtype == "bool"]
    if masks and masks[0].constant is None:
        return _masked(call)
    at = places_of(call)
    shape, dtype = call.shape(), call.dtype()
    rest = [shape[axis] for axis in range(len(shape)) if axis not in at.axes]
    rows, columns, count = size(at.extents), size(rest), size(at.shape)
    table = table_of(call.node(), shape, at.axes).reshape(shape=[rows, columns])
    values = _values(call, at, rest).reshape(shape=[count, columns])
    flat = at.flat.broadcast_to(shape=list(at.shape)).reshape(shape=[count, 1]).broadcast_to(shape=[count, columns])
    if call["accumulate"]:
        blocked_unless(dtype != "bool", "it adds up bools", "convert them to whole numbers")
        written = table.scatter_add(flat, values, axis=0)
    else:
        _require_once(call)
        written = replaced(call, table, flat, values, [rows, columns])
    return _put_back(written, shape, at.axes)


def _values(call: Call, at: Places, rest: list[int]) -> Node:
    """[the index's axes, the others…]."""
    full = [*rest[: at.first], *at.shape, *rest[at.first :]]
    values = call.converted("values", call.dtype())
    values = values if [*call.shape("values")] == full else values.broadcast_to(shape=full)
    if not at.first or not at.shape:
        return values
    count, first = len(at.shape), at.first
    order = [*range(first, first + count), *range(first), *range(first + count, len(full))]
    return values.transpose(axes=order)


def _require_once(call: Call) -> None:
    """Raise Blocked where positions that are known are written more than once: which of them stays, nobody says."""
    indices = [each for each in call["indices"] if each is not None]
    if any(each.constant is None or each.type.dtype == "bool" for each in indices):
        return
    listed = np.broadcast_arrays(*(each.constant.numpy() for each in indices))
    told = np.stack([each.reshape(-1) for each in listed])
    if np.unique(told, axis=1).shape[1] != told.shape[1]:
        raise Blocked("it writes a position more than once", "write each position once, or accumulate")


def _masked(call: Call) -> Said:
    """Values that are the same wherever the mask holds."""
    indices = call["indices"]
    mask = indices[0]
    lead = len(mask.type.shape)
    values = call.value("values").type.shape
    spread = len(indices) == 1 and (len(values) <= call.rank() - lead or values[0] == 1)
    if not spread or call["accumulate"]:
        raise Blocked("it is a mask of data, and says how many there are", "choose with torch.where")
    node = call.converted("values", call.dtype())
    if len(values) > call.rank() - lead:
        node = node.squeeze(axes=[0])
    there = mask.given_by(call.graph).reshape(shape=[*mask.type.shape, *[1] * (call.rank() - lead)])
    return there.where(node, call.node())


def _put_back(table: Node, shape: tuple[int, ...], axes: list[int]) -> Node:
    """A table of rows as the tensor that it was made of."""
    order = [*axes, *(axis for axis in range(len(shape)) if axis not in axes)]
    wide = table.reshape(shape=[shape[axis] for axis in order])
    return wide if order == sorted(order) else wide.transpose(axes=[int(i) for i in np.argsort(order)])


def replaced(call: Call, table: Node, index: Node, values: Node, shape: list[int], axis: int = 0) -> Node:
    """What is written, where something is."""
    dtype = call.dtype()
    kept = "uint8" if dtype == "bool" else dtype
    values = values if kept == dtype else values.cast(kept)
    written = call.graph.full(shape=shape, dtype=kept).scatter_add(index, values, axis=axis)
    hit = hits(call, index, shape, axis)
    return hit.where(written if kept == dtype else written.cast("bool"), table)


def hits(call: Call, index: Node, shape: list[int], axis: int) -> Node:
    """Where an index writes something."""
    zero = call.constant(0, "int32")
    ones = index.mul(call.constant(0, "int64")).add(call.constant(1, "int64")).cast("int32")
    return call.graph.full(shape=shape, dtype="int32").scatter_add(index, ones, axis=axis).greater(zero)


@RULES("scatter.src", "scatter.value")
def scatter(call: Call) -> Said:
    """Elements at positions along an axis, in place of what was there."""
    if not call.rank():
        return call.value("src") if call.op == "scatter.src" else call.constant(call["value"], call.dtype())
    index, axis = call.converted("index", "int64"), call.axis()
    if call.op == "scatter.value":
        hit = hits(call, index, list(call.shape()), axis)
        return hit.where(call.constant(call["value"], call.dtype()), call.node())
    return replaced(call, call.node(), index, _source(call), list(call.shape()), axis)


def _source(call: Call) -> Node:
    """As much of the source as there are positions."""
    source = call.node("src")
    return source if call.shape("src") == call.shape("index") else source.slice(stops=list(call.shape("index")))


@RULES("scatter_add")
def scatter_add(call: Call) -> Said:
    """Elements added at positions along an axis."""
    if not call.rank():
        return call.node().add(call.node("src"))
    return call.node().scatter_add(call.converted("index", "int64"), _source(call), axis=call.axis())


_REDUCED: Final[dict[str, tuple[str, Any]]] = {
    "prod": ("prod", lambda _: 1),
    "amax": ("max", lowest),
    "amin": ("min", highest),
}


@RULES("scatter_reduce.two")
def scatter_reduce(call: Call) -> Said:
    """Reduced with what is there, or without: sums and means; else all pairs of positions and updates are compared."""
    mode, dtype, axis = call["reduce"], call.dtype(), call.axis()
    blocked_unless(call.rank() > 0, "it is of a number")
    index, shape = call.converted("index", "int64"), list(call.shape())
    hit = hits(call, index, shape, axis)
    if mode in ("sum", "mean"):
        start = call.node() if call["include_self"] else hit.where(call.constant(0, dtype), call.node())
        total = start.scatter_add(index, _source(call), axis=axis)
        return total if mode == "sum" else _mean(call, total, index, hit)
    op, neutral = _REDUCED[mode]
    lengths = [n for i, n in enumerate(shape) if i != axis]
    blocked_unless(
        lengths == [n for i, n in enumerate(call.shape("index")) if i != axis], "its index is shorter off the axis"
    )
    fill = call.constant(neutral(dtype), dtype)
    start = call.node() if call["include_self"] else hit.where(fill, call.node())
    rank = call.rank()
    table, rows = to_front(start, axis, rank), to_front(_source(call), axis, rank).unsqueeze(axes=[1])
    places = call.constant(np.arange(shape[axis]).reshape(1, -1, *[1] * (rank - 1)), "int64")
    spread = to_front(index, axis, rank).unsqueeze(axes=[1]).equal(places).where(rows, fill)
    every = call.graph.cat(table.unsqueeze(axes=[0]), spread, axis=0)
    reduced: Node = from_front(call.graph.op(op, every, axes=[0]), axis, rank)
    return reduced if op != "prod" or dtype.startswith("float") else reduced.cast(dtype)


def _mean(call: Call, total: Node, index: Node, hit: Node) -> Node:
    """The sum by how many it is of."""
    dtype = call.dtype()
    ones = index.mul(call.constant(0, "int64")).add(call.constant(1, "int64")).cast(dtype)
    one, zero = call.constant(1, dtype), call.constant(0, dtype)
    first = call.graph.full(shape=list(call.shape()), fill=1.0, dtype=dtype)
    if not call["include_self"]:
        first = hit.where(zero, one)
    count = first.scatter_add(index, ones, axis=call.axis())
    blocked_unless(call.value().type.is_float, "it takes means of whole numbers", "convert them to floats")
    return total.div(count)


@RULES("masked_scatter")
def masked_scatter(call: Call) -> Said:
    """Where the mask holds, the elements of the source one after the other."""
    shape = list(call.result.shape)
    mask = call.node("mask").broadcast_to(shape=shape)
    last = max(0, size(call.shape("source")) - 1)
    flat = mask.reshape(shape=[-1]).cast("int64").cumsum(0).sub(call.constant(1, "int64"))
    at = flat.maximum(call.constant(0, "int64")).minimum(call.constant(last, "int64"))
    read = call.node("source").reshape(shape=[-1]).embedding(at).reshape(shape=shape)
    return mask.where(read, call.node())
