"""A loop on whole arrays of NumPy or CuPy: each scalar an array, freed when nothing reads it any more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.graph.op import Array, Namespace
from engine.loops import special
from engine.loops.program import Instruction, Loop
from engine.loops.registers import needed
from engine.loops.ufuncs import FOLDS, UFUNCS, ufunc_of


def evaluate(
    loop: Loop, xp: Namespace, operands: Sequence[Array], results: Sequence[Array], number: Any = None
) -> None:
    """Fill `results` of the kinds element and row, by broadcasting; rows have extent 1 in place of the columns.

    Numbers are computed with in the dtype `number`, by default the loop's own; what is read and written is cast.
    Raises NotImplementedError for other results, and for what only compiled kernels have.
    """
    if any(result.kind not in ("element", "row") for result in loop.results):
        raise NotImplementedError("sums over rows are for kernels")
    dtype = np.dtype(number or loop.dtype)
    last = {a: n for n in needed(loop) for a in loop.instructions[n].args}
    places = {loop.results[0].value: results[0]}
    values: dict[int, Array] = {}
    for n in needed(loop):
        instruction = loop.instructions[n]
        values[n] = _value(xp, instruction, values, operands, dtype, places.get(n))
        for result, out in zip(loop.results, results, strict=True):
            if result.value == n and values[n] is not out:
                xp.copyto(out, values[n], casting="unsafe")
        for argument in {a for a in instruction.args if last[a] == n}:
            del values[argument]


def _value(
    xp: Namespace,
    instruction: Instruction,
    values: dict[int, Array],
    operands: Sequence[Array],
    number: np.dtype[Any],
    place: Array | None,
) -> Array:
    """The value of one scalar: in `place`, where that is of its dtype, and it is one ufunc; else a new array."""
    dtype = np.dtype(bool) if instruction.type == "bool" else number
    if instruction.op == "constant":
        return dtype.type(instruction.data)
    if instruction.op == "load":
        return operands[instruction.data].astype(dtype, copy=False)
    read = [values[a] for a in instruction.args]
    if instruction.op in UFUNCS:
        ufunc = ufunc_of(xp, instruction.op)
        return ufunc(*read) if place is None or place.dtype != dtype else ufunc(*read, out=place)
    return _other(xp, instruction.op, read)


def _other(xp: Namespace, op: str, read: list[Array]) -> Array:
    if op in FOLDS:
        return getattr(xp, {"add": "sum", "maximum": "max", "minimum": "min"}[FOLDS[op]])(*read, axis=-1, keepdims=True)
    if op in ("select", "choose"):
        return xp.where(*read)
    if op not in ("erf", "erfc"):
        return ufunc_of(xp, op)
    out = xp.empty_like(read[0])
    getattr(special, op)(xp, read[0], out)
    return out
