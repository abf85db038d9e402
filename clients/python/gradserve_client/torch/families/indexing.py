"""Reading at positions that tensors hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import size
from gradserve_client.torch.call import Call, Said
from gradserve_client.torch.families.helpers import at_positions, from_front, to_front
from gradserve_client.torch.families.table import RULES
from gradserve_client.torch.values import Value, constant_of


@dataclass(frozen=True)
class Places:
    """Where an index reads: the axes that it is of, their extents, its shape, and positions among them, row-major.

    `first` is where its axes go in what is read.
    """

    axes: list[int]
    extents: list[int]
    shape: tuple[int, ...]
    flat: Node
    first: int


def places_of(call: Call) -> Places:
    """Of the indices of `index` and `index_put`. Raises Blocked for a mask whose elements are data."""
    stated = _expanded(call["indices"])
    axes = [axis for axis, index in enumerate(stated) if index is not None]
    indices = [index for index in stated if index is not None]
    extents = [call.shape()[axis] for axis in axes]
    shape = tuple(torch.broadcast_shapes(*(index.type.shape for index in indices)))
    flat = None
    for i, (index, extent) in enumerate(zip(indices, extents, strict=True)):
        place = _wrapped(call, index, extent)
        weight = size(extents[i + 1 :])
        place = place if weight == 1 else place.mul(call.constant(weight, "int64"))
        flat = place if flat is None else flat.add(place)
    assert flat is not None, "an index is stated"
    together = axes == [*range(axes[0], axes[0] + len(axes))]
    return Places(axes, extents, shape, flat, axes[0] if together else 0)


def _expanded(stated: Sequence[Value | None]) -> list[Value | None]:
    """Masks that are known as the positions where they hold."""
    found: list[Value | None] = []
    for index in stated:
        if index is None or index.type.dtype not in ("bool", "uint8"):
            found.append(index)
        elif index.constant is None:
            raise Blocked("it is a mask of data, and says how many there are", "choose with torch.where")
        else:
            found += [constant_of(each) for each in index.constant.nonzero(as_tuple=True)]
    return found


def _wrapped(call: Call, index: Value, extent: int) -> Node:
    """Positions in int64, counted from the front."""
    if index.constant is not None:
        fixed = index.constant.to(torch.int64)
        return constant_of(torch.where(fixed < 0, fixed + extent, fixed)).given_by(call.graph)
    node = index.given_by(call.graph)
    node = node if index.type.dtype == "int64" else node.cast("int64")
    return node.less(call.constant(0, "int64")).where(node.add(call.constant(extent, "int64")), node)


def table_of(node: Node, shape: Sequence[int], axes: Sequence[int]) -> Node:
    """[positions of the axes, the others…]."""
    rest = [axis for axis in range(len(shape)) if axis not in axes]
    order = [*axes, *rest]
    moved = node if order == sorted(order) else node.transpose(axes=order)
    if len(axes) == 1:
        return moved
    return moved.reshape(shape=[size([shape[axis] for axis in axes]), *(shape[axis] for axis in rest)])


@RULES("index.Tensor", "_unsafe_index.Tensor")
def index(call: Call) -> Said:
    """Rows of a table of the axes that are indexed, which go where the first of them was if they are neighbours."""
    if len(call["indices"]) == 1 and _is_known(call["indices"][0]):
        known = call["indices"][0].constant
        return at_positions(call.node(), [int(each) % call.shape()[0] for each in known], 0)
    at = places_of(call)
    rows = table_of(call.node(), call.shape(), at.axes).embedding(at.flat)
    count, rank = len(at.shape), len(call.result.shape)
    if not at.first or not count:
        return rows if at.first == 0 else _back(rows, 0, at.first, rank)
    return _back(rows, count, at.first, rank)


def _back(rows: Node, count: int, first: int, rank: int) -> Node:
    """The axes of the index, which come first, behind `first` others."""
    if not count:
        return rows
    order = [*range(count, count + first), *range(count), *range(count + first, rank)]
    return rows.transpose(axes=order)


def _is_known(index: Value | None) -> bool:
    known = index is not None and index.constant is not None and len(index.type.shape) == 1
    return known and index is not None and index.type.dtype not in ("bool", "uint8")


@RULES("index_select")
def index_select(call: Call) -> Said:
    """Slices at positions of an axis."""
    axis, stated = call.axis(), call.value("index")
    if stated.constant is not None and call.rank():
        return at_positions(call.node(), stated.constant.reshape(-1).tolist(), axis)
    if not call.rank():
        return call.value()
    rows = to_front(call.node(), axis, call.rank()).embedding(call.converted("index", "int64").reshape(shape=[-1]))
    return from_front(rows, axis, call.rank())


@RULES("gather")
def gather(call: Call) -> Said:
    """Elements at positions along an axis."""
    if not call.rank():
        return call.value()
    return call.node().gather(call.converted("index", "int64"), axis=call.axis())


@RULES("embedding")
def embedding(call: Call) -> Said:
    """Rows of a table; that of the padding has no gradient."""
    if call["scale_grad_by_freq"]:
        raise Blocked("it divides gradients by how often a row is read", "scale the gradients after")
    rows = call.node("weight").embedding(call.converted("indices", "int64"))
    padding = int(call["padding_idx"])
    if padding < 0:
        return rows
    at = call.converted("indices", "int64").equal(call.constant(padding, "int64")).unsqueeze(axes=[-1])
    return at.where(rows.stop_gradient(), rows)


@RULES("_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(call: Call) -> Said:
    """Sums, means or maxima of rows: of bag i those from its offset up to the next one's."""
    if call["scale_grad_by_freq"] or int(call["padding_idx"]) >= 0:
        raise Blocked("it leaves rows out, or scales gradients", "use an embedding, and sum over it")
    mode = int(call["mode"])
    if mode == 2:
        raise Blocked("it takes maxima over bags", "use an embedding, and amax over it")
    count, bags = call.shape("indices")[0], call.result.shape[0]
    rows = call.node("weight").embedding(call.converted("indices", "int64"))
    if call.has("per_sample_weights"):
        rows = rows.mul(call.node("per_sample_weights").unsqueeze(axes=[1]))
    offsets = call.converted("offsets", "int64").slice(stops=[bags]).reshape(shape=[bags, 1])
    begun = offsets.less_equal(call.constant([[*range(count)]], "int64"))
    bag = begun.cast("int64").sum(axes=[0]).sub(call.constant(1, "int64"))
    total = rows.segment_sum(bag, bags)
    if mode == 1:
        ones = call.graph.full(shape=[count, 1], fill=1.0, dtype=call.result.dtype)
        sizes = ones.segment_sum(bag, bags)
        total = total.div(sizes.maximum(call.constant(1, call.result.dtype)))
    return [total, None, None, None]
