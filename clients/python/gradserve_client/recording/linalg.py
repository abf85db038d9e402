"""The `linalg` extension of the standard, as far as ops can express it, with some functions of NumPy and SciPy."""

from __future__ import annotations

from typing import NoReturn

from gradserve_client.recording import missing
from gradserve_client.recording.decompositions import (
    eigh,
    eigvalsh,
    lstsq,
    matrix_exp,
    matrix_rank,
    pinv,
    qr,
    svd,
    svdvals,
    symmetric_function,
)
from gradserve_client.recording.manipulation import matrix_transpose
from gradserve_client.recording.matrices import (
    cholesky,
    cross,
    det,
    diagonal,
    inv,
    matrix_power,
    outer,
    slogdet,
    solve,
    trace,
)
from gradserve_client.recording.norms import cond, matrix_norm, norm, vector_norm
from gradserve_client.recording.products import matmul, tensordot, vecdot
from gradserve_client.recording.triangles import lu, solve_triangular

__all__ = [
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "lstsq",
    "lu",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "symmetric_function",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def __getattr__(name: str) -> NoReturn:
    missing.refuse(name, f"linalg.{name}", missing.LINALG)
