"""Matrix factorizations, determinants and exponentials."""

from __future__ import annotations

import numpy as np

from gradserve_client.importing.writing import outputs_of
from gradserve_client.torch.call import Call, Results, require
from gradserve_client.torch.families.table import RULES


@RULES("_linalg_eigh")
def eigh(call: Call) -> Results:
    """Write `eigh` of the symmetric part, which is the matrix itself if it is symmetric."""
    return outputs_of(call.node("A").eigh(), 2)


@RULES("_linalg_svd")
def svd(call: Call) -> Results:
    """Return the singular values, and their vectors if requested."""
    rows, columns = call.shape("A")[-2:]
    require(
        not (call["compute_uv"] and call["full_matrices"]) or rows == columns,
        "it requests more singular vectors than singular values",
        "use full_matrices=False",
    )
    return outputs_of(call.node("A").svd(), 3)


@RULES("linalg_qr")
def qr(call: Call) -> Results:
    """Return the reduced factors, or R only."""
    rows, columns = call.shape("A")[-2:]
    require(
        call["mode"] != "complete" or rows <= columns,
        "it requests more columns than the matrix has",
        "use mode='reduced'",
    )
    q, r = outputs_of(call.node("A").qr(), 2)
    return [None if call["mode"] == "r" else q, r]


@RULES("linalg_lu")
def lu(call: Call) -> Results:
    """Return the permutation as a matrix, and the factors."""
    require(bool(call["pivot"]), "it does not exchange rows", "leave pivot at its default, True")
    permutation, lower, upper = outputs_of(call.node("A").lu(), 3)
    rows = call.constant(np.arange(call.shape("A")[-2]).reshape(-1, 1), "int64")
    matrix = permutation.unsqueeze(axes=[call.rank("A") - 2]).equal(rows).cast(call.results[0].dtype)
    return [matrix, lower, upper]


@RULES("_linalg_det")
def det(call: Call) -> Results:
    """Write `det`. The kernel's LU results are unused."""
    return [call.node("A").det(), None, None]


@RULES("linalg_matrix_exp")
def matrix_exp(call: Call) -> Results:
    """Write `matrix_exp`."""
    return call.node().matrix_exp()


@RULES("linalg_pinv.atol_rtol_tensor")
def pinv(call: Call) -> Results:
    """Write `pinv`. Singular values below a fixed fraction of the largest one count as 0."""
    atol, rtol = ((call.value(name).number if call.has(name) else None) for name in ("atol", "rtol"))
    is_constant = all(not call.has(name) or call.value(name).number is not None for name in ("atol", "rtol"))
    require(
        is_constant and not atol and not call["hermitian"],
        "its tolerance is not relative to the largest value",
    )
    return call.node().pinv(rcond=rtol)
