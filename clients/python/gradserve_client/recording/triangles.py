"""LU factors and triangular systems, under the names of `scipy.linalg`. They are not part of the standard."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gradserve_client.errors import InputError
from gradserve_client.recording.elementwise import conj, equal
from gradserve_client.recording.emitting import DEFAULT_INT, Operand, cast, emit, promote, real_dtype
from gradserve_client.recording.lines import locates_errors
from gradserve_client.recording.manipulation import broadcast_to, expand_dims, squeeze
from gradserve_client.recording.matrices import as_matrices, as_square_matrices
from gradserve_client.recording.products import matmul
from gradserve_client.recording.recorder import Traced
from gradserve_client.recording.searching import argsort

#: SciPy's values of `trans`, and whether they transpose
_TRANSPOSED = {0: False, "N": False, 1: True, "T": True, 2: True, "C": True}


class LUResult(NamedTuple):
    """a = P L U; with `p_indices`, a = L[p] U."""

    p: Traced
    l: Traced  # noqa: E741 - SciPy's word
    u: Traced


@locates_errors
def lu(a: Traced, /, *, permute_l: bool = False, p_indices: bool = False) -> LUResult | tuple[Traced, Traced]:
    """Return SciPy's `lu`: (p, l, u) with a = p l u; with `p_indices`, a = l[p] u; with `permute_l`, (p l, u).

    For a of shape (…, m, n) and k = min(m, n), l has shape (…, m, k), and u (…, k, n).
    """
    a = as_matrices(a)
    *batch, m, n = a.shape
    k = np.minimum(m, n).item()
    results = [((*batch, m), DEFAULT_INT), ((*batch, m, k), a.dtype), ((*batch, k, n), a.dtype)]
    node_array = emit("lu", [a], *results[0])
    order, lower, upper = (emit("get_output", [node_array], *each, index=i) for i, each in enumerate(results))
    # a[order] = l u, so row i of a is the row of l u whose number is the position of i in the order.
    inverse_order = argsort(order)
    if p_indices and not permute_l:
        return LUResult(inverse_order, lower, upper)
    permutation = cast(equal(expand_dims(inverse_order, axis=-1), np.arange(m)), real_dtype(a.dtype))
    return (matmul(permutation, lower), upper) if permute_l else LUResult(permutation, lower, upper)


@locates_errors
def solve_triangular(
    a: Traced, b: Operand, /, *, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False
) -> Traced:
    """Solve t x = b, as SciPy's `solve_triangular`: t is a triangle of a, or by `trans` its transpose or adjoint.

    a has shape (…, n, n); b is a vector of shape (n,), or has shape (…, n, k). Raises RecordingError for
    `unit_diagonal`, which no op supports.
    """
    x, y = promote(a, b, floating=True)
    x = as_square_matrices(x)
    if unit_diagonal:
        raise InputError("no op assumes a unit diagonal: divide a and b by the diagonal, row by row")
    if trans not in _TRANSPOSED:
        raise InputError(f"trans must be 0, 1, 2, N, T or C, not {trans!r}")
    if y.ndim == 0 or y.shape[-1 if y.ndim == 1 else -2] != x.shape[-1]:
        raise InputError(f"the right-hand side must have as many rows as {x.type_name}, got {y.type_name}")
    matrix = conj(x) if trans in (2, "C") and x.dtype.kind == "c" else x
    columns = expand_dims(y, axis=-1) if y.ndim == 1 else y
    batch = np.broadcast_shapes(matrix.shape[:-2], columns.shape[:-2])
    columns = broadcast_to(columns, (*batch, *columns.shape[-2:]))
    attrs = {"lower": bool(lower), "transpose": _TRANSPOSED[trans]}
    solution = emit("triangular_solve", [matrix, columns], columns.shape, x.dtype, **attrs)
    return squeeze(solution, -1) if y.ndim == 1 else solution
