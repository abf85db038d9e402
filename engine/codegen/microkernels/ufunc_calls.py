"""Ufunc loops called by machine code: the inner loops of NumPy and SciPy, with the bits that Python calls give."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from engine.codegen.microkernels.axis_kernels import ITEM, Axes, batch_type, broadcast_strides
from engine.codegen.microkernels.recipe import KernelPhase, Recipe
from engine.codegen.microkernels.routine import Int64, Routine
from engine.ir.run_context import aligned
from engine.ir.tensor_type import DType, Shape, TensorType

# Inner loops of ufuncs: the C functions that NumPy and SciPy call for an axis, found in the public struct of a ufunc.
#
# `void loop(char** arrays, const intptr* count, const intptr* steps, void* data)` computes along one axis, where arrays
# advance by `steps` bytes per element. It needs neither Python nor the GIL, and reports errors in floating-point flags.


class UfuncLoop(NamedTuple):
    """Addresses of a loop, and of the `data` that it is called with."""

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
    """Return the loop for operands and a result of exactly these dtypes; None if there is none, or it is not found.

    A ufunc has to live as long as its loop is used; those of modules do.
    """
    # The struct is only trusted if its beginning agrees with what Python reports about the ufunc.
    struct = _Ufunc.from_address(id(ufunc))
    expected = (ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes)
    if (struct.nin, struct.nout, struct.nargs, struct.ntypes) != expected or not struct.functions:
        return None
    for number, types in enumerate(ufunc.types):
        if [np.dtype(char) for char in types.replace("->", "")] == list(dtypes):
            function = struct.functions[number]
            return None if function is None else UfuncLoop(function, (struct.data and struct.data[number]) or 0)
    return None


#: number that stands for the current result among a ufunc's operands
SO_FAR: Final = -1
#: bytes of a pointer, of a size, and of a constant
WORD: Final = 8


class UfuncCall(NamedTuple):
    """A ufunc and its operands: numbers of the recipe's operands, SO_FAR for the current result, and a constant.

    The constant `number`, of the result's dtype, comes last. If `transposed`, the last array operand has its last two
    axes exchanged. For a ufunc on matrices, `core` are the extents of the last two axes of all arrays.
    """

    ufunc: Any
    reads: tuple[int, ...]
    number: float | None = None
    transposed: bool = False
    core: Shape = ()


class _Array(NamedTuple):
    """Array that a loop reads or writes: its dtype, and its strides in bytes along the axes of the result."""

    dtype: DType
    strides: Shape


def ufunc_calls(calls: Sequence[UfuncCall], out: TensorType, types: Sequence[TensorType]) -> Recipe | None:
    """Compute the result by calls in order; None if a ufunc has no loop for exactly these dtypes."""
    result = _Array(out.dtype, out.strides)
    phases, own = [], 0
    for call in calls:
        read = [result if k == SO_FAR else _operand(out.shape, types[k], call) for k in call.reads]
        if call.transposed:
            read[-1] = _Array(read[-1].dtype, (*read[-1].strides[:-2], *reversed(read[-1].strides[-2:])))
        if call.number is not None:
            read.append(_Array(out.dtype, (0,) * out.ndim))
        loop = ufunc_loop(call.ufunc, tuple(array.dtype for array in (*read, result)))
        if loop is None:
            return None
        writer = _Writer(call, loop, out.shape, [*read, result])
        phases.append(writer.phase())
        own = max(own, writer.own)
    return Recipe(tuple(phases), own=own)


def _operand(shape: Shape, type: TensorType, call: UfuncCall) -> _Array:
    if call.core:
        return _Array(type.dtype, (*broadcast_strides(shape[:-2], batch_type(type)), *type.strides[-2:]))
    return _Array(type.dtype, broadcast_strides(shape, type))


class LoopCall:
    """Call of a ufunc's loop, whose arguments (arrays, counts, steps) are in the thread's own memory.

    From the beginning of `own` on, it holds the addresses of the arrays, their counts, their steps, and a constant.
    """

    def __init__(self, ir: Routine, loop: UfuncLoop, arrays: int, counts: int, steps: int) -> None:
        self._ir, self.own = ir, aligned(WORD * (arrays + counts + steps + 1))
        self._function, self._data = (ir.place("address", address) for address in loop)
        work = ir.place("own", 0, self.own)
        starts = 0, arrays, arrays + counts, arrays + counts + steps
        self._arrays, self._counts, self._steps, self.number = (ir.at(work, WORD * k) for k in starts)

    def store_number(self, number: float, dtype: DType) -> None:
        """Store the bits of a constant of this dtype."""
        bits = int.from_bytes(np.array(number, dtype).tobytes(), "little", signed=dtype.itemsize == WORD)
        self._ir.memory.store("i64", str(bits), self.number)

    def store_steps(self, steps: Sequence[int]) -> None:
        """Store the steps, which are the same for all calls."""
        self._store(self._steps, steps)

    def make(self, arrays: Sequence[str], counts: Sequence[Int64]) -> None:
        """Write a call of the loop. Addresses and counts are stored each time, since a loop may change them."""
        self._store(self._arrays, [self._ir.address(array) for array in arrays])
        self._store(self._counts, counts)
        arguments = ", ".join(f"ptr {array}" for array in (self._arrays, self._counts, self._steps, self._data))
        self._ir.assembly.line(f"call void {self._function}({arguments})")

    def _store(self, first: str, words: Sequence[Int64]) -> None:
        for k, word in enumerate(words):
            self._ir.memory.store("i64", str(word), self._ir.at(first, WORD * k))


class _Writer:
    """Writer of the calls of one loop, one for each part of an axis of the result, or for each matrix."""

    def __init__(self, call: UfuncCall, loop: UfuncLoop, shape: Shape, arrays: Sequence[_Array]) -> None:
        self._call, self._arrays, ir = call, arrays, Routine("float64", 1)
        self._core = 2 if call.core else 0
        batch = len(shape) - self._core
        most = max(1, ITEM // math.prod(call.core))
        self._axes = Axes.of(shape[:batch], [array.strides[:batch] for array in arrays], most)
        self._elements = math.prod(shape)
        core = [step for array in arrays for step in array.strides[batch:]]
        self._call_writer = LoopCall(ir, loop, len(arrays), 1 + len(call.core), len(arrays) + len(core))
        self._call_writer.store_steps([*[each[-1] for each in self._axes.steps], *core])
        self._ir, self.own = ir, self._call_writer.own

    def phase(self) -> KernelPhase:
        """Write the kernel."""
        ir, places = self._ir, [*map(self._place, self._call.reads), self._place(SO_FAR)]
        if self._call.number is not None:
            self._call_writer.store_number(self._call.number, self._arrays[-1].dtype)
            # The constant is read like an array with steps of 0.
            places.insert(-1, self._call_writer.number)
        with ir.loop("%first", "%past") as item:
            pointers, count = self._axes.item(ir, item.index, places)
            self._call_writer.make(pointers, [count, *self._call.core])
        return ir.phase(self._axes.items, self._elements)

    def _place(self, read: int) -> str:
        return self._ir.place("result", 0) if read == SO_FAR else self._ir.place("operand", read)


def running_sums(out: TensorType, x: TensorType, axis: int) -> Recipe | None:
    """Compute running sums of operand 0 by the loop of NumPy's addition: a sum plus the next element is the next sum.

    Returns None if the sums have another dtype, and for complex numbers.
    """
    loop = ufunc_loop(np.add, (x.dtype, x.dtype, out.dtype))
    if loop is None or x.dtype != out.dtype or x.is_complex:
        return None
    ir, other_axes = Routine("float64", 1), [a for a in range(x.ndim) if a != axis]
    call, type = LoopCall(ir, loop, 3, 1, 3), f"i{8 * x.dtype.itemsize}"
    steps = out.strides[axis], x.strides[axis], out.strides[axis]
    call.store_steps(steps)
    places = ir.place("operand", 0), ir.place("result", 0)
    with ir.loop("%first", "%past") as item:
        lead = ir.unravelled(item.index, [x.shape[a] for a in other_axes])
        source, y = (
            ir.moved(place, lead, [array.strides[a] for a in other_axes])
            for place, array in zip(places, (x, out), strict=True)
        )
        ir.memory.store(type, ir.memory.load(type, source), y)
        # The loop reads each sum that it has just written: its first operand is y, its result y from the second element
        # on.
        call.make([y, ir.at(source, steps[1]), ir.at(y, steps[0])], [x.shape[axis] - 1])
    return Recipe((ir.phase(math.prod(x.shape[a] for a in other_axes), x.size),), own=call.own)
