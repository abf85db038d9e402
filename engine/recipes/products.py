"""The recipe of matrix products that BLAS is not quicker at."""

from __future__ import annotations

from engine.graph.dtypes import has_loops
from engine.graph.op import Kernel
from engine.graph.tensor_type import TensorType
from engine.microkernels.product import Matrices, Product, is_for_blas, product
from engine.microkernels.recipe import Recipe


def product_recipe(_: Kernel, out: TensorType, a: TensorType, b: TensorType) -> Recipe | None:
    """Tiles in registers, of floats that are summed up in their own dtype, where BLAS is not quicker."""
    if not has_loops(out.dtype) or not a.dtype == b.dtype == out.dtype:
        return None
    (inner, columns), itemsize = b.shape[-2:], out.dtype.itemsize
    lying = [_lying(x, out.ndim) for x in (a, b, out)]
    of = Product(out.dtype.name, itemsize, out.shape[:-2], a.shape[-2], inner, columns, *lying)
    return None if is_for_blas(of) else product(of)


def _lying(x: TensorType, rank: int) -> Matrices:
    """How the matrices of an operand lie, which is broadcast along batch axes."""
    steps = [0 if extent == 1 else step for extent, step in zip(x.shape[:-2], x.strides[:-2], strict=True)]
    row, column = x.strides[-2:]
    return Matrices(row, column, (0,) * (rank - x.ndim) + tuple(steps))
