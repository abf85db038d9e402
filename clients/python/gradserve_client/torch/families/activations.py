"""Activation functions, and dropout in evaluation."""

from __future__ import annotations

from gradserve_client.importing import Blocked
from gradserve_client.torch.call import Call, Results
from gradserve_client.torch.families.table import RULES
from gradserve_client.torch.families.unsupported import RANDOM


@RULES("silu")
def silu(call: Call) -> Results:
    """Compute x · sigmoid x."""
    return call.node().silu()


@RULES("gelu")
def gelu(call: Call) -> Results:
    """Compute x · Φ(x), or its approximation by tanh."""
    return call.graph.op("gelu", call.node(), approximate=call["approximate"])


@RULES("leaky_relu")
def leaky_relu(call: Call) -> Results:
    """Compute x, or slope · x below 0."""
    return call.node().leaky_relu(alpha=float(call["negative_slope"]))


@RULES("elu")
def elu(call: Call) -> Results:
    """Compute scale · x, or scale · alpha · (exp(input_scale · x) − 1) below 0."""
    alpha, scale, inner = (float(call[name]) for name in ("alpha", "scale", "input_scale"))
    x = call.node()
    if inner == 1:
        y = x.elu(alpha=alpha)
        return y if scale == 1 else y.mul_scalar(scale)
    below = x.mul_scalar(inner).elu(alpha=alpha)
    y = x.greater(call.constant(0, call.dtype())).where(x, below)
    return y if scale == 1 else y.mul_scalar(scale)


@RULES("softplus")
def softplus(call: Call) -> Results:
    """Compute ln(1 + exp(beta · x)) / beta, or x where beta · x is above the threshold."""
    beta, threshold = float(call["beta"]), float(call["threshold"])
    x = call.node()
    scaled = x if beta == 1 else x.mul_scalar(beta)
    smooth = scaled.softplus()
    smooth = smooth if beta == 1 else smooth.div_scalar(beta)
    return scaled.greater(call.constant(threshold, call.dtype())).where(x, smooth)


@RULES("log_sigmoid_forward")
def log_sigmoid(call: Call) -> Results:
    """Write `log_sigmoid`. The second result is a buffer for PyTorch's backward kernel, and is unused."""
    return [call.node().log_sigmoid(), None]


@RULES("hardsigmoid")
def hardsigmoid(call: Call) -> Results:
    """Compute x / 6 + 1/2 clipped to [0, 1]. The derivative at the bounds is 0."""
    x, dtype = call.node(), call.dtype()
    inner = x.add_scalar(3.0).div_scalar(6.0)
    upper = x.greater_equal(call.constant(3, dtype)).where(call.constant(1, dtype), inner)
    return x.less_equal(call.constant(-3, dtype)).where(call.constant(0, dtype), upper)


@RULES("hardswish")
def hardswish(call: Call) -> Results:
    """Compute x · (x + 3) / 6 between −3 and 3, 0 below, x above."""
    x, dtype = call.node(), call.dtype()
    inner = x.mul(x.add_scalar(3.0).div_scalar(6.0))
    upper = x.greater_equal(call.constant(3, dtype)).where(x, inner)
    return x.less_equal(call.constant(-3, dtype)).where(call.constant(0, dtype), upper)


@RULES("native_dropout")
def dropout(call: Call) -> Results:
    """Return the input, in evaluation or with p = 0. Raises Blocked otherwise, as dropout is random."""
    if call["train"] and call["p"] != 0:
        raise Blocked(
            f"in training it is random; {RANDOM[0]}",
            "call module.eval(), or multiply by a mask that is an input",
        )
    return [call.value("input"), None]
