"""Transforms of Fourier's."""

from __future__ import annotations

from typing import Final

from gradserve_client.torch.call import Call, Said
from gradserve_client.torch.families.table import RULES

#: what is divided by: nothing, the root of how many points there are, or their number
_FORTH: Final = ("backward", "ortho", "forward")
_BACK: Final = ("forward", "ortho", "backward")


def _axes(call: Call) -> list[int]:
    return [axis % call.rank() for axis in call["dim"]]


@RULES("_fft_c2c")
def complex_to_complex(call: Call) -> Said:
    """Forth or back."""
    if not call["dim"]:
        return call.value()
    if call["forward"]:
        return call.node().fft(axes=_axes(call), norm=_FORTH[call["normalization"]])
    return call.node().ifft(axes=_axes(call), norm=_BACK[call["normalization"]])


@RULES("_fft_r2c")
def real_to_complex(call: Call) -> Said:
    """Of real numbers: half of the last axis, or all of it."""
    op = "rfft" if call["onesided"] else "fft"
    return call.graph.op(op, call.node(), axes=_axes(call), norm=_FORTH[call["normalization"]])


@RULES("_fft_c2r")
def complex_to_real(call: Call) -> Said:
    """Back to real numbers, of so many points on the last axis."""
    axes = _axes(call)
    sizes = [*(call.shape()[axis] for axis in axes[:-1]), int(call["last_dim_size"])]
    stated = sizes[-1] != 2 * (call.shape()[axes[-1]] - 1)
    return call.node().irfft(axes=axes, sizes=sizes if stated else None, norm=_BACK[call["normalization"]])
