"""Numerics that several families share: sums in wide dtypes, short rows on the CPU, float16, NaN, finite operands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from engine.graph.ir import Value
from engine.graph.op import Array, Namespace
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import FLOAT16, FLOAT32, INT32, DType, TensorType
from engine.oplib.rows import add_up
from engine.oplib.widening import wide

#: elements that are one block of a kernel's, and that a block has at least where there are several
ONE_BLOCK: Final = 1 << 14
LEAST_BLOCK: Final = 1 << 13


def accumulator(out: Array | TensorType) -> DType:
    """The dtype to add up in: float32 for float16 results, else the result's own."""
    return FLOAT32 if out.dtype == FLOAT16 else np.dtype(out.dtype)


def atomic_accumulator(out: Array | TensorType) -> DType:
    """The dtype to add up in at places that come again: as `accumulator`, and a GPU cannot add bytes atomically."""
    if out.dtype.kind == "f" or out.dtype.itemsize >= INT32.itemsize:
        return accumulator(out)
    return INT32


def wide_out(xp: Namespace, out: Array) -> Array:
    """Where to add up: `out` itself where that has the accumulator's dtype, else a new array."""
    return out if accumulator(out) == out.dtype else xp.empty(out.shape, accumulator(out))


def wide_out_bytes(out: TensorType) -> int:
    """What `wide_out` allocates."""
    return 0 if accumulator(out) == out.dtype else accumulator(out).itemsize * out.size


def sum_parts_bytes(size: int) -> int:
    """Bytes for the parts of a sum over so many elements, one for each block, as a compiled kernel keeps them.

    NumPy needs none of them; but a kernel may not take more than was planned for what it stands for.
    """
    return 0 if size <= ONE_BLOCK else 8 * -(-size // LEAST_BLOCK)


def total(run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    """Σ x over axes, in the accumulator's dtype: `out` itself where that is its dtype, else a new array."""
    # Given a narrower `out`, NumPy would round to it after every buffer of the sum.
    target = wide_out(run.xp, out)
    add_up(run, x, out=target, axes=axes, keepdims=keepdims)
    return target


def count(shape: Sequence[int], axes: Sequence[int]) -> int:
    """How many elements of `shape` one result over `axes` takes in."""
    return math.prod(shape[a] for a in axes)


def over(g: Value, n: int) -> Value:
    """g / n; by way of float32 where g is float16, which ends at 65504."""
    return (wide(g) / n).cast(dtype=FLOAT16) if g.dtype == FLOAT16 else g / n
