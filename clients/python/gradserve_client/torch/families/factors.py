"""Factors of matrices, determinants and exponentials."""

from __future__ import annotations

import numpy as np

from gradserve_client.importing.writing import several
from gradserve_client.torch.call import Call, Said, blocked_unless
from gradserve_client.torch.families.table import RULES


@RULES("_linalg_eigh")
def eigh(call: Call) -> Said:
    """Of the symmetric part: the same, where both triangles say the same."""
    return several(call.node("A").eigh(), 2)


@RULES("_linalg_svd")
def svd(call: Call) -> Said:
    """The singular values, and their vectors where they are asked for."""
    rows, columns = call.shape("A")[-2:]
    blocked_unless(
        not (call["compute_uv"] and call["full_matrices"]) or rows == columns,
        "it asks for vectors beyond those of values",
        "state full_matrices=False",
    )
    return several(call.node("A").svd(), 3)


@RULES("linalg_qr")
def qr(call: Call) -> Said:
    """The reduced factors, or the second alone."""
    rows, columns = call.shape("A")[-2:]
    blocked_unless(
        call["mode"] != "complete" or rows <= columns,
        "it asks for columns beyond those of the matrix",
        "state mode='reduced'",
    )
    q, r = several(call.node("A").qr(), 2)
    return [None if call["mode"] == "r" else q, r]


@RULES("linalg_lu")
def lu(call: Call) -> Said:
    """The factors, and the permutation as a matrix."""
    blocked_unless(bool(call["pivot"]), "it exchanges no rows", "leave pivot as it is, True")
    permutation, lower, upper = several(call.node("A").lu(), 3)
    rows = call.constant(np.arange(call.shape("A")[-2]).reshape(-1, 1), "int64")
    matrix = permutation.unsqueeze(axes=[call.rank("A") - 2]).equal(rows).cast(call.results[0].dtype)
    return [matrix, lower, upper]


@RULES("_linalg_det")
def det(call: Call) -> Said:
    """The determinant; what its kernel keeps has no use."""
    return [call.node("A").det(), None, None]


@RULES("linalg_matrix_exp")
def matrix_exp(call: Call) -> Said:
    """The exponential of a matrix."""
    return call.node().matrix_exp()


@RULES("linalg_pinv.atol_rtol_tensor")
def pinv(call: Call) -> Said:
    """The pseudo-inverse; singular values below a fixed part of the largest one count as 0."""
    atol, rtol = ((call.value(name).number if call.has(name) else None) for name in ("atol", "rtol"))
    known = all(not call.has(name) or call.value(name).number is not None for name in ("atol", "rtol"))
    blocked_unless(known and not atol and not call["hermitian"], "its bound is no part of the largest singular value")
    return call.node().pinv(rcond=rtol)
