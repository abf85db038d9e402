"""Kernels bound to memory: called with every table, and rebound to other arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np

from engine.codegen.native.native_call import SIGNATURE, NativeCall, NativeGuard, places_of


def call_of(function: Callable[[int, int, int], object], items: int, threads: int = 1) -> NativeCall:
    callback = SIGNATURE(function)
    address = ctypes.cast(callback, ctypes.c_void_p).value
    assert address
    return NativeCall(callback, address, items, np.zeros((threads, 3), np.int64), callback)


def test_one_table_takes_all_items_at_once() -> None:
    received: list[tuple[int, int, int]] = []
    call = call_of(lambda *given: received.append(given), 7)
    call()
    assert received == [(0, 7, call.entries.ctypes.data)]


def test_several_tables_share_the_items() -> None:
    received: list[tuple[int, int, int]] = []
    call = call_of(lambda *given: received.append(given), 100, 3)
    call()
    assert sorted(i for first, past, _ in received for i in range(first, past)) == [*range(100)]
    assert {table for *_, table in received} <= {call.entries[k].ctypes.data for k in range(3)}


def test_array_is_bound_in_every_table() -> None:
    call = call_of(lambda *_: None, 1, 2)
    one, other = np.zeros(3), np.zeros(3)
    call.point(1, one)
    call.point(2, one)
    call.point(1, other)
    assert call.entries.tolist() == [[0, other.ctypes.data, one.ctypes.data]] * 2
    calls = [(call, ()), (print, ())]
    assert [place.position for place in places_of(other, calls)] == [1]
    assert places_of(other, calls)[0].array is other
    assert places_of(np.zeros(3), calls) == []
    call.release(1)
    assert call.arrays == {2: one}


def test_guard_is_called_if_its_word_is_not_zero() -> None:
    received: list[int] = []
    word = np.zeros(1, np.int64)
    guard = NativeGuard(word, (received.append, (5,)))
    guard()
    word[0] = -1
    guard()
    assert received == [5]
