"""Rules of simplification for products of matrices: a sum of one need not make all of it, nor a transpose move it."""

from __future__ import annotations

from collections.abc import Sequence

from engine.graph.dtypes import has_loops
from engine.graph.ir import Node, Value
from engine.graph.rewrite_rule import rewrite
from engine.rewrites.matching import reshaped, source


@rewrite(needs=["matmul", "neg"], alone=0)
def sum_of_product(node: Node, operands: Sequence[Value]) -> Value | None:
    """Σᵢ (a b)ᵢⱼ = (Σᵢ aᵢ) b over the rows, and over the columns a (Σⱼ bⱼ); of −a b as well.

    The gradient of what was spread over the rows of a product is such a sum.
    """
    (x,) = operands
    negated = source(x, "neg")
    product = negated or x
    # float16 adds up in float32, and rounds to itself between a product and its sum; whole numbers may wrap
    if product.node.op.name != "matmul" or not has_loops(product.dtype) or not product.type.size:
        return None
    row, column, axes = product.ndim - 2, product.ndim - 1, node.attrs["axes"]
    if row not in axes and column not in axes:
        return None
    a, b = (x.builder.value(i) for i in product.node.operands)
    a = a.sum(axes=(a.ndim - 2,), keepdims=True) if row in axes else a
    b = b.sum(axes=(b.ndim - 1,), keepdims=True) if column in axes else b
    y = a.matmul(b)
    others = tuple(axis for axis in axes if axis < row)
    y = reshaped(y.sum(axes=others) if others else y, node.type.shape)
    return -y if negated else y


@rewrite(needs=["matmul"], alone=0)
def transposed_product(node: Node, operands: Sequence[Value]) -> Value | None:
    """(a b)ᵀ = bᵀ aᵀ, which lies as it is to be read: a product reads its operands by rows or by columns.

    The gradient by a matrix that was transposed is one.
    """
    (x,) = operands
    if x.node.op.name != "matmul" or node.attrs["axes"] != _swapping(x):
        return None
    a, b = (x.builder.value(i) for i in x.node.operands)
    if min(a.ndim, b.ndim) < 2 or a.ndim == 2 < b.ndim:  # many matrices times one are one: they would be moved for it
        return None
    if _before_swap(a) is None and _before_swap(b) is None:
        return None  # there would be one transpose more than before
    return (_before_swap(b) or b.transpose()) @ (_before_swap(a) or a.transpose())


def _before_swap(x: Value) -> Value | None:
    """The operand of a transpose of matrices; None of anything else."""
    return source(x, "transpose") if x.node.attrs.get("axes") == _swapping(x) else None


def _swapping(x: Value) -> tuple[int, ...]:
    """The permutation that swaps the last two axes."""
    return (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
