"""Elementwise numbers, comparisons and choices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.jax.call import Call, Said
from gradserve_client.jax.families.integers import quotient, remainder
from gradserve_client.jax.families.table import RULES

#: primitives that are one of ours on the same operands
SAME: Final[Mapping[str, str]] = {
    "abs": "abs",
    "acos": "acos",
    "acosh": "acosh",
    "asin": "asin",
    "asinh": "asinh",
    "atan": "atan",
    "atan2": "atan2",
    "atanh": "atanh",
    "bessel_i0e": "i0e",
    "bessel_i1e": "i1e",
    "ceil": "ceil",
    "cos": "cos",
    "cosh": "cosh",
    "digamma": "digamma",
    "eq": "equal",
    "erf": "erf",
    "erf_inv": "erfinv",
    "erfc": "erfc",
    "exp": "exp",
    "expm1": "expm1",
    "floor": "floor",
    "ge": "greater_equal",
    "gt": "greater",
    "igamma": "igamma",
    "igammac": "igammac",
    "is_finite": "is_finite",
    "le": "less_equal",
    "lgamma": "lgamma",
    "log": "log",
    "log1p": "log1p",
    "logistic": "sigmoid",
    "lt": "less",
    "ne": "not_equal",
    "neg": "neg",
    "regularized_incomplete_beta": "betainc",
    "rsqrt": "rsqrt",
    "sign": "sign",
    "sin": "sin",
    "sinh": "sinh",
    "sqrt": "sqrt",
    "square": "square",
    "stop_gradient": "stop_gradient",
    "tanh": "tanh",
    "zeta": "zeta",
}


#: complex numbers to a whole power beyond are by their logarithm
_BY_SQUARES: Final = 64


def _same(op: str) -> Any:
    def say(call: Call) -> Said:
        made: Node = call.graph.op(op, *call.nodes)
        return made

    say.__doc__ = f"`{op}`."
    return say


for _name, _op in SAME.items():
    RULES.put(_name, _same(_op))


def _number(call: Call, i: int) -> float | None:
    """Operand i as a number of an attribute, where it is a real float that the function alone decides."""
    value = call.operands[i]
    other = call.operands[1 - i]
    if not value.is_constant or value.shape or not value.is_float or other.shape != call.results[0].shape:
        return None
    if value.is_complex and value.constant.imag:
        return None
    number = float(np.real(value.constant))
    return number if np.isfinite(number) else None


def _commutative(op: str) -> Any:
    def say(call: Call) -> Said:
        for i in (0, 1):
            number = _number(call, i)
            if number is not None:
                scaled: Node = call.graph.op(f"{op}_scalar", call.node(1 - i), scalar=number)
                return scaled
        made: Node = call.graph.op(op, *call.nodes)
        return made

    say.__doc__ = f"`{op}`, or `{op}_scalar` where one of the operands is a number."
    return say


RULES.put("add", _commutative("add"))
RULES.put("add_any", _commutative("add"))
RULES.put("mul", _commutative("mul"))


@RULES("sub")
def sub(call: Call) -> Said:
    """`sub`, or `sub_scalar` where the second operand is a number."""
    number = _number(call, 1)
    return call.node(0).sub(call.node(1)) if number is None else call.node(0).sub_scalar(number)


@RULES("div")
def div(call: Call) -> Said:
    """`div`, of whole numbers `trunc_div`. A sum by the number of its terms is `mean`."""
    if not call.is_float():
        return quotient(call)
    number, summed = _number(call, 1), call.operands[0].summed
    if number is not None and summed is not None and number == summed.terms:
        mean = summed.node.mean(axes=[*summed.axes])
        return mean.unsqueeze(axes=[*summed.put_in]) if summed.put_in else mean
    if number is not None:
        return call.node(0).div_scalar(number)
    return call.node(1).reciprocal() if _number(call, 0) == 1.0 else call.node(0).div(call.node(1))


@RULES("rem")
def rem(call: Call) -> Said:
    """`rem`."""
    return remainder(call)


def _extreme(op: str, boolean: str) -> Any:
    def say(call: Call) -> Said:
        made: Node = call.graph.op(boolean if call.dtype().kind == "b" else op, *call.nodes)
        return made

    say.__doc__ = f"`{op}`; of bools, `{boolean}`."
    return say


RULES.put("max", _extreme("maximum", "logical_or"))
RULES.put("min", _extreme("minimum", "logical_and"))


@RULES("integer_pow")
def integer_pow(call: Call) -> Said:
    """`square`, `reciprocal` or `pow_scalar`; of whole numbers, `pow`; of complex ones, products."""
    exponent = int(call.params["y"])
    if call.is_complex():
        return _product(call.node(), exponent)
    if not call.is_float():
        return call.node().pow(call.like(exponent))
    if exponent == 2:
        return call.node().square()
    return call.node().reciprocal() if exponent == -1 else call.node().pow_scalar(float(exponent))


def _product(x: Node, exponent: int) -> Node:
    """x to a whole power by squares, which a logarithm of x = 0 has no part in."""
    if exponent < 0:
        return _product(x, -exponent).reciprocal()
    if exponent < 2:
        return x if exponent else x.mul_scalar(0.0).add_scalar(1.0)
    half = _product(x, exponent // 2).square()
    return half.mul(x) if exponent % 2 else half


@RULES("pow")
def power(call: Call) -> Said:
    """`pow`, or `pow_scalar` where the exponent is a number."""
    if any(value.is_complex for value in call.operands):
        number = _number(call, 1)
        if number is None:
            raise Blocked("no op is a complex power", "write jnp.exp(y * jnp.log(x)), or a real number as y")
        whole = number.is_integer() and abs(number) <= _BY_SQUARES
        return _product(call.node(0), int(number)) if whole else call.node(0).pow_scalar(number)
    if call.is_constant(1) and not call.shape(1) and np.isfinite(float(call.known(1))) and call.is_float():
        return call.node(0).pow_scalar(float(call.known(1)))
    exponent = call.node(1)
    return call.node(0).pow(exponent if call.dtype(1) == call.dtype(0) else exponent.cast(call.dtype(0).name))


@RULES("tan")
def tan(call: Call) -> Said:
    """`tan`; of complex numbers −i · tanh(i x)."""
    x = call.node()
    if not call.is_complex():
        return x.tan()
    turned = x.imag().neg().make_complex(x.real()).tanh()
    return turned.imag().make_complex(turned.real().neg())


@RULES("exp2")
def exp2(call: Call) -> Said:
    """2 to the power of x."""
    return call.like(2).pow(call.node())


@RULES("cbrt")
def cbrt(call: Call) -> Said:
    """The power of a third, with the sign of x."""
    x = call.node()
    below = x.less(call.like(0))
    # of |x|, since that of a negative one would be NaN, and 0 times its derivative, too
    root = below.where(x.neg(), x).pow_scalar(1 / 3)
    return below.where(root.neg(), root)


@RULES("round")
def rounded(call: Call) -> Said:
    """To the even of two neighbours that are as near, or away from zero, as is stated."""
    x = call.node()
    if int(call.params["rounding_method"]) == 1:
        return x.round()
    whole = x.abs().floor()
    up = x.abs().sub(whole).greater_equal(call.like(0.5))
    return up.where(whole.add_scalar(1.0), whole).mul(x.sign())


@RULES("clamp")
def clamp(call: Call) -> Said:
    """The bound that is passed, or x: which at a bound has JAX's derivative, 0."""
    low, x, high = call.nodes
    if not call.is_float():
        return x.maximum(low).minimum(high)
    inside = low.less(x).logical_and(x.less(high))
    kept = inside.where(x, x.stop_gradient())
    return high.less(x).where(high, x.less(low).where(low, kept))


@RULES("select_n")
def select_n(call: Call) -> Said:
    """`where`, one inside another where there are more than two cases. A choice that is known is the case itself."""
    cases = call.operands[1:]
    if call.is_constant(0):
        chosen = np.unique(call.known(0))
        if chosen.size == 1:
            return cases[int(chosen[0])]
    nodes = [call.scope.node_of(case) for case in cases]
    which = call.node()
    if any(case.is_key for case in cases):
        which = which.unsqueeze(axes=[call.rank()]) if call.rank() else which
    if call.dtype().kind == "b":
        return which.where(nodes[1], nodes[0])
    made = nodes[-1]
    for i in range(len(nodes) - 2, -1, -1):
        made = which.less_equal(call.like(i)).where(nodes[i], made)
    return made


@RULES("eq_to", "le_to", "lt_to")
def total_order(call: Call) -> Said:
    """Comparisons in which −0 is less than 0, and NaN, whatever its sign, larger than all."""
    op = {"eq_to": "equal", "le_to": "less_equal", "lt_to": "less"}[call.op]
    a, b = call.nodes
    usual: Node = call.graph.op(op, a, b)
    if not call.is_float():
        return usual
    zeros = a.equal(call.like(0)).logical_and(b.equal(call.like(0)))
    # of zeros, reciprocals tell the sign
    signed = zeros.where(call.graph.op(op, a.reciprocal(), b.reciprocal()), usual)
    a_is, b_is = a.not_equal(a), b.not_equal(b)
    if call.op == "lt_to":
        return signed.logical_or(b_is.logical_and(a_is.logical_not()))
    return signed.logical_or(b_is if call.op == "le_to" else a_is.logical_and(b_is))


@RULES("polygamma")
def polygamma(call: Call) -> Said:
    """`polygamma` of an order that is known."""
    orders = np.unique(call.static(0, "order"))
    if orders.size != 1 or orders[0] != round(float(orders[0])) or not 0 <= orders[0] <= 170:
        raise Blocked("its order is not one whole number from 0 to 170")
    return call.node(1).polygamma(int(orders[0]))
