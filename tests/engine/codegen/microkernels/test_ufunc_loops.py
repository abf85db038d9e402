"""Inner loops of ufuncs: selected by exact dtypes, with the results of the ufunc."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from engine.codegen.kernels.array_functions import library
from engine.codegen.microkernels import ufunc_calls as ufunc_loops
from engine.codegen.microkernels.ufunc_calls import ufunc_loop

_SPECIAL = library(np)
_LOOP = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


@pytest.mark.parametrize("ufunc", [np.sin, np.arctan2, np.power, np.less, np.copysign, _SPECIAL.erfinv, _SPECIAL.ndtr])
def test_loop_matches_its_ufunc(ufunc: Any) -> None:
    xs = [np.linspace(0.1, 0.9, 50), np.linspace(0.9, 0.3, 50)][: ufunc.nin]
    expected = ufunc(*xs)
    loop = ufunc_loop(ufunc, (*(x.dtype for x in xs), expected.dtype))
    assert loop is not None
    actual = np.zeros_like(expected)
    arrays = [*xs, actual]
    places = np.array([x.ctypes.data for x in arrays])
    steps, count = np.array([x.itemsize for x in arrays]), np.array([50])
    _LOOP(loop.function)(places.ctypes.data, count.ctypes.data, steps.ctypes.data, loop.data)
    assert actual.tobytes() == expected.tobytes()


def test_loops_are_selected_by_exact_dtypes() -> None:
    whole, real, truth = np.dtype("int64"), np.dtype("float64"), np.dtype("bool")
    loops = {ufunc_loop(np.add, (dtype,) * 3) for dtype in (whole, real, truth)}
    assert len(loops) == 3
    assert None not in loops
    assert ufunc_loop(np.add, (whole, real, real)) is None
    assert ufunc_loop(np.less, (real, real, real)) is None


def test_unexpected_struct_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(ufunc_loops._Ufunc):
        """A struct with another number of inputs."""

        nin = 7

    monkeypatch.setattr(ufunc_loops, "_Ufunc", Other)
    dtype = np.dtype("float64")
    assert ufunc_loop.__wrapped__(np.add, (dtype, dtype, dtype)) is None
