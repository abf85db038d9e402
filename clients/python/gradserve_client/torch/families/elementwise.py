"""Elementwise arithmetic, functions, powers, remainders and casts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import torch

from gradserve_client.graph import Node
from gradserve_client.torch.call import Call, Results
from gradserve_client.torch.families.helpers import with_derivative
from gradserve_client.torch.families.table import RULES
from gradserve_client.torch.stop_gradients import STOP_NAME

#: functions of floats: PyTorch's name and the op's
_FUNCTIONS: Final = {
    "acos": "acos",
    "acosh": "acosh",
    "asin": "asin",
    "asinh": "asinh",
    "atan": "atan",
    "atanh": "atanh",
    "cos": "cos",
    "cosh": "cosh",
    "digamma": "digamma",
    "erf": "erf",
    "erfc": "erfc",
    "erfinv": "erfinv",
    "exp": "exp",
    "expm1": "expm1",
    "i0": "i0",
    "lgamma": "lgamma",
    "log": "log",
    "log1p": "log1p",
    "log2": "log2",
    "reciprocal": "reciprocal",
    "rsqrt": "rsqrt",
    "sigmoid": "sigmoid",
    "sin": "sin",
    "sinc": "sinc",
    "sinh": "sinh",
    "special_i0e": "i0e",
    "special_i1": "i1",
    "special_i1e": "i1e",
    "special_log_ndtr": "log_ndtr",
    "sqrt": "sqrt",
    "tan": "tan",
    "tanh": "tanh",
}
#: functions whose result has the operand's dtype
_SAME_DTYPE: Final = ("neg", "relu", "sign")
_ROUNDING: Final = ("ceil", "floor", "round")


def _unary(op: str) -> Any:
    return lambda call: call.graph.op(op, call.node_as("self", call.result.dtype))


for _name, _op in _FUNCTIONS.items():
    RULES.put(_name, _unary(_op))
for _name in _SAME_DTYPE:
    RULES.put(_name, _unary(_name))


@RULES("abs")
def absolute(call: Call) -> Results:
    """Compute |x|, which is real for complex numbers."""
    return call.node().abs() if call.value().type.is_complex else call.node_as("self", call.result.dtype).abs()


@RULES(*_ROUNDING)
def round_(call: Call) -> Results:
    """Round. Integers are unchanged."""
    return call.graph.op(call.op, call.node()) if call.result.is_float else call.value()


@RULES("trunc")
def trunc(call: Call) -> Results:
    """Round toward zero."""
    if not call.result.is_float:
        return call.value()
    x = call.node()
    return x.less(call.constant(0, call.result.dtype)).where(x.ceil(), x.floor())


@RULES("log10")
def log10(call: Call) -> Results:
    """Compute log₁₀ x by the natural logarithm."""
    return call.node_as("self", call.result.dtype).log().div_scalar(math.log(10))


@RULES("add.Tensor", "add.Scalar", "sub.Tensor", "sub.Scalar", "rsub.Scalar", "rsub.Tensor")
def add(call: Call) -> Results:
    """Compute a ± alpha · b. A finite number b is an attribute."""
    kind, alpha = call.result, call["alpha"]
    first, second = ("other", "self") if call.op.startswith("rsub") else ("self", "other")
    op = "add" if call.op.startswith("add") else "sub"
    if alpha == 1 and kind.is_float and isinstance(call[second], int | float) and math.isfinite(call[second]):
        return call.graph.op(f"{op}_scalar", call.node_as(first, kind.dtype), scalar=float(call[second]))
    a, b = call.broadcast_nodes([first, second], kind.dtype)
    if alpha != 1:
        b = b.mul_scalar(float(alpha)) if kind.is_float else b.mul(call.constant(alpha, kind.dtype))
    if kind.dtype == "bool":
        return a.logical_or(b)
    return call.graph.op(op, a, b)


@RULES("mul.Tensor", "mul.Scalar", "div.Tensor", "div.Scalar")
def mul(call: Call) -> Results:
    """Compute a · b, or a / b of floats. A finite number b is an attribute."""
    kind, op = call.result, call.op.partition(".")[0]
    number = call["other"] if isinstance(call["other"], int | float) else None
    if number is not None and kind.is_float and math.isfinite(number):
        return call.graph.op(f"{op}_scalar", call.node_as("self", kind.dtype), scalar=float(number))
    a, b = call.broadcast_nodes(["self", "other"], kind.dtype)
    return a.logical_and(b) if kind.dtype == "bool" else call.graph.op(op, a, b)


#: functions of two tensors: PyTorch's name and the op's
_BINARY: Final = {
    "atan2": "atan2",
    "igamma": "igamma",
    "igammac": "igammac",
    "logaddexp": "logaddexp",
    "maximum": "maximum",
    "minimum": "minimum",
    "special_xlog1py": "xlog1py",
    "special_zeta": "zeta",
}


@RULES(*_BINARY)
def binary(call: Call) -> Results:
    """Write one op of two tensors. Unlike PyTorch's, igamma and igammac are differentiable in their order."""
    return call.graph.op(_BINARY[call.op], *call.broadcast_nodes(["self", "other"], call.result.dtype))


@RULES("pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar")
def power(call: Call) -> Results:
    """Compute aᵇ. A finite number as the exponent is an attribute."""
    kind, exponent = call.result, call["exponent"]
    if isinstance(exponent, int | float) and kind.is_float and math.isfinite(exponent):
        base = call.node_as("self", kind.dtype)
        return base.square() if exponent == 2 else base.pow_scalar(float(exponent))
    base, exponent = call.broadcast_nodes(["self", "exponent"], kind.dtype)
    return base.pow(exponent)


@RULES("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
def remainder(call: Call) -> Results:
    """Compute the remainder with the sign of the divisor."""
    a, b = call.broadcast_nodes(["self", "other"], call.result.dtype)
    return a.mod(b)


@RULES("fmod.Tensor", "fmod.Scalar")
def fmod(call: Call) -> Results:
    """Compute the remainder with the sign of the dividend."""
    a, b = call.broadcast_nodes(["self", "other"], call.result.dtype)
    return a.rem(b)


@RULES("xlogy.Tensor", "xlogy.Scalar_Self", "xlogy.Scalar_Other")
def xlogy(call: Call) -> Results:
    """Compute x · log y, or 0 for x = 0, with PyTorch's derivatives: with respect to x, 0 if x = 0 and y ≤ 0."""
    shapes = [() if isinstance(call[name], int | float) else call.shape(name) for name in ("self", "other")]
    zero_value = torch.zeros((), dtype=getattr(torch, call.result.dtype)).numpy()

    def value(x: Node, y: Node) -> Node:
        zero = x.graph.constant(zero_value)
        return x.equal(zero).logical_and(y.equal(y)).where(zero, x.mul(y.log()))

    def back(x: Node, y: Node, _: Node, g: Node) -> Sequence[Node]:
        zero = x.graph.constant(zero_value)
        x_gradient = x.equal(zero).logical_and(y.less_equal(zero)).where(zero, value(g, y))
        return [
            _sum_to(each, call.result.shape, shape)
            for each, shape in zip((x_gradient, g.mul(x).div(y)), shapes, strict=True)
        ]

    return with_derivative(call, call.broadcast_nodes(["self", "other"], call.result.dtype, ()), value, back)


def _sum_to(node: Node, shape: Sequence[int], operand_shape: Sequence[int]) -> Node:
    """Sum over the axes that were broadcast from one shape to another."""
    lead = len(shape) - len(operand_shape)
    axes = [i for i, n in enumerate(shape) if i < lead or (operand_shape[i - lead] == 1 and n != 1)]
    return node.sum(axes=axes, keepdims=True).reshape(shape=[*operand_shape]) if axes else node


@RULES("_to_copy")
def cast(call: Call) -> Results:
    """Write `cast` if the dtype changes. From complex to real, take the real part."""
    if call.dtype() == call.result.dtype:
        return call.value()
    x = call.node()
    real = x.real() if call.value().type.is_complex and not call.result.is_complex else x
    return real.cast(call.result.dtype)


@RULES("alias", "clone")
def same(call: Call) -> Results:
    """Return the operand."""
    return call.value()


@RULES(STOP_NAME)
def stop(call: Call) -> Results:
    """Write `stop_gradient` for the marks of `detach` and `no_grad`."""
    value = call.value("x")
    return value.node_in(call.graph).stop_gradient() if value.type.is_float else value
