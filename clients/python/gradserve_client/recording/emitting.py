"""Nodes from arrays and numbers: how they are lifted, brought to one dtype, and written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from gradserve_client.errors import InputError
from gradserve_client.recording.recorder import current
from gradserve_client.recording.traced import DType, Scalar, Traced
from gradserve_client.tensors import REALS, as_array

#: what stands for an array in an expression
Operand = Traced | Scalar | np.ndarray[Any, Any]
DEFAULT_FLOAT: Final[DType] = np.dtype("float64")
DEFAULT_INT: Final[DType] = np.dtype("int64")
BOOL: Final[DType] = np.dtype("bool")


def emit(op: str, operands: Sequence[Traced], shape: Sequence[int], dtype: DType, /, **attrs: Any) -> Traced:
    """An op on arrays, of whose result shape and dtype are known. Arrays of NumPy among them become constants."""
    return current().emit(op, [lifted(operand) for operand in operands], shape, dtype, **attrs)


def constant(value: object, dtype: DType | None = None) -> Traced:
    """Numbers as an array of the graph. Raises InputError for what is no array, and for dtypes that the wire lacks."""
    try:
        array = np.asarray(value, dtype)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"this is no array: {error}") from None
    if array.dtype.kind == "O":
        raise InputError(f"{type(value).__name__} is no array of numbers")
    dtype_of(array.dtype)
    return current().constant(as_array(array))


def is_scalar(value: object) -> bool:
    """Whether it is a number of Python's, which has no dtype of its own. NumPy's float64 is one."""
    return isinstance(value, bool | int | float)


def dtype_of(dtype: object) -> DType:
    """A dtype as NumPy has it. Raises InputError for one that the wire lacks."""
    try:
        found: DType = np.dtype(dtype)  # type: ignore[call-overload] # whatever it is, NumPy says
    except TypeError as error:
        raise InputError(f"this is no dtype: {error}") from None
    if found.name not in REALS:
        raise InputError(f"there are no arrays of {found.name}: the dtypes are {', '.join(REALS)}")
    return found


def common_dtype(*values: object) -> DType:
    """The dtype that these have together, by the standard's table; numbers of Python's follow the arrays.

    Where the standard leaves it open, as of int64 with float32, it is NumPy's, as on the server.

    Raises InputError where there is none.
    """
    stated = [_typed(value) for value in values]
    if all(map(is_scalar, stated)):
        stated = [np.asarray(value).dtype for value in stated]
    return dtype_of(np.result_type(*stated))  # type: ignore[arg-type] # dtypes and numbers


def _typed(value: object) -> object:
    if isinstance(value, Traced | np.ndarray):
        return value.dtype
    if isinstance(value, np.float64):
        return float(value)
    return value.dtype if isinstance(value, np.generic) else value


def lifted(value: object, dtype: DType | None = None) -> Traced:
    """An array as it is; else a constant, where it is a number of the dtype that is given."""
    if isinstance(value, Traced):
        return value
    return constant(value, dtype if is_scalar(value) else None)


def cast(x: Traced, dtype: DType) -> Traced:
    """In another dtype; itself where it has that."""
    return x if x.dtype == dtype else emit("cast", [x], x.shape, dtype, dtype=dtype)


def promoted(*values: object, floating: bool = False) -> list[Traced]:
    """All in their common dtype; `floating`: in the default one of floats where that would be none."""
    dtype = common_dtype(*values)
    if floating and dtype.kind != "f":
        dtype = DEFAULT_FLOAT
    return [cast(lifted(value, dtype), dtype) for value in values]


def broadcast_shape(*arrays: Traced) -> tuple[int, ...]:
    """The shape that these have together. Raises InputError where they do not fit."""
    try:
        return np.broadcast_shapes(*(array.shape for array in arrays))
    except ValueError:
        shapes = " and ".join(str(list(array.shape)) for array in arrays)
        raise InputError(f"the shapes {shapes} do not broadcast") from None


def axes_of(axis: int | Sequence[int] | None, ndim: int) -> list[int]:
    """Axes counted from the front, all where none is named. Raises InputError for one that is not there, or twice."""
    if axis is None:
        return [*range(ndim)]
    named = [axis] if isinstance(axis, int) else [*axis]
    for each in named:
        if not -ndim <= each < ndim:
            raise InputError(f"there is no axis {each} in an array of {ndim}")
    found = [int(each) % ndim for each in named]
    if len({*found}) < len(found):
        raise InputError(f"{named} names an axis twice")
    return found
