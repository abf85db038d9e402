"""Tensors that no data are in."""

from __future__ import annotations

import torch

from gradserve_client.torch.call import Call, Said
from gradserve_client.torch.families.table import RULES


def _repeated(call: Call, value: float) -> torch.Tensor:
    """A tensor of one number, which takes no more memory than that."""
    return torch.full((), value, dtype=getattr(torch, call.result.dtype)).expand(call.result.shape)


@RULES("full", "full_like", "scalar_tensor")
def full(call: Call) -> Said:
    """Of one number."""
    return _repeated(call, call["s"] if call.op == "scalar_tensor" else call["fill_value"])


@RULES(
    "zeros", "zeros_like", "empty.memory_format", "empty_strided", "empty_like", "empty_permuted", "new_empty_strided"
)
def zeros(call: Call) -> Said:
    """Of zeros; what is empty has no elements that anybody may read, so zeros are as good."""
    return _repeated(call, 0)


@RULES("ones", "ones_like")
def ones(call: Call) -> Said:
    """Of ones."""
    return _repeated(call, 1)


@RULES("fill.Scalar", "fill.Tensor")
def fill(call: Call) -> Said:
    """A number in place of all elements."""
    if call.op == "fill.Scalar":
        return _repeated(call, call["value"])
    return call.converted("value", call.result.dtype).broadcast_to(shape=list(call.result.shape))


@RULES("arange.start_step", "arange.start", "arange")
def arange(call: Call) -> Said:
    """Numbers in a row."""
    start, step = call.arguments.get("start", 0), call.arguments.get("step", 1)
    return torch.arange(start, call["end"], step, dtype=getattr(torch, call.result.dtype))


@RULES("eye", "eye.m")
def eye(call: Call) -> Said:
    """The identity."""
    return torch.eye(*call.result.shape, dtype=getattr(torch, call.result.dtype))


@RULES("linspace")
def linspace(call: Call) -> Said:
    """Numbers from one to another."""
    return torch.linspace(call["start"], call["end"], call["steps"], dtype=getattr(torch, call.result.dtype))
