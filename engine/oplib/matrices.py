"""Parts of all factorizations: square operands, batches taken apart, and adjoints and gaps for gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from engine.graph.by_device import DeviceFunction
from engine.graph.dtypes import is_complex
from engine.graph.errors import ShapeMismatch
from engine.graph.ir import Value
from engine.graph.op import Array, Op, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import COMPLEX128, FLOAT64, DType, HostArray, TensorType, promote, show_shape
from engine.oplib import batching
from engine.oplib.accumulate import accumulator
from engine.oplib.permutation import permute, unpermute
from engine.oplib.product import product_type


class SquareMatrix(Op):
    """Base: one operand, square matrices on its last two axes, which are answered one by one."""

    operands: ClassVar[tuple[str, ...]] = ("x",)

    def infer(self, x: TensorType) -> ResultTypes:
        """Matrices like x. Raises ShapeMismatch."""
        return square(x)

    def batch(self, mapped: Sequence[bool], x: Value) -> Value:
        """Itself: N is one more batch axis."""
        return x.builder.emit(self, (x,), {})

    def workspace(self, out: ResultTypes, x: TensorType, **attrs: Any) -> int:
        """In doubles: x where it is none, the answers, and the two matrices that LAPACK works on."""
        answers = sum(y.size * wide_dtype(y.dtype).itemsize for y in (out if isinstance(out, tuple) else (out,)))
        scratch = 2 * x.shape[-1] ** 2 if x.size else 0
        dtype = wide_dtype(x.dtype)
        return answers + dtype.itemsize * (converted(dtype, x) + scratch)


class System(Op):
    """Base: square matrices a and right-hand sides b; y solves op(a) y = b.

    b is a vector if it is 1-d, as in NumPy 2, or one for each matrix: of a's shape without the last axis, where that
    does not hold matrices of n rows. Else each column of the matrices on its last two axes is a right-hand side. The
    axes before broadcast.
    """

    operands: ClassVar[tuple[str, ...]] = ("a", "b")

    def infer(self, a: TensorType, b: TensorType, **attrs: Any) -> ResultTypes:
        """The shape of the product a⁻¹ b. Raises ShapeMismatch."""
        a, b = square(a, "a"), _floats(b)
        return b.with_dtype(promote(a.dtype, b.dtype)) if _pairs_vectors(a, b) else product_type(a, b)

    def compose(self, a: Value, b: Value, **attrs: Any) -> Value | None:
        """Vectors as columns; many right-hand sides of one matrix side by side, so that it is factored once."""
        if b.ndim == 1 or _pairs_vectors(a.type, b.type):
            y = self._solved(a, b.reshape(shape=(*b.shape, 1)), attrs)
            return y.reshape(shape=y.shape[:-1])
        if a.ndim > 2 or b.ndim == 2:
            return None
        order = (b.ndim - 2, *range(b.ndim - 2), b.ndim - 1)
        rows = permute(b, order)
        y = self._solved(a, rows.reshape(shape=(rows.shape[0], math.prod(rows.shape[1:]))), attrs)
        return unpermute(y.reshape(shape=rows.shape), order)

    def batch(self, mapped: Sequence[bool], *operands: Value, **attrs: Any) -> Value:
        """N is one more batch axis, once the ranks agree: `compose` leaves no vectors."""
        a, b = batching.align(mapped, operands)
        return self._solved(a, b, attrs)

    def _solved(self, a: Value, b: Value, attrs: Mapping[str, Any]) -> Value:
        return a.builder.emit(self, (a, b), attrs)


def _pairs_vectors(a: TensorType, b: TensorType) -> bool:
    """Whether b [..., n] holds a vector for each matrix, which it does where it cannot be matrices [..., n, m]."""
    return b.ndim > 1 and b.shape == a.shape[:-1] and b.shape[-2] != a.shape[-1]


def wide_dtype(dtype: DType) -> DType:
    """The dtype in doubles, real or complex, that holds numbers of this one."""
    return COMPLEX128 if is_complex(dtype) else FLOAT64


def converted(dtype: DType, *operands: TensorType) -> int:
    """How many elements are copied to have all operands in this dtype."""
    return sum(x.size for x in operands if x.dtype != dtype)


@DeviceFunction
def computed(_: RunContext, out: Array) -> DType:
    """The dtype in which xp.linalg makes `out`: nobody has loops for float16."""
    return accumulator(out)


@computed.on("cpu")
def _computed(_: RunContext, out: Array) -> DType:
    """The dtypes that NumPy's linalg has loops for."""
    return wide_dtype(out.dtype)


@DeviceFunction
def answer_each(run: RunContext, name: str, *operands: Array, out: Array) -> None:
    """out = xp.linalg.name(*operands), with NaN for each matrix of the batch that it refuses.

    All operands have the batch axes of `out` and the dtype `computed`, and one of them may be `out`. One call where
    every matrix has its answer; only else is the batch taken apart, until those without one stand alone.
    """
    if out.size:
        _answer(getattr(run.xp.linalg, name), operands, out)


@answer_each.on("cpu")
def _answer_at_once(run: RunContext, name: str, *operands: HostArray, out: HostArray) -> None:
    """One call in any case, where NumPy has what it takes."""
    function = unchecked(name)
    if function is None:
        answer_each.general(run, name, *operands, out=out)
    elif out.size:
        with np.errstate(all="ignore"):
            out[...] = function(*operands)


@answer_each.on("cuda")
def _answer_on_cuda(run: RunContext, name: str, *operands: Array, out: Array) -> None:
    """CuPy leaves numbers without meaning, unless told to look and raise."""
    import cupyx  # noqa: PLC0415 - optional

    with cupyx.errstate(linalg="raise"):
        answer_each.general(run, name, *operands, out=out)


# What numpy.linalg's functions of these names call, and then raise LinAlgError for the whole batch if it has written
# NaN for one of them: the answers of the others would be lost, and could only be had by calling again. They are not
# public, so that there is a way without them.
_GUFUNCS = getattr(np.linalg, "_umath_linalg", None)
_UNCHECKED = {
    "cholesky": "cholesky_lo",
    "inv": "inv",
    "solve": "solve",
    "eigh": "eigh_lo",
    "eigvalsh": "eigvalsh_lo",
    "svd": "svd_s",
    "svdvals": "svd",
}


def unchecked(name: str) -> Any:
    """NumPy's function of matrices that writes NaN where the public one of this name raises; None where it has none."""
    return getattr(_GUFUNCS, _UNCHECKED.get(name, ""), None)


def _answer(compute: Callable[..., Array], operands: Sequence[Array], out: Array) -> None:
    try:
        out[...] = compute(*operands)
    except np.linalg.LinAlgError:
        if math.prod(out.shape[:-2]) == 1:
            out.fill(np.nan)
            return
        # Eighths: where all are refused, fewer calls are in vain than with halves.
        count = len(out)
        size = max(count // 8, 1)
        parts: Sequence[Any] = [slice(i, i + size) for i in range(0, count, size)] if count > 1 else [0]
        for part in parts:
            _answer(compute, [x[part] for x in operands], out[part])


def square(x: TensorType, name: str = "x") -> TensorType:
    """Operand 0 as it is computed with. Raises ShapeMismatch unless its last two axes hold square matrices."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        wanted, got = "square matrices on its last two axes", show_shape(x.shape)
        raise ShapeMismatch(
            f"operand 0 ({name}) must hold {wanted}, but has shape {got}", operand=0, expected=wanted, got=got
        )
    return _floats(x)


def _floats(x: TensorType) -> TensorType:
    """As numpy.linalg computes: in float64 with what is not float."""
    return x if x.is_differentiable else x.with_dtype(FLOAT64)
