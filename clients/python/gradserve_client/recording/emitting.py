"""Helpers that turn arrays and numbers into nodes: lifting, type promotion, and appending ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from gradserve_client.errors import InputError
from gradserve_client.recording.recorder import DType, Scalar, Traced, current
from gradserve_client.tensors import DTYPES, PARTS, as_array

#: operands of expressions: recorded arrays, numbers and NumPy arrays
Operand = Traced | Scalar | np.ndarray[Any, Any]
DEFAULT_FLOAT: Final[DType] = np.dtype("float64")
DEFAULT_INT: Final[DType] = np.dtype("int64")
BOOL: Final[DType] = np.dtype("bool")
#: the kinds of dtypes that have derivatives: floats and complex numbers
FLOATING: Final = "fc"


def emit(op: str, operands: Sequence[Traced], shape: Sequence[int], dtype: DType, /, **attrs: Any) -> Traced:
    """Append an op whose result has the given shape and dtype. NumPy arrays among the operands become constants."""
    return current().emit(op, [lift(operand) for operand in operands], shape, dtype, **attrs)


def constant(value: object, dtype: DType | None = None) -> Traced:
    """Append a constant. Raises InputError for a value that is not an array, and for an unsupported dtype."""
    try:
        if dtype is not None and dtype.kind != "c" and np.asarray(value).dtype.kind == "c":
            raise ValueError(f"{dtype.name} cannot hold complex numbers")
        array = np.asarray(value, dtype)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"cannot convert the value to an array: {error}") from None
    if array.dtype.kind == "O":
        raise InputError(f"{type(value).__name__} is not an array of numbers")
    dtype_of(array.dtype)
    return current().constant(as_array(array))


def is_scalar(value: object) -> bool:
    """Return whether a value is a Python number, which has no dtype of its own.

    NumPy's float64 and complex128 are subclasses of float and complex, and count as Python numbers.
    """
    return isinstance(value, bool | int | float | complex)


def dtype_of(dtype: object) -> DType:
    """Return a NumPy dtype. Raises InputError for an unsupported dtype."""
    try:
        result: DType = np.dtype(dtype)  # type: ignore[call-overload] # whatever it is, NumPy says
    except TypeError as error:
        raise InputError(f"invalid dtype: {error}") from None
    if result.name not in DTYPES:
        raise InputError(f"unsupported dtype {result.name}; supported: {', '.join(DTYPES)}")
    return result


def common_dtype(*values: object) -> DType:
    """Return the dtype that the values promote to, by the standard's table; Python numbers take the dtype of the
    arrays.

    Promotions that the standard leaves undefined, such as int64 with float32, follow NumPy, as on the server. Raises
    InputError if there is no common dtype.
    """
    types = [_dtype_or_number(value) for value in values]
    if all(map(is_scalar, types)):
        types = [np.asarray(value).dtype for value in types]
    return dtype_of(np.result_type(*types))  # type: ignore[arg-type] # dtypes and numbers


def _dtype_or_number(value: object) -> object:
    if isinstance(value, Traced | np.ndarray):
        return value.dtype
    if isinstance(value, np.float64 | np.complex128):
        return value.item()
    return value.dtype if isinstance(value, np.generic) else value


def lift(value: object, dtype: DType | None = None) -> Traced:
    """Return a recorded array as it is, and any other value as a constant. A Python number takes the given dtype."""
    if isinstance(value, Traced):
        return value
    return constant(value, dtype if is_scalar(value) else None)


def cast(x: Traced, dtype: DType) -> Traced:
    """Cast to another dtype. Raises InputError for a cast from complex to real."""
    if x.dtype.kind == "c" != dtype.kind:
        raise InputError(f"{x.type_name} is complex, and {dtype.name} is not: use real(), imag() or abs()")
    return x if x.dtype == dtype else emit("cast", [x], x.shape, dtype, dtype=dtype)


def promote(*values: object, floating: bool = False) -> list[Traced]:
    """Cast all values to their common dtype; with `floating=True`, to float64 if that is not floating."""
    dtype = common_dtype(*values)
    if floating and dtype.kind not in FLOATING:
        dtype = DEFAULT_FLOAT
    return [cast(lift(value, dtype), dtype) for value in values]


def real_dtype(dtype: DType) -> DType:
    """Return the dtype of real and imaginary parts; a real dtype is returned as it is."""
    return np.dtype(PARTS.get(dtype.name, dtype))


def complex_dtype(dtype: DType) -> DType:
    """Return the complex dtype of an FFT of this dtype: complex64 for float16 and float32, otherwise complex128."""
    is_narrow = dtype.name in ("float16", "float32", "complex64")
    return np.dtype("complex64" if is_narrow else "complex128")


def require_ordered(x: Traced) -> Traced:
    """Return the array. Raises InputError for complex numbers, which have no order."""
    if x.dtype.kind == "c":
        raise InputError(f"complex numbers have no order, but {x.type_name} is complex: use real(), imag() or abs()")
    return x


def broadcast_shape(*arrays: Traced) -> tuple[int, ...]:
    """Return the broadcast shape. Raises InputError if the shapes do not broadcast."""
    try:
        return np.broadcast_shapes(*(array.shape for array in arrays))
    except ValueError:
        shapes = " and ".join(str(list(array.shape)) for array in arrays)
        raise InputError(f"the shapes {shapes} do not broadcast") from None


def normalize_axes(axis: int | Sequence[int] | None, ndim: int) -> list[int]:
    """Return axes as non-negative numbers; all if `axis` is None. Raises InputError for invalid and repeated axes."""
    if axis is None:
        return [*range(ndim)]
    raw_axes = [axis] if isinstance(axis, int) else [*axis]
    for each in raw_axes:
        if not -ndim <= each < ndim:
            raise InputError(f"axis {each} is out of range for an array of rank {ndim}")
    axes = [int(each) % ndim for each in raw_axes]
    if len({*axes}) < len(axes):
        raise InputError(f"{raw_axes} contains an axis twice")
    return axes
