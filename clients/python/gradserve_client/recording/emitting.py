"""Nodes from arrays and numbers: how they are lifted, brought to one dtype, and written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from gradserve_client.errors import InputError
from gradserve_client.recording.recorder import DType, Scalar, Traced, current
from gradserve_client.tensors import DTYPES, PARTS, as_array

#: what stands for an array in an expression
Operand = Traced | Scalar | np.ndarray[Any, Any]
DEFAULT_FLOAT: Final[DType] = np.dtype("float64")
DEFAULT_INT: Final[DType] = np.dtype("int64")
BOOL: Final[DType] = np.dtype("bool")
#: the kinds of dtypes that have derivatives: floats, and complex numbers
FLOATING: Final = "fc"


def emit(op: str, operands: Sequence[Traced], shape: Sequence[int], dtype: DType, /, **attrs: Any) -> Traced:
    """An op on arrays, of whose result shape and dtype are known. Arrays of NumPy among them become constants."""
    return current().emit(op, [lifted(operand) for operand in operands], shape, dtype, **attrs)


def constant(value: object, dtype: DType | None = None) -> Traced:
    """Numbers as an array of the graph. Raises InputError for what is no array, and for dtypes that the wire lacks."""
    try:
        if dtype is not None and dtype.kind != "c" and np.asarray(value).dtype.kind == "c":
            raise ValueError(f"complex numbers have two parts, of which {dtype.name} holds one")
        array = np.asarray(value, dtype)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"this is no array: {error}") from None
    if array.dtype.kind == "O":
        raise InputError(f"{type(value).__name__} is no array of numbers")
    dtype_of(array.dtype)
    return current().constant(as_array(array))


def is_scalar(value: object) -> bool:
    """Whether it is a number of Python's, which has no dtype of its own. NumPy's float64 and complex128 are such."""
    return isinstance(value, bool | int | float | complex)


def dtype_of(dtype: object) -> DType:
    """A dtype as NumPy has it. Raises InputError for one that the wire lacks."""
    try:
        found: DType = np.dtype(dtype)  # type: ignore[call-overload] # whatever it is, NumPy says
    except TypeError as error:
        raise InputError(f"this is no dtype: {error}") from None
    if found.name not in DTYPES:
        raise InputError(f"there are no arrays of {found.name}: the dtypes are {', '.join(DTYPES)}")
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
    if isinstance(value, np.float64 | np.complex128):
        return value.item()
    return value.dtype if isinstance(value, np.generic) else value


def lifted(value: object, dtype: DType | None = None) -> Traced:
    """An array as it is; else a constant, where it is a number of the dtype that is given."""
    if isinstance(value, Traced):
        return value
    return constant(value, dtype if is_scalar(value) else None)


def cast(x: Traced, dtype: DType) -> Traced:
    """In another dtype; itself where it has that. Raises InputError where that would leave a part out."""
    if x.dtype.kind == "c" != dtype.kind:
        raise InputError(f"{x.told} has two parts, of which {dtype.name} holds one: take real(), imag() or abs()")
    return x if x.dtype == dtype else emit("cast", [x], x.shape, dtype, dtype=dtype)


def promoted(*values: object, floating: bool = False) -> list[Traced]:
    """All in their common dtype; `floating`: in the default one of floats where that would be none."""
    dtype = common_dtype(*values)
    if floating and dtype.kind not in FLOATING:
        dtype = DEFAULT_FLOAT
    return [cast(lifted(value, dtype), dtype) for value in values]


def part_of(dtype: DType) -> DType:
    """The dtype of real and imaginary parts; of real numbers their own."""
    return np.dtype(PARTS.get(dtype.name, dtype))


def complex_of(dtype: DType) -> DType:
    """The dtype of the complex numbers that are made of these, as FFTs have it: complex128 but of narrower floats."""
    narrow = dtype.name in ("float16", "float32", "complex64")
    return np.dtype("complex64" if narrow else "complex128")


def ordered(x: Traced) -> Traced:
    """Itself. Raises InputError for complex numbers, which have no order."""
    if x.dtype.kind == "c":
        raise InputError(f"complex numbers have no order, and this is of {x.told}: take it of real(), imag() or abs()")
    return x


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
