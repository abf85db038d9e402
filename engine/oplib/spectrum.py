"""Parts of the gradients of eigenvectors and singular vectors: adjoints, and gaps that may be 0.

Vectors of equal values are not told apart by the matrix, and the gradient of a function that depends on which they
are does not exist. Nobody can know from a cotangent whether the function does, once rounding has split the values:
so pairs that are closer than 16 n ε ‖x‖ are taken for equal, and what then is, is the caller's word.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from engine.graph.attributes import Attr
from engine.graph.ir import Builder, Value
from engine.oplib.conjugates import adjoint
from engine.oplib.permutation import shaped

DEGENERATE: Final = Attr(
    "string",
    "nan",
    "where values are equal and vectors are read: nan, or whole: only whole spaces are depended on",
    choices=("nan", "whole"),
)
#: of n ε ‖x‖: within this, two values are taken for equal
_CLOSE: Final = 16


def hermitian_part(x: Value) -> Value:
    """(x + xᴴ) / 2, halved first: nothing overflows that need not."""
    half = x * 0.5
    return half + adjoint(half)


def scaled_columns(x: Value, by: Value) -> Value:
    """Each column j of matrices x [..., m, k] times by [..., k]."""
    return x * row(by)


def row(x: Value) -> Value:
    """[..., k] → [..., 1, k]."""
    return shaped(x, (*x.shape[:-1], 1, x.shape[-1]))


def column(x: Value) -> Value:
    """[..., k] → [..., k, 1]."""
    return shaped(x, (*x.shape, 1))


def tolerance(values: Value, n: int) -> Value:
    """[..., k] → [..., 1]: within what distance eigenvalues or singular values of an n × n matrix are equal."""
    largest = values.abs().max(axes=(values.ndim - 1,), keepdims=True)
    return largest * (_CLOSE * n * float(np.finfo(values.dtype).eps))


def of_nothing(x: Value, g: Sequence[Value | None]) -> Value | None:
    """The cotangent of x, which has no elements: it depends on those that have arrived, as others do."""
    arrived = [part.sum() for part in g if part is not None]
    return x.full_like(0.0) * sum(arrived[1:], start=arrived[0]) if arrived else None


def diagonal_mask(builder: Builder, n: int) -> Value:
    """[n, n]: true where the two indices are equal."""
    numbers = builder.arange(n)
    return numbers.reshape(shape=(n, 1)).equal(numbers)


def identity_like(x: Value, n: int) -> Value:
    """The n × n identity, in the dtype of x."""
    return diagonal_mask(x.builder, n).cast(dtype=x.dtype)


def inverse_gaps(gaps: Value, is_left_out: Value, degenerate: str) -> Value:
    """1 / gaps; where `is_left_out`, NaN or, for whole spaces, 0.

    A 0 that holds at first order alone: its own derivative is NaN, by the square root of 0.
    """
    inverse = is_left_out.where(1.0, gaps).reciprocal()
    if degenerate == "nan":
        return is_left_out.where(math.nan, inverse)
    return is_left_out.where(is_left_out.where(gaps * 0.0, 1.0).sqrt(), inverse)


def off_diagonal_gaps(values: Value, within: Value, degenerate: str) -> Value:
    """F [..., k, k] of values [..., k]: 1 / (vⱼ − vᵢ), 0 on the diagonal; of equal ones as `degenerate` says."""
    gaps = row(values) - column(values)
    diagonal = diagonal_mask(values.builder, values.shape[-1])
    is_close = (gaps.abs() <= column(within)).logical_and(diagonal.logical_not())
    return diagonal.where(0.0, inverse_gaps(diagonal.where(1.0, gaps), is_close, degenerate))
