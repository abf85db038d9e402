"""Reductions whose naive formulas overflow: they are computed relative to the largest element."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np

from engine.codegen.kernels.program import Scalar
from engine.ir.graph import Value
from engine.ir.op import Array, Namespace
from engine.ir.run_context import DeviceMethod, RunContext
from engine.ir.sample import Ints, Real, Sample
from engine.ir.tensor_type import DType, HostArray, TensorType, mean_dtype, reduced_shape
from engine.ops.common.numerics import accumulator, reduced_elements, upcast_operands
from engine.ops.common.support import RowIndicated
from engine.ops.reduce.sums import Reduction, Rowwise, restore_axes

#: most squares summed in one pass: for more, sums of partial sums are more accurate, and BLAS would use several threads
LONGEST_ROW: Final = 4096
#: powers of two that scale large numbers down, and small ones up, so that their squares are in the dtype's range
_SCALE_DOWN = {"float32": 2.0**-80, "float64": 2.0**-530}
_SCALE_UP = {"float32": 2.0**80, "float64": 2.0**600}


def sum_of_squares(
    x: HostArray, axes: Sequence[int], dtype: DType, factor: float = 1.0, out: HostArray | None = None
) -> HostArray:
    """Compute Σ (factor · x)² over axes, kept with extent 1, in `dtype`, into `out` if given.

    factor · x and factor² · x must be in the range of `dtype`; x² need not.
    """
    if out is None:
        out = np.empty(reduced_shape(x.shape, axes, True), dtype)
    length = reduced_elements(x.shape, axes)
    is_last = tuple(axes) == tuple(range(x.ndim - len(axes), x.ndim))
    if not (is_last and x.flags.c_contiguous):
        other_axes = [a for a in range(x.ndim) if a not in axes]
        _sum_squares_in_one_pass(x, axes, factor, out.reshape([x.shape[a] for a in other_axes]))
        return out
    rows, whole_chunks = x.reshape(-1, length), length - length % LONGEST_ROW
    if length <= LONGEST_ROW:
        _sum_squares_in_one_pass(rows, (1,), factor, out.reshape(-1))
        return out
    parts = np.empty((len(rows), whole_chunks // LONGEST_ROW + 1), dtype)
    _sum_squares_in_one_pass(rows[:, :whole_chunks].reshape(len(rows), -1, LONGEST_ROW), (2,), factor, parts[:, 1:])
    _sum_squares_in_one_pass(rows[:, whole_chunks:], (1,), factor, parts[:, 0])
    np.add.reduce(parts, 1, out=out.reshape(-1))
    return out


def partial_squares_bytes(x: TensorType, results: int, dtype: DType) -> int:
    """Count the bytes of the partial sums that `sum_of_squares` allocates in addition to its results."""
    return dtype.itemsize * (x.size // LONGEST_ROW + results) if x.size > LONGEST_ROW * results else 0


def _sum_squares_in_one_pass(x: HostArray, axes: Sequence[int], factor: float, out: HostArray) -> None:
    """Compute Σ (factor · x)² in one pass; rows by BLAS, which uses one thread for short ones."""
    if factor == 1 and tuple(axes) == (x.ndim - 1,) and x.dtype == out.dtype:
        np.vecdot(x, x, out=out)
        return
    # einsum multiplies from left to right, so that factor · x · factor · x never leaves the range.
    scale: Any = out.dtype.type(factor)
    all, other_axes = range(x.ndim), [a for a in range(x.ndim) if a not in axes]
    terms = (x, all, x, all) if factor == 1 else (scale, (), x, all, scale, (), x, all)
    np.einsum(*terms, other_axes, out=out, dtype=out.dtype, casting="same_kind")


class Scaled(Reduction):
    """Base: a float result computed by `scaled`, which gets at least one axis and one element, and keeps the axes."""

    section = "logsumexp"
    #: result over no elements
    empty: ClassVar[float]
    #: number of arrays of the result's size, in the accumulator's dtype, in addition to x's terms
    temporaries: ClassVar[int]
    samples: ClassVar[tuple[Sample, ...]] = (
        *Reduction.samples,
        Sample(Real()),
        Sample(Real(0, 3), axes=[1]),
        Sample(Ints(2, 3, high=9, low=1), axes=[1]),
    )
    result_dtype = staticmethod(mean_dtype)

    @abstractmethod
    def scaled(self, run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...]) -> None:
        """Write the result into `out`, which has x's rank."""

    def reduce(self, run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool) -> None:
        """Call `scaled` unless x is empty; treat a 0-d x as a row of one element."""
        if not x.size:
            out.fill(self.empty)
            return
        x, axes = (x, axes) if x.ndim else (x.reshape(1), (0,))
        self.scaled(run, x, out=out.reshape(reduced_shape(x.shape, axes, True)), axes=axes)

    def workspace(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """Count x's terms, and `temporaries` arrays of the result's size."""
        return accumulator(out).itemsize * (types[0].size + self.temporaries * int(out.size))


def _log_of_sum(x: Scalar) -> Scalar:
    top = x.row_max()
    shift = (top.abs() < math.inf).where(top, 0.0)
    return shift + (x - shift).exp().row_sum().log()


class LogSumExp(RowIndicated, Rowwise, Scaled):
    """y = log Σ exp x over axes, stable: m + log Σ exp(x − m) with m = max x. −inf if no elements are reduced.

    If all elements are −inf, y is −inf and the gradient is 0. Elements that are inf share the gradient. If an element
    is NaN, y and the gradient are NaN. Integers give float64.
    """

    name = "logsumexp"
    aliases = {"LogSumExp": "minima", "logsumexp": "minima"}
    gradient = "g · exp(x − y)"
    rows = staticmethod(lambda x, count: _log_of_sum(x))
    keeps_single_elements = False
    empty = -math.inf
    temporaries = 2

    def scaled(self, run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...]) -> None:
        """Shift by the maximum, unless it is infinite, which would give inf − inf."""
        xp = run.xp
        top = xp.max(x, axis=axes, keepdims=True).astype(accumulator(out))
        top[~xp.isfinite(top)] = 0
        terms = xp.subtract(x, top, dtype=top.dtype)
        xp.exp(terms, out=terms)
        total = xp.sum(terms, axis=axes, keepdims=True)
        xp.log(total, out=total)
        xp.add(top, total, out=out)

    def vjp(self, g: Value, y: Value, x: Value, *, axes: tuple[int, ...], keepdims: bool) -> Sequence[Value | None]:
        """Multiply g by exp(x − y), the softmax, divided by its sum: not 1 if y was rounded or some x are inf."""
        y, x = upcast_operands(self, y, (x,), {"axes": axes, "keepdims": keepdims})
        restored = restore_axes(y, x, axes).stop_gradient()
        shift = restored.equal(-math.inf).where(0.0, restored)
        softmax = x.equal(math.inf).where(0.0, x - shift).exp()
        total = softmax.sum(axes=axes, keepdims=True)
        return ((restore_axes(g, x, axes) / total.equal(0.0).where(1.0, total)) * softmax,)


class Norm(RowIndicated, Scaled):
    """y = √Σ x² over axes, the Euclidean norm, without intermediate overflow or underflow. Integers give float64.

    At 0 the gradient is 0, the subgradient of least norm, and so is its own gradient. An infinite element gets g, with
    its sign. If an element is NaN, y and the gradient are NaN.
    """

    name = "norm"
    gradient = "g · x / y, and 0 where y = 0"
    empty = 0.0
    temporaries = 3

    @DeviceMethod
    def scaled(self, run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...]) -> None:
        """Compute the root of the sum of squares, scaled by the largest element."""
        _scaled_by_largest(run.xp, x, out, axes)

    @scaled.on("cpu")
    def _scaled_where_needed(self, run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...]) -> None:
        """Compute the root of the sum of squares; recompute with scaling where the sum is near the range's ends."""
        sums = sum_of_squares(x, axes, accumulator(out))
        limits = np.finfo(sums.dtype)
        low, high = sums < x.size * limits.tiny / limits.eps, ~(sums < math.inf)
        np.sqrt(sums, out=sums)
        # Squares of float16 are all in the range of float32, so that scaling is never needed.
        if out.dtype == sums.dtype:
            for affected, factor in ((low, _SCALE_UP[out.dtype.name]), (high, _SCALE_DOWN[out.dtype.name])):
                if affected.any():
                    np.sqrt(sum_of_squares(x, axes, out.dtype, factor, out), out=out)
                    np.divide(out, factor, out=sums, where=affected)
        np.copyto(out, sums, casting="same_kind")

    def vjp(self, g: Value, y: Value, x: Value, *, axes: tuple[int, ...], keepdims: bool) -> Sequence[Value | None]:
        """Multiply g by the unit vector x / y, which is 0 where y is 0.

        There the division is by infinity, so that derivatives of every order are 0, too. An infinite x or y is first
        clamped to the largest finite number.
        """
        y, x = upcast_operands(self, y, (x,), {"axes": axes, "keepdims": keepdims})
        largest = float(np.finfo(x.dtype).max)
        norm = restore_axes(y, x, axes).clamp(max=largest)
        unit = x.clamp(min=-largest, max=largest) / norm.equal(0.0).where(math.inf, norm)
        return (restore_axes(g, x, axes) * unit,)

    def workspace(self, out: Any, *types: Any, **attrs: Any) -> int:
        """Count the sums, the masks of sums to recompute, and partial sums."""
        return (accumulator(out).itemsize + 2) * int(out.size) + partial_squares_bytes(
            types[0], out.size, accumulator(out)
        )


def _scaled_by_largest(xp: Namespace, x: Array, out: Array, axes: tuple[int, ...]) -> None:
    """Compute the norm of x / s, times s, where s is a power of two near max |x|: scaling by it is exact."""
    terms = xp.absolute(x, dtype=accumulator(out))
    scale = _power_of_two(xp, xp.max(terms, axis=axes, keepdims=True))
    terms /= scale
    terms *= terms
    total = xp.sum(terms, axis=axes, keepdims=True)
    xp.sqrt(total, out=total)
    xp.multiply(total, scale, out=out)


def _power_of_two(xp: Namespace, size: Array) -> Array:
    """Return a power of two within a factor of 2 of each positive size; 1 for infinity and NaN."""
    exponent = xp.frexp(size)[1]
    exponent[~xp.isfinite(size)] = 1
    exponent -= 1
    return xp.ldexp(xp.ones_like(size), exponent)
