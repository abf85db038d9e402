"""Ufuncs called by machine code: their own loops, along one axis at a time, and so with the bits that Python gets."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from engine.codegen.microkernels.axis_kernels import ITEM, Axes, steps_over, without_matrices
from engine.codegen.microkernels.recipe import KernelPhase, Recipe
from engine.codegen.microkernels.routine import Int64, Routine
from engine.ir.run_context import aligned
from engine.ir.tensor_type import DType, Shape, TensorType

# Inner loops of ufuncs, NumPy's and SciPy's: what they call for an axis, found where their public struct says.
#
# `void loop(char** arrays, const intptr* count, const intptr* steps, void* data)` computes along one axis, of arrays
# that are so many bytes further for each element. It needs no Python, and reports to the floating-point flags alone.


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
    """Find the loop for operands and a result of exactly these dtypes; None if there is none, or it cannot be found.

    A ufunc has to live as long as its loop: those of modules do.
    """
    struct = _Ufunc.from_address(id(ufunc))
    stated = (ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes)
    if (struct.nin, struct.nout, struct.nargs, struct.ntypes) != stated or not struct.functions:
        return None
    for number, types in enumerate(ufunc.types):
        if [np.dtype(char) for char in types.replace("->", "")] == list(dtypes):
            function = struct.functions[number]
            return None if function is None else UfuncLoop(function, (struct.data and struct.data[number]) or 0)
    return None


#: stands for the result so far among what a ufunc reads
SO_FAR: Final = -1
#: bytes of a pointer, of a size, and of a number that stands in the text
WORD: Final = 8


class UfuncCall(NamedTuple):
    """A ufunc, and its operands: operands of the recipe by their numbers, the result so far, or a number.

    The number, of the result's dtype, comes last. With `turned`, the last operand before it is read with its last
    two axes exchanged. Of a ufunc for matrices, which lie on the last two axes of all, `core` are their extents.
    """

    ufunc: Any
    reads: tuple[int, ...]
    number: float | None = None
    turned: bool = False
    core: Shape = ()


class _Array(NamedTuple):
    """Array that a loop reads or writes: its dtype, and its strides along the axes of the result, in bytes."""

    dtype: DType
    strides: Shape


def ufunc_calls(calls: Sequence[UfuncCall], out: TensorType, types: Sequence[TensorType]) -> Recipe | None:
    """Make the result by these calls, one after the other; None if a ufunc has no loop for just these dtypes."""
    result = _Array(out.dtype, out.strides)
    phases, own = [], 0
    for call in calls:
        read = [result if k == SO_FAR else _operand(out.shape, types[k], call) for k in call.reads]
        if call.turned:
            read[-1] = _Array(read[-1].dtype, (*read[-1].strides[:-2], *reversed(read[-1].strides[-2:])))
        if call.number is not None:
            read.append(_Array(out.dtype, (0,) * out.ndim))
        loop = ufunc_loop(call.ufunc, tuple(each.dtype for each in (*read, result)))
        if loop is None:
            return None
        writer = _Writer(call, loop, out.shape, [*read, result])
        phases.append(writer.phase())
        own = max(own, writer.own)
    return Recipe(tuple(phases), own=own)


def _operand(shape: Shape, type: TensorType, call: UfuncCall) -> _Array:
    if call.core:
        return _Array(type.dtype, (*steps_over(shape[:-2], without_matrices(type)), *type.strides[-2:]))
    return _Array(type.dtype, steps_over(shape, type))


class LoopCall:
    """A call of a ufunc's loop: arrays, their count and steps lie in memory of the thread's own.

    There, from the beginning of `own` on, are the addresses of `arrays` many, their counts, their steps, and a number.
    """

    def __init__(self, to: Routine, loop: UfuncLoop, arrays: int, counts: int, steps: int) -> None:
        self._to, self.own = to, aligned(WORD * (arrays + counts + steps + 1))
        self._function, self._data = (to.place("address", address) for address in loop)
        work = to.place("own", 0, self.own)
        starts = 0, arrays, arrays + counts, arrays + counts + steps
        self._arrays, self._counts, self._steps, self.number = (to.at(work, WORD * k) for k in starts)

    def store_number(self, number: float, dtype: DType) -> None:
        """Put the bits of a number of this dtype in their place."""
        bits = int.from_bytes(np.array(number, dtype).tobytes(), "little", signed=dtype.itemsize == WORD)
        self._to.memory.store("i64", str(bits), self.number)

    def store_steps(self, steps: Sequence[int]) -> None:
        """Store the steps, which are the same for all calls."""
        self._store(self._steps, steps)

    def make(self, arrays: Sequence[str], counts: Sequence[Int64]) -> None:
        """Call the loop, which may move the addresses that it is given."""
        self._store(self._arrays, [self._to.address(each) for each in arrays])
        self._store(self._counts, counts)
        given = ", ".join(f"ptr {each}" for each in (self._arrays, self._counts, self._steps, self._data))
        self._to.to.line(f"call void {self._function}({given})")

    def _store(self, first: str, words: Sequence[Int64]) -> None:
        for k, word in enumerate(words):
            self._to.memory.store("i64", str(word), self._to.at(first, WORD * k))


class _Writer:
    """Writer of the calls of one loop, for each part of an axis of the result, or each matrix."""

    def __init__(self, call: UfuncCall, loop: UfuncLoop, shape: Shape, arrays: Sequence[_Array]) -> None:
        self._call, self._arrays, to = call, arrays, Routine("float64", 1)
        self._core = 2 if call.core else 0
        batch = len(shape) - self._core
        most = max(1, ITEM // math.prod(call.core))
        self._axes = Axes.of(shape[:batch], [array.strides[:batch] for array in arrays], most)
        self._elements = math.prod(shape)
        core = [step for array in arrays for step in array.strides[batch:]]
        self._made = LoopCall(to, loop, len(arrays), 1 + len(call.core), len(arrays) + len(core))
        self._made.store_steps([*[each[-1] for each in self._axes.steps], *core])
        self._to, self.own = to, self._made.own

    def phase(self) -> KernelPhase:
        """Write the kernel."""
        to, places = self._to, [*map(self._place, self._call.reads), self._place(SO_FAR)]
        if self._call.number is not None:
            self._made.store_number(self._call.number, self._arrays[-1].dtype)
            places.insert(-1, self._made.number)
        with to.loop("%first", "%past") as item:
            here, count = self._axes.item(to, item.index, places)
            self._made.make(here, [count, *self._call.core])
        return to.phase(self._axes.items, self._elements)

    def _place(self, read: int) -> str:
        return self._to.place("result", 0) if read == SO_FAR else self._to.place("operand", read)


def adding_on(out: TensorType, x: TensorType, axis: int) -> Recipe | None:
    """Add up running sums of operand 0 by the loop of NumPy's addition: a sum and the next element make the next sum.

    Returns None if the sums have another dtype, and for complex numbers.
    """
    loop = ufunc_loop(np.add, (x.dtype, x.dtype, out.dtype))
    if loop is None or x.dtype != out.dtype or x.is_complex:
        return None
    to, others = Routine("float64", 1), [a for a in range(x.ndim) if a != axis]
    call, type = LoopCall(to, loop, 3, 1, 3), f"i{8 * x.dtype.itemsize}"
    steps = out.strides[axis], x.strides[axis], out.strides[axis]
    call.store_steps(steps)
    places = to.place("operand", 0), to.place("result", 0)
    with to.loop("%first", "%past") as item:
        lead = to.unravelled(item.index, [x.shape[a] for a in others])
        source, y = (
            to.moved(place, lead, [each.strides[a] for a in others])
            for place, each in zip(places, (x, out), strict=True)
        )
        to.memory.store(type, to.memory.load(type, source), y)
        call.make([y, to.at(source, steps[1]), to.at(y, steps[0])], [x.shape[axis] - 1])
    return Recipe((to.phase(math.prod(x.shape[a] for a in others), x.size),), own=call.own)
