"""Reshaping, joining, slicing and padding. For keys, the axis of their words stays last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing.writing import TO_THE_END, outputs_of, pad_or_crop
from gradserve_client.jax.call import Call, Results
from gradserve_client.jax.families.helpers import gapped_shape, insert_gaps, transpose_axes
from gradserve_client.jax.families.table import RULES


@RULES("reshape")
def reshape(call: Call) -> Results:
    """`reshape`, after `transpose` if `dimensions` is given."""
    if call.params.get("dimensions") is not None:
        return transpose_axes(call.node(), call.params["dimensions"]).reshape(shape=[*call.results[0].node_shape])
    if call.shape() == call.results[0].shape:
        return call.operands[0]
    return call.node().reshape(shape=[*call.results[0].node_shape])


@RULES("squeeze")
def squeeze(call: Call) -> Results:
    """`squeeze`."""
    axes = [int(axis) for axis in call.params["dimensions"]]
    return call.node().squeeze(axes=axes) if axes else call.operands[0]


@RULES("broadcast_in_dim")
def broadcast_in_dim(call: Call) -> Results:
    """`unsqueeze` and `broadcast_to`, as far as needed."""
    result = call.results[0]
    axes = [int(axis) for axis in call.params["broadcast_dimensions"]]
    new = [axis for axis in range(len(result.shape)) if axis not in axes]
    shape = [1] * len(result.shape)
    for axis, extent in zip(axes, call.shape(), strict=True):
        shape[axis] = extent
    node = call.node()
    if new and (call.rank() or call.operands[0].is_key):
        node = node.unsqueeze(axes=new)
    if [*result.shape] != shape or (new and not call.rank() and not call.operands[0].is_key):
        return node.broadcast_to(shape=[*result.node_shape])
    value = result.with_node(node)
    summed = call.operands[0].summed
    value.summed = replace(summed, inserted=tuple(new)) if summed is not None and not summed.inserted else None
    return value


@RULES("transpose")
def transpose(call: Call) -> Results:
    """`transpose`."""
    order = [int(axis) for axis in call.params["permutation"]]
    return transpose_axes(call.node(), [*order, *range(call.rank(), len(call.operands[0].node_shape))])


@RULES("rev")
def rev(call: Call) -> Results:
    """`flip`."""
    axes = [int(axis) for axis in call.params["dimensions"]]
    return call.node().flip(axes=axes) if axes else call.operands[0]


@RULES("slice")
def slice_(call: Call) -> Results:
    """`slice`."""
    starts, limits = [int(i) for i in call.params["start_indices"]], [int(i) for i in call.params["limit_indices"]]
    steps = call.params["strides"]
    # an axis read to its end may have any extent at run time
    stops = [TO_THE_END if limit == extent else limit for limit, extent in zip(limits, call.shape(), strict=True)]
    nontrivial_steps = [int(step) for step in steps] if steps is not None and any(step != 1 for step in steps) else None
    return call.node().slice(starts=starts, stops=stops, steps=nontrivial_steps) if starts else call.operands[0]


@RULES("concatenate")
def concatenate(call: Call) -> Results:
    """`cat`."""
    return call.graph.cat(*call.nodes, axis=int(call.params["dimension"]))


@RULES("stack")
def stack(call: Call) -> Results:
    """`stack`."""
    return call.graph.stack(*call.nodes, axis=int(call.params.get("axis", 0)))


@RULES("unstack")
def unstack(call: Call) -> Results:
    """`select` for each entry."""
    return [call.node().select(i, axis=int(call.params.get("axis", 0))) for i in range(len(call.results))]


@RULES("split")
def split(call: Call) -> Results:
    """`split`."""
    sizes = [int(each) for each in call.params["sizes"]]
    return outputs_of(call.node().split(sizes, axis=int(call.params["axis"])), len(sizes))


@RULES("tile")
def tile(call: Call) -> Results:
    """`tile`."""
    words = [1] if call.operands[0].is_key else []
    return call.node().tile([*(int(each) for each in call.params["reps"]), *words])


@RULES("pad")
def pad(call: Call) -> Results:
    """`pad`, with gaps between neighbours if there are any; `slice` for negative padding."""
    low, high, interior = ([int(config[i]) for config in call.params["padding_config"]] for i in range(3))
    shape = call.shape()
    fill = call.constant_value(1).item() if call.is_constant(1) and not call.is_complex() else call.node(1)
    if not any(interior):
        return pad_or_crop(call.node(), shape, low, high, fill)
    return pad_or_crop(_with_gaps(call, interior, shape), gapped_shape(shape, interior), low, high, fill)


def _with_gaps(call: Call, interior: Sequence[int], shape: Sequence[int]) -> Node:
    # a mask distinguishes the operand's elements, zeros among them, from the gaps to fill
    inside = np.ones(shape, np.bool_)
    for axis, gap in enumerate(interior):
        extent = inside.shape[axis]
        gapped = np.zeros(
            [*inside.shape[:axis], extent + max(0, extent - 1) * gap, *inside.shape[axis + 1 :]], np.bool_
        )
        gapped[(slice(None),) * axis + (slice(None, None, gap + 1),)] = inside
        inside = gapped
    x = call.node().cast("uint8") if call.dtype().kind == "b" else call.node()
    spread = insert_gaps(x, shape, interior)
    spread = spread.cast("bool") if call.dtype().kind == "b" else spread
    return call.constant(inside).where(spread, call.node(1))


@RULES("iota")
def iota(call: Call) -> Results:
    """`arange` along its axis."""
    shape, axis = call.results[0].shape, int(call.params["dimension"])
    numbers = call.graph.arange(float(shape[axis]), dtype=call.results[0].dtype.name)
    if len(shape) == 1:
        return numbers
    flat = numbers.reshape(shape=[shape[axis] if i == axis else 1 for i in range(len(shape))])
    return flat.broadcast_to(shape=[*shape])


@RULES("empty", "empty2")
def empty(call: Call) -> Results:
    """Zeros."""
    return call.graph.full(shape=[*call.results[0].shape], dtype=call.results[0].dtype.name)
