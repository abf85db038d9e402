"""Calls of namespace functions on complex numbers, which give the same with NumPy."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from clients.python.tests.recording.namespace_cases import (
    MANIPULATION,
    TRUE,
    WHOLE,
    Case,
    X,
    Y,
    _binary,
    _reduction,
    _unary,
    hermitian,
    sign_free_eigh,
    sign_free_qr,
    sign_free_svd,
)

Z = X + 1j * Y
W = Y - 0.5j * X + 2
SINGLE = Z.astype(np.complex64)
SQUARE = Z.T @ W + 3 * np.eye(3)
HERMITIAN = Z.T.conj() @ Z + np.eye(3)
BATCH = np.stack([HERMITIAN, HERMITIAN + np.eye(3)])
SPECIAL = np.array([complex(math.nan, 1), complex(math.inf, 0), complex(0, -math.inf), 0, -1, 1j])

ELEMENTWISE: Final = [
    *_unary("abs conj real imag negative positive square sign reciprocal", Z, SINGLE),
    *_unary("cos cosh exp log log2 log10 sin sinh sqrt tan tanh", Z, SINGLE),
    *_unary("angle", Z, SINGLE, X),
    *_unary("tan", 40j + X),
    *_unary("isfinite isinf isnan", SPECIAL),
    *_binary("add subtract multiply divide", (Z, W), (Z, X), (SINGLE, X), (WHOLE, Z[0]), (SINGLE, SINGLE[::-1])),
    *_binary("equal not_equal", (Z, W), (Z, X), (SPECIAL, SPECIAL)),
    Case("add", lambda xp, x: xp.add(x, 2), (Z,)),
    Case("add", lambda xp, x: xp.add(1j, x), (SINGLE,)),
    Case("multiply", lambda xp, x: xp.multiply(x, 2 - 1j), (X,)),
    Case("multiply", lambda xp, x: xp.multiply(1j, x), (WHOLE,)),
    Case("subtract", lambda xp, x: xp.subtract(1, x), (Z,)),
    Case("divide", lambda xp, x: xp.divide(1j, x), (SINGLE,)),
    Case("pow", lambda xp, x: xp.pow(x, 3), (Z,)),
    Case("pow", lambda xp, x: xp.pow(x, -0.5), (SINGLE,)),
    Case("where", lambda xp, c, x, y: xp.where(c, x, y), (TRUE, Z, X)),
    Case("where", lambda xp, c, x: xp.where(c, x, 1j), (TRUE, X)),
]
REDUCTIONS: Final = [
    *_reduction("sum prod mean std var", Z, SINGLE),
    *_reduction("count_nonzero", SPECIAL[3:, None]),
    Case("sum", lambda xp, x: xp.sum(x, dtype=xp.complex128), (SINGLE,)),
    Case("var", lambda xp, x: xp.var(x, axis=0, correction=1), (Z,)),
    Case("cumulative_sum", lambda xp, x: xp.cumulative_sum(x, axis=1, include_initial=True), (Z,)),
    Case("cumulative_prod", lambda xp, x: xp.cumulative_prod(x, axis=0, include_initial=True), (Z,)),
    Case("diff", lambda xp, x, y: xp.diff(x, axis=0, prepend=y), (Z, X)),
]
CREATION: Final = [
    Case("asarray", lambda xp, x: xp.asarray(x, dtype=xp.complex64), (X,)),
    Case("asarray", lambda xp: xp.asarray([[1, 2j], [3, 4]]), ()),
    Case("astype", lambda xp, x: xp.astype(x, xp.complex128), (WHOLE,)),
    Case("eye", lambda xp: xp.eye(3, dtype=xp.complex64), ()),
    Case("full", lambda xp: xp.full((2, 2), 1 - 2j), ()),
    Case("full", lambda xp: xp.full(2, 3, dtype=xp.complex64), ()),
    Case("full_like", lambda xp, x: xp.full_like(x, 2), (SINGLE,)),
    Case("linspace", lambda xp: xp.linspace(0, 1j, 5), ()),
    Case("ones", lambda xp: xp.ones((2, 0), dtype=xp.complex128), ()),
    Case("tril", lambda xp, x: xp.tril(x), (Z,)),
    Case("zeros_like", lambda xp, x: xp.zeros_like(x), (Z,)),
]
#: functions that move elements, on complex arrays of the same shapes
MOVED: Final = [
    case._replace(arrays=tuple(array * (1 - 2j) if array.dtype.kind == "f" else array for array in case.arrays))
    for case in MANIPULATION
]
PRODUCTS: Final = [
    *_binary("matmul", (Z, W.T), (Z, X[0]), (BATCH, X.T)),
    Case("tensordot", lambda xp, x, y: xp.tensordot(x, y), (Z, W)),
    Case("vecdot", lambda xp, x, y: xp.vecdot(x, y), (Z, W)),
    Case("vecdot", lambda xp, x, y: xp.vecdot(x, y), (X, W)),
    Case("take", lambda xp, x, i: xp.take(x, i, axis=1), (Z, np.array([2, 0, -1]))),
]
NORMS: Final = (1, 2, 3, 0, math.inf, -math.inf)
LINALG: Final = [
    Case("cholesky", lambda la, x: la.cholesky(x), (BATCH,)),
    Case("cholesky", lambda la, x: la.cholesky(x, upper=True), (HERMITIAN,)),
    Case("cross", lambda la, x, y: la.cross(x, y), (Z, W)),
    Case("det", lambda la, x: la.det(x), (SQUARE,)),
    Case("diagonal", lambda la, x: la.diagonal(x), (BATCH,)),
    Case("inv", lambda la, x: la.inv(x), (BATCH,)),
    Case("matmul", lambda la, x, y: la.matmul(x, y), (Z, X[0])),
    *[
        Case("matrix_norm", lambda la, x, order=order: la.matrix_norm(x, ord=order), (BATCH,))
        for order in ("fro", 1, -1, math.inf, -math.inf, 2, "nuc")
    ],
    *[Case("matrix_power", lambda la, x, n=n: la.matrix_power(x, n), (SQUARE,)) for n in (0, 3, -2)],
    Case("outer", lambda la, x, y: la.outer(x, y), (Z[0], X[1])),
    Case("slogdet", lambda la, x: [*la.slogdet(x)], (np.stack([SQUARE, HERMITIAN]),)),
    Case("solve", lambda la, x, y: la.solve(x, y), (SQUARE, X[0])),
    Case("solve", lambda la, x, y: la.solve(x, y), (BATCH, Z.T)),
    Case("trace", lambda la, x: la.trace(x), (BATCH,)),
    Case("cond", lambda la, x: la.cond(x), (BATCH,)),
    Case("eigh", lambda la, x: sign_free_eigh(*la.eigh(hermitian(x))), (BATCH,)),
    Case("eigvalsh", lambda la, x: la.eigvalsh(hermitian(x)), (BATCH,)),
    Case("lstsq", lambda la, a, b: [part for i, part in enumerate(la.lstsq(a, b)) if i != 2], (Z, X)),
    Case("matrix_rank", lambda la, x: la.matrix_rank(x), (BATCH,)),
    Case("pinv", lambda la, x: la.pinv(x), (Z,)),
    Case("qr", lambda la, x: sign_free_qr(*la.qr(x)), (Z,)),
    Case("svd", lambda la, x: sign_free_svd(*la.svd(x, full_matrices=False)), (Z,)),
    Case("svdvals", lambda la, x: la.svdvals(x), (BATCH,)),
    *[Case("vector_norm", lambda la, x, order=order: la.vector_norm(x, axis=0, ord=order), (Z,)) for order in NORMS],
]
MAIN: Final = [*ELEMENTWISE, *REDUCTIONS, *CREATION, *MOVED, *PRODUCTS]
