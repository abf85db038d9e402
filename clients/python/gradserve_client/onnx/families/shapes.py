"""Reshaping, concatenation, splitting, slicing, padding, and constants that depend on shapes only."""

from __future__ import annotations

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import TO_THE_END, outputs_of, pad_or_crop
from gradserve_client.onnx.call import Call, RuleResult
from gradserve_client.onnx.families.arithmetic import element_type
from gradserve_client.onnx.families.helpers import at_positions
from gradserve_client.onnx.families.table import RULES


@RULES("Reshape", since=5)
def reshape(call: Call) -> RuleResult:
    """Reshape to the example's shape, which must not depend on the data."""
    call.static(1, "shape")
    return call.node().reshape(shape=call.result_shape())


@RULES("Flatten", "Squeeze", "Unsqueeze")
def reshaped(call: Call) -> RuleResult:
    """Merge, drop or insert axes."""
    call.ints(1, "axes")
    return call.node().reshape(shape=call.result_shape())


@RULES("Expand", since=8)
def expand(call: Call) -> RuleResult:
    """Broadcast to the example's shape, which must not depend on the data."""
    call.static(1, "shape")
    return call.node().broadcast_to(shape=call.result_shape())


@RULES("Tile", since=6)
def tile(call: Call) -> RuleResult:
    """Repeat along each axis."""
    repeats = [int(each) for each in call.static(1, "repeats")]
    return call.node().tile(repeats) if repeats else call.node().identity()


@RULES("Transpose")
def transpose(call: Call) -> RuleResult:
    """Permute axes, or reverse them if no order is stated."""
    order = call.attrs.get("perm", [*reversed(range(call.rank()))])
    return call.node().transpose(axes=[int(axis) for axis in order]) if call.rank() > 1 else call.node().identity()


@RULES("Concat", since=4)
def concat(call: Call) -> RuleResult:
    """Concatenate along an axis."""
    return call.graph.cat(*call.nodes, axis=call.axis(call.rank()))


@RULES("Split", since=2)
def split(call: Call) -> RuleResult:
    """Split into parts of the example's sizes."""
    call.ints(1, "split")
    axis = call.axis(call.rank())
    sizes = [int(part.shape[axis]) for part in call.results]
    return outputs_of(call.node().split(sizes, axis=axis), len(sizes))


@RULES("Slice")
def slice_(call: Call) -> RuleResult:
    """Slice. A negative step becomes a forward slice that is then reversed."""
    starts, stops = call.ints(1, "starts") or [], call.ints(2, "ends") or []
    rank = call.rank()
    axes = [axis % rank for axis in call.ints(3, "axes") or range(len(starts))]
    steps = call.ints(4, "steps") or [1] * len(starts)
    if not len(starts) == len(stops) == len(axes) == len(steps):
        raise Blocked("its starts, ends, axes and steps have different lengths")
    reads = [range(extent) for extent in call.shape()]
    for axis, start, stop, step in zip(axes, starts, stops, steps, strict=True):
        # ONNX clamps an end before the front, which Python would count from the back
        before_all = step < 0 and stop < -len(reads[axis])
        reads[axis] = reads[axis][slice(start, None if before_all else stop, step)]
    backwards = [axis for axis, read in enumerate(reads) if read.step < 0]
    reads = [read[::-1] if read.step < 0 else read for read in reads]
    cut = call.node().slice(
        starts=[read.start if read else 0 for read in reads],
        stops=[_stop(read, extent) for read, extent in zip(reads, call.shape(), strict=True)],
        steps=[read.step for read in reads],
    )
    return cut.flip(axes=backwards) if backwards else cut


def _stop(read: range, extent: int) -> int:
    """Return the end of a slice, as `TO_THE_END` for a whole axis, so that the slice does not fix its extent."""
    if not read:
        return 0
    return TO_THE_END if read == range(extent) else read.stop


@RULES("Pad", since=2)
def pad(call: Call) -> RuleResult:
    """Pad with a number, or with entries of the tensor at constant positions."""
    rank = call.rank()
    stated = call.ints(1, "pads") or []
    axes = [axis % rank for axis in call.ints(3, "axes") or range(rank)]
    before, after = [0] * rank, [0] * rank
    for i, axis in enumerate(axes):
        before[axis], after[axis] = stated[i], stated[i + len(axes)]
    mode = call.text("mode")
    if mode == "constant":
        return pad_or_crop(call.node(), call.shape(), before, after, _fill(call))
    modes = {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}
    node = pad_or_crop(call.node(), call.shape(), [min(0, b) for b in before], [min(0, a) for a in after])
    for axis, (b, a) in enumerate(zip(before, after, strict=True)):
        if b > 0 or a > 0:
            positions = np.arange(call.shape()[axis] + min(0, b) + min(0, a))
            node = at_positions(node, np.pad(positions, (max(0, b), max(0, a)), modes[mode]).tolist(), axis)  # type: ignore[call-overload]
    return node


def _fill(call: Call) -> float | Node:
    """Return the number to pad with, or its node if it depends on the data."""
    if not call.has(2):
        return float(call.attrs.get("value", 0.0))
    if not call.is_constant(2):
        return call.node(2).reshape(shape=[])
    number: float = np.asarray(call.value(2).example).reshape(-1)[0].item()
    return number


@RULES("Shape")
def shape(call: Call) -> RuleResult:
    """Return the example's shape as a constant."""
    return np.asarray(call.results[0])


@RULES("Size")
def size(call: Call) -> RuleResult:
    """Return the example's size as a constant."""
    return np.asarray(call.results[0])


@RULES("EyeLike", since=9)
def eye_like(call: Call) -> RuleResult:
    """Return a constant of the operand's shape."""
    rows, columns = call.shape()
    return np.eye(rows, columns, call.attrs["k"], dtype=element_type(call, "dtype", call.dtype()))


@RULES("ConstantOfShape", since=9)
def constant_of_shape(call: Call) -> RuleResult:
    """Return a constant. Its shape must not depend on the data."""
    call.static(0, "shape")
    return np.asarray(call.results[0])


@RULES("Range", since=11)
def arange(call: Call) -> RuleResult:
    """Return a constant. Its length, and so all three operands, must not depend on the data."""
    for i, label in enumerate(("start", "limit", "delta")):
        call.static(i, label)
    return np.asarray(call.results[0])


@RULES("MelWeightMatrix", since=17)
def mel_weight_matrix(call: Call) -> RuleResult:
    """Return a constant. None of its operands may depend on the data."""
    for i in range(len(call)):
        call.static(i, "numbers")
    return np.asarray(call.results[0])


@RULES("Trilu", since=14)
def trilu(call: Call) -> RuleResult:
    """Return a triangle of the last two axes."""
    offset = int(call.static(1, "diagonal").reshape(-1)[0]) if call.has(1) else 0
    return call.node().triu(offset=offset) if call.attrs["upper"] else call.node().tril(offset=offset)


@RULES("DepthToSpace")
def depth_to_space(call: Call) -> RuleResult:
    """Move blocks of channels to blocks of pixels."""
    block = call.attrs["blocksize"]
    n, channels, height, width = call.shape()
    rest = channels // block**2
    if call.attrs.get("mode", b"DCR") == b"DCR":
        parts, order = [n, block, block, rest, height, width], [0, 3, 4, 1, 5, 2]
    else:
        parts, order = [n, rest, block, block, height, width], [0, 1, 4, 2, 5, 3]
    return (
        call.node().reshape(shape=parts).transpose(axes=order).reshape(shape=[n, rest, height * block, width * block])
    )


@RULES("SpaceToDepth")
def space_to_depth(call: Call) -> RuleResult:
    """Move blocks of pixels to blocks of channels."""
    block = call.attrs["blocksize"]
    n, channels, height, width = call.shape()
    parts = [n, channels, height // block, block, width // block, block]
    order = [0, 1, 3, 5, 2, 4] if call.attrs.get("mode", b"DCR") == b"CRD" else [0, 3, 5, 1, 2, 4]
    shape = [n, channels * block**2, height // block, width // block]
    return call.node().reshape(shape=parts).transpose(axes=order).reshape(shape=shape)


@RULES("ReverseSequence", since=10)
def reverse_sequence(call: Call) -> RuleResult:
    """Reverse each batch entry up to its length, by reads at computed positions, since lengths may be data."""
    time, batch = call.attrs["time_axis"], call.attrs["batch_axis"]
    steps, entries = call.shape()[time], call.shape()[batch]
    step = call.constant(np.arange(steps).reshape(-1, 1), np.int64)
    lengths = call.node(1).reshape(shape=[1, entries])
    index = step.less(lengths).where(
        lengths.sub(step).sub(call.constant(1, np.int64)), step.broadcast_to(shape=[steps, entries])
    )
    if time > batch:
        index = index.transpose()
    extents = [extent if axis in {time, batch} else 1 for axis, extent in enumerate(call.shape())]
    return call.node().take_along(index.reshape(shape=extents), axis=time)


@RULES("BitCast", since=26)
def bit_cast(call: Call) -> RuleResult:
    """Translate only casts to the same dtype: arithmetic cannot reinterpret bits."""
    if call.results[0].dtype != call.dtype():
        raise Blocked("it reinterprets bits as numbers of another dtype, which no op can express")
    return call.node().identity()
