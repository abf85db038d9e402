"""Fallbacks of kernels: called if a word is not zero, on the arrays that are bound at that time."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from engine.codegen.native.native_call import SIGNATURE, NativeCall, fallback, guarded, make_calls
from engine.ir.op import KernelCall
from engine.ir.tensor_type import HostArray


def doubling(operands: Sequence[HostArray], results: Sequence[HostArray]) -> list[KernelCall]:
    return [(np.multiply, (operands[0], 2, results[0]))]


def test_fallback_without_a_kernel() -> None:
    x, y = np.arange(3.0), np.zeros(3)
    make_calls([fallback(doubling, [x], [y])])
    assert y.tolist() == [0, 2, 4]


def test_fallback_runs_on_rebound_arrays_if_the_word_is_set() -> None:
    x, y, moved, word = np.arange(3.0), np.zeros(3), np.ones(3), np.zeros(1, np.int64)
    kernel = SIGNATURE(lambda *_: None)
    address = ctypes.cast(kernel, ctypes.c_void_p).value
    assert address
    call = NativeCall(kernel, address, 1, np.zeros((1, 2), np.int64), kernel)
    call.point(0, x)
    calls = guarded([(call, ())], word, doubling, [x], [y])
    make_calls(calls)
    assert not y.any()
    word[0] = 1
    call.point(0, moved)
    make_calls(calls)
    assert y.tolist() == [2, 2, 2]
