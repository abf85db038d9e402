"""Reshaping, joining, slicing and repeating."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from gradserve_client.graph import Node
from gradserve_client.importing.writing import TO_THE_END, outputs_of, size
from gradserve_client.torch.call import Call, Results
from gradserve_client.torch.families.helpers import take
from gradserve_client.torch.families.table import RULES
from gradserve_client.torch.values import Value


@RULES("view", "_unsafe_view")
def view(call: Call) -> Results:
    """Write `reshape` if the shape changes."""
    if call.shape() == call.result.shape:
        return call.value()
    return call.node().reshape(shape=list(call.result.shape))


@RULES("permute")
def permute(call: Call) -> Results:
    """Write `transpose` if the order changes."""
    order = [axis % max(1, call.rank()) for axis in call["dims"]]
    return call.value() if order == sorted(order) else call.node().transpose(axes=order)


@RULES("expand")
def expand(call: Call) -> Results:
    """Write no node yet: most rules broadcast the operand themselves."""
    if call.shape() == call.result.shape:
        return call.value()
    return Value(call.result, unexpanded=call.value())


@RULES("repeat")
def repeat(call: Call) -> Results:
    """Write `tile`."""
    repeats = [int(each) for each in call["repeats"]]
    return call.value() if {*repeats} <= {1} and len(repeats) == call.rank() else call.node().tile(repeats)


@RULES("unsqueeze")
def unsqueeze(call: Call) -> Results:
    """Insert an axis."""
    return call.node().unsqueeze(axes=[call.axis(rank=call.rank() + 1)])


@RULES("squeeze", "squeeze.dim", "squeeze.dims")
def squeeze(call: Call) -> Results:
    """Remove those of the axes that have extent 1."""
    removed = [axis for axis in call.axes() if call.shape() and call.shape()[axis] == 1]
    return call.node().squeeze(axes=sorted({*removed})) if removed else call.value()


@RULES("cat")
def cat(call: Call) -> Results:
    """Concatenate. As in PyTorch, empty vectors are ignored."""
    dtype = call.result.dtype
    rank = len(call.result.shape)
    tensors = [each for each in call["tensors"] if each.type.shape != (0,) or rank == 1]
    parts = [call.as_dtype(each, dtype) for each in tensors]
    return parts[0] if len(parts) == 1 else call.graph.cat(*parts, axis=call.axis(rank=rank))


@RULES("split_with_sizes", "split.Tensor", "unbind.int")
def split(call: Call) -> Results:
    """Split into parts along an axis."""
    axis = call.axis()
    if call.op == "unbind.int":
        return [call.node().select(i, axis=axis) for i in range(call.shape()[axis])]
    return outputs_of(call.node().split([kind.shape[axis] for kind in call.results], axis=axis), len(call.results))


@RULES("slice.Tensor")
def slice_(call: Call) -> Results:
    """Slice along one axis. An end beyond the tensor is its end."""
    axis = call.axis()
    extent = call.shape()[axis]
    start, stop, step = slice(call["start"], call["end"], call["step"]).indices(extent)
    if (start, step) == (0, 1) and stop == extent:
        return call.value()
    lead, ends = [0] * axis, [TO_THE_END] * axis
    return call.node().slice(
        starts=[*lead, start],
        stops=[*ends, TO_THE_END if stop == extent else max(stop, start)],
        steps=[*[1] * axis, step] if step != 1 else None,
    )


@RULES("select.int")
def select(call: Call) -> Results:
    """Select one position of an axis."""
    return call.node().select(int(call["index"]), axis=call.axis())


@RULES("flip")
def flip(call: Call) -> Results:
    """Reverse axes."""
    return call.node().flip(axes=[axis % call.rank() for axis in call["dims"]]) if call["dims"] else call.value()


@RULES("roll")
def roll(call: Call) -> Results:
    """Write `roll`."""
    axes = [axis % call.rank() for axis in call["dims"]]
    return call.node().roll([int(each) for each in call["shifts"]], axes=axes or None)


@RULES("diagonal")
def diagonal(call: Call) -> Results:
    """Take the diagonal of two axes, and append it as the last axis."""
    rank = call.rank()
    first, second = call.axis("dim1"), call.axis("dim2")
    order = [*(axis for axis in range(rank) if axis not in (first, second)), first, second]
    x = call.node() if order == [*range(rank)] else call.node().transpose(axes=order)
    return x.diag(offset=int(call["offset"]))


@RULES("tril", "triu")
def triangle(call: Call) -> Results:
    """Take a triangle of the last two axes."""
    return call.graph.op(call.op, call.node(), offset=int(call["diagonal"]))


@RULES("as_strided")
def as_strided(call: Call) -> Results:
    """Read the elements at strided positions, for a dense tensor in row-major order."""
    positions = torch.as_strided(
        torch.arange(size(call.shape())), call["size"], call["stride"], call["storage_offset"] or 0
    )
    return _take_flat(call.node(), positions, call.result.shape)


def _take_flat(x: Node, positions: torch.Tensor, shape: Sequence[int]) -> Node:
    flat = x.reshape(shape=[-1]).gather(indices=[int(each) for each in positions.reshape(-1)])
    return flat.reshape(shape=[*shape])


@RULES("select_scatter", "slice_scatter")
def overwrite(call: Call) -> Results:
    """Overwrite a part of a tensor."""
    axis, extent = call.axis(), call.shape()[call.axis()]
    dtype = call.result.dtype
    x, part = call.node_as("self", dtype), call.node_as("src", dtype)
    if call.op == "select_scatter":
        start, step, part = int(call["index"]) % extent, 1, part.unsqueeze(axes=[axis])
    else:
        start, _, step = slice(call["start"], call["end"], call["step"]).indices(extent)
    if step == 1:
        return x.update_slice(part, [start if i == axis else 0 for i in range(call.rank())])
    count = call.shape("src")[axis]
    source_positions, along = np.zeros(extent, np.int64), [extent if i == axis else 1 for i in range(call.rank())]
    positions = start + step * np.arange(count)
    source_positions[positions] = np.arange(count)
    mask = np.zeros(extent, np.bool_)
    mask[positions] = True
    spread = part.gather(axis=axis, indices=[int(each) for each in source_positions])
    return call.constant(mask.reshape(along), "bool").where(spread, x)


@RULES("copy")
def copy(call: Call) -> Results:
    """Return the source, in the dtype and shape of the destination."""
    source = call.value("src")
    if source.type.dtype == call.result.dtype and source.type.shape == call.result.shape:
        return source
    node = call.node_as("src", call.result.dtype)
    return node if source.type.shape == call.result.shape else node.broadcast_to(shape=list(call.result.shape))


@RULES("unfold")
def unfold(call: Call) -> Results:
    """Read windows along an axis, with the entries of each on a new last axis."""
    if not call.rank():
        return call.node().unsqueeze(axes=[0])
    axis, size_, step = call.axis("dimension"), int(call["size"]), int(call["step"])
    rank, count = call.rank(), call.result.shape[axis]
    entries = take(call.node(), [i * step + j for i in range(count) for j in range(size_)], axis)
    windows = entries.reshape(shape=[*call.shape()[:axis], count, size_, *call.shape()[axis + 1 :]])
    return windows.transpose(axes=[*range(axis + 1), *range(axis + 2, rank + 1), axis + 1])
