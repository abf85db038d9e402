"""Sums of products: of matrices, vectors and tensors."""

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
    """The product of matrices; of a vector as a row on the left, and as a column on the right."""
    x, y = promote(x1, x2)
    if not x.ndim or not y.ndim or x.shape[-1] != y.shape[max(y.ndim - 2, 0)]:
        raise InputError(
            f"{x.type_name} @ {y.type_name}: the last axis of the one is summed with the last but one of the other"
        )
    try:
        batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    except ValueError:
        raise InputError(f"{x.type_name} @ {y.type_name}: the axes before the matrices do not broadcast") from None
    return emit("matmul", [x, y], (*batch, *x.shape[-2:-1], *(y.shape[-1:] if y.ndim > 1 else ())), x.dtype)


@locates_errors
def vecdot(x1: Operand, x2: Operand, /, *, axis: int = -1) -> Traced:
    """The products of vectors along an axis, which is counted from the end. A complex first one is conjugated."""
    x, y = promote(x1, x2)
    if axis >= 0 or axis < -min(x.ndim, y.ndim) or x.shape[axis] != y.shape[axis]:
        raise InputError(f"{x.type_name} and {y.type_name} have no vectors of the same length along axis {axis}")
    return sum(multiply(conj(x) if x.dtype.kind == "c" else x, y), axis=axis, dtype=x.dtype)


@locates_errors
def tensordot(x1: Traced, x2: Traced, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Traced:
    """The sum of products over pairs of axes: so many of the last and first ones, or those that are named."""
    x, y = promote(x1, x2)
    first, second = _summed(x, y, axes)
    if [x.shape[i] for i in first] != [y.shape[i] for i in second]:
        raise InputError(f"{x.type_name} and {y.type_name} differ along the axes {first} and {second}")
    letters = iter(ascii_letters)
    of_x = [next(letters) for _ in x.shape]
    pairs = dict(zip(second, first, strict=True))
    of_y = [of_x[pairs[i]] if i in pairs else next(letters) for i in range(y.ndim)]
    left = [i for i in range(x.ndim) if i not in first]
    right = [i for i in range(y.ndim) if i not in second]
    result = "".join([of_x[i] for i in left] + [of_y[i] for i in right])
    shape = [x.shape[i] for i in left] + [y.shape[i] for i in right]
    return emit("einsum", [x, y], shape, x.dtype, equation=f"{''.join(of_x)},{''.join(of_y)}->{result}")


def _summed(x: Traced, y: Traced, axes: int | tuple[Sequence[int], Sequence[int]]) -> tuple[list[int], list[int]]:
    if not isinstance(axes, int):
        return normalize_axes(axes[0], x.ndim), normalize_axes(axes[1], y.ndim)
    if axes > min(x.ndim, y.ndim):
        raise InputError(f"{x.type_name} and {y.type_name} have not {axes} axes each")
    return [*range(x.ndim - axes, x.ndim)], [*range(axes)]
