"""A product as cuBLASLt is asked for it: which matrices it reads as they lie, and in how many calls.

cuBLASLt reads columns of neighbouring elements, and rows of c are such columns of cᵀ = bᵀ aᵀ. So b is its first
operand and a its second one, each transposed by a flag where its other axis is the dense one, and nothing is copied.
A bias, as many numbers as c has columns, is what its epilogue adds to each column of cᵀ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product as combinations
from types import MappingProxyType
from typing import Final, NamedTuple

from engine.cards.cublaslt import (
    COMPUTE_32F,
    COMPUTE_32F_FAST_16BF,
    COMPUTE_32F_FAST_TF32,
    COMPUTE_64F,
    DATA_TYPES,
    StoredMatrix,
)
from engine.graph.precision import PRECISIONS, Precision
from engine.graph.tensor_type import FLOAT32
from engine.microkernels.product import Matrices, Product

#: the most that an extent may be, and the calls that a batch may take
MOST_EXTENT: Final = 2**31 - 1
MOST_CALLS_OF_A_BATCH: Final = 64
#: precision → how float32 operands are read; sums are float32. What is split into TF32 is several products of parts.
COMPUTE_TYPES: Final[Mapping[Precision, int]] = MappingProxyType(
    dict(zip(PRECISIONS, (COMPUTE_32F, COMPUTE_32F, COMPUTE_32F_FAST_TF32, COMPUTE_32F_FAST_16BF), strict=True))
)

#: bytes from the first element of a, of b, and of c to a matrix of each
Starts = tuple[int, int, int]


class StoredProduct(NamedTuple):
    """cᵀ = bᵀ aᵀ by one call of so many `matrices`: at fixed offsets, or each at one of `starts`; or by a call at each.

    The operands are bᵀ and aᵀ as they are stored. By pointers, there are as many starts as matrices.
    """

    first: StoredMatrix
    second: StoredMatrix
    result: StoredMatrix
    matrices: int
    starts: tuple[Starts, ...]
    by_pointers: bool = False


class _Axis(NamedTuple):
    """An axis of a batch, of more than one product: bytes to the next a, b and c."""

    extent: int
    steps: Starts


def compute_type(dtype: str, precision: Precision) -> int:
    """The cublasComputeType_t of products of a dtype: float16 adds up in float32, float32 reads as it may."""
    if dtype == "float32":
        return COMPUTE_TYPES[precision]
    return COMPUTE_64F if dtype == "float64" else COMPUTE_32F


def stored_products(of: Product, *, widens: bool = False) -> list[StoredProduct]:
    """Ways to have a product made, the best one first; none of whole numbers, of nothing to add up, or of matrices
    neither of whose axes is dense. Where it `widens`, c holds float32.

    Where the batch is more than one axis of fixed steps: by arrays of pointers, and by a call for each entry of all
    axes but the longest one.
    """
    extents = (*of.batch, of.rows, of.inner, of.columns)
    if of.dtype not in DATA_TYPES or 0 in extents or max(extents) > MOST_EXTENT:
        return []
    axes = axes_of_batch(of)
    matrices = [
        _stored(of.b, of.columns, of.inner, of.itemsize),
        _stored(of.a, of.inner, of.rows, of.itemsize),
        _stored(of.c, of.columns, of.rows, FLOAT32.itemsize if widens else of.itemsize),
    ]
    if None in matrices or any(step % of.itemsize or step < 0 for axis in axes for step in axis.steps):
        return []
    first, second, result = (matrix for matrix in matrices if matrix is not None)
    if result.transposed:
        return []
    sizes = of.itemsize, of.itemsize, FLOAT32.itemsize if widens else of.itemsize
    return _ways(StoredProduct(first, second, result, 1, ((0, 0, 0),)), axes, sizes)


def axes_of_batch(of: Product) -> list[_Axis]:
    """The axes of the batch, those that lie in one another as one: few, and often one."""
    found: list[_Axis] = []
    steps = zip(of.a.batch, of.b.batch, of.c.batch, strict=True)
    for axis in (axis for axis in map(_Axis, of.batch, steps) if axis.extent > 1):
        lies_within = found and found[-1].steps == tuple(axis.extent * step for step in axis.steps)
        found.append(_Axis(found.pop().extent * axis.extent, axis.steps) if lies_within else axis)
    return found


def _ways(single: StoredProduct, axes: Sequence[_Axis], sizes: Starts) -> list[StoredProduct]:
    if not axes:
        return [single]
    if len(axes) == 1:
        return [_along(single, axes[0], sizes)]
    longest = max(range(len(axes)), key=lambda k: axes[k].extent)
    others = [axis for k, axis in enumerate(axes) if k != longest]
    count = math.prod(axis.extent for axis in axes)
    ways = [single._replace(matrices=count, starts=_starts(axes), by_pointers=True)] if count <= MOST_EXTENT else []
    if math.prod(axis.extent for axis in others) <= MOST_CALLS_OF_A_BATCH:
        ways.append(_along(single, axes[longest], sizes)._replace(starts=_starts(others)))
    return ways


def _along(single: StoredProduct, axis: _Axis, sizes: Starts) -> StoredProduct:
    """All products of an axis by one call; `sizes` are the bytes of an element of a, b and c."""
    a, b, c = (step // size for step, size in zip(axis.steps, sizes, strict=True))
    return single._replace(
        first=single.first._replace(offset=b),
        second=single.second._replace(offset=a),
        result=single.result._replace(offset=c),
        matrices=axis.extent,
    )


def _starts(axes: Sequence[_Axis]) -> tuple[Starts, ...]:
    """Where each product begins, the last axis varying first."""
    found: list[Starts] = []
    for places in combinations(*(range(axis.extent) for axis in axes)):
        a, b, c = (sum(k * axis.steps[x] for k, axis in zip(places, axes, strict=True)) for x in range(3))
        found.append((a, b, c))
    return tuple(found)


def _stored(matrix: Matrices, across: int, along: int, itemsize: int) -> StoredMatrix | None:
    """The transpose of a matrix of `along` rows of `across` elements, as columns; None where neither axis is dense.

    An axis of one element has no step, and is as dense as it may be.
    """
    row, column = matrix.row, matrix.column
    if (column == itemsize or across == 1) and (leading := _leading(row, across, along, itemsize)):
        return StoredMatrix(across, along, leading)
    if (row == itemsize or along == 1) and (leading := _leading(column, along, across, itemsize)):
        return StoredMatrix(along, across, leading, transposed=True)
    return None


def _leading(step: int, dense: int, count: int, itemsize: int) -> int | None:
    """Elements from a column of `dense` elements to the next of `count`; None where these overlap or go backwards."""
    if count == 1:
        return dense
    return step // itemsize if not step % itemsize and dense * itemsize <= step <= MOST_EXTENT * itemsize else None
