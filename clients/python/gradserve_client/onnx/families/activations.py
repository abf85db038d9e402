"""Elementwise functions of neural networks."""

from __future__ import annotations

from gradserve_client.onnx.call import Call, RuleResult
from gradserve_client.onnx.families.table import RULES


@RULES("LeakyRelu", since=6)
def leaky_relu(call: Call) -> RuleResult:
    """Return x, or alpha · x below 0."""
    return call.node().leaky_relu(alpha=call.attrs["alpha"])


@RULES("PRelu", since=7)
def prelu(call: Call) -> RuleResult:
    """Return x, or slope · x below 0."""
    x = call.node()
    return x.less(call.like(0)).where(x.mul(call.node(1)), x)


@RULES("Elu", since=6)
def elu(call: Call) -> RuleResult:
    """Return x, or alpha · (eˣ − 1) below 0."""
    return call.node().elu(alpha=call.attrs["alpha"])


@RULES("Selu", since=6)
def selu(call: Call) -> RuleResult:
    """Compute gamma · elu(x, alpha)."""
    return call.node().elu(alpha=call.attrs["alpha"]).mul_scalar(call.attrs["gamma"])


@RULES("Celu", since=12)
def celu(call: Call) -> RuleResult:
    """Return x, or alpha · (exp(x / alpha) − 1) below 0."""
    alpha = call.attrs["alpha"]
    return call.node().div_scalar(alpha).elu(alpha=1.0).mul_scalar(alpha)


@RULES("ThresholdedRelu", since=10)
def thresholded_relu(call: Call) -> RuleResult:
    """Return x where it is above alpha, else 0."""
    x = call.node()
    return x.greater(call.like(call.attrs["alpha"])).where(x, call.like(0))


@RULES("Shrink", since=9)
def shrink(call: Call) -> RuleResult:
    """Move x towards 0 by the bias, and return 0 where |x| is at most lambd."""
    x, lambd, bias = call.node(), call.attrs["lambd"], call.attrs["bias"]
    upper = x.greater(call.like(lambd)).where(x.sub(call.like(bias)), call.like(0))
    return x.less(call.like(-lambd)).where(x.add(call.like(bias)), upper)


@RULES("HardSigmoid", since=6)
def hard_sigmoid(call: Call) -> RuleResult:
    """Compute alpha · x + beta, clamped to [0, 1]."""
    return call.node().mul_scalar(call.attrs["alpha"]).add_scalar(call.attrs["beta"]).clamp(min=0.0, max=1.0)


@RULES("HardSwish", since=14)
def hard_swish(call: Call) -> RuleResult:
    """Compute x · (x / 6 + 1/2, clamped to [0, 1])."""
    x = call.node()
    return x.mul(x.mul_scalar(1 / 6).add_scalar(0.5).clamp(min=0.0, max=1.0))


@RULES("Softsign", since=1)
def softsign(call: Call) -> RuleResult:
    """Compute x / (1 + |x|)."""
    x = call.node()
    return x.div(x.abs().add_scalar(1.0))


@RULES("Mish", since=18)
def mish(call: Call) -> RuleResult:
    """Compute x · tanh(softplus x)."""
    x = call.node()
    return x.mul(x.softplus().tanh())


@RULES("Swish", since=24)
def swish(call: Call) -> RuleResult:
    """Compute x · sigmoid(alpha · x)."""
    x, alpha = call.node(), call.attrs["alpha"]
    return x.silu() if alpha == 1 else x.mul(x.mul_scalar(alpha).sigmoid())


@RULES("Gelu", since=20)
def gelu(call: Call) -> RuleResult:
    """Compute x · Φ(x), or its tanh approximation."""
    return call.graph.op("gelu", call.node(), approximate=call.text("approximate"))
