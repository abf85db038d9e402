"""A loop as LLVM IR for a card, nvptx64-nvidia-cuda: the kernels, lanes and order of `cuda_text`, and so the same bits.

Of floats it has what an element is computed with on a processor, one element at a time. Nothing says that any of it
may be contracted or flushed, so that LLVM prints `add.rn`, `mul.rn`, `div.rn` and `sqrt.rn`, which no assembler
contracts.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Final

from engine.loops.assembly import Assembly, CarriedValue
from engine.loops.cuda_parts import CudaParts
from engine.loops.cuda_text import WARP, has_reductions, table_entries
from engine.loops.llvm_instructions import literal
from engine.loops.llvm_text import FIRST_FLOATS, KernelText, loop_names
from engine.loops.memory import KernelMemory
from engine.loops.program import Loop, Scalars
from engine.loops.ptx_sums import ptx_sums
from engine.loops.ptx_threads import CardFunction, CardThreads, card_kernel, card_module, rolled
from engine.loops.schedule import Sweep, schedule
from engine.loops.table import table_layout

#: arrays to whose rows a thread keeps pointers, of its 255 registers: more, and an assembler takes five times as long
MOST_POINTERS: Final = 24


def ptx_text(parts: CudaParts, lanes: int, wanted: Container[str]) -> str:
    """A module with the kernels of `cuda_text`, for the same launches; of those that add up, the `wanted` ones.

    The parts have none of FUNCTIONS.
    """
    return card_module(_functions(parts, lanes, wanted))


def _functions(parts: CudaParts, lanes: int, wanted: Container[str]) -> Iterator[CardFunction]:
    entries = table_entries(parts)
    if parts.rows is not None:
        yield card_kernel("rows", entries, _rows(parts.rows, parts.flags, lanes))
    if parts.columns is not None:
        yield card_kernel("columns", entries, _columns(parts.columns))
    loop = parts.rows or parts.columns
    if loop is not None:
        yield from ptx_sums(loop.dtype, entries, wanted)


def _rows(loop: Loop, flags: bool, lanes: int) -> Assembly:
    to, flag = Assembly(loop.dtype), len(loop.results) - 1 if flags else None
    memory, passes = KernelMemory(to, checkable=False), schedule(loop, keeps=False)
    if has_reductions(loop):
        team, each = min(lanes, WARP), max(1, lanes // WARP)
        _Teams(loop, 0, passes, table_layout(loop), to, memory, flag=flag, team=team, each=each).kernel()
    else:
        _Elements(loop, 0, passes, table_layout(loop), to, memory, flag=flag).kernel()
    return to


def _columns(loop: Loop) -> Assembly:
    to = Assembly(loop.dtype)
    memory, passes = KernelMemory(to, checkable=False), schedule(loop, keeps=False)
    _Columns(loop, 0, passes, table_layout(loop), to, memory).kernel()
    return to


class _OnCard(KernelText):
    """Kernels that tell where an element is where they use it, if they have many arrays.

    A pointer to the row, kept while its elements are gone through, takes two registers. What is frozen, LLVM makes no
    pointers of that go from element to element.
    """

    __slots__ = ()

    def _at(self, base: str, type: Scalars, index: str) -> str:
        array = base.removesuffix(".row")
        if array == base or len(self.loop.operands) + len(self.loop.results) <= MOST_POINTERS:
            return super()._at(base, type, index)
        offset = self.to.value(f"freeze i64 {index}")
        for axis, number in self.indices:
            there = self.to.value(f"freeze i64 {number}")
            step = self.to.value(f"mul i64 {there}, {array}.stride{axis}")
            offset = self.to.value(f"add i64 {offset}, {step}")
        return super()._at(array, type, offset)


@dataclass(eq=False, slots=True, kw_only=True)
class _Rows(_OnCard):
    """Row by row: results of the kinds element and row, the last of which may be a flag."""

    flag: int | None

    def _store_result(self, n: int, value: str, at: str, mask: str) -> None:
        if n == self.flag:
            self._tell(n, value, at.removeprefix("%"))
        else:
            super(_Rows, self)._store_result(n, value, at, mask)

    def _tell(self, n: int, value: str, place: str) -> None:
        """Set the flag where `value` holds."""
        with self.to.when(value, f"{place}.tell", f"{place}.told"):
            self.memory.store("i8", "1", f"%result{n}.row")

    def _row_results(self, where: str) -> None:
        """What is stored once a row, by whom `where` says."""
        with self.to.when(where, "row.store", "row.end"):
            self._between(self.schedule.after)
            for n in self._results("row"):
                value = self.loop.results[n].value
                if n == self.flag:
                    self._tell(n, self._scalar(value), "row")
                else:
                    self._store(self._scalar(value), self._type(value), f"%result{n}.row")


class _Elements(_Rows):
    """Elements of which each thread has its own."""

    __slots__ = ()

    def kernel(self) -> None:
        """The function."""
        threads = CardThreads(self.to)
        self._read_table()
        down, along, is_first = threads.stride("y"), threads.stride("x"), threads.is_first()
        with self.to.loop(loop_names("row", "rows.head", "row.begin", "end"), down.first, "%rows", down.step):
            self._begin_row()
            for p, sweep in enumerate(self.schedule.sweeps):
                self._between(sweep.before)
                names = loop_names(f"c{p}", f"s{p}.head", f"s{p}", f"s{p}.past")
                with self.to.loop(names, along.first, "%count", along.step, metadata=rolled(self.loop)):
                    self._body(sweep, names.counter)
            self._row_results(is_first)


@dataclass(eq=False, slots=True, kw_only=True)
class _Teams(_Rows):
    """A team of threads, within a warp, has rows of its own, of which each thread has `each` lanes."""

    team: int
    each: int

    def kernel(self) -> None:
        """The function. All threads of a warp go through all of it, since they meet.

        Those without a row have the last one's, of which they have no elements.
        """
        threads = CardThreads(self.to)
        self._read_table()
        self.to.value(f"and i64 {threads.register('tid.x')}, {self.team - 1}", "%lane")
        self.to.value(f"lshr i64 {threads.register('tid.x')}, {self.team.bit_length() - 1}", "%team")
        own = threads.groups("x", "y", WARP // self.team)
        with self.to.loop(loop_names("first", "rows.head", "row.begin", "end"), own.first, "%rows", own.step):
            self.to.value("add i64 %first, %team", "%own")
            self.to.value("icmp slt i64 %own, %rows", "%there")
            self.to.value("sub i64 %rows, 1", "%last")
            self.to.value("select i1 %there, i64 %own, i64 %last", "%row")
            self._begin_row()
            self.to.value("select i1 %there, i64 %count, i64 0", "%some")
            for p, sweep in enumerate(self.schedule.sweeps):
                self._between(sweep.before)
                self._pass(p, sweep, threads)
            leads = self.to.value("icmp eq i64 %lane, 0")
            self._row_results(self.to.value(f"and i1 %there, {leads}"))

    def _pass(self, p: int, sweep: Sweep, threads: CardThreads) -> None:
        """A sweep over the row; its reductions become scalars of the row."""
        firsts = [FIRST_FLOATS[self.loop.instructions[i].op] for i in sweep.reductions]
        reduced = [
            CarriedValue(f"%r{i}.{k}", self.to.name("float"), literal(first, "float"))
            for k in range(self.each)
            for i, first in zip(sweep.reductions, firsts, strict=True)
        ]
        names = loop_names(f"c{p}", f"s{p}.head", f"s{p}", f"s{p}.past")
        lanes, metadata = self.team * self.each, rolled(self.loop)
        with self.to.loop(names, "%lane", "%some", lanes, reduced, metadata) as given:
            given.extend(self._lane(0, sweep, names.counter))
            for k in range(1, self.each):
                given.extend(self._further_lane(p, k, sweep, names.counter))
        for i in sweep.reductions:
            self.row[i] = self._met(i, threads)

    def _further_lane(self, p: int, k: int, sweep: Sweep, first: str) -> list[str]:
        """An element of a further lane, where the row has it: its reductions then."""
        at = self.to.value(f"add i64 {first}, {k * self.team}", f"{first}.{k}")
        inside, before = self.to.value(f"icmp slt i64 {at}, %some"), self.to.block
        with self.to.when(inside, f"s{p}.lane{k}", f"s{p}.past{k}"):
            found = self._lane(k, sweep, at)
            behind = self.to.block
        type = self.to.name("float")
        return [
            self.to.value(f"phi {type} [ {one}, %{behind} ], [ %r{i}.{k}, %{before} ]")
            for i, one in zip(sweep.reductions, found, strict=True)
        ]

    def _lane(self, k: int, sweep: Sweep, at: str) -> list[str]:
        given = self._body(sweep, at)
        return [self._combined(i, one, f"%r{i}.{k}", 0) for i, one in zip(sweep.reductions, given, strict=True)]

    def _met(self, i: int, threads: CardThreads) -> str:
        """The lanes of a reduction combined: the lower half with the upper one, until there is one, which all get."""
        values = [f"%r{i}.{k}" for k in range(self.each)]
        while len(values) > 1:
            half = len(values) // 2
            values = [self._combined(i, values[k], values[k + half], 0) for k in range(half)]
        found = values[0]
        by = self.team // 2
        while by:
            found = self._combined(i, found, threads.from_above(found, by, self.team), 0)
            by //= 2
        return threads.from_first(found, self.team)


class _Columns(_OnCard):
    """Column by column: each thread adds up one column of one block, row after row."""

    __slots__ = ()

    def kernel(self) -> None:
        """The function."""
        own = CardThreads(self.to).stride("x")
        self._read_table()
        self.to.value("add i64 %rows, %block_rows", "%rows.up")
        self.to.value("sub i64 %rows.up, 1", "%rows.most")
        self.to.value("udiv i64 %rows.most, %block_rows", "%blocks")
        self.to.value("mul i64 %blocks, %columns", "%items")
        with self.to.loop(loop_names("item", "items.head", "item.begin", "end"), own.first, "%items", own.step):
            self._item()

    def _item(self) -> None:
        numbers, float = self._results("columns"), self.to.name("float")
        self._begin_item()
        sums = [CarriedValue(f"%sum{n}", float, literal(0.0, "float")) for n in numbers]
        rows = loop_names("row", "rows.head", "row.begin", "item.end")
        with self.to.loop(rows, "%row.first", "%row.past", 1, sums, rolled(self.loop)) as given:
            self.row.clear()
            self._point_at_row()
            found = dict[int, str]()
            for sweep in self.schedule.sweeps:
                self._between(sweep.before)
                found |= self._computed(sweep, "%c")
            for n in numbers:
                added = self._vector(self.loop.results[n].value, found)
                given.append(self.to.value(f"fadd {float} %sum{n}, {added}"))
        for n in numbers:
            self._store_sum(f"%sum{n}", f"%result{n}", "%item")

    def _begin_item(self) -> None:
        """The column of an item, and the rows of its block in which that is."""
        self.to.value("udiv i64 %item, %columns", "%block")
        self.to.value("mul i64 %block, %columns", "%block.start")
        self.to.value("sub i64 %item, %block.start", "%c")
        self.to.value("mul i64 %block, %block_rows", "%row.first")
        most = self.to.value("add i64 %row.first, %block_rows")
        self.to.least(most, "%rows", "%row.most")
        # row * columns + c < length
        left = self.to.value("sub i64 %length, %c")
        upwards = self.to.value(f"add i64 {left}, {self.to.value('sub i64 %columns, 1')}")
        self.to.least("%row.most", self.to.value(f"udiv i64 {upwards}, %columns"), "%row.past")
