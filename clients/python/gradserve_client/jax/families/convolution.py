"""Convolutions over one to three spatial axes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import pad_or_crop
from gradserve_client.jax.call import Call, Results
from gradserve_client.jax.families.helpers import gapped_shape, insert_gaps, inverse_order, transpose_axes
from gradserve_client.jax.families.table import RULES


@dataclass(frozen=True)
class _Image:
    """A node [batch, channels, extents...] and its shape."""

    node: Node
    shape: list[int]


@RULES("conv_general_dilated")
def conv_general_dilated(call: Call) -> Results:
    """`conv1d`, `conv2d` or `conv3d` of transposed operands, after `pad` for gaps and unequal padding."""
    numbers = call.params["dimension_numbers"]
    spatial = call.rank() - 2
    if not 1 <= spatial <= 3:
        raise Blocked(f"it is over {spatial} spatial axes, but only one to three are supported")
    x = _Image(transpose_axes(call.node(0), numbers.lhs_spec), [call.shape(0)[axis] for axis in numbers.lhs_spec])
    kernel = transpose_axes(call.node(1), numbers.rhs_spec)
    groups = int(call.params["feature_group_count"])
    batches = int(call.params["batch_group_count"])
    if batches > 1:
        x, groups = _batches_as_channels(x, batches), batches
    padded, padding = _pad_operand(call, x)
    y = call.graph.op(
        f"conv{spatial}d",
        padded,
        kernel,
        stride=[int(step) for step in call.params["window_strides"]],
        padding=padding,
        dilation=[int(step) for step in call.params["rhs_dilation"]],
        groups=groups,
    )
    dtype = np.result_type(call.dtype(0), call.dtype(1))
    return call.cast(transpose_axes(y, inverse_order(numbers.out_spec)), dtype)


def _batches_as_channels(x: _Image, groups: int) -> _Image:
    """Move groups of the batch to groups of channels: both have separate kernels and output features."""
    batch, channels, *extents = x.shape
    grouped = x.node.reshape(shape=[groups, batch // groups, channels, *extents])
    order = [1, 0, *range(2, len(extents) + 3)]
    shape = [batch // groups, groups * channels, *extents]
    return _Image(grouped.transpose(axes=order).reshape(shape=shape), shape)


def _pad_operand(call: Call, x: _Image) -> tuple[Node, list[int]]:
    """Return the operand with gaps and unequal padding, and the padding to pass to the op."""
    interior = [0, 0, *(int(step) - 1 for step in call.params["lhs_dilation"])]
    before, after = ([int(pair[i]) for pair in call.params["padding"]] for i in (0, 1))
    node = insert_gaps(x.node, x.shape, interior)
    if before == after and min(before) >= 0:
        return node, before
    extents = gapped_shape(x.shape, interior)
    return pad_or_crop(node, extents, [0, 0, *before], [0, 0, *after]), [0] * len(before)
