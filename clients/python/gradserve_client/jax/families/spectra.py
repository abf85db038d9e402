"""Fourier transforms."""

from __future__ import annotations

from gradserve_client.jax.call import Call, Results
from gradserve_client.jax.families.table import RULES

#: ops in the order of lax.FftType
_OPS = ("fft", "ifft", "rfft", "irfft")


@RULES("fft")
def fft(call: Call) -> Results:
    """`fft`, `ifft`, `rfft` or `irfft` over the last axes."""
    lengths = [int(length) for length in call.params["fft_lengths"]]
    op = _OPS[int(call.params["fft_type"])]
    if not lengths:
        return call.operands[0]
    axes = [*range(call.rank() - len(lengths), call.rank())]
    # the op's default length of the last axis is 2 (n − 1)
    needs_sizes = op == "irfft" and lengths[-1] != 2 * (call.shape()[-1] - 1)
    return call.graph.op(op, call.node(), axes=axes, sizes=lengths if needs_sizes else None)
