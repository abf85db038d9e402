"""Rules of simplification for numbers: neutral elements, factors and signs."""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence

import numpy as np

from engine.graph.ir import Node, Value
from engine.graph.kinds.typed_number import weak_number
from engine.graph.rewrite_rule import RewriteRule, rewrite
from engine.rewrites.matching import broadcasted, fill_of, source


def without(neutral: float, *, either: bool) -> RewriteRule:
    """x ∘ c = x for the neutral element c; on either side, or on the right alone."""

    @rewrite(needs=(), needs_number=True)
    def rule(node: Node, operands: Sequence[Value]) -> Value | None:
        a, b = operands
        if fill_of(b) == neutral and a.dtype == node.type.dtype:
            return broadcasted(a, node.type.shape)
        return (
            broadcasted(b, node.type.shape) if either and fill_of(a) == neutral and b.dtype == node.type.dtype else None
        )

    return rule


def without_scalar(neutral: float) -> RewriteRule:
    """x ∘ scalar = x for the neutral scalar."""
    return RewriteRule(lambda node, operands: operands[0] if node.attrs["scalar"] == neutral else None)


@rewrite(needs=(), needs_number=True)
def by_a_number(node: Node, operands: Sequence[Value]) -> Value | None:
    """x · c, c one number everywhere, as mul_scalar: c need not be spread out."""
    a, b = operands
    for x, c in ((a, fill_of(b)), (b, fill_of(a))):
        if c is not None and cmath.isfinite(c) and x.type == node.type:
            return -x if c == -1 else x.mul_scalar(scalar=weak_number(c))
    return None


@rewrite(needs=["mul_scalar"])
def scalars_together(node: Node, operands: Sequence[Value]) -> Value | None:
    """(x · a) · b, a a power of two, as x · (a b), or x where that is x · 1: exact, short of overflow."""
    inner = source(operands[0], "mul_scalar")
    if inner is None:
        return None
    a, b = operands[0].node.attrs["scalar"], node.attrs["scalar"]
    exact = abs(math.frexp(a)[0]) == 0.5 and 1 / 1024 <= abs(a) <= 1024
    if not exact or not holds(inner, a * b):
        return None
    return inner if a * b == 1 else inner.mul_scalar(scalar=a * b)


def holds(x: Value, number: float) -> bool:
    """Whether x's dtype has `number` without overflow or loss of digits at the small end: float16 ends at 65,504."""
    return x.type.is_float and float(np.finfo(x.dtype).tiny) <= abs(number) <= float(np.finfo(x.dtype).max)


# ---------------------------------------------------------------- signs: IEEE arithmetic rounds both alike


def _negated(x: Value) -> Value | None:
    """a, where x is −a: of floats, since an integer without a sign wraps."""
    return source(x, "neg") if x.type.is_float else None


def twice(op: str) -> RewriteRule:
    """f(f(x)) = x."""
    return rewrite(needs=[op])(lambda node, operands: source(operands[0], op))


@rewrite(needs=["mul_scalar"])
def negated_scalar(_: Node, operands: Sequence[Value]) -> Value | None:
    """−(x · c) = x · (−c)."""
    inner = source(operands[0], "mul_scalar")
    return inner.mul_scalar(scalar=-operands[0].node.attrs["scalar"]) if inner and inner.type.is_float else None


@rewrite(needs=["neg"])
def scalar_of_negated(node: Node, operands: Sequence[Value]) -> Value | None:
    """(−x) · c = x · (−c)."""
    inner = _negated(operands[0])
    return inner.mul_scalar(scalar=-node.attrs["scalar"]) if inner else None


@rewrite(needs=["neg"])
def sum_with_negated(_: Node, operands: Sequence[Value]) -> Value | None:
    """a + (−b) = a − b, (−a) + b = b − a."""
    a, b = operands
    minus_a, minus_b = _negated(a), _negated(b)
    return a - minus_b if minus_b else b - minus_a if minus_a else None


def sign_out(position: int) -> RewriteRule:
    """(−a) ∘ b = −(a ∘ b), and a ∘ (−b) too, for what is linear: a sign that is passed on may meet another."""

    @rewrite(needs=["neg"], alone=position)
    def rule(node: Node, operands: Sequence[Value]) -> Value | None:
        inner = _negated(operands[position])
        if inner is None:
            return None
        unsigned = [inner if i == position else x for i, x in enumerate(operands)]
        return -inner.builder.emit(node.op, unsigned, node.attrs)

    return rule
