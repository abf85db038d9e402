"""Reductions that overflow when written down naively: they work relative to the largest element."""

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
from engine.ir.tensor_type import DType, HostArray, TensorType, reduced_shape, to_average
from engine.ops.common.numerics import accumulator, count, widened
from engine.ops.reduce.sums import Reduction, Rowwise, keep

#: squares that are added up in one go: beyond, sums of sums are more accurate, and BLAS would take several threads
LONGEST: Final = 4096
#: powers of two that bring the squares of large numbers, and those of small ones, within the range of their dtype
_DOWN = {"float32": 2.0**-80, "float64": 2.0**-530}
_UP = {"float32": 2.0**80, "float64": 2.0**600}


def sum_of_squares(
    x: HostArray, axes: Sequence[int], dtype: DType, factor: float = 1.0, out: HostArray | None = None
) -> HostArray:
    """Σ (factor · x)² over axes, which stay at extent 1, in `dtype`; into `out`, where that is given.

    `factor` · x must be within the range of `dtype`, and once more times `factor`; x² need not.
    """
    if out is None:
        out = np.empty(reduced_shape(x.shape, axes, True), dtype)
    length = count(x.shape, axes)
    is_last = tuple(axes) == tuple(range(x.ndim - len(axes), x.ndim))
    if not (is_last and x.flags.c_contiguous):
        kept = [a for a in range(x.ndim) if a not in axes]
        _add_up(x, axes, factor, out.reshape([x.shape[a] for a in kept]))
        return out
    rows, whole = x.reshape(-1, length), length - length % LONGEST
    if length <= LONGEST:
        _add_up(rows, (1,), factor, out.reshape(-1))
        return out
    parts = np.empty((len(rows), whole // LONGEST + 1), dtype)
    _add_up(rows[:, :whole].reshape(len(rows), -1, LONGEST), (2,), factor, parts[:, 1:])
    _add_up(rows[:, whole:], (1,), factor, parts[:, 0])
    np.add.reduce(parts, 1, out=out.reshape(-1))
    return out


def parts_bytes(x: TensorType, results: int, dtype: DType) -> int:
    """Count the bytes that `sum_of_squares` allocates beside so many sums."""
    return dtype.itemsize * (x.size // LONGEST + results) if x.size > LONGEST * results else 0


def _add_up(x: HostArray, axes: Sequence[int], factor: float, out: HostArray) -> None:
    """Add up in one go: short rows by BLAS, which takes one thread for them."""
    if factor == 1 and tuple(axes) == (x.ndim - 1,) and x.dtype == out.dtype:
        np.vecdot(x, x, out=out)
        return
    scale: Any = out.dtype.type(factor)  # products are made from left to right
    all, kept = range(x.ndim), [a for a in range(x.ndim) if a not in axes]
    terms = (x, all, x, all) if factor == 1 else (scale, (), x, all, scale, (), x, all)
    np.einsum(*terms, kept, out=out, dtype=out.dtype, casting="same_kind")


class Scaled(Reduction):
    """Base: a float result by `scaled`, which sees at least one axis and one element, and keeps the axes."""

    section = "logsumexp"
    #: the result over no elements
    empty: ClassVar[float]
    #: how many arrays of the result's size, in the accumulator's dtype, it has beside x's terms
    temporaries: ClassVar[int]
    samples: ClassVar[tuple[Sample, ...]] = (
        *Reduction.samples,
        Sample(Real()),
        Sample(Real(0, 3), axes=[1]),
        Sample(Ints(2, 3, high=9, low=1), axes=[1]),
    )
    result_dtype = staticmethod(to_average)

    @abstractmethod
    def scaled(self, run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...]) -> None:
        """The kernel; `out` has x's rank."""

    def reduce(self, run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool) -> None:
        """Run the kernel where there is a largest element; a 0-d x is a row of one."""
        if not x.size:
            out.fill(self.empty)
            return
        row, along = (x, axes) if x.ndim else (x.reshape(1), (0,))
        self.scaled(run, row, out=out.reshape(reduced_shape(row.shape, along, True)), axes=along)

    def workspace(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """x once more, and `temporaries` arrays like the result."""
        return accumulator(out).itemsize * (types[0].size + self.temporaries * int(out.size))


def _log_of_sum(x: Scalar) -> Scalar:
    top = x.row_max()
    shift = (top.abs() < math.inf).where(top, 0.0)
    return shift + (x - shift).exp().row_sum().log()


class LogSumExp(Rowwise, Scaled):
    """y = log Σ exp x over axes, stable: m + log Σ exp(x − m) with m = max x. −inf over nothing.

    Where all of x is −inf, y is −inf and the gradient 0. Where some of it is inf, these share the gradient. Where one
    is NaN, so are y and the gradient. Integers give float64.
    """

    name = "logsumexp"
    aliases = {"LogSumExp": "minima", "logsumexp": "minima"}
    gradient = "g · exp(x − y)"
    rows = staticmethod(lambda x, count: _log_of_sum(x))
    is_one_of_one = False
    empty = -math.inf
    temporaries = 2

    def scaled(self, run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...]) -> None:
        """Shifted by the maximum; not by an infinite one, which would leave inf − inf."""
        xp = run.xp
        top = xp.max(x, axis=axes, keepdims=True).astype(accumulator(out))
        top[~xp.isfinite(top)] = 0
        terms = xp.subtract(x, top, dtype=top.dtype)
        xp.exp(terms, out=terms)
        total = xp.sum(terms, axis=axes, keepdims=True)
        xp.log(total, out=total)
        xp.add(top, total, out=out)

    def vjp(self, g: Value, y: Value, x: Value, *, axes: tuple[int, ...], keepdims: bool) -> Sequence[Value | None]:
        """The softmax of x, from y; divided by its sum, which is not 1 where y was rounded, or some are inf."""
        y, x = widened(self, y, (x,), {"axes": axes, "keepdims": keepdims})
        kept = keep(y, x, axes).stop_gradient()
        shift = kept.equal(-math.inf).where(0.0, kept)
        share = x.equal(math.inf).where(0.0, x - shift).exp()
        total = share.sum(axes=axes, keepdims=True)
        return ((keep(g, x, axes) / total.equal(0.0).where(1.0, total)) * share,)


class Norm(Scaled):
    """y = √Σ x² over axes, the Euclidean norm, without overflow or underflow on the way. Integers give float64.

    At 0 the gradient is 0, the subgradient of least norm, and so is that of the gradient. An infinite element gets g,
    with its sign. Where one is NaN, so are y and the gradient.
    """

    name = "norm"
    gradient = "g · x / y, and 0 where y = 0"
    empty = 0.0
    temporaries = 3

    @DeviceMethod
    def scaled(self, run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...]) -> None:
        """The root of the sum of squares, all scaled by the largest element."""
        _scaled_by_largest(run.xp, x, out, axes)

    @scaled.on("cpu")
    def _scaled_where_needed(self, run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...]) -> None:
        """The root of the sum of squares; and again of scaled ones, where that is near the ends of its range."""
        sums = sum_of_squares(x, axes, accumulator(out))
        form = np.finfo(sums.dtype)
        low, high = sums < x.size * form.tiny / form.eps, ~(sums < math.inf)
        np.sqrt(sums, out=sums)
        # the squares of float16 are all within the range of float32
        if out.dtype == sums.dtype:
            for chosen, factor in ((low, _UP[out.dtype.name]), (high, _DOWN[out.dtype.name])):
                if chosen.any():
                    np.sqrt(sum_of_squares(x, axes, out.dtype, factor, out), out=out)
                    np.divide(out, factor, out=sums, where=chosen)
        np.copyto(out, sums, casting="same_kind")

    def vjp(self, g: Value, y: Value, x: Value, *, axes: tuple[int, ...], keepdims: bool) -> Sequence[Value | None]:
        """The unit vector along x. A division by infinity is 0, and so are all derivatives of it.

        Hence infinity counts as the largest number there is.
        """
        y, x = widened(self, y, (x,), {"axes": axes, "keepdims": keepdims})
        most = float(np.finfo(x.dtype).max)
        size = keep(y, x, axes).clamp(max=most)
        unit = x.clamp(min=-most, max=most) / size.equal(0.0).where(math.inf, size)
        return (keep(g, x, axes) * unit,)

    def workspace(self, out: Any, *types: Any, **attrs: Any) -> int:
        """The sums, and where they are to be found again."""
        return (accumulator(out).itemsize + 2) * int(out.size) + parts_bytes(types[0], out.size, accumulator(out))


def _scaled_by_largest(xp: Namespace, x: Array, out: Array, axes: tuple[int, ...]) -> None:
    """Square x / s on CuPy, where s is a power of two near max |x|: dividing by it rounds nothing."""
    terms = xp.absolute(x, dtype=accumulator(out))
    scale = _power_of_two(xp, xp.max(terms, axis=axes, keepdims=True))
    terms /= scale
    terms *= terms
    total = xp.sum(terms, axis=axes, keepdims=True)
    xp.sqrt(total, out=total)
    xp.multiply(total, scale, out=out)


def _power_of_two(xp: Namespace, size: Array) -> Array:
    """A power of two within a factor of 2 of each positive size; 1 for infinity and NaN."""
    exponent = xp.frexp(size)[1]
    exponent[~xp.isfinite(size)] = 1
    exponent -= 1
    return xp.ldexp(xp.ones_like(size), exponent)
