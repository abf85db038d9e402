"""The fallback of a kernel: made where a word says so, with the arrays as they lie then."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from engine.codegen.native.native_call import SIGNATURE, NativeCall, fallback, guarded, make_calls
from engine.ir.op import KernelCall
from engine.ir.tensor_type import HostArray


def doubling(operands: Sequence[HostArray], results: Sequence[HostArray]) -> list[KernelCall]:
    return [(np.multiply, (operands[0], 2, results[0]))]


def test_without_a_kernel_it_is_all_that_is_called() -> None:
    x, y = np.arange(3.0), np.zeros(3)
    make_calls([fallback(doubling, [x], [y])])
    assert y.tolist() == [0, 2, 4]


def test_beside_a_kernel_it_follows_the_arrays_and_is_made_where_the_word_is_not_zero() -> None:
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
