"""Checks of the operands and attributes of convolutions and pools, with their error messages."""

from __future__ import annotations

from collections.abc import Sequence

from engine.graph.errors import BadAttribute, ShapeMismatch
from engine.graph.tensor_type import TensorType, show_shape
from engine.oplib.operands import wrong_shape
from engine.oplib.windows import Windows


def check_spatial(name: str, numbers: Sequence[int], rank: int = 2) -> None:
    """Raise BadAttribute unless there is one number for each of the `rank` spatial axes."""
    if len(numbers) != rank:
        axes = f"each of the {rank} spatial axes" if rank > 1 else "the spatial axis"
        wanted, got = f"one number for {axes}", show_shape(numbers)
        raise BadAttribute(f"attribute {name} must hold {wanted}, but is {got}", expected=wanted, got=got)


def check_ranks(x: TensorType, kernel: TensorType, rank: int, channels: str) -> None:
    """Raise ShapeMismatch unless both have two axes and then `rank` spatial ones; `channels` names the kernel's two."""
    spatial = "dhw"[-rank:]
    images, taps = ", ".join(spatial), ", ".join(f"k{axis}" for axis in spatial)
    for i, name, type, axes in ((0, "x", x, f"n, channels, {images}"), (1, "kernel", kernel, f"{channels}, {taps}")):
        if type.ndim != rank + 2:
            raise wrong_shape(i, name, f"rank {rank + 2}, [{axes}]", type)


def check_groups(groups: int, count: int, what: str) -> None:
    """Raise BadAttribute unless `what`, of which there are `count`, can be cut into equal groups."""
    if count % groups:
        wanted = f"a divisor of {count}, the number of {what}"
        raise BadAttribute(f"attribute groups must be {wanted}, but is {groups}", expected=wanted, got=str(groups))


def check_fits(windows: Windows, extents: Sequence[int], operand: int = 0) -> None:
    """Raise ShapeMismatch unless windows are not empty and at least one fits along each axis of x, the `operand`."""
    check_size(windows)
    if min(windows.positions(extents)) < 1:
        padded, reach = show_shape(windows.padded(extents)), show_shape(windows.reach)
        raise ShapeMismatch(
            f"the windows span {reach}, more than the extents {padded} of operand {operand} (x) with its padding",
            operand=operand,
            expected=f"padded extents of at least {reach}",
            got=padded,
        )


def check_size(windows: Windows) -> None:
    """Raise ShapeMismatch for a kernel without taps."""
    if not windows.taps:
        got = show_shape(windows.size)
        raise ShapeMismatch(
            f"operand 1 (kernel) must have taps, but its spatial extents are {got}",
            operand=1,
            expected="spatial extents of at least 1",
            got=got,
        )


def check_spread(windows: Windows, positions: Sequence[int], output_padding: Sequence[int]) -> None:
    """Raise ShapeMismatch or BadAttribute unless a result can be laid out from windows at `positions`."""
    check_size(windows)
    if min(positions) < 1:
        got = show_shape(positions)
        raise ShapeMismatch(
            f"operand 0 (x) must have spatial extents of at least 1, but they are {got}",
            operand=0,
            expected="spatial extents of at least 1",
            got=got,
        )
    below = [max(s, d) for s, d in zip(windows.stride, windows.dilation, strict=True)]
    if any(o >= b for o, b in zip(output_padding, below, strict=True)):
        wanted, shown = f"below {show_shape(below)}, the larger of stride and dilation", show_shape(output_padding)
        raise BadAttribute(f"attribute output_padding must be {wanted}, but is {shown}", expected=wanted, got=shown)


def check_extents(extents: Sequence[int], padding: Sequence[int]) -> None:
    """Raise BadAttribute where the padding takes away more than there is."""
    if min(extents) < 0:
        got = show_shape(padding)
        raise BadAttribute(
            f"attribute padding is {got}, which takes away more than the result has: its extents would be "
            f"{show_shape(extents)}",
            expected="padding that leaves extents of at least 0",
            got=got,
        )
