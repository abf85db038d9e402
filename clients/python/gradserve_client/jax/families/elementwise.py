"""Elementwise arithmetic and functions, comparisons and selection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.jax.call import Call, Results
from gradserve_client.jax.families.integers import quotient, remainder
from gradserve_client.jax.families.table import RULES

#: primitives that are one op on the same operands
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


#: largest integer exponent of a complex power by repeated squaring; beyond it, the power is computed by the logarithm
_MAX_SQUARED_EXPONENT: Final = 64


def _same(op: str) -> Any:
    def rule(call: Call) -> Results:
        node: Node = call.graph.op(op, *call.nodes)
        return node

    rule.__doc__ = f"`{op}`."
    return rule


for _name, _op in SAME.items():
    RULES.put(_name, _same(_op))


def _number(call: Call, i: int) -> float | None:
    """Return operand i as a number for an attribute, or None if it is not a constant finite real float scalar."""
    value = call.operands[i]
    other = call.operands[1 - i]
    if not value.is_constant or value.shape or not value.is_float or other.shape != call.results[0].shape:
        return None
    if value.is_complex and value.constant.imag:
        return None
    number = float(np.real(value.constant))
    return number if np.isfinite(number) else None


def _commutative(op: str) -> Any:
    def rule(call: Call) -> Results:
        for i in (0, 1):
            number = _number(call, i)
            if number is not None:
                scaled: Node = call.graph.op(f"{op}_scalar", call.node(1 - i), scalar=number)
                return scaled
        node: Node = call.graph.op(op, *call.nodes)
        return node

    rule.__doc__ = f"`{op}`, or `{op}_scalar` if one operand is a number."
    return rule


RULES.put("add", _commutative("add"))
RULES.put("add_any", _commutative("add"))
RULES.put("mul", _commutative("mul"))


@RULES("sub")
def sub(call: Call) -> Results:
    """`sub`, or `sub_scalar` if the second operand is a number."""
    number = _number(call, 1)
    return call.node(0).sub(call.node(1)) if number is None else call.node(0).sub_scalar(number)


@RULES("div")
def div(call: Call) -> Results:
    """`div`; for integers, `trunc_div`. A sum divided by the number of its terms is `mean`."""
    if not call.is_float():
        return quotient(call)
    number, summed = _number(call, 1), call.operands[0].summed
    if number is not None and summed is not None and number == summed.terms:
        mean = summed.node.mean(axes=[*summed.axes])
        return mean.unsqueeze(axes=[*summed.inserted]) if summed.inserted else mean
    if number is not None:
        return call.node(0).div_scalar(number)
    return call.node(1).reciprocal() if _number(call, 0) == 1.0 else call.node(0).div(call.node(1))


@RULES("rem")
def rem(call: Call) -> Results:
    """`rem`."""
    return remainder(call)


def _extreme(op: str, boolean: str) -> Any:
    def rule(call: Call) -> Results:
        node: Node = call.graph.op(boolean if call.dtype().kind == "b" else op, *call.nodes)
        return node

    rule.__doc__ = f"`{op}`; for bools, `{boolean}`."
    return rule


RULES.put("max", _extreme("maximum", "logical_or"))
RULES.put("min", _extreme("minimum", "logical_and"))


@RULES("integer_pow")
def integer_pow(call: Call) -> Results:
    """`square`, `reciprocal` or `pow_scalar`; for integers, `pow`; for complex numbers, products."""
    exponent = int(call.params["y"])
    if call.is_complex():
        return _integer_power(call.node(), exponent)
    if not call.is_float():
        return call.node().pow(call.like(exponent))
    if exponent == 2:
        return call.node().square()
    return call.node().reciprocal() if exponent == -1 else call.node().pow_scalar(float(exponent))


def _integer_power(x: Node, exponent: int) -> Node:
    """Raise x to an integer power by repeated squaring, which is exact at x = 0, where the logarithm is not."""
    if exponent < 0:
        return _integer_power(x, -exponent).reciprocal()
    if exponent < 2:
        return x if exponent else x.mul_scalar(0.0).add_scalar(1.0)
    half = _integer_power(x, exponent // 2).square()
    return half.mul(x) if exponent % 2 else half


@RULES("pow")
def power(call: Call) -> Results:
    """`pow`, or `pow_scalar` if the exponent is a number."""
    if any(value.is_complex for value in call.operands):
        number = _number(call, 1)
        if number is None:
            raise Blocked("no op computes complex powers", "write jnp.exp(y * jnp.log(x)), or use a real number as y")
        is_whole = number.is_integer() and abs(number) <= _MAX_SQUARED_EXPONENT
        return _integer_power(call.node(0), int(number)) if is_whole else call.node(0).pow_scalar(number)
    if call.is_constant(1) and not call.shape(1) and np.isfinite(float(call.constant_value(1))) and call.is_float():
        return call.node(0).pow_scalar(float(call.constant_value(1)))
    exponent = call.node(1)
    return call.node(0).pow(exponent if call.dtype(1) == call.dtype(0) else exponent.cast(call.dtype(0).name))


@RULES("tan")
def tan(call: Call) -> Results:
    """`tan`; for complex numbers, −i · tanh(i x)."""
    x = call.node()
    if not call.is_complex():
        return x.tan()
    rotated = x.imag().neg().make_complex(x.real()).tanh()
    return rotated.imag().make_complex(rotated.real().neg())


@RULES("exp2")
def exp2(call: Call) -> Results:
    """2 to the power of x."""
    return call.like(2).pow(call.node())


@RULES("cbrt")
def cbrt(call: Call) -> Results:
    """`pow_scalar` of |x| with exponent 1/3, with the sign of x."""
    x = call.node()
    is_negative = x.less(call.like(0))
    # the power of a negative x is NaN, and so would be its derivative times 0
    root = is_negative.where(x.neg(), x).pow_scalar(1 / 3)
    return is_negative.where(root.neg(), root)


@RULES("round")
def round_(call: Call) -> Results:
    """`round`, which rounds halves to even, or a rounding of halves away from zero."""
    x = call.node()
    if int(call.params["rounding_method"]) == 1:
        return x.round()
    whole = x.abs().floor()
    up = x.abs().sub(whole).greater_equal(call.like(0.5))
    return up.where(whole.add_scalar(1.0), whole).mul(x.sign())


@RULES("clamp")
def clamp(call: Call) -> Results:
    """`maximum` and `minimum`; for floats, `where`, so that the derivative at a bound is 0 as in JAX."""
    low, x, high = call.nodes
    if not call.is_float():
        return x.maximum(low).minimum(high)
    in_range = low.less(x).logical_and(x.less(high))
    flat_at_bounds = in_range.where(x, x.stop_gradient())
    return high.less(x).where(high, x.less(low).where(low, flat_at_bounds))


@RULES("select_n")
def select_n(call: Call) -> Results:
    """`where`, nested if there are more than two cases. A constant choice is the case itself."""
    cases = call.operands[1:]
    if call.is_constant(0):
        chosen = np.unique(call.constant_value(0))
        if chosen.size == 1:
            return cases[int(chosen[0])]
    nodes = [call.scope.node_of(case) for case in cases]
    which = call.node()
    if any(case.is_key for case in cases):
        which = which.unsqueeze(axes=[call.rank()]) if call.rank() else which
    if call.dtype().kind == "b":
        return which.where(nodes[1], nodes[0])
    selected = nodes[-1]
    for i in range(len(nodes) - 2, -1, -1):
        selected = which.less_equal(call.like(i)).where(nodes[i], selected)
    return selected


@RULES("eq_to", "le_to", "lt_to")
def total_order(call: Call) -> Results:
    """Comparisons in a total order: −0 is less than 0, and NaN of either sign is larger than all numbers."""
    op = {"eq_to": "equal", "le_to": "less_equal", "lt_to": "less"}[call.op]
    a, b = call.nodes
    compared: Node = call.graph.op(op, a, b)
    if not call.is_float():
        return compared
    zeros = a.equal(call.like(0)).logical_and(b.equal(call.like(0)))
    # the reciprocals of −0 and 0 are −∞ and ∞
    signed = zeros.where(call.graph.op(op, a.reciprocal(), b.reciprocal()), compared)
    a_is_nan, b_is_nan = a.not_equal(a), b.not_equal(b)
    if call.op == "lt_to":
        return signed.logical_or(b_is_nan.logical_and(a_is_nan.logical_not()))
    return signed.logical_or(b_is_nan if call.op == "le_to" else a_is_nan.logical_and(b_is_nan))


@RULES("polygamma")
def polygamma(call: Call) -> Results:
    """`polygamma` of a constant order."""
    orders = np.unique(call.static(0, "order"))
    if orders.size != 1 or orders[0] != round(float(orders[0])) or not 0 <= orders[0] <= 170:
        raise Blocked("its order is not one integer from 0 to 170")
    return call.node(1).polygamma(int(orders[0]))
