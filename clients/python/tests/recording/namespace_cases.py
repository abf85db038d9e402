"""Calls of every function of the namespace, which give the same with NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

RNG = np.random.default_rng(20)
X = RNG.standard_normal((4, 3))
Y = RNG.standard_normal((4, 3))
POSITIVE = np.abs(X) + 0.1
UNIT = np.tanh(X)
SQUARE = X.T @ X + 3 * np.eye(3)
BATCH = np.stack([SQUARE, SQUARE + np.eye(3)])
V = RNG.standard_normal(3)
WHOLE = np.array([[3, -2, 0], [7, -5, 2]])
DIVISORS = np.array([2, 3, -2])
BYTES = np.array([3, -2, 1], np.int8)
TRUE = X > 0
MORE = Y > 0
SINGLE = X.astype(np.float32)
SPECIAL = np.array([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, -2.5, 2.5])
TIES = np.array([[2.0, 1.0, 2.0, 1.0], [0.0, 0.0, -1.0, 5.0]])
SORTED = np.array([-1.0, 0.0, 0.0, 2.0])
PLACES = np.array([2, 0, -1])


class Case(NamedTuple):
    """A call with a namespace and arrays."""

    name: str
    call: Callable[..., Any]
    arrays: tuple[Any, ...]


def _unary(names: str, *arrays: Any) -> list[Case]:
    return [
        Case(name, lambda xp, x, name=name: getattr(xp, name)(x), (array,))
        for name in names.split()
        for array in arrays
    ]


def _binary(names: str, *pairs: tuple[Any, Any]) -> list[Case]:
    return [
        Case(name, lambda xp, x, y, name=name: getattr(xp, name)(x, y), pair)
        for name in names.split()
        for pair in pairs
    ]


def _reduction(names: str, *arrays: Any) -> list[Case]:
    options: list[dict[str, Any]] = [{}, {"axis": 0}, {"axis": -1, "keepdims": True}, {"axis": (0, 1)}]
    return [
        Case(name, lambda xp, x, name=name, chosen=chosen: getattr(xp, name)(x, **chosen), (array,))
        for name in names.split()
        for array in arrays
        for chosen in options
    ]


#: functions of floats, of numbers, and of other dtypes
ELEMENTWISE: Final = [
    *_unary("acos asin atanh", UNIT),
    *_unary("acosh", POSITIVE + 1),
    *_unary("asinh atan cos cosh exp expm1 sin sinh tan tanh", X, SINGLE, WHOLE),
    *_unary("log log1p log2 log10 sqrt reciprocal", POSITIVE, POSITIVE.astype(np.float32)),
    *_unary("abs ceil floor round sign square negative positive trunc", X, SINGLE, WHOLE, BYTES, SPECIAL),
    *_unary("conj real imag", X, WHOLE),
    *_unary("angle", X, SINGLE),
    *_unary("isfinite isinf isnan signbit", SPECIAL, X),
    *_unary("logical_not bitwise_invert", TRUE),
    *_binary("add subtract multiply divide", (X, Y), (X, V), (SINGLE, SINGLE), (WHOLE, DIVISORS), (X, SINGLE)),
    *_binary("maximum minimum remainder floor_divide", (X, Y), (WHOLE, DIVISORS), (SINGLE, SINGLE[::-1])),
    *_binary("floor_divide remainder", (np.array([1.0, -1.0, 6.0, 0.3]), np.array([0.1, 0.1, 0.6, 0.1]))),
    *_binary("floor_divide", (X, np.float64(0.1)), (np.array([4, -4]), np.array([0, 3]))),
    *_binary("atan2 hypot logaddexp copysign", (X, Y), (SINGLE, SINGLE[::-1]), (SPECIAL[3:], -SPECIAL[3:])),
    *_binary("pow", (POSITIVE, Y), (WHOLE, np.array([2, 0, 3]))),
    *_binary("equal not_equal less less_equal greater greater_equal", (X, Y), (WHOLE, DIVISORS), (SPECIAL, SPECIAL)),
    *_binary("equal not_equal", (TRUE, MORE)),
    *_binary("logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor", (TRUE, MORE)),
    Case("add", lambda xp, x: xp.add(x, 2), (X,)),
    Case("add", lambda xp, x: xp.add(0.1, x), (SINGLE,)),
    Case("add", lambda xp, x: xp.add(x, math.inf), (X,)),
    Case("multiply", lambda xp, x: xp.multiply(x, 0.1), (SINGLE,)),
    Case("multiply", lambda xp, x: xp.multiply(x, 3), (BYTES,)),
    Case("multiply", lambda xp, x: xp.multiply(x, 0.5), (WHOLE,)),
    Case("subtract", lambda xp, x: xp.subtract(1, x), (X,)),
    Case("divide", lambda xp, x: xp.divide(3, x), (X,)),
    Case("divide", lambda xp, x: xp.divide(x, 3), (SINGLE,)),
    Case("pow", lambda xp, x: xp.pow(x, 2), (X,)),
    Case("pow", lambda xp, x: xp.pow(2, x), (SINGLE,)),
    Case("clip", lambda xp, x: xp.clip(x, -0.5, 0.5), (X,)),
    Case("clip", lambda xp, x: xp.clip(x, min=0), (SINGLE,)),
    Case("clip", lambda xp, x, y: xp.clip(x, y, None), (X, Y)),
    Case("clip", lambda xp, x: xp.clip(x, -2, 2), (WHOLE,)),
    Case("where", lambda xp, c, x, y: xp.where(c, x, y), (TRUE, X, Y)),
    Case("where", lambda xp, c, x: xp.where(c, x, 0), (TRUE, SINGLE)),
]
REDUCTIONS: Final = [
    *_reduction("sum prod max min", X, SINGLE, WHOLE),
    *_reduction("mean std var", X, SINGLE),
    *_reduction("all any", TRUE),
    *_reduction("count_nonzero", WHOLE, TRUE),
    Case("sum", lambda xp, x: xp.sum(x, axis=()), (X,)),
    Case("sum", lambda xp, x: xp.sum(x, dtype=xp.float64), (SINGLE,)),
    Case("sum", lambda xp, x: xp.sum(x, dtype=xp.int32), (WHOLE,)),
    Case("prod", lambda xp, x: xp.prod(x, axis=(), keepdims=True), (BYTES,)),
    Case("var", lambda xp, x: xp.var(x, axis=0, correction=1), (X,)),
    Case("std", lambda xp, x: xp.std(x, axis=0, correction=0.5), (X,)),
    Case("cumulative_sum", lambda xp, x: xp.cumulative_sum(x), (V,)),
    Case("cumulative_sum", lambda xp, x: xp.cumulative_sum(x, axis=1, include_initial=True), (X,)),
    Case("cumulative_sum", lambda xp, x: xp.cumulative_sum(x, axis=0), (WHOLE,)),
    Case("cumulative_prod", lambda xp, x: xp.cumulative_prod(x), (V,)),
    Case("cumulative_prod", lambda xp, x: xp.cumulative_prod(x, axis=0, include_initial=True), (X,)),
    Case("cumulative_prod", lambda xp, x: xp.cumulative_prod(x, axis=-1), (WHOLE,)),
    Case("diff", lambda xp, x: xp.diff(x), (X,)),
    Case("diff", lambda xp, x, y: xp.diff(x, axis=0, n=2, prepend=y), (X, Y)),
]
CREATION: Final = [
    Case("arange", lambda xp: xp.arange(5), ()),
    Case("arange", lambda xp: xp.arange(7, -3, -2), ()),
    Case("arange", lambda xp: xp.arange(0.0, 1.0, 0.3), ()),
    Case("arange", lambda xp: xp.arange(4, dtype=xp.float32), ()),
    Case("asarray", lambda xp, x: xp.asarray(x, dtype=xp.float32), (X,)),
    Case("asarray", lambda xp: xp.asarray([[1, 2], [3, 4]]), ()),
    Case("asarray", lambda xp: xp.asarray(True), ()),
    Case("empty", lambda xp: xp.zeros_like(xp.empty((2, 3))), ()),
    Case("empty_like", lambda xp, x: xp.zeros_like(xp.empty_like(x)), (SINGLE,)),
    Case("eye", lambda xp: xp.eye(3), ()),
    Case("eye", lambda xp: xp.eye(3, 4, k=-1, dtype=xp.int32), ()),
    Case("full", lambda xp: xp.full((2, 2), 7), ()),
    Case("full", lambda xp: xp.full(3, math.nan, dtype=xp.float32), ()),
    Case("full", lambda xp: xp.full((), True), ()),
    Case("full_like", lambda xp, x: xp.full_like(x, 2), (SINGLE,)),
    Case("linspace", lambda xp: xp.linspace(0, 1, 5), ()),
    Case("linspace", lambda xp: xp.linspace(2, -1, 4, endpoint=False, dtype=xp.float32), ()),
    Case("meshgrid", lambda xp, x, y: xp.meshgrid(x, y), (V, SORTED)),
    Case("meshgrid", lambda xp, x, y: xp.meshgrid(x, y, x, indexing="ij"), (V, SORTED)),
    Case("ones", lambda xp: xp.ones((2, 0)), ()),
    Case("ones_like", lambda xp, x: xp.ones_like(x), (WHOLE,)),
    Case("tril", lambda xp, x: xp.tril(x), (X,)),
    Case("tril", lambda xp, x: xp.tril(x, k=-1), (BATCH,)),
    Case("triu", lambda xp, x: xp.triu(x, k=1), (X,)),
    Case("zeros", lambda xp: xp.zeros(3, dtype=xp.int8), ()),
    Case("zeros_like", lambda xp, x: xp.zeros_like(x, dtype=xp.float64), (WHOLE,)),
    Case("astype", lambda xp, x: xp.astype(x, xp.int64), (X,)),
    Case("astype", lambda xp, x: xp.astype(x, xp.bool), (WHOLE,)),
]
MANIPULATION: Final = [
    Case("broadcast_arrays", lambda xp, x, y: [*xp.broadcast_arrays(x, y)], (X, V)),
    Case("broadcast_to", lambda xp, x: xp.broadcast_to(x, (2, 3)), (V,)),
    Case("concat", lambda xp, x, y: xp.concat([x, y], axis=1), (X, Y)),
    Case("concat", lambda xp, x, y: xp.concat((x, y), axis=None), (X, SINGLE)),
    Case("expand_dims", lambda xp, x: xp.expand_dims(x, axis=-1), (X,)),
    Case("expand_dims", lambda xp, x: xp.expand_dims(x, axis=(0, 2)), (X,)),
    Case("flip", lambda xp, x: xp.flip(x), (X,)),
    Case("flip", lambda xp, x: xp.flip(x, axis=-1), (X,)),
    Case("matrix_transpose", lambda xp, x: xp.matrix_transpose(x), (BATCH,)),
    Case("moveaxis", lambda xp, x: xp.moveaxis(x, 0, -1), (BATCH,)),
    Case("moveaxis", lambda xp, x: xp.moveaxis(x, (0, 2), (1, 0)), (BATCH[:, :2],)),
    Case("permute_dims", lambda xp, x: xp.permute_dims(x, (2, 0, 1)), (BATCH,)),
    Case("repeat", lambda xp, x: xp.repeat(x, 2), (X,)),
    Case("repeat", lambda xp, x: xp.repeat(x, xp.asarray([1, 0, 2]), axis=1), (X,)),
    Case("reshape", lambda xp, x: xp.reshape(x, (2, -1)), (X,)),
    Case("roll", lambda xp, x: xp.roll(x, 2), (X,)),
    Case("roll", lambda xp, x: xp.roll(x, (1, -1), axis=(0, 1)), (X,)),
    Case("roll", lambda xp, x: xp.roll(x, 1, axis=(0, 1)), (X,)),
    Case("squeeze", lambda xp, x: xp.squeeze(x, axis=1), (X[:, None],)),
    Case("stack", lambda xp, x, y: xp.stack([x, y], axis=-1), (X, Y)),
    Case("tile", lambda xp, x: xp.tile(x, (2, 1, 2)), (X,)),
    Case("unstack", lambda xp, x: [*xp.unstack(x, axis=1)], (X,)),
]
SEARCHING: Final = [
    *[
        Case(name, lambda xp, x, name=name, chosen=chosen: getattr(xp, name)(x, **chosen), (array,))
        for name in ("argmax", "argmin")
        for array in (X, TIES)
        for chosen in ({}, {"axis": 1}, {"keepdims": True}, {"axis": 0, "keepdims": True})
    ],
    Case("argsort", lambda xp, x: xp.argsort(x), (TIES,)),
    Case("argsort", lambda xp, x: xp.argsort(x, axis=0), (X,)),
    Case("sort", lambda xp, x: xp.sort(x), (X,)),
    Case("sort", lambda xp, x: xp.sort(x, axis=0), (WHOLE,)),
    Case("searchsorted", lambda xp, x, y: xp.searchsorted(x, y), (SORTED, X)),
    Case("searchsorted", lambda xp, x, y: xp.searchsorted(x, y, side="right"), (SORTED, SORTED)),
    Case(
        "searchsorted",
        lambda xp, x, y: xp.searchsorted(x, y, sorter=xp.asarray([3, 1, 2, 0])),
        (np.array([2.0, 0.0, 0.0, -1.0]), X),
    ),
    Case("take", lambda xp, x, i: xp.take(x, i, axis=1), (X, PLACES)),
    Case("take", lambda xp, x: xp.take(x, xp.asarray([1, -1, 1])), (V,)),
    Case("take_along_axis", lambda xp, x, i: xp.take_along_axis(x, i, axis=0), (X, np.array([[1, 0, -1]]))),
]
PRODUCTS: Final = [
    *_binary("matmul", (X, Y.T), (X, V), (V, V), (BATCH, X.T), (WHOLE, WHOLE.T), (BATCH, BATCH[0])),
    Case("tensordot", lambda xp, x, y: xp.tensordot(x, y), (X, Y)),
    Case("tensordot", lambda xp, x, y: xp.tensordot(x, y, axes=1), (BATCH, SQUARE)),
    Case("tensordot", lambda xp, x, y: xp.tensordot(x, y, axes=((0, -1), (1, 2))), (X, RNG.standard_normal((2, 4, 3)))),
    Case("tensordot", lambda xp, x, y: xp.tensordot(x, y, axes=0), (V, V)),
    Case("vecdot", lambda xp, x, y: xp.vecdot(x, y), (X, V)),
    Case("vecdot", lambda xp, x, y: xp.vecdot(x, y, axis=-2), (X, Y)),
]


def adjoint(x: Any) -> Any:
    """xᴴ for NumPy arrays and recorded arrays."""
    return x.__array_namespace__().conj(x).mT


def hermitian(x: Any) -> Any:
    """The Hermitian matrix that NumPy infers from one half of a matrix."""
    return (x + adjoint(x)) / 2


def sign_free_eigh(w: Any, v: Any) -> list[Any]:
    """Results that do not depend on signs of eigenvectors: another function of the matrix."""
    return [w, (v * w.__array_namespace__().sin(w)[..., None, :]) @ adjoint(v)]


def squared(r: Any) -> Any:
    """rᵀ r, which does not depend on signs."""
    return r.mT @ r


def sign_free_qr(q: Any, r: Any) -> list[Any]:
    """Results that do not depend on signs of columns and rows."""
    size = q.__array_namespace__().abs
    return [q @ r, size(q), size(r)]


def sign_free_svd(u: Any, s: Any, vh: Any) -> list[Any]:
    """Results that do not depend on signs of singular vectors."""
    return [s, (u * s.__array_namespace__().sin(s)[..., None, :]) @ vh]


NORMS: Final = (1, 2, 3, 0, math.inf, -math.inf)
LINALG: Final = [
    Case("cholesky", lambda la, x: la.cholesky(x), (BATCH,)),
    Case("cholesky", lambda la, x: la.cholesky(x, upper=True), (SQUARE,)),
    Case("cross", lambda la, x, y: la.cross(x, y), (X, Y)),
    Case("cross", lambda la, x, y: la.cross(x, y, axis=0), (SQUARE, BATCH[1])),
    Case("det", lambda la, x: la.det(x), (BATCH,)),
    Case("diagonal", lambda la, x: la.diagonal(x), (BATCH,)),
    Case("diagonal", lambda la, x: la.diagonal(x, offset=-2), (X,)),
    Case("inv", lambda la, x: la.inv(x), (BATCH,)),
    Case("matmul", lambda la, x, y: la.matmul(x, y), (X, V)),
    *[
        Case("matrix_norm", lambda la, x, order=order: la.matrix_norm(x, ord=order), (BATCH,))
        for order in ("fro", 1, -1, math.inf, -math.inf, 2, -2, "nuc")
    ],
    Case("matrix_norm", lambda la, x: la.matrix_norm(x, keepdims=True, ord="nuc"), (X,)),
    Case("norm", lambda la, x: la.norm(x), (BATCH,)),
    Case("norm", lambda la, x: la.norm(x, 1), (V,)),
    Case("norm", lambda la, x: la.norm(x, "nuc"), (X,)),
    Case("norm", lambda la, x: la.norm(x, axis=1, keepdims=True), (BATCH,)),
    Case("norm", lambda la, x: la.norm(x, 2, axis=(0, 2), keepdims=True), (BATCH,)),
    *[Case("cond", lambda la, x, p=p: la.cond(x, p), (BATCH,)) for p in (None, 2, -2, 1, "fro")],
    Case("eigh", lambda la, x: sign_free_eigh(*la.eigh(hermitian(x))), (BATCH,)),
    Case("eigvalsh", lambda la, x: la.eigvalsh(hermitian(x)), (BATCH,)),
    Case("lstsq", lambda la, a, b: [part for i, part in enumerate(la.lstsq(a, b)) if i != 2], (X, Y)),
    Case("lstsq", lambda la, a, b: [part for i, part in enumerate(la.lstsq(a, b)) if i != 2], (X, Y[:, 0])),
    Case("lstsq", lambda la, a, b: [part for i, part in enumerate(la.lstsq(a, b)) if i != 2], (X.T, V)),
    Case("lstsq", lambda la, a, b: la.lstsq(a, b, rcond=0.9)[0], (X, Y)),
    Case("matrix_rank", lambda la, x: la.matrix_rank(x), (BATCH,)),
    Case("matrix_rank", lambda la, x: la.matrix_rank(x, rtol=0.9), (BATCH,)),
    Case("pinv", lambda la, x: la.pinv(x), (X,)),
    Case("pinv", lambda la, x: la.pinv(x, rtol=0.9), (BATCH,)),
    *[Case("qr", lambda la, x: sign_free_qr(*la.qr(x)), (array,)) for array in (X, BATCH, SINGLE)],
    Case("qr", lambda la, x: sign_free_qr(*la.qr(x, mode="complete")), (SQUARE,)),
    *[Case("qr", lambda la, x: squared(la.qr(x, mode="r")), (array,)) for array in (X, BATCH, SINGLE)],
    *[
        Case("svd", lambda la, x: sign_free_svd(*la.svd(x, full_matrices=False)), (array,))
        for array in (X, BATCH, SINGLE)
    ],
    Case("svd", lambda la, x: sign_free_svd(*la.svd(x)), (SQUARE,)),
    Case("svdvals", lambda la, x: la.svdvals(x), (BATCH,)),
    Case("matrix_norm", lambda la, x: la.matrix_norm(x, keepdims=True, ord=1), (X,)),
    *[Case("matrix_power", lambda la, x, n=n: la.matrix_power(x, n), (SQUARE,)) for n in (0, 1, 5, -2)],
    Case("matrix_transpose", lambda la, x: la.matrix_transpose(x), (X,)),
    Case("outer", lambda la, x, y: la.outer(x, y), (V, SORTED)),
    Case("slogdet", lambda la, x: [*la.slogdet(x)], (BATCH,)),
    Case("solve", lambda la, x, y: la.solve(x, y), (SQUARE, V)),
    Case("solve", lambda la, x, y: la.solve(x, y), (BATCH, X.T)),
    Case("tensordot", lambda la, x, y: la.tensordot(x, y, axes=1), (X, SQUARE)),
    Case("trace", lambda la, x: la.trace(x), (BATCH,)),
    Case("trace", lambda la, x: la.trace(x, offset=1), (X,)),
    Case("vecdot", lambda la, x, y: la.vecdot(x, y), (X, Y)),
    *[Case("vector_norm", lambda la, x, order=order: la.vector_norm(x, axis=0, ord=order), (X,)) for order in NORMS],
    Case("vector_norm", lambda la, x: la.vector_norm(x, keepdims=True), (SINGLE,)),
]
MAIN: Final = [*ELEMENTWISE, *REDUCTIONS, *CREATION, *MANIPULATION, *SEARCHING, *PRODUCTS]
