"""Derivatives past kinks and roots: pairs of ops whose composition is smoother than its inner op.

The norm has a kink at 0, where its derivatives count as 0, but its square is Σ x². By the chain rule alone, a second
derivative of square(norm(x)) at 0 would be 0, without a warning; it is 2. So the cotangent of such an outer op goes
past the inner one, to the operand of that:

    %1 = norm(%0)
    %2 = square(%1)       the cotangent g becomes 2 g · %0 of %0, instead of 2 g · %1 of %1

Likewise sqrt(square(x)) is |x|, whose derivative at 0 counts as 0, where the chain rule gives ∞ · 0. The client's nodes
stay as they are, and so do their values. Nothing goes past a node with respect to which somebody differentiates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from typing import Any, Final, NamedTuple

from engine.ir.graph import Builder, Node, Value, shaped
from engine.ir.op import Support
from engine.ir.tensor_type import FLOAT16, reduced_shape


class Outer(NamedTuple):
    """Outer node, as rules see it.

    `g` and `y` are its cotangent and result, with reduced axes kept; `elements` is how many a row has, and
    `attrs` are the attributes of all nodes on the path.
    """

    g: Value
    y: Value
    elements: int
    attrs: Mapping[str, Any]


#: function from the outer node and the operand x of the innermost one to the cotangent of x; None: the usual way
_Rule = Callable[[Outer, Value], Value | None]


class Past(NamedTuple):
    """Cotangent of a node further back, and its support."""

    node: int
    cotangent: Value
    support: Support | None


def pull_back_past(
    builder: Builder, index: int, g: Value, support: Support | None, targets: Container[int]
) -> Past | None:
    """Return the cotangent of an operand further back, if the cotangent g of node `index` goes past its own operand."""
    nodes, node = builder.nodes, builder.nodes[index]
    operands, attrs = node.operands, dict[str, Any]()
    if len(set(operands)) != 1 or node.types[0].dtype == FLOAT16:
        return None
    path = ["square" if node.op.name == "mul" else node.op.name]
    while (rule := _RULES.get(tuple(path))) is None:
        if len(path) == _LONGEST or operands[0] in targets:
            return None
        inner: Node = nodes[operands[0]]
        path.append(inner.op.name)
        attrs |= inner.attrs
        operands = inner.operands
        if len(operands) > 1 and not _is_opposite(nodes, operands):
            return None
    x = builder.value(operands[0])
    axes = attrs.get("axes", ())
    shape = reduced_shape(x.shape, axes, True)
    count = math.prod(x.shape[axis] for axis in axes)
    outer = Outer(shaped(g, shape), shaped(builder.value(index), shape), count, attrs)
    cotangent = rule(outer, x)
    if cotangent is None:
        return None
    if support is None:
        return Past(x.index, cotangent, None)
    mask = shaped(support.value, shape).broadcast_to(shape=x.shape)
    return Past(x.index, mask.where(cotangent, 0.0), Support(lambda: mask))


def _is_opposite(nodes: list[Node], operands: tuple[int, ...]) -> bool:
    """Return whether the operands are x and −x."""
    x, *others = operands
    return len(others) == 1 and nodes[others[0]].op.name == "neg" and nodes[others[0]].operands == (x,)


def _of_square(outer: Outer, x: Value) -> Value:
    """Derive |x|², and Σ |x|²."""
    return 2 * (outer.g * x)


def _of_identity(outer: Outer, x: Value) -> Value | None:
    """Derive (√x)² and exp(log x), which are x for x ≥ 0, and NaN elsewhere."""
    return None if x.type.is_complex else (x >= 0.0).where(outer.g, math.nan)


def _of_root(outer: Outer, x: Value) -> Value | None:
    """Derive √Σ x², the norm."""
    return None if x.type.is_complex else outer.g * (x / outer.y.equal(0.0).where(math.inf, outer.y))


def _of_root_of_mean(outer: Outer, x: Value) -> Value | None:
    """Derive √(Σ x² / n)."""
    return _of_root(outer._replace(g=outer.g / outer.elements), x) if outer.elements else None


def _of_deviation(outer: Outer, x: Value) -> Value | None:
    """Derive √var x, the standard deviation."""
    freedom = outer.elements - outer.attrs["ddof"]
    deviation = x - x.mean(axes=outer.attrs["axes"], keepdims=True)
    return _of_root(outer._replace(g=outer.g / freedom), deviation) if freedom > 0 else None


_RULES: Final[Mapping[tuple[str, ...], _Rule]] = {
    ("square", "abs"): _of_square,
    ("square", "norm"): _of_square,
    ("square", "maximum"): _of_square,
    ("square", "sqrt"): _of_identity,
    ("exp", "log"): _of_identity,
    ("sqrt", "square"): _of_root,
    ("sqrt", "sum", "square"): _of_root,
    ("sqrt", "mean", "square"): _of_root_of_mean,
    ("sqrt", "var"): _of_deviation,
}
_LONGEST: Final = max(map(len, _RULES))
#: names of the outer ops
OUTER: Final = frozenset({"mul", *(path[0] for path in _RULES)})
