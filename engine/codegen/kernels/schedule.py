"""The passes of a fused kernel: what each sweep over a row computes, stores in scratch and reads back.

Every printer follows them, and reads sizes, addresses and strides from one table of whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable
from enum import IntEnum
from typing import NamedTuple

from engine.codegen.kernels.program import FUNCTIONS, REDUCTIONS, FusedKernel, Level, Space
from engine.ir.tensor_type import HostArray

#: what it takes to compute an element anew, in additions, from which on it is kept for later sweeps
COSTLY = 8
#: bytes of vectors that all instructions of a kernel may have together: machine code grows with them
MOST_VECTOR_BYTES = 96 * 1024
#: of one vector: four registers of AVX-512, whose latencies overlap; and one register
WIDEST_VECTOR, NARROWEST_VECTOR = 256, 64


class Sweep(NamedTuple):
    """One pass over the columns of a row. Numbers of scalars stand in the order of the kernel."""

    #: ROW scalars that are computed before it
    before: tuple[int, ...]
    #: ELEMENT scalars that are read back from scratch
    fetched: tuple[int, ...]
    #: ELEMENT scalars that are computed, loads among them
    computed: tuple[int, ...]
    #: those of them that are kept in scratch
    kept: tuple[int, ...]
    reductions: tuple[int, ...]
    #: numbers of the results element and columns that are written
    results: tuple[int, ...]


class Schedule(NamedTuple):
    """Order of work on a row: the sweeps, the ROW scalars `after` them, then the results row and total.

    `scratch` has the kept scalars; that at position p lies in row p of scratch.
    """

    sweeps: tuple[Sweep, ...]
    after: tuple[int, ...]
    scratch: tuple[int, ...]


def schedule(loop: FusedKernel, *, keeps: bool = True) -> Schedule:
    """Schedule the passes of a kernel. Scalars that no result needs are left out; each sweep is as early as can be.

    Unless it `keeps` scalars, a later sweep recomputes those that it needs again.
    """
    live = _closure(loop, (result.value for result in loop.results))
    ready = _ready(loop, live)
    reductions = [i for i in sorted(live) if loop.instructions[i].op in REDUCTIONS]
    swept = [r for r, result in enumerate(loop.results) if result.kind in ("element", "columns")]
    starts = {i: ready[loop.instructions[i].args[0]] for i in reductions}
    writes = {r: ready[loop.results[r].value] for r in swept}
    count = 1 + max([*starts.values(), *writes.values()], default=-1)
    roots = [
        [loop.instructions[i].args[0] for i in reductions if starts[i] == p]
        + [loop.results[r].value for r in swept if writes[r] == p]
        for p in range(count)
    ]
    rows = [
        i
        for i in sorted(live)
        if (scalar := loop.instructions[i]).level != Level.ELEMENT and scalar.op not in {"constant", *REDUCTIONS}
    ]
    read = _read_elements(loop, roots, _kept(loop, roots) if keeps else set())
    scratch = tuple(sorted(set().union(*(fetched for fetched, _ in read)))) if read else ()
    sweeps = tuple(
        Sweep(
            tuple(i for i in rows if ready[i] == p),
            fetched,
            computed,
            tuple(i for i in computed if i in scratch),
            tuple(i for i in reductions if starts[i] == p),
            tuple(r for r in swept if writes[r] == p),
        )
        for p, (fetched, computed) in enumerate(read)
    )
    return Schedule(sweeps, tuple(i for i in rows if ready[i] == count), scratch)


def lanes_of(loop: FusedKernel, columns: int) -> int:
    """Choose the elements of a vector: a power of two, enough for the columns, fewer for long programs.

    The bits of a row's sum depend on it.
    """
    width = 4 if loop.dtype == "float32" else 8
    lanes = WIDEST_VECTOR // width
    while lanes * width > NARROWEST_VECTOR and lanes * width * len(loop.instructions) > MOST_VECTOR_BYTES:
        lanes //= 2
    return min(lanes, 1 << max(columns - 1, 0).bit_length())


def _closure(loop: FusedKernel, roots: Iterable[int]) -> set[int]:
    """Find the scalars that these need, themselves included."""
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            waiting += loop.instructions[number].args
    return found


def _ready(loop: FusedKernel, live: Container[int]) -> list[int]:
    """Count for each scalar the sweeps that are over before it can be computed."""
    ready: list[int] = []
    for i, instruction in enumerate(loop.instructions):
        after = max((ready[a] for a in instruction.args), default=0) if i in live else 0
        ready.append(after + (instruction.op in REDUCTIONS))
    return ready


def _read_elements(
    loop: FusedKernel, roots: list[list[int]], kept: set[int]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """List for each sweep the ELEMENT scalars that it fetches, of those that are `kept`, and those that it computes."""
    computed = set[int]()
    sweeps = []
    for needed in roots:
        elements = _elements(loop, needed, kept & computed)
        fetched = elements & kept & computed
        computed |= elements - fetched
        sweeps.append((tuple(sorted(fetched)), tuple(sorted(elements - fetched))))
    return sweeps


def _kept(loop: FusedKernel, roots: list[list[int]]) -> set[int]:
    """Find scalars that are needed again and costly: nearest to their use, and not cheap beside one another."""
    computed, kept = set[int](), set[int]()
    for needed in roots:
        costly = {i for i in computed if _is_costly(loop, i, ())}
        elements = _elements(loop, needed, costly)
        kept |= elements & costly
        computed |= elements - costly
    for number in sorted(kept):
        if not _is_costly(loop, number, kept - {number}):
            kept.discard(number)
    return kept


def _elements(loop: FusedKernel, roots: Iterable[int], ends: Container[int]) -> set[int]:
    """Find the ELEMENT scalars that these need, without those that only `ends` need."""
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        number = waiting.pop()
        if number not in found and loop.instructions[number].level == Level.ELEMENT:
            found.add(number)
            waiting += () if number in ends else loop.instructions[number].args
    return found


def _is_costly(loop: FusedKernel, number: int, known: Container[int]) -> bool:
    """Whether computing a scalar takes COSTLY or more, if the `known` ones are read."""
    found, waiting, cost = {number}, [number], 0
    while waiting and cost < COSTLY:
        instruction = loop.instructions[waiting.pop()]
        cost += COSTLY if instruction.op in ("div", "sqrt") or instruction.op in FUNCTIONS else 1
        for a in instruction.args:
            if a not in found and a not in known and loop.instructions[a].level == Level.ELEMENT:
                found.add(a)
                waiting.append(a)
    return cost >= COSTLY


class TableEntry(IntEnum):
    """Positions in the table of whole numbers in which a kernel finds its sizes; extents of the row axes come last."""

    COLUMNS = 0
    LENGTH = 1
    ROWS = 2
    BLOCK_ROWS = 3
    EXTENTS = 4


class TableLayout(NamedTuple):
    """Positions in the table of the address of each operand and result, which its strides along the row axes follow."""

    operands: tuple[int, ...]
    results: tuple[int, ...]
    scratch: int

    @property
    def size(self) -> int:
        """Entries of the table."""
        return self.scratch + 1


def put_space(tables: HostArray, layout: TableLayout, space: Space) -> None:
    """Write the sizes and strides of a space into tables, int64 [threads, entries]."""
    sizes = space.columns, space.length, math.prod(space.rows), space.block, *space.rows
    tables[:, TableEntry.COLUMNS : TableEntry.COLUMNS + len(sizes)] = sizes
    for position, strides in zip((*layout.operands, *layout.results), space.strides, strict=True):
        tables[:, position + 1 : position + 1 + len(strides)] = strides


def table_layout(loop: FusedKernel) -> TableLayout:
    """Lay out columns, length, rows, block, extents of the row axes; operands, results and the scratch of a thread.

    The results columns and total have no strides: the part of block b begins at b · columns, or is number b.
    """
    position = TableEntry.EXTENTS + loop.row_axes
    operands, results = [], []
    for _ in loop.operands:
        operands.append(position)
        position += 1 + loop.row_axes
    for result in loop.results:
        results.append(position)
        position += 1 + (0 if result.adds_up else loop.row_axes)
    return TableLayout(tuple(operands), tuple(results), position)
