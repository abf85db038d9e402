"""Numbers one by one: arithmetic, functions, powers, remainders, casts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import torch

from gradserve_client.graph import Node
from gradserve_client.torch.call import Call, Said
from gradserve_client.torch.families.helpers import with_derivative
from gradserve_client.torch.families.table import RULES
from gradserve_client.torch.stop_gradients import STOP_NAME

#: functions of floats, by their names there, and here where they are others
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
#: functions that keep the dtype
_KEEPING: Final = ("neg", "relu", "sign")
_ROUNDING: Final = ("ceil", "floor", "round")


def _unary(op: str) -> Any:
    return lambda call: call.graph.op(op, call.converted("self", call.result.dtype))


for _name, _op in _FUNCTIONS.items():
    RULES.put(_name, _unary(_op))
for _name in _KEEPING:
    RULES.put(_name, _unary(_name))


@RULES("abs")
def absolute(call: Call) -> Said:
    """|x|, which is real of complex numbers."""
    return call.node().abs() if call.value().type.is_complex else call.converted("self", call.result.dtype).abs()


@RULES(*_ROUNDING)
def rounded(call: Call) -> Said:
    """To whole numbers, which whole numbers are."""
    return call.graph.op(call.op, call.node()) if call.result.is_float else call.value()


@RULES("trunc")
def trunc(call: Call) -> Said:
    """Towards zero."""
    if not call.result.is_float:
        return call.value()
    x = call.node()
    return x.less(call.constant(0, call.result.dtype)).where(x.ceil(), x.floor())


@RULES("log10")
def log10(call: Call) -> Said:
    """By the natural logarithm."""
    return call.converted("self", call.result.dtype).log().div_scalar(math.log(10))


@RULES("add.Tensor", "add.Scalar", "sub.Tensor", "sub.Scalar", "rsub.Scalar", "rsub.Tensor")
def add(call: Call) -> Said:
    """a ± alpha · b; a number is added as one."""
    kind, alpha = call.result, call["alpha"]
    first, second = ("other", "self") if call.op.startswith("rsub") else ("self", "other")
    op = "add" if call.op.startswith("add") else "sub"
    if alpha == 1 and kind.is_float and isinstance(call[second], int | float) and math.isfinite(call[second]):
        return call.graph.op(f"{op}_scalar", call.converted(first, kind.dtype), scalar=float(call[second]))
    a, b = call.together([first, second], kind.dtype)
    if alpha != 1:
        b = b.mul_scalar(float(alpha)) if kind.is_float else b.mul(call.constant(alpha, kind.dtype))
    if kind.dtype == "bool":
        return a.logical_or(b)
    return call.graph.op(op, a, b)


@RULES("mul.Tensor", "mul.Scalar", "div.Tensor", "div.Scalar")
def mul(call: Call) -> Said:
    """a · b, or a / b in floats; by a number as by one."""
    kind, op = call.result, call.op.partition(".")[0]
    number = call["other"] if isinstance(call["other"], int | float) else None
    if number is not None and kind.is_float and math.isfinite(number):
        return call.graph.op(f"{op}_scalar", call.converted("self", kind.dtype), scalar=float(number))
    a, b = call.together(["self", "other"], kind.dtype)
    return a.logical_and(b) if kind.dtype == "bool" else call.graph.op(op, a, b)


#: ops of two tensors, by their names there, and here
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
def binary(call: Call) -> Said:
    """Ops of two tensors that are one of ours; the incomplete gamma functions have a gradient by their shape here."""
    return call.graph.op(_BINARY[call.op], *call.together(["self", "other"], call.result.dtype))


@RULES("pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar")
def power(call: Call) -> Said:
    """aᵇ; a number as exponent is an attribute."""
    kind, exponent = call.result, call["exponent"]
    if isinstance(exponent, int | float) and kind.is_float and math.isfinite(exponent):
        base = call.converted("self", kind.dtype)
        return base.square() if exponent == 2 else base.pow_scalar(float(exponent))
    base, exponent = call.together(["self", "exponent"], kind.dtype)
    return base.pow(exponent)


@RULES("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
def remainder(call: Call) -> Said:
    """With the sign of the divisor."""
    a, b = call.together(["self", "other"], call.result.dtype)
    return a.mod(b)


@RULES("fmod.Tensor", "fmod.Scalar")
def fmod(call: Call) -> Said:
    """With the sign of what is divided."""
    a, b = call.together(["self", "other"], call.result.dtype)
    return a.rem(b)


@RULES("xlogy.Tensor", "xlogy.Scalar_Self", "xlogy.Scalar_Other")
def xlogy(call: Call) -> Said:
    """x · log y, 0 where x is 0; its derivatives are PyTorch's: by x, 0 where x is 0 and y is not positive."""
    shapes = [() if isinstance(call[name], int | float) else call.shape(name) for name in ("self", "other")]
    nothing = torch.zeros((), dtype=getattr(torch, call.result.dtype)).numpy()

    def value(x: Node, y: Node) -> Node:
        zero = x.graph.constant(nothing)
        return x.equal(zero).logical_and(y.equal(y)).where(zero, x.mul(y.log()))

    def back(x: Node, y: Node, _: Node, g: Node) -> Sequence[Node]:
        zero = x.graph.constant(nothing)
        by_x = x.equal(zero).logical_and(y.less_equal(zero)).where(zero, value(g, y))
        return [
            _summed(each, call.result.shape, shape) for each, shape in zip((by_x, g.mul(x).div(y)), shapes, strict=True)
        ]

    return with_derivative(call, call.together(["self", "other"], call.result.dtype, ()), value, back)


def _summed(node: Node, found: Sequence[int], wanted: Sequence[int]) -> Node:
    """Summed over what was repeated."""
    lead = len(found) - len(wanted)
    axes = [i for i, n in enumerate(found) if i < lead or (wanted[i - lead] == 1 and n != 1)]
    return node.sum(axes=axes, keepdims=True).reshape(shape=[*wanted]) if axes else node


@RULES("_to_copy")
def cast(call: Call) -> Said:
    """To another dtype; the same is no node. Of complex numbers in a real one, the real part."""
    if call.dtype() == call.result.dtype:
        return call.value()
    x = call.node()
    real = x.real() if call.value().type.is_complex and not call.result.is_complex else x
    return real.cast(call.result.dtype)


@RULES("alias", "clone")
def same(call: Call) -> Said:
    """No node."""
    return call.value()


@RULES(STOP_NAME)
def stop(call: Call) -> Said:
    """What `detach` and `no_grad` were marked by."""
    value = call.value("x")
    return value.given_by(call.graph).stop_gradient() if value.type.is_float else value
