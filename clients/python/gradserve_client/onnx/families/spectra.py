"""Fourier transforms. Complex numbers are ONNX's: real and imaginary parts along the last axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing.writing import TO_THE_END
from gradserve_client.onnx.call import Call, Said
from gradserve_client.onnx.families.helpers import as_dtype
from gradserve_client.onnx.families.table import RULES


@RULES("DFT", since=17)
def dft(call: Call) -> Said:
    """Along one axis: `fft`, `ifft`, `rfft` or `irfft`."""
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
    return _parts(call, _forth(x, axis, length, onesided, call.shape()[-1] == 1), rank - 1)


def _joined(call: Call, parts: Sequence[Node]) -> Node:
    """Complex numbers of two parts; of one, real ones. In float64: sums that cancel leave zeros."""
    wide = [as_dtype(part, call.dtype(), np.float64) for part in parts]
    return wide[0].make_complex(wide[1]) if len(wide) > 1 else wide[0]


def _forth(x: Node, axis: int, length: int, onesided: bool, is_real: bool) -> Node:
    """All frequencies, or the first half."""
    if onesided and is_real:
        return x.rfft(axes=[axis], sizes=[length])
    every = x.fft(axes=[axis], sizes=[length])
    return every.slice(stops=[TO_THE_END] * axis + [length // 2 + 1]) if onesided else every


def _parts(call: Call, z: Node, axis: int) -> Node:
    """Both parts along a new last axis."""
    return call.graph.stack(*(as_dtype(part, np.float64, call.dtype()) for part in (z.real(), z.imag())), axis=axis)


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
    onesided = call.result_shape()[2] != length
    return _parts(call, _forth(_joined(call, each), 2, length, onesided, parts == 1), 3)
