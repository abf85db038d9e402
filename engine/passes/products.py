"""Rules of simplification for products of matrices, which are sums: a sum of them need not have all of them made."""

from __future__ import annotations

from collections.abc import Sequence

from engine.graph.ir import Node, Value
from engine.oplib.permutation import shaped
from engine.passes.matching import source

#: float16 adds up in float32, and rounds to itself between a product and its sum; whole numbers may wrap
_DTYPES = ("float32", "float64")


def sum_of_product(node: Node, operands: Sequence[Value]) -> Value | None:
    """Σᵢ (a b)ᵢⱼ = (Σᵢ aᵢ) b over the rows, and over the columns a (Σⱼ bⱼ); of −a b as well.

    The gradient of what was spread over the rows of a product is such a sum.
    """
    (x,) = operands
    negated = source(x, "neg")
    product = negated or x
    if product.node.op.name != "matmul" or product.dtype.name not in _DTYPES or not product.type.size:
        return None
    row, column, axes = product.ndim - 2, product.ndim - 1, node.attrs["axes"]
    if row not in axes and column not in axes:
        return None
    a, b = (x.builder.value(i) for i in product.node.operands)
    a = a.sum(axes=(a.ndim - 2,), keepdims=True) if row in axes else a
    b = b.sum(axes=(b.ndim - 1,), keepdims=True) if column in axes else b
    y = a.matmul(b)
    others = tuple(axis for axis in axes if axis < row)
    y = shaped(y.sum(axes=others) if others else y, node.type.shape)
    return -y if negated else y
