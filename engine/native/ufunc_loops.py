"""Inner loops of ufuncs, NumPy's and SciPy's: what they call for an axis, found where their public struct says.

`void loop(char** arrays, const intptr* count, const intptr* steps, void* data)` computes along one axis, of arrays
that are so many bytes further for each element. It needs no Python, and reports to the floating-point flags alone.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from engine.graph.tensor_type import DType


class UfuncLoop(NamedTuple):
    """Addresses of a loop, and of what is to be handed to it as `data`."""

    function: int
    data: int


class _Ufunc(ctypes.Structure):
    """The beginning of PyUFuncObject, numpy/ufuncobject.h."""

    _fields_ = (
        ("references", ctypes.c_ssize_t),
        ("type", ctypes.c_void_p),
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int),
    )


@lru_cache(maxsize=1024)
def ufunc_loop(ufunc: np.ufunc, dtypes: Sequence[DType]) -> UfuncLoop | None:
    """The loop for operands and a result of exactly these dtypes; None where there is none, or none to be found.

    A ufunc has to live as long as what was found: those of modules do.
    """
    there = _Ufunc.from_address(id(ufunc))
    stated = (ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes)
    if (there.nin, there.nout, there.nargs, there.ntypes) != stated or not there.functions:
        return None
    for number, types in enumerate(ufunc.types):
        if [np.dtype(char) for char in types.replace("->", "")] == list(dtypes):
            function = there.functions[number]
            return None if function is None else UfuncLoop(function, (there.data and there.data[number]) or 0)
    return None
