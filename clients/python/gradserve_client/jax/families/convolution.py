"""Convolutions of up to three axes, with everything that JAX's has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import bordered
from gradserve_client.jax.call import Call, Said
from gradserve_client.jax.families.helpers import inverse, spread, spread_extents, transposed
from gradserve_client.jax.families.table import RULES


@dataclass(frozen=True)
class _Image:
    """A node [batch, channels, extents…] and its shape."""

    node: Node
    shape: list[int]


@RULES("conv_general_dilated")
def conv_general_dilated(call: Call) -> Said:
    """`conv1d`, `conv2d` or `conv3d`, of transposed operands; gaps and unequal borders are put into the operand."""
    numbers = call.params["dimension_numbers"]
    spatial = call.rank() - 2
    if not 1 <= spatial <= 3:
        raise Blocked(f"it is over {spatial} spatial axes, where one to three are possible")
    x = _Image(transposed(call.node(0), numbers.lhs_spec), [call.shape(0)[axis] for axis in numbers.lhs_spec])
    kernel = transposed(call.node(1), numbers.rhs_spec)
    groups = int(call.params["feature_group_count"])
    batches = int(call.params["batch_group_count"])
    if batches > 1:
        x, groups = _batches_as_channels(x, batches), batches
    around, padding = _around(call, x)
    y = call.graph.op(
        f"conv{spatial}d",
        around,
        kernel,
        stride=[int(step) for step in call.params["window_strides"]],
        padding=padding,
        dilation=[int(step) for step in call.params["rhs_dilation"]],
        groups=groups,
    )
    found = np.result_type(call.dtype(0), call.dtype(1))
    return call.cast(transposed(y, inverse(numbers.out_spec)), found)


def _batches_as_channels(x: _Image, groups: int) -> _Image:
    """Groups of the batch as groups of the channels, whose kernels give features of their own."""
    batch, channels, *extents = x.shape
    apart = x.node.reshape(shape=[groups, batch // groups, channels, *extents])
    order = [1, 0, *range(2, len(extents) + 3)]
    shape = [batch // groups, groups * channels, *extents]
    return _Image(apart.transpose(axes=order).reshape(shape=shape), shape)


def _around(call: Call, x: _Image) -> tuple[Node, list[int]]:
    """The operand with gaps and what is around it, and the padding that is left for the op."""
    interior = [0, 0, *(int(step) - 1 for step in call.params["lhs_dilation"])]
    before, after = ([int(pair[i]) for pair in call.params["padding"]] for i in (0, 1))
    node = spread(x.node, x.shape, interior)
    if before == after and min(before) >= 0:
        return node, before
    extents = spread_extents(x.shape, interior)
    return bordered(node, extents, [0, 0, *before], [0, 0, *after]), [0] * len(before)
