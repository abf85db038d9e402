"""A loop over its space on whole arrays of any array module: what a card runs where it has no kernel of the loop."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from engine.graph.op import Array, Namespace
from engine.loops.program import Level, Loop, LoopResult, Space
from engine.loops.whole import evaluate


class _Rows(NamedTuple):
    """Rows of one length: the first one's number, their extents, and their columns."""

    first: int
    extents: tuple[int, ...]
    columns: int


def run_on_arrays(xp: Namespace, loop: Loop, space: Space, operands: Sequence[Array], results: Sequence[Array]) -> None:
    """Fill `results`, of all kinds. Arrays begin at row 0, column 0 of the space, and lie as its strides say.

    Every scalar of the loop is an array while it is needed. Raises TypeError for what only compiled kernels have.
    """
    sums = [(array, result) for array, result in zip(results, loop.results, strict=True) if result.adds_up]
    for array, _ in sums:
        array.fill(0)
    stored = loop._replace(results=tuple(LoopResult(_stored_as(r), r.value) for r in loop.results))
    levels = [operand.level for operand in loop.operands]
    for rows in _chunks(space):
        read = [
            _over(xp, array, rows, level, steps)
            for array, level, steps in zip(operands, levels, space.strides[: len(operands)], strict=True)
        ]
        written = [
            _apart(xp, array, rows, result.kind == "columns")
            if result.adds_up
            else _over(xp, array, rows, Level.ELEMENT if result.kind == "element" else Level.ROW, steps)
            for array, result, steps in zip(results, loop.results, space.strides[len(operands) :], strict=True)
        ]
        evaluate(stored, xp, read, written)
        for array, result, part in zip(results, loop.results, written, strict=True):
            if result.adds_up:
                _add(array, part.reshape(-1, part.shape[-1]).sum(axis=0))


def _stored_as(result: LoopResult) -> Literal["element", "row"]:
    return "element" if result.kind in ("element", "columns") else "row"


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


def _apart(xp: Namespace, array: Array, rows: _Rows, has_columns: bool) -> Array:
    return xp.empty((*rows.extents, rows.columns if has_columns else 1), array.dtype)


def _add(array: Array, part: Array) -> None:
    """Add one number for each column, or one, to a sum."""
    sums = array.reshape(-1)[: part.size]
    sums += part
