"""A loop on whole arrays of NumPy or CuPy: each scalar an array, freed when nothing reads it any more."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from engine.graph.op import Array, Namespace
from engine.graph.tensor_type import DType
from engine.loops import special
from engine.loops.program import Loop
from engine.loops.registers import needed
from engine.loops.ufuncs import FOLDS, UFUNCS, ufunc_of

_FOUND = {"add": "sum", "maximum": "max", "minimum": "min"}


def evaluate(loop: Loop, xp: Namespace, operands: Sequence[Array], results: Sequence[Array]) -> None:
    """Fill `results` of the kinds element and row, by broadcasting; rows have extent 1 in place of the columns.

    Raises NotImplementedError for other results, and for what only compiled kernels have.
    """
    WholeLoop(loop, np.dtype(loop.dtype)).fill(xp, operands, results)


class WholeLoop:
    """A loop made ready for `evaluate`, its numbers of any dtype: what is read and written is cast."""

    def __init__(self, loop: Loop, number: DType) -> None:
        if any(result.kind not in ("element", "row") for result in loop.results):
            raise NotImplementedError("sums over rows are for kernels")
        self.results = loop.results
        self.order = needed(loop)
        self.dtypes = {n: np.dtype(bool) if loop.instructions[n].type == "bool" else number for n in self.order}
        last = {a: n for n in self.order for a in loop.instructions[n].args}
        self.ending = {n: [a for a, end in last.items() if end == n] for n in self.order}
        self.computes = [(n, loop.instructions[n].args, self._computing(loop, n)) for n in self.order]

    def fill(self, xp: Namespace, operands: Sequence[Array], results: Sequence[Array]) -> None:
        """Run it."""
        place = (self.results[0].value, results[0])
        values: dict[int, Array] = {}
        for n, args, compute in self.computes:
            out = place[1] if n == place[0] and place[1].dtype == self.dtypes[n] else None
            values[n] = compute(xp, [values[a] for a in args], operands, out)
            for ending in self.ending[n]:
                del values[ending]
            for result, array in zip(self.results, results, strict=True):
                if result.value == n and values[n] is not array:
                    xp.copyto(array, values[n], casting="unsafe")

    def _computing(self, loop: Loop, n: int) -> Callable[..., Array]:
        """What computes a scalar: `compute(xp, read, operands, out)`, in `out` if it can and that is not None."""
        op, data, dtype = loop.instructions[n].op, loop.instructions[n].data, self.dtypes[n]
        if op == "constant":
            number = dtype.type(data)
            return lambda xp, read, operands, out: number
        if op == "load":
            return lambda xp, read, operands, out: operands[data].astype(dtype, copy=False)
        if op in UFUNCS:
            return lambda xp, read, operands, out: ufunc_of(xp, op)(*read, **({} if out is None else {"out": out}))
        return lambda xp, read, operands, out: _other(xp, op, read)


def _other(xp: Namespace, op: str, read: Sequence[Array]) -> Array:
    if op in FOLDS:
        return getattr(xp, _FOUND[FOLDS[op]])(*read, axis=-1, keepdims=True)
    if op in ("select", "choose"):
        return xp.where(*read)
    if op not in ("erf", "erfc"):
        return ufunc_of(xp, op)
    out = xp.empty(read[0].shape, read[0].dtype)
    getattr(special, op)(xp, read[0], out)
    return out
