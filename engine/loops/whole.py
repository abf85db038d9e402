"""A fused kernel on whole arrays of any array module: what a card runs if no kernel of it is compiled.

Each scalar is an array, freed when nothing reads it any more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from engine.graph.op import Array, Namespace
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import DType
from engine.loops.array_functions import ARRAY_FUNCTIONS, fill_function
from engine.loops.block_program import dtype_of
from engine.loops.program import Level, Loop, LoopResult, Space
from engine.loops.registers import needed
from engine.loops.ufuncs import FOLDS, ufunc_of

_FOUND = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}


class WholeLoop:
    """A kernel made ready for whole arrays, its numbers of any dtype: what is read and written is cast.

    Its results are of the kinds element and row. Raises TypeError for others, and for what only compiled kernels have.
    """

    def __init__(self, loop: Loop, number: DType) -> None:
        if any(result.adds_up for result in loop.results):
            raise TypeError("sums over rows are for kernels")
        order = needed(loop)
        said = loop.instructions
        dtypes = {n: dtype_of(said[n], number) for n in order}
        self.loop, self.stored = loop, [result.value for result in loop.results]
        self.places = {value: (j, dtypes[value]) for j, value in reversed([*enumerate(self.stored)])}
        self.constants = {n: dtypes[n].type(said[n].data) for n in order if said[n].op == "constant"}
        self.loads = [(n, said[n].data, dtypes[n]) for n in order if said[n].op == "load"]
        self.computed = [n for n in order if said[n].op not in ("constant", "load")]
        last = {a: n for n in order for a in said[n].args if a not in self.stored}
        self.ended = {n: [a for a, end in last.items() if end == n] for n in self.computed}

    def fill(self, run: RunContext, operands: Sequence[Array], results: Sequence[Array]) -> None:
        """Fill `results` by broadcasting; rows have extent 1 in place of the columns."""
        values: dict[int, Array] = self.constants.copy()
        for n, operand, dtype in self.loads:
            x = operands[operand]
            values[n] = x if x.dtype == dtype else x.astype(dtype)
        for n in run.through(self.computed):
            place = self.places.get(n)
            out = results[place[0]] if place is not None and results[place[0]].dtype == place[1] else None
            values[n] = self.compute(run, n, [values[a] for a in self.loop.instructions[n].args], out)
            for a in self.ended[n]:
                del values[a]
        for value, result in zip(self.stored, results, strict=True):
            if values[value] is not result:
                run.xp.copyto(result, values[value], casting="unsafe")

    def compute(self, run: RunContext, n: int, read: Sequence[Array], out: Array | None) -> Array:
        """The scalar of this number: in `out`, if a single ufunc can be told so, else as a new array."""
        xp, op = run.xp, self.loop.instructions[n].op
        if op in FOLDS:
            return getattr(xp, _FOUND[FOLDS[op]])(*read, axis=-1, keepdims=True)
        if op in ("select", "choose"):
            return xp.where(*read)
        if op not in ARRAY_FUNCTIONS:
            return ufunc_of(xp, op)(*read, out=out)
        (x,) = read
        made = xp.empty(x.shape, x.dtype)
        fill_function(run, op, x, made)
        return made


class _Rows(NamedTuple):
    """Rows of one length: the first one's number, their extents, and their columns."""

    first: int
    extents: tuple[int, ...]
    columns: int


def run_on_arrays(
    run: RunContext, loop: Loop, space: Space, operands: Sequence[Array], results: Sequence[Array]
) -> None:
    """Fill `results`, of all kinds. Arrays begin at row 0, column 0 of the space, and lie as its strides say.

    Raises TypeError for what only compiled kernels have.
    """
    sums = [(array, result) for array, result in zip(results, loop.results, strict=True) if result.adds_up]
    for array, _ in sums:
        array.fill(0)
    stored = tuple(LoopResult("element" if r.kind in ("element", "columns") else "row", r.value) for r in loop.results)
    whole = WholeLoop(loop._replace(results=stored), np.dtype(loop.dtype))
    levels = [operand.level for operand in loop.operands]
    for rows in _chunks(space):
        read = [
            _over(run.xp, array, rows, level, steps)
            for array, level, steps in zip(operands, levels, space.strides[: len(operands)], strict=True)
        ]
        written = [
            run.xp.empty((*rows.extents, rows.columns if result.kind == "columns" else 1), array.dtype)
            if result.adds_up
            else _over(run.xp, array, rows, Level.ELEMENT if result.kind == "element" else Level.ROW, steps)
            for array, result, steps in zip(results, loop.results, space.strides[len(operands) :], strict=True)
        ]
        whole.fill(run, read, written)
        for array, result, part in zip(results, loop.results, written, strict=True):
            if result.adds_up:
                added = part.reshape(-1, part.shape[-1]).sum(axis=0)
                sums_so_far = array.reshape(-1)[: added.size]
                sums_so_far += added


def _chunks(space: Space) -> Iterator[_Rows]:
    """All rows, or those that are whole and then the one that is cut short."""
    count = math.prod(space.rows)
    left = space.length - (count - 1) * space.columns
    if not count or left == space.columns:
        yield _Rows(0, space.rows, space.columns)
        return
    if count > 1:
        yield _Rows(0, (count - 1,), space.columns)
    yield _Rows(count - 1, (1,), left)


def _over(xp: Namespace, array: Array, rows: _Rows, level: Level, steps: Sequence[int]) -> Array:
    """What an array has of these rows."""
    width, size = rows.columns if level == Level.ELEMENT else 1, array.itemsize
    if rows.first:
        array = array.reshape(-1)[rows.first * steps[0] :]
    return xp.lib.stride_tricks.as_strided(array, (*rows.extents, width), [size * step for step in (*steps, 1)])
