"""Losses whose derivative is not that of their parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gradserve_client.graph import Node
from gradserve_client.torch.call import Call, Said
from gradserve_client.torch.families.helpers import with_derivative
from gradserve_client.torch.families.table import RULES

#: 1: the mean; 2: the sum; 0: neither
_REDUCTIONS: Final = {1: "mean", 2: "sum"}
#: the least that PyTorch lets a logarithm be, and the least that it divides by
_LEAST_LOG, _LEAST = -100.0, 1e-12


@RULES("binary_cross_entropy")
def binary_cross_entropy(call: Call) -> Said:
    """−t · log p − (1 − t) · log(1 − p), logarithms from −100 on; derivatives are PyTorch's, which are finite there."""
    dtype = call.dtype()

    def value(p: Node, t: Node) -> Node:
        log, other = p.log().clamp(min=_LEAST_LOG), p.neg().log1p().clamp(min=_LEAST_LOG)
        return t.sub_scalar(1.0).mul(other).sub(t.mul(log))

    def back(p: Node, t: Node, _: Node, g: Node) -> Sequence[Node]:
        below = p.neg().add_scalar(1.0).mul(p).clamp(min=_LEAST)
        return [g.mul(p.sub(t)).div(below), g.mul(p.neg().add_scalar(1.0).log().sub(p.log()))]

    loss = with_derivative(call, [call.node(), call.converted("target", dtype)], value, back)
    if call.has("weight"):
        loss = loss.mul(call.converted("weight", dtype))
    reduction = _REDUCTIONS.get(int(call["reduction"]))
    return loss if reduction is None else call.graph.op(reduction, loss)


@RULES("mse_loss")
def mse_loss(call: Call) -> Said:
    """The squares of the differences, their mean or sum."""
    square = call.together(["self", "target"], call.result.dtype, ())
    reduction = _REDUCTIONS.get(int(call["reduction"]), "none")
    if call.shape() == call.shape("target"):
        return square[0].mse_loss(square[1], reduction=reduction)  # type: ignore[arg-type]
    loss = square[0].sub(square[1]).square()
    return loss if reduction == "none" else call.graph.op(reduction, loss)
