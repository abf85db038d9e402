"""A loop on whole arrays of NumPy or CuPy: each scalar an array, freed when nothing reads it any more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import call
from typing import Any

import numpy as np

from engine.graph.op import Array, Namespace
from engine.graph.tensor_type import DType
from engine.loops.array_functions import ARRAY_FUNCTIONS
from engine.loops.program import Loop
from engine.loops.registers import needed
from engine.loops.ufuncs import FOLDS, UFUNCS, select_bits, ufunc_of

_FOUND = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}


def evaluate(loop: Loop, xp: Namespace, operands: Sequence[Array], results: Sequence[Array]) -> None:
    """Fill `results` of the kinds element and row, by broadcasting; rows have extent 1 in place of the columns.

    Raises TypeError for other results, and for what only compiled kernels have.
    """
    WholeLoop(loop, np.dtype(loop.dtype)).fill(xp, operands, results)


class WholeLoop:
    """A loop made ready for `evaluate`, its numbers of any dtype: what is read and written is cast."""

    def __init__(self, loop: Loop, number: DType) -> None:
        if any(result.adds_up for result in loop.results):
            raise TypeError("sums over rows are for kernels")
        order = needed(loop)
        said = loop.instructions
        dtypes = {n: np.dtype(bool) if said[n].type == "bool" else number for n in order}
        self.loop, self.stored = loop, [result.value for result in loop.results]
        self.places = {value: (j, dtypes[value]) for j, value in reversed([*enumerate(self.stored)])}
        self.constants = {n: dtypes[n].type(said[n].data) for n in order if said[n].op == "constant"}
        self.loads = [(n, said[n].data, dtypes[n]) for n in order if said[n].op == "load"]
        self.computed = [n for n in order if said[n].op not in ("constant", "load")]
        last = {a: n for n in order for a in said[n].args if a not in self.stored}
        self.ended = {n: [a for a, end in last.items() if end == n] for n in self.computed}
        self._steps: dict[Namespace, list[tuple[Any, ...]]] = {}

    def fill(self, xp: Namespace, operands: Sequence[Array], results: Sequence[Array]) -> None:
        """Run it."""
        values: dict[int, Array] = self.constants.copy()
        for n, operand, dtype in self.loads:
            x = operands[operand]
            values[n] = x if x.dtype == dtype else x.astype(dtype)
        for n, function, args, place, ended in self._steps.get(xp) or self._made(xp):
            read = [values[a] for a in args]
            if place is not None and results[place[0]].dtype == place[1]:
                values[n] = function(*read, out=results[place[0]])
            else:
                values[n] = function(*read)
            for a in ended:
                del values[a]
        for value, result in zip(self.stored, results, strict=True):
            if values[value] is not result:
                xp.copyto(result, values[value], casting="unsafe")

    def _made(self, xp: Namespace) -> list[tuple[Any, ...]]:
        """Each step: its number, function and arguments; the result it may be computed in; what ends with it."""
        steps: list[tuple[Any, ...]] = []
        for n in self.computed:
            op, args = self.loop.instructions[n][:2]
            place = self.places.get(n) if op in UFUNCS else None
            steps.append((n, _function(xp, op), args, place, self.ended[n]))
        self._steps[xp] = steps
        return steps


def _function(xp: Namespace, op: str) -> Any:
    """A primitive of arrays."""
    if op in FOLDS:
        return partial(getattr(xp, _FOUND[FOLDS[op]]), axis=-1, keepdims=True)
    if op in ("select", "choose"):
        return _chosen if xp is np else xp.where
    if op not in ARRAY_FUNCTIONS:
        return ufunc_of(xp, op)
    return partial(_filled, xp, ARRAY_FUNCTIONS[op].fill)


def _chosen(cond: Array, on_true: Array, on_false: Array) -> Array:
    return select_bits(call, cond, on_true, on_false).view(on_true.dtype)


def _filled(xp: Namespace, function: Callable[..., None], x: Array) -> Array:
    out = xp.empty(x.shape, x.dtype)
    function(xp, x, out)
    return out
