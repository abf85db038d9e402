"""Elementwise arithmetic, comparisons, logic, and casts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any, Final

import numpy as np
from onnx import helper

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.onnx.call import Call, RuleResult, is_float
from gradserve_client.onnx.families.helpers import as_dtype
from gradserve_client.onnx.families.table import RULES
from gradserve_client.tensors import REALS

#: ONNX ops that equal one of our ops on the same operands: our op, and the first opset where this holds
SAME: Final[Mapping[str, tuple[str, int]]] = {
    "Abs": ("abs", 6),
    "Acos": ("acos", 7),
    "Acosh": ("acosh", 9),
    "Add": ("add", 7),
    "And": ("logical_and", 7),
    "Asin": ("asin", 7),
    "Asinh": ("asinh", 9),
    "Atan": ("atan", 7),
    "Atanh": ("atanh", 9),
    "Ceil": ("ceil", 6),
    "Cos": ("cos", 7),
    "Cosh": ("cosh", 9),
    "Equal": ("equal", 7),
    "Erf": ("erf", 9),
    "Exp": ("exp", 6),
    "Floor": ("floor", 6),
    "Greater": ("greater", 7),
    "GreaterOrEqual": ("greater_equal", 12),
    "Identity": ("identity", 1),
    "Less": ("less", 7),
    "LessOrEqual": ("less_equal", 12),
    "Log": ("log", 6),
    "MatMul": ("matmul", 1),
    "Mul": ("mul", 7),
    "Neg": ("neg", 6),
    "Not": ("logical_not", 1),
    "Or": ("logical_or", 7),
    "Reciprocal": ("reciprocal", 6),
    "Relu": ("relu", 6),
    "Round": ("round", 11),
    "Sigmoid": ("sigmoid", 6),
    "Sign": ("sign", 9),
    "Sin": ("sin", 7),
    "Sinh": ("sinh", 9),
    "Softplus": ("softplus", 1),
    "Sqrt": ("sqrt", 6),
    "Sub": ("sub", 7),
    "Tan": ("tan", 7),
    "Tanh": ("tanh", 6),
    "Where": ("where", 9),
    "Xor": ("not_equal", 7),
}


def _same(op: str) -> Any:
    return lambda call: call.graph.op(op, *call.nodes)


for _name, (_op, _since) in SAME.items():
    RULES.put(_name, _same(_op), _since)


@RULES("Div", since=7)
def div(call: Call) -> RuleResult:
    """Divide. Integers are divided towards zero."""
    if is_float(call.dtype()):
        return call.node(0).div(call.node(1))
    return call.node(0).trunc_div(call.node(1))


@RULES("Mod", since=10)
def mod(call: Call) -> RuleResult:
    """Compute the remainder. With `fmod` it has the sign of the dividend."""
    a, b = call.node(0), call.node(1)
    return a.rem(b) if call.attrs["fmod"] else a.mod(b)


@RULES("Pow", since=7)
def power(call: Call) -> RuleResult:
    """Compute a power in the dtype of the base. Integers to fractional powers are truncated."""
    base, exponent = call.dtype(0), call.dtype(1)
    a, b = call.node(0), call.node(1)
    if is_float(base):
        if call.is_constant(1) and not call.shape(1):
            return a.pow_scalar(float(call.value(1).example))
        return a.pow(as_dtype(b, exponent, base))
    if not is_float(exponent):
        return a.pow(as_dtype(b, exponent, base))
    return a.cast("float64").pow(as_dtype(b, exponent, np.float64)).cast(base.name)


def _folded(op: str) -> Any:
    def rule(call: Call) -> RuleResult:
        return reduce(lambda left, right: call.graph.op(op, left, right), call.nodes)

    return rule


for _name, _op in {"Max": "maximum", "Min": "minimum", "Sum": "add"}.items():
    RULES.put(_name, _folded(_op), 6)


@RULES("Mean", since=6)
def mean(call: Call) -> RuleResult:
    """Compute the mean of the operands, elementwise."""
    return reduce(Node.add, call.nodes).div_scalar(float(len(call)))


@RULES("IsNaN", since=9)
def is_nan(call: Call) -> RuleResult:
    """Compare with itself: only NaN differs."""
    return call.node().not_equal(call.node())


@RULES("IsInf", since=10)
def is_inf(call: Call) -> RuleResult:
    """Compare with the infinities of the signs that the attributes select."""
    infinities = ((np.inf, call.attrs["detect_positive"]), (-np.inf, call.attrs["detect_negative"]))
    comparisons = [call.node().equal(call.like(infinity)) for infinity, selected in infinities if selected]
    return reduce(Node.logical_or, comparisons) if comparisons else np.zeros(call.shape(), np.bool_)


@RULES("Clip", since=6)
def clip(call: Call) -> RuleResult:
    """Translate to `clamp`, whose gradient passes at the bounds, if the bounds are known.

    Otherwise translate to `maximum` and `minimum` with the nodes of the bounds.
    """
    if call.version < 11:
        return call.node().clamp(min=float(call.attrs["min"]), max=float(call.attrs["max"]))
    known = all(not call.has(i) or call.value(i).known < 2 for i in (1, 2))
    if known and is_float(call.dtype()):
        low, high = (float(call.static(i, "bound")) if call.has(i) else np.nan for i in (1, 2))
        lower, upper = (bound if np.isfinite(bound) else None for bound in (low, high))
        reached = (np.isinf(low) and low > 0) or (np.isinf(high) and high < 0)
        if not reached:
            return call.node().clamp(min=lower, max=upper) if (lower, upper) != (None, None) else call.node().identity()
    node = call.node()
    if call.has(1):
        node = node.maximum(call.node(1))
    if call.has(2):
        node = node.minimum(call.node(2))
    return node if len(call) > 1 else node.identity()


@RULES("Cast", "CastLike", since=6)
def cast(call: Call) -> RuleResult:
    """Cast to a dtype of the wire."""
    dtype = call.results[0].dtype
    if dtype.name not in REALS:
        raise Blocked(f"it returns {dtype.name}, an unsupported dtype")
    if call.op == "CastLike" and call.is_constant(0):
        return np.asarray(call.value().example).astype(dtype)
    return call.node().cast(dtype.name)


def element_type(call: Call, name: str, default: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype that an attribute states, or the default."""
    element = call.attrs.get(name)
    return default if element is None else np.dtype(helper.tensor_dtype_to_np_dtype(element))
