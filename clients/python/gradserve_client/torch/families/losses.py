"""Losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gradserve_client.graph import Node
from gradserve_client.torch.call import Call, Results
from gradserve_client.torch.families.helpers import with_derivative
from gradserve_client.torch.families.table import RULES

#: PyTorch's number of a reduction and the op; 0 is no reduction
_REDUCTIONS: Final = {1: "mean", 2: "sum"}
#: PyTorch's lower bounds for logarithms and for divisors
_MIN_LOG, _MIN_DIVISOR = -100.0, 1e-12


@RULES("binary_cross_entropy")
def binary_cross_entropy(call: Call) -> Results:
    """Compute −t · log p − (1 − t) · log(1 − p), with logarithms of at least −100 and PyTorch's finite derivatives."""
    dtype = call.dtype()

    def value(p: Node, t: Node) -> Node:
        log, log_complement = p.log().clamp(min=_MIN_LOG), p.neg().log1p().clamp(min=_MIN_LOG)
        return t.sub_scalar(1.0).mul(log_complement).sub(t.mul(log))

    def back(p: Node, t: Node, _: Node, g: Node) -> Sequence[Node]:
        divisor = p.neg().add_scalar(1.0).mul(p).clamp(min=_MIN_DIVISOR)
        return [g.mul(p.sub(t)).div(divisor), g.mul(p.neg().add_scalar(1.0).log().sub(p.log()))]

    loss = with_derivative(call, [call.node(), call.node_as("target", dtype)], value, back)
    if call.has("weight"):
        loss = loss.mul(call.node_as("weight", dtype))
    reduction = _REDUCTIONS.get(int(call["reduction"]))
    return loss if reduction is None else call.graph.op(reduction, loss)


@RULES("mse_loss")
def mse_loss(call: Call) -> Results:
    """Compute the squares of the differences, their mean or their sum."""
    operands = call.broadcast_nodes(["self", "target"], call.result.dtype, ())
    reduction = _REDUCTIONS.get(int(call["reduction"]), "none")
    if call.shape() == call.shape("target"):
        return operands[0].mse_loss(operands[1], reduction=reduction)  # type: ignore[arg-type]
    loss = operands[0].sub(operands[1]).square()
    return loss if reduction == "none" else call.graph.op(reduction, loss)
