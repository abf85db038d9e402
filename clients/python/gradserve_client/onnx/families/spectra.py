"""Fourier transforms. ONNX stores complex numbers as real and imaginary parts along the last axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing.writing import TO_THE_END
from gradserve_client.onnx.call import Call, RuleResult
from gradserve_client.onnx.families.helpers import as_dtype
from gradserve_client.onnx.families.table import RULES


@RULES("DFT", since=17)
def dft(call: Call) -> RuleResult:
    """Transform one axis by `fft`, `ifft`, `rfft` or `irfft`."""
    rank = call.rank()
    axis = int(call.static(2, "axis").reshape(-1)[0]) if call.has(2) else call.attrs.get("axis", -2)
    axis %= rank
    inverse, onesided = bool(call.attrs["inverse"]), bool(call.attrs["onesided"])
    extent = call.shape()[axis]
    default = 2 * (extent - 1) if inverse and onesided else extent
    length = int(call.static(1, "length").reshape(-1)[0]) if call.has(1) else default
    x = _joined(call, [call.node().select(part, axis=rank - 1) for part in range(call.shape()[-1])])
    if inverse and onesided:
        real = as_dtype(x.irfft(axes=[axis], sizes=[length]), np.float64, call.dtype())
        return call.graph.stack(real, axis=rank - 1)
    if inverse:
        return _parts(call, x.ifft(axes=[axis], sizes=[length]), rank - 1)
    return _parts(call, _transform(x, axis, length, onesided, call.shape()[-1] == 1), rank - 1)


def _joined(call: Call, parts: Sequence[Node]) -> Node:
    """Join real and imaginary parts; a single part stays real. Use float64, so that sums that cancel yield zeros."""
    wide = [as_dtype(part, call.dtype(), np.float64) for part in parts]
    return wide[0].make_complex(wide[1]) if len(wide) > 1 else wide[0]


def _transform(x: Node, axis: int, length: int, onesided: bool, is_real: bool) -> Node:
    """Transform forward, and return all frequencies or the first half."""
    if onesided and is_real:
        return x.rfft(axes=[axis], sizes=[length])
    all_frequencies = x.fft(axes=[axis], sizes=[length])
    return all_frequencies.slice(stops=[TO_THE_END] * axis + [length // 2 + 1]) if onesided else all_frequencies


def _parts(call: Call, z: Node, axis: int) -> Node:
    """Stack real and imaginary parts along a new last axis."""
    return call.graph.stack(*(as_dtype(part, np.float64, call.dtype()) for part in (z.real(), z.imag())), axis=axis)


@RULES("STFT", since=17)
def stft(call: Call) -> RuleResult:
    """Transform frames, each multiplied by the window."""
    step = int(call.static(1, "frame step").reshape(-1)[0])
    batch, samples, parts = (*call.shape(), 1)[:3]
    length = int(call.static(3, "frame length").reshape(-1)[0]) if call.has(3) else call.shape(2)[0]
    frames = 1 + (samples - length) // step
    positions = np.arange(frames)[:, None] * step + np.arange(length)
    x = call.node().reshape(shape=[batch, samples, parts])
    segments = x.gather(axis=1, indices=positions.reshape(-1).tolist()).reshape(shape=[batch, frames, length, parts])
    windowed = [segments.select(part, axis=3) for part in range(parts)]
    if call.has(2):
        windowed = [part.mul(call.node(2)) for part in windowed]
    onesided = call.result_shape()[2] != length
    return _parts(call, _transform(_joined(call, windowed), 2, length, onesided, parts == 1), 3)
