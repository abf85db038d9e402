"""The extension `linalg` of the standard, as far as ops can express it."""

from __future__ import annotations

from typing import NoReturn

from gradserve_client.recording import missing
from gradserve_client.recording.manipulation import matrix_transpose
from gradserve_client.recording.matrices import (
    cholesky,
    cross,
    det,
    diagonal,
    inv,
    matrix_norm,
    matrix_power,
    outer,
    slogdet,
    solve,
    trace,
    vector_norm,
)
from gradserve_client.recording.products import matmul, tensordot, vecdot

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_transpose",
    "outer",
    "slogdet",
    "solve",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def __getattr__(name: str) -> NoReturn:
    missing.refuse(name, f"linalg.{name}", missing.LINALG)
