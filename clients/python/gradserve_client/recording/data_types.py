"""The dtypes of the namespace, promotion, and the limits of their numbers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from gradserve_client.recording.emitting import cast, common_dtype, dtype_of
from gradserve_client.recording.lines import locates_errors
from gradserve_client.recording.recorder import DType, Traced

bool: Final[DType] = np.dtype("bool")
int8: Final[DType] = np.dtype("int8")
int16: Final[DType] = np.dtype("int16")
int32: Final[DType] = np.dtype("int32")
int64: Final[DType] = np.dtype("int64")
uint8: Final[DType] = np.dtype("uint8")
uint32: Final[DType] = np.dtype("uint32")
float16: Final[DType] = np.dtype("float16")
float32: Final[DType] = np.dtype("float32")
float64: Final[DType] = np.dtype("float64")
complex64: Final[DType] = np.dtype("complex64")
complex128: Final[DType] = np.dtype("complex128")
#: the dtypes by name
ALL: Final = {
    dtype.name: dtype
    for dtype in (
        *(bool, int8, uint8, int16, int32, uint32, int64),
        *(float16, float32, float64, complex64, complex128),
    )
}


def _dtype(value: object) -> DType:
    return value.dtype if isinstance(value, Traced | np.ndarray) else np.dtype(value)  # type: ignore[call-overload] # NumPy says


@locates_errors
def astype(x: Traced, dtype: object, /, *, copy: object = True, device: object = None) -> Traced:
    """Cast x to another dtype, as NumPy's `astype`. A cast between floats is differentiable.

    Raises RecordingError for a cast from complex to real.
    """
    result = cast(x, dtype_of(dtype))
    return x.recorder.array(result.node, result.shape, result.dtype) if copy else result


@locates_errors
def can_cast(from_: object, to: object, /) -> object:
    """Return whether a cast keeps every value exactly."""
    return np.can_cast(_dtype(from_), _dtype(to))


@locates_errors
def finfo(type: object, /) -> np.finfo[Any]:
    """Return the limits of a float dtype."""
    return np.finfo(_dtype(type))


@locates_errors
def iinfo(type: object, /) -> np.iinfo[Any]:
    """Return the limits of an integer dtype."""
    return np.iinfo(_dtype(type))


@locates_errors
def isdtype(dtype: object, kind: Any) -> object:
    """Return whether a dtype is of a kind, such as "real floating" or "integral"."""
    return np.isdtype(_dtype(dtype), kind)


@locates_errors
def result_type(*arrays_and_dtypes: object) -> DType:
    """Return the dtype that the arguments promote to. Python numbers take the dtype of the arrays."""
    return common_dtype(*arrays_and_dtypes)
