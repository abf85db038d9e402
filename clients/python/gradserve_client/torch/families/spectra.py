"""Fourier transforms."""

from __future__ import annotations

from typing import Final

from gradserve_client.torch.call import Call, Results
from gradserve_client.torch.families.table import RULES

#: names of `norm` by PyTorch's number: divide by 1, by the root of the number of points, or by that number
_FORTH: Final = ("backward", "ortho", "forward")
_BACK: Final = ("forward", "ortho", "backward")


def _axes(call: Call) -> list[int]:
    return [axis % call.rank() for axis in call["dim"]]


@RULES("_fft_c2c")
def complex_to_complex(call: Call) -> Results:
    """Write `fft` or `ifft`."""
    if not call["dim"]:
        return call.value()
    if call["forward"]:
        return call.node().fft(axes=_axes(call), norm=_FORTH[call["normalization"]])
    return call.node().ifft(axes=_axes(call), norm=_BACK[call["normalization"]])


@RULES("_fft_r2c")
def real_to_complex(call: Call) -> Results:
    """Write `rfft`, or `fft` if the whole last axis is requested."""
    op = "rfft" if call["onesided"] else "fft"
    return call.graph.op(op, call.node(), axes=_axes(call), norm=_FORTH[call["normalization"]])


@RULES("_fft_c2r")
def complex_to_real(call: Call) -> Results:
    """Write `irfft`, with the given number of points on the last axis."""
    axes = _axes(call)
    sizes = [*(call.shape()[axis] for axis in axes[:-1]), int(call["last_dim_size"])]
    needs_sizes = sizes[-1] != 2 * (call.shape()[axes[-1]] - 1)
    return call.node().irfft(axes=axes, sizes=sizes if needs_sizes else None, norm=_BACK[call["normalization"]])
