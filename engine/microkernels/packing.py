"""Packing: what a tile reads, vector by vector, is laid out so that the vectors of a step lie side by side."""

from __future__ import annotations

from engine.microkernels.routine import Int64, Routine


def copy_rows(to: Routine, source: str, packed: str, rows: Int64, step: int, vectors: int, left: Int64) -> None:
    """`rows` rows, `step` bytes apart, of which `vectors` vectors are taken; there are `left` columns, then zeros."""
    width = to.lanes * to.size
    masks = [to.below(to.sub(left, v * to.lanes)) for v in range(vectors)]
    with to.loop(0, rows, carried=[("ptr", source), ("ptr", packed)]) as row:
        here, there = row.carried
        for v, mask in enumerate(masks):
            to.store(to.load(to.at(here, v * width), mask), to.at(there, v * width))
        row.carry = [to.at(here, step), to.at(there, vectors * width)]


def transpose_rows(
    to: Routine, source: str, packed: str, rows: Int64, column: int, step: int, vectors: int, left: Int64
) -> None:
    """As `copy_rows`, of a matrix whose columns are `column` bytes apart, and whose rows `step`.

    Where rows lie side by side, blocks of as many as there are lanes are turned in registers: memory for whole blocks
    is written.
    """
    if step == to.size:
        with to.loop(0, vectors) as vector, to.loop(0, rows, to.lanes) as row:
            _turn(to, source, packed, row.index, to.sub(rows, row.index), column, vector.index, vectors, left)
        return
    width = to.lanes * to.size
    masks = [to.below(to.sub(left, v * to.lanes)) or to.first(to.lanes) for v in range(vectors)]
    with to.loop(0, rows, carried=[("ptr", source), ("ptr", packed)]) as row:
        here, there = row.carried
        for v, mask in enumerate(masks):
            to.store(to.gather(to.at(here, v * to.lanes * column), column, mask), to.at(there, v * width))
        row.carry = [to.at(here, step), to.at(there, vectors * width)]


def _turn(
    to: Routine,
    source: str,
    packed: str,
    row: Int64,
    rows: Int64,
    column: int,
    v: Int64,
    vectors: int,
    left: Int64,
) -> None:
    """A block of rows, of which `rows` are there, of the columns of vector v: read by columns, as a vector each."""
    width, some = to.lanes * to.size, to.below(rows)
    here, first = to.at(source, to.mul(row, to.size)), to.mul(v, to.lanes)
    read = []
    for lane in range(to.lanes):
        # a column that is not there is read as the last one that is, and never stored
        at = to.least(to.add(first, lane), to.sub(left, 1))
        read.append(to.load(to.at(here, to.mul(at, column)), some))
    there = to.at(to.at(packed, to.mul(row, vectors * width)), to.mul(v, width))
    for r, vector in enumerate(to.transposed(read)):
        to.store(vector, to.at(there, r * vectors * width))
