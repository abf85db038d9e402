"""Reading at positions that tensors hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.torch.call import Call, Said, blocked_unless
from gradserve_client.torch.families.helpers import at_positions
from gradserve_client.torch.families.table import RULES
from gradserve_client.torch.values import Value, constant_of


@dataclass(frozen=True)
class Places:
    """Where an index reads: int64 nodes, the axes that they are of, and the shape that they have together.

    `known` are the positions themselves, where all of them are, counted from the front.
    """

    indices: list[Node]
    axes: list[int]
    shape: tuple[int, ...]
    known: list[torch.Tensor] | None

    @property
    def stated(self) -> dict[str, Any]:
        """The attributes of the ops that read and write there: of the first axes alone, they need not be named."""
        named = {} if self.axes == [*range(len(self.axes))] else {"axes": self.axes}
        return named if self.known is not None else {**named, "from_end": True}


def places_of(call: Call) -> Places:
    """Of the indices of `index` and `index_put`. Raises Blocked for a mask whose elements are data."""
    stated = _expanded(call["indices"])
    axes = [axis for axis, index in enumerate(stated) if index is not None]
    indices = [index for index in stated if index is not None]
    shape = tuple(torch.broadcast_shapes(*(index.type.shape for index in indices)))
    if any(index.constant is None for index in indices):
        return Places([_as_int64(call, index) for index in indices], axes, shape, None)
    known = [_from_front(index, call.shape()[axis]) for index, axis in zip(indices, axes, strict=True)]
    return Places([constant_of(each).given_by(call.graph) for each in known], axes, shape, known)


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


def _as_int64(call: Call, index: Value) -> Node:
    return call.as_dtype(index, "int64")


def _from_front(index: Value, extent: int) -> torch.Tensor:
    assert index.constant is not None, "its positions are known"
    fixed = index.constant.to(torch.int64)
    return torch.where(fixed < 0, fixed + extent, fixed)


@RULES("index.Tensor", "_unsafe_index.Tensor")
def index(call: Call) -> Said:
    """Entries at index tensors, whose axes go where the first of theirs was if they are neighbours."""
    at = places_of(call)
    if at.known is not None and len(at.axes) == 1 and len(at.shape) == 1:
        return at_positions(call.node(), at.known[0].tolist(), at.axes[0])
    return call.graph.index(call.node(), *at.indices, **at.stated)


@RULES("index_select")
def index_select(call: Call) -> Said:
    """Slices at positions of an axis."""
    axis, stated = call.axis(), call.value("index")
    if stated.constant is not None and call.rank():
        return at_positions(call.node(), stated.constant.reshape(-1).tolist(), axis)
    if not call.rank():
        return call.value()
    at = call.converted("index", "int64").reshape(shape=[-1])
    return call.graph.index(call.node(), at, axes=[axis])


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
    padding = int(call["padding_idx"])
    at = call.converted("indices", "int64")
    return call.node("weight").embedding(at, padding_idx=padding if padding >= 0 else None)


_SUMS: Final = 0


@RULES("_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(call: Call) -> Said:
    """Sums, means or maxima of rows: of bag i those from its offset up to the next one's, but for the padding.

    Rows that are as large share the gradient of a maximum. That of no rows is 0.
    """
    if call["scale_grad_by_freq"]:
        raise Blocked("it divides gradients by how often a row is read", "scale the gradients after")
    count, bags, mode = call.shape("indices")[0], call.result.shape[0], int(call["mode"])
    at = call.converted("indices", "int64")
    rows = call.node("weight").embedding(at)
    if call.has("per_sample_weights"):
        rows = rows.mul(call.node("per_sample_weights").unsqueeze(axes=[1]))
    bag = _bags(call, at, count, bags)
    # what is left out is in a bag behind the others
    read: Node = call.graph.op(("segment_sum", "segment_mean", "segment_max")[mode], rows, bag, segments=bags + 1)
    read = read.slice(stops=[bags])
    if mode != _SUMS:
        ones = call.graph.full(shape=[count, 1], fill=1.0, dtype=call.result.dtype)
        some = ones.segment_sum(bag, bags + 1).slice(stops=[bags]).greater(call.constant(0, call.result.dtype))
        read = some.where(read, call.constant(0, call.result.dtype))
    return [read, None, None, None]


def _bags(call: Call, at: Node, count: int, bags: int) -> Node:
    """The bag of each index."""
    offsets = call.converted("offsets", "int64").slice(stops=[bags]).reshape(shape=[bags, 1])
    begun = offsets.less_equal(call.constant([[*range(count)]], "int64"))
    bag = begun.cast("int64").sum(axes=[0]).sub(call.constant(1, "int64"))
    padding = int(call["padding_idx"])
    return bag if padding < 0 else at.equal(call.constant(padding, "int64")).where(call.constant(bags, "int64"), bag)


@RULES("nonzero_static")
def nonzero_static(call: Call) -> Said:
    """The places where something is, as many as are stated; behind them there is a number."""
    blocked_unless(call.rank() > 0, "it is of a number", "reshape it to one axis")
    k, mask = int(call["size"]), call.node()
    found = (mask if call.dtype() == "bool" else mask.cast("bool")).nonzero(k)
    there = call.constant(np.arange(k).reshape(-1, 1), "int64").less(found.get_output(1))
    return there.where(found.get_output(0), call.constant(call["fill_value"], "int64"))


@RULES("repeat_interleave.Tensor")
def repeat_interleave(call: Call) -> Said:
    """Each position as often as is said, where the length of all is stated: how many have ended before each place."""
    length = call["output_size"]
    blocked_unless(length is not None, "how long its result is, the data say", "state its output_size")
    ends = call.converted("repeats", "int64").cumsum(0)
    marks = call.graph.full(shape=[int(length) + 1], dtype="int64")
    return call.graph.index_add(marks, ends, call.constant(1, "int64")).cumsum(0).slice(stops=[int(length)])
