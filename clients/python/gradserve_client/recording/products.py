"""Sums of products of vectors, matrices and tensors."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters

import numpy as np

from gradserve_client.errors import InputError
from gradserve_client.recording.elementwise import conj, multiply
from gradserve_client.recording.emitting import Operand, emit, normalize_axes, promote
from gradserve_client.recording.lines import locates_errors
from gradserve_client.recording.recorder import Traced
from gradserve_client.recording.reductions import sum


@locates_errors
def matmul(x1: Operand, x2: Operand, /) -> Traced:
    """Return the matrix product of (…, m, k) and (…, k, n). A vector on the left is a row, on the right a column."""
    x, y = promote(x1, x2)
    if not x.ndim or not y.ndim or x.shape[-1] != y.shape[max(y.ndim - 2, 0)]:
        raise InputError(
            f"{x.type_name} @ {y.type_name}: the last axis of one must match the second-to-last axis of the other"
        )
    try:
        batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    except ValueError:
        raise InputError(f"{x.type_name} @ {y.type_name}: the batch axes do not broadcast") from None
    return emit("matmul", [x, y], (*batch, *x.shape[-2:-1], *(y.shape[-1:] if y.ndim > 1 else ())), x.dtype)


@locates_errors
def vecdot(x1: Operand, x2: Operand, /, *, axis: int = -1) -> Traced:
    """Return the dot product of vectors along a negative `axis`. A complex x1 is conjugated."""
    x, y = promote(x1, x2)
    if axis >= 0 or axis < -min(x.ndim, y.ndim) or x.shape[axis] != y.shape[axis]:
        raise InputError(f"{x.type_name} and {y.type_name} have no vectors of the same length along axis {axis}")
    return sum(multiply(conj(x) if x.dtype.kind == "c" else x, y), axis=axis, dtype=x.dtype)


@locates_errors
def tensordot(x1: Traced, x2: Traced, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Traced:
    """Return the sum of products over pairs of axes: the last and first `axes` ones, or the given ones."""
    x, y = promote(x1, x2)
    x_summed, y_summed = _summed_axes(x, y, axes)
    if [x.shape[i] for i in x_summed] != [y.shape[i] for i in y_summed]:
        raise InputError(
            f"{x.type_name} and {y.type_name} have different extents along the axes {x_summed} and {y_summed}"
        )
    letters = iter(ascii_letters)
    x_letters = [next(letters) for _ in x.shape]
    pairs = dict(zip(y_summed, x_summed, strict=True))
    y_letters = [x_letters[pairs[i]] if i in pairs else next(letters) for i in range(y.ndim)]
    x_axes = [i for i in range(x.ndim) if i not in x_summed]
    y_axes = [i for i in range(y.ndim) if i not in y_summed]
    result = "".join([x_letters[i] for i in x_axes] + [y_letters[i] for i in y_axes])
    shape = [x.shape[i] for i in x_axes] + [y.shape[i] for i in y_axes]
    return emit("einsum", [x, y], shape, x.dtype, equation=f"{''.join(x_letters)},{''.join(y_letters)}->{result}")


def _summed_axes(x: Traced, y: Traced, axes: int | tuple[Sequence[int], Sequence[int]]) -> tuple[list[int], list[int]]:
    if not isinstance(axes, int):
        return normalize_axes(axes[0], x.ndim), normalize_axes(axes[1], y.ndim)
    if axes > min(x.ndim, y.ndim):
        raise InputError(f"{x.type_name} and {y.type_name} must have at least {axes} axes each")
    return [*range(x.ndim - axes, x.ndim)], [*range(axes)]
