"""Dtypes: what there are, what they become together, and what their numbers are like."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from gradserve_client.recording.emitting import cast, common_dtype, dtype_of
from gradserve_client.recording.lines import pointing
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
#: by their names
ALL: Final = {
    dtype.name: dtype
    for dtype in (
        *(bool, int8, uint8, int16, int32, uint32, int64),
        *(float16, float32, float64, complex64, complex128),
    )
}


def _dtype(of: object) -> DType:
    return of.dtype if isinstance(of, Traced | np.ndarray) else np.dtype(of)  # type: ignore[call-overload] # NumPy says


@pointing
def astype(x: Traced, dtype: object, /, *, copy: object = True, device: object = None) -> Traced:
    """x in another dtype. Between floats it has derivatives; complex numbers have two, and become no real ones."""
    made = cast(x, dtype_of(dtype))
    return x.recorder.array(made.node, made.shape, made.dtype) if copy else made


@pointing
def can_cast(from_: object, to: object, /) -> object:
    """Whether every number of the one is one of the other."""
    return np.can_cast(_dtype(from_), _dtype(to))


@pointing
def finfo(type: object, /) -> np.finfo[Any]:
    """The limits of a dtype of floats."""
    return np.finfo(_dtype(type))


@pointing
def iinfo(type: object, /) -> np.iinfo[Any]:
    """The limits of a dtype of whole numbers."""
    return np.iinfo(_dtype(type))


@pointing
def isdtype(dtype: object, kind: Any) -> object:
    """Whether a dtype is of a kind, by the standard's names of kinds."""
    return np.isdtype(_dtype(dtype), kind)


@pointing
def result_type(*arrays_and_dtypes: object) -> DType:
    """The dtype that these have together."""
    return common_dtype(*arrays_and_dtypes)
