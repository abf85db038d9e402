"""Tensors that depend on no data."""

from __future__ import annotations

import torch

from gradserve_client.torch.call import Call, Results
from gradserve_client.torch.families.table import RULES


def _repeated(call: Call, value: float) -> torch.Tensor:
    """Return a tensor that repeats one number, and has the memory of one element."""
    return torch.full((), value, dtype=getattr(torch, call.result.dtype)).expand(call.result.shape)


@RULES("full", "full_like", "scalar_tensor")
def full(call: Call) -> Results:
    """Fill with a number."""
    return _repeated(call, call["s"] if call.op == "scalar_tensor" else call["fill_value"])


@RULES(
    "zeros", "zeros_like", "empty.memory_format", "empty_strided", "empty_like", "empty_permuted", "new_empty_strided"
)
def zeros(call: Call) -> Results:
    """Fill with zeros. The elements of an empty tensor are undefined, so zeros are valid."""
    return _repeated(call, 0)


@RULES("ones", "ones_like")
def ones(call: Call) -> Results:
    """Fill with ones."""
    return _repeated(call, 1)


@RULES("fill.Scalar", "fill.Tensor")
def fill(call: Call) -> Results:
    """Replace all elements by a number or 0-d tensor."""
    if call.op == "fill.Scalar":
        return _repeated(call, call["value"])
    return call.node_as("value", call.result.dtype).broadcast_to(shape=list(call.result.shape))


@RULES("arange.start_step", "arange.start", "arange")
def arange(call: Call) -> Results:
    """Return a range of numbers."""
    start, step = call.arguments.get("start", 0), call.arguments.get("step", 1)
    return torch.arange(start, call["end"], step, dtype=getattr(torch, call.result.dtype))


@RULES("eye", "eye.m")
def eye(call: Call) -> Results:
    """Return an identity matrix."""
    return torch.eye(*call.result.shape, dtype=getattr(torch, call.result.dtype))


@RULES("linspace")
def linspace(call: Call) -> Results:
    """Return evenly spaced numbers."""
    return torch.linspace(call["start"], call["end"], call["steps"], dtype=getattr(torch, call.result.dtype))
