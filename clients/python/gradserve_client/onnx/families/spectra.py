"""Fourier transforms, as products with constant matrices."""

from __future__ import annotations

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.onnx.call import Call, Said
from gradserve_client.onnx.families.helpers import as_dtype, bordered
from gradserve_client.onnx.families.table import RULES
from gradserve_client.tensors import Array


@RULES("DFT", since=17)
def dft(call: Call) -> Said:
    """Along one axis; the last one holds real and imaginary parts."""
    rank = call.rank()
    axis = int(call.static(2, "axis").reshape(-1)[0]) if call.has(2) else call.attrs.get("axis", -2)
    axis %= rank
    inverse, onesided = bool(call.attrs["inverse"]), bool(call.attrs["onesided"])
    real_again = inverse and onesided
    extent = call.shape()[axis]
    default = 2 * (extent - 1) if real_again else extent
    length = int(call.static(1, "length").reshape(-1)[0]) if call.has(1) else default
    read = length // 2 + 1 if real_again else length
    x = _resized(call.node(), call.shape(), axis, read)
    to_last = [*(i for i in range(rank - 1) if i != axis), axis]
    back = [int(i) for i in np.argsort(to_last)]
    parts = [
        x.select(part, axis=rank - 1).transpose(axes=to_last) if rank > 2 else x.select(part, axis=rank - 1)
        for part in range(call.shape()[-1])
    ]
    frequencies = call.result_shape()[axis]
    cosines, sines = _back_to_real(length) if real_again else _angles(length, frequencies, inverse)
    results = _transformed(call, parts, cosines, sines, real_again)
    ordered = [result.transpose(axes=back) if rank > 2 else result for result in results]
    return call.graph.stack(*ordered, axis=rank - 1)


def _resized(x: Node, shape: tuple[int, ...], axis: int, extent: int) -> Node:
    """Cut, or filled up with zeros, along an axis."""
    after = [extent - each if i == axis else 0 for i, each in enumerate(shape)]
    return bordered(x, shape, [0] * len(shape), after)


def _angles(length: int, frequencies: int, inverse: bool) -> tuple[Array, Array]:
    """cos and sin of ∓2π t k / length, [t, k]; over the length where it goes back."""
    turns = np.outer(np.arange(length), np.arange(frequencies)) % length / length
    angles = 2 * np.pi * turns * (1 if inverse else -1)
    scale = 1 / length if inverse else 1.0
    return np.cos(angles) * scale, np.sin(angles) * scale


def _back_to_real(length: int) -> tuple[Array, Array]:
    """What real signals are of half of their frequencies: those that are left out are conjugates of others."""
    half = length // 2 + 1
    weights = np.full((half, 1), 2.0)
    weights[0] = 1
    if length % 2 == 0:
        weights[-1] = 1
    angles = 2 * np.pi * (np.outer(np.arange(half), np.arange(length)) % length) / length
    return weights * np.cos(angles) / length, weights * np.sin(angles) / length


def _transformed(call: Call, parts: list[Node], cosines: Array, sines: Array, real_again: bool) -> list[Node]:
    """Real and imaginary parts of (a + ib)(cos + i sin), summed over the last axis; or the real part alone.

    In float64, whatever the operand's dtype is: sums that cancel leave zeros.
    """
    cos, sin = call.constant(cosines), call.constant(sines)
    parts = [as_dtype(part, call.dtype(), np.float64) for part in parts]
    real = parts[0].matmul(cos)
    if len(parts) > 1:
        real = real.sub(parts[1].matmul(sin))
    if real_again:
        return [as_dtype(real, np.float64, call.dtype())]
    imaginary = parts[0].matmul(sin)
    if len(parts) > 1:
        imaginary = imaginary.add(parts[1].matmul(cos))
    return [as_dtype(part, np.float64, call.dtype()) for part in (real, imaginary)]


@RULES("STFT", since=17)
def stft(call: Call) -> Said:
    """Frames, each times the window, transformed."""
    step = int(call.static(1, "frame step").reshape(-1)[0])
    batch, samples, parts = (*call.shape(), 1)[:3]
    length = int(call.static(3, "frame length").reshape(-1)[0]) if call.has(3) else call.shape(2)[0]
    frames = 1 + (samples - length) // step
    positions = np.arange(frames)[:, None] * step + np.arange(length)
    x = call.node().reshape(shape=[batch, samples, parts])
    read = x.gather(axis=1, indices=positions.reshape(-1).tolist()).reshape(shape=[batch, frames, length, parts])
    each = [read.select(part, axis=3) for part in range(parts)]
    if call.has(2):
        each = [part.mul(call.node(2)) for part in each]
    cosines, sines = _angles(length, call.result_shape()[2], False)
    return call.graph.stack(*_transformed(call, each, cosines, sines, False), axis=3)
