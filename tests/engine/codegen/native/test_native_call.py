"""Kernels bound to memory: called with every table, told where arrays lie now."""

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
    seen: list[tuple[int, int, int]] = []
    call = call_of(lambda *given: seen.append(given), 7)
    call()
    assert seen == [(0, 7, call.entries.ctypes.data)]


def test_several_tables_share_the_items_and_none_has_two_threads() -> None:
    seen: list[tuple[int, int, int]] = []
    call = call_of(lambda *given: seen.append(given), 100, 3)
    call()
    assert sorted(i for first, past, _ in seen for i in range(first, past)) == [*range(100)]
    assert {table for *_, table in seen} <= {call.entries[k].ctypes.data for k in range(3)}


def test_an_array_is_in_every_table() -> None:
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


def test_a_guard_is_called_where_its_word_is_not_zero() -> None:
    made: list[int] = []
    word = np.zeros(1, np.int64)
    guard = NativeGuard(word, (made.append, (5,)))
    guard()
    word[0] = -1
    guard()
    assert made == [5]
