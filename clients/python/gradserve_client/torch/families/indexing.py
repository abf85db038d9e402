"""Reading at index tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.torch.call import Call, Results, require
from gradserve_client.torch.families.helpers import take
from gradserve_client.torch.families.table import RULES
from gradserve_client.torch.values import Value, constant_of


@dataclass(frozen=True)
class Indices:
    """The index tensors of `index` or `index_put`: int64 nodes, their axes, and the shape that they broadcast to.

    `constants` are the positions, non-negative, if all of them are constants.
    """

    indices: list[Node]
    axes: list[int]
    shape: tuple[int, ...]
    constants: list[torch.Tensor] | None

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes for `index`, `index_add` and `index_set`. They name no axes if those are the first ones."""
        axes_attribute = {} if self.axes == [*range(len(self.axes))] else {"axes": self.axes}
        return axes_attribute if self.constants is not None else {**axes_attribute, "from_end": True}


def indices_of(call: Call) -> Indices:
    """Return the indices of `index` or `index_put`. Raises Blocked for a mask that is not a constant."""
    by_axis = _expand_masks(call["indices"])
    axes = [axis for axis, index in enumerate(by_axis) if index is not None]
    indices = [index for index in by_axis if index is not None]
    shape = tuple(torch.broadcast_shapes(*(index.type.shape for index in indices)))
    if any(index.constant is None for index in indices):
        return Indices([_as_int64(call, index) for index in indices], axes, shape, None)
    constants = [_make_non_negative(index, call.shape()[axis]) for index, axis in zip(indices, axes, strict=True)]
    return Indices([constant_of(each).node_in(call.graph) for each in constants], axes, shape, constants)


def _expand_masks(indices: Sequence[Value | None]) -> list[Value | None]:
    """Replace constant masks by the positions where they are true."""
    expanded: list[Value | None] = []
    for index in indices:
        if index is None or index.type.dtype not in ("bool", "uint8"):
            expanded.append(index)
        elif index.constant is None:
            raise Blocked(
                "it is a mask that depends on the data, so the result has no fixed size", "choose with torch.where"
            )
        else:
            expanded += [constant_of(each) for each in index.constant.nonzero(as_tuple=True)]
    return expanded


def _as_int64(call: Call, index: Value) -> Node:
    return call.as_dtype(index, "int64")


def _make_non_negative(index: Value, extent: int) -> torch.Tensor:
    assert index.constant is not None, "its positions are known"
    positions = index.constant.to(torch.int64)
    return torch.where(positions < 0, positions + extent, positions)


@RULES("index.Tensor", "_unsafe_index.Tensor")
def index(call: Call) -> Results:
    """Read entries at index tensors. Their axes replace the indexed axes if these are adjacent, and else come first."""
    indices = indices_of(call)
    if indices.constants is not None and len(indices.axes) == 1 and len(indices.shape) == 1:
        return take(call.node(), indices.constants[0].tolist(), indices.axes[0])
    return call.graph.index(call.node(), *indices.indices, **indices.attributes)


@RULES("index_select")
def index_select(call: Call) -> Results:
    """Read slices at positions of an axis."""
    axis, index_value = call.axis(), call.value("index")
    if index_value.constant is not None and call.rank():
        return take(call.node(), index_value.constant.reshape(-1).tolist(), axis)
    if not call.rank():
        return call.value()
    positions = call.node_as("index", "int64").reshape(shape=[-1])
    return call.graph.index(call.node(), positions, axes=[axis])


@RULES("gather")
def gather(call: Call) -> Results:
    """Read elements at positions along an axis."""
    if not call.rank():
        return call.value()
    return call.node().gather(call.node_as("index", "int64"), axis=call.axis())


@RULES("embedding")
def embedding(call: Call) -> Results:
    """Read rows of a table. The padding row has no gradient."""
    if call["scale_grad_by_freq"]:
        raise Blocked("it divides the gradient of each row by its number of reads", "scale the gradients afterwards")
    padding = int(call["padding_idx"])
    indices = call.node_as("indices", "int64")
    return call.node("weight").embedding(indices, padding_idx=padding if padding >= 0 else None)


_SUMS: Final = 0


@RULES("_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(call: Call) -> Results:
    """Reduce bags of rows by sum, mean or maximum. Bag i has the rows from its offset to the next one, without padding.

    Rows that tie share the gradient of a maximum. The result for an empty bag is 0.
    """
    if call["scale_grad_by_freq"]:
        raise Blocked("it divides the gradient of each row by its number of reads", "scale the gradients afterwards")
    count, bags, mode = call.shape("indices")[0], call.result.shape[0], int(call["mode"])
    indices = call.node_as("indices", "int64")
    rows = call.node("weight").embedding(indices)
    if call.has("per_sample_weights"):
        rows = rows.mul(call.node("per_sample_weights").unsqueeze(axes=[1]))
    bag = _bags(call, indices, count, bags)
    # padding rows go to an additional bag, which is cut off
    reduced: Node = call.graph.op(("segment_sum", "segment_mean", "segment_max")[mode], rows, bag, segments=bags + 1)
    reduced = reduced.slice(stops=[bags])
    if mode != _SUMS:
        ones = call.graph.full(shape=[count, 1], fill=1.0, dtype=call.result.dtype)
        is_filled = ones.segment_sum(bag, bags + 1).slice(stops=[bags]).greater(call.constant(0, call.result.dtype))
        reduced = is_filled.where(reduced, call.constant(0, call.result.dtype))
    return [reduced, None, None, None]


def _bags(call: Call, indices: Node, count: int, bags: int) -> Node:
    """Return the bag of each index: the number of offsets at or before it, minus 1."""
    offsets = call.node_as("offsets", "int64").slice(stops=[bags]).reshape(shape=[bags, 1])
    begun = offsets.less_equal(call.constant([[*range(count)]], "int64"))
    bag = begun.cast("int64").sum(axes=[0]).sub(call.constant(1, "int64"))
    padding = int(call["padding_idx"])
    return (
        bag if padding < 0 else indices.equal(call.constant(padding, "int64")).where(call.constant(bags, "int64"), bag)
    )


@RULES("nonzero_static")
def nonzero_static(call: Call) -> Results:
    """Return the first `size` positions of nonzero elements, padded with the fill value."""
    require(call.rank() > 0, "its operand is a scalar", "reshape it to one axis")
    k, mask = int(call["size"]), call.node()
    nonzero = (mask if call.dtype() == "bool" else mask.cast("bool")).nonzero(k)
    is_found = call.constant(np.arange(k).reshape(-1, 1), "int64").less(nonzero.get_output(1))
    return is_found.where(nonzero.get_output(0), call.constant(call["fill_value"], "int64"))


@RULES("repeat_interleave.Tensor")
def repeat_interleave(call: Call) -> Results:
    """Repeat each position the given number of times, for a given total length.

    Entry j is the number of positions whose repetitions end at or before j: a cumulative sum over marks at the ends.
    """
    length = call["output_size"]
    require(length is not None, "the length of its result depends on the data", "pass output_size")
    ends = call.node_as("repeats", "int64").cumsum(0)
    marks = call.graph.full(shape=[int(length) + 1], dtype="int64")
    return call.graph.index_add(marks, ends, call.constant(1, "int64")).cumsum(0).slice(stops=[int(length)])
