"""Other shapes, joining and cutting. Of keys, the axis of their words stays the last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing.writing import TO_THE_END, bordered, several, size
from gradserve_client.jax.call import Call, Said
from gradserve_client.jax.families.helpers import spread, spread_extents, transposed
from gradserve_client.jax.families.table import RULES


@RULES("reshape")
def reshape(call: Call) -> Said:
    """`reshape`, of what is transposed where that is stated."""
    if call.params.get("dimensions") is not None:
        return transposed(call.node(), call.params["dimensions"]).reshape(shape=[*call.results[0].node_shape])
    if call.shape() == call.results[0].shape:
        return call.operands[0]
    return call.node().reshape(shape=[*call.results[0].node_shape])


@RULES("squeeze")
def squeeze(call: Call) -> Said:
    """`squeeze`."""
    axes = [int(axis) for axis in call.params["dimensions"]]
    return call.node().squeeze(axes=axes) if axes else call.operands[0]


@RULES("broadcast_in_dim")
def broadcast_in_dim(call: Call) -> Said:
    """`unsqueeze` and `broadcast_to`, where either is needed."""
    result = call.results[0]
    places = [int(axis) for axis in call.params["broadcast_dimensions"]]
    new = [axis for axis in range(len(result.shape)) if axis not in places]
    shape = [1] * len(result.shape)
    for place, extent in zip(places, call.shape(), strict=True):
        shape[place] = extent
    node = call.node()
    if new and (call.rank() or call.operands[0].is_key):
        node = node.unsqueeze(axes=new)
    if [*result.shape] != shape or (new and not call.rank() and not call.operands[0].is_key):
        return node.broadcast_to(shape=[*result.node_shape])
    made = result.with_node(node)
    summed = call.operands[0].summed
    made.summed = replace(summed, put_in=tuple(new)) if summed is not None and not summed.put_in else None
    return made


@RULES("transpose")
def transpose(call: Call) -> Said:
    """`transpose`."""
    order = [int(axis) for axis in call.params["permutation"]]
    return transposed(call.node(), [*order, *range(call.rank(), len(call.operands[0].node_shape))])


@RULES("rev")
def rev(call: Call) -> Said:
    """`flip`."""
    axes = [int(axis) for axis in call.params["dimensions"]]
    return call.node().flip(axes=axes) if axes else call.operands[0]


@RULES("slice")
def slice_(call: Call) -> Said:
    """`slice`."""
    starts, limits = [int(i) for i in call.params["start_indices"]], [int(i) for i in call.params["limit_indices"]]
    steps = call.params["strides"]
    # the end of an axis that is read to its end may be any
    stops = [TO_THE_END if limit == extent else limit for limit, extent in zip(limits, call.shape(), strict=True)]
    stated = [int(step) for step in steps] if steps is not None and any(step != 1 for step in steps) else None
    return call.node().slice(starts=starts, stops=stops, steps=stated) if starts else call.operands[0]


@RULES("concatenate")
def concatenate(call: Call) -> Said:
    """`cat`."""
    return call.graph.cat(*call.nodes, axis=int(call.params["dimension"]))


@RULES("stack")
def stack(call: Call) -> Said:
    """`stack`."""
    return call.graph.stack(*call.nodes, axis=int(call.params.get("axis", 0)))


@RULES("unstack")
def unstack(call: Call) -> Said:
    """`select`, for each entry."""
    return [call.node().select(i, axis=int(call.params.get("axis", 0))) for i in range(len(call.results))]


@RULES("split")
def split(call: Call) -> Said:
    """`split`."""
    sizes = [int(each) for each in call.params["sizes"]]
    return several(call.node().split(sizes, axis=int(call.params["axis"])), len(sizes))


@RULES("tile")
def tile(call: Call) -> Said:
    """`tile`."""
    words = [1] if call.operands[0].is_key else []
    return call.node().tile([*(int(each) for each in call.params["reps"]), *words])


@RULES("pad")
def pad(call: Call) -> Said:
    """`pad`, with gaps between neighbours where there are any; negative borders are cut off by `slice`."""
    low, high, interior = ([int(config[i]) for config in call.params["padding_config"]] for i in range(3))
    shape = call.shape()
    number = call.known(1).item() if call.is_constant(1) and not call.is_complex() else call.node(1)
    if not any(interior):
        return bordered(call.node(), shape, low, high, number)
    return bordered(_with_gaps(call, interior, shape), spread_extents(shape, interior), low, high, number)


def _with_gaps(call: Call, interior: Sequence[int], shape: Sequence[int]) -> Node:
    inside = np.ones(shape, np.bool_)
    for axis, gap in enumerate(interior):
        extent = inside.shape[axis]
        wide = np.zeros([*inside.shape[:axis], extent + max(0, extent - 1) * gap, *inside.shape[axis + 1 :]], np.bool_)
        wide[(slice(None),) * axis + (slice(None, None, gap + 1),)] = inside
        inside = wide
    x = call.node().cast("uint8") if call.dtype().kind == "b" else call.node()
    spaced = spread(x, shape, interior)
    spaced = spaced.cast("bool") if call.dtype().kind == "b" else spaced
    return call.constant(inside).where(spaced, call.node(1))


@RULES("iota")
def iota(call: Call) -> Said:
    """`arange` along its axis."""
    shape, axis = call.results[0].shape, int(call.params["dimension"])
    numbers = call.graph.arange(float(shape[axis]), dtype=call.results[0].dtype.name)
    if len(shape) == 1:
        return numbers
    flat = numbers.reshape(shape=[shape[axis] if i == axis else 1 for i in range(len(shape))])
    return flat.broadcast_to(shape=[*shape])


@RULES("empty", "empty2")
def empty(call: Call) -> Said:
    """Zeros."""
    return call.graph.full(shape=[*call.results[0].shape], dtype=call.results[0].dtype.name)


def rows_of(node: Node, shape: Sequence[int], leading: int) -> Node:
    """A node of this shape as a table whose rows are told by the leading axes."""
    return node.reshape(shape=[size(shape[:leading]), *shape[leading:]])
