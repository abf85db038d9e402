"""What adds up the results of a loop on a card, as LLVM IR: the kernels of `cuda_text.SUMS`, in the same order."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Final

from engine.loops.assembly import Assembly, CarriedValue
from engine.loops.cuda_text import SUM_ENTRIES, SUMS_HEAD
from engine.loops.llvm_instructions import literal
from engine.loops.llvm_text import loop_names
from engine.loops.memory import KernelMemory
from engine.loops.ptx_threads import CardFunction, CardThreads, card_kernel

#: entries of their tables: rows, rows of a block and blocks; of a sum, what is added up, the result, and columns
_ROWS, _BLOCK_ROWS, _BLOCKS = range(SUMS_HEAD)
_ADDENDS, _RESULT, _COLUMNS = range(SUMS_HEAD, SUMS_HEAD + SUM_ENTRIES)
#: how NumPy adds up pairwise: in so many sums side by side, and by halves where there are more than so many addends
_SIDE_BY_SIDE: Final = 8
_MOST: Final = 128
_ZERO: Final = literal(0.0, "float")


def ptx_sums(dtype: str, entries: int, wanted: Container[str]) -> Iterator[CardFunction]:
    """The `wanted` ones of those kernels, and what they call. Their tables have so many entries."""
    for name, text in (
        ("add_rows", _AddRows(dtype)),
        ("add_parts", _AddParts(dtype)),
    ):
        if name in wanted:
            text.kernel()
            yield card_kernel(name, entries, text.to)
    if "add_parts" in wanted:
        pairwise = _Pairwise(dtype)
        pairwise.function()
        yield CardFunction(f"internal {pairwise.float} @pairwise(ptr %a, i64 %n)", pairwise.to)


class _Sum:
    """A function while it is written."""

    def __init__(self, dtype: str) -> None:
        self.to = Assembly(dtype)
        self.memory = KernelMemory(self.to, checkable=False)
        self.threads = CardThreads(self.to)
        self.float = self.to.name("float")

    def read_table(self) -> None:
        """Sizes, and the addresses of the sum that has the number of this block along y."""
        for position, name in (_ROWS, "rows"), (_BLOCK_ROWS, "block_rows"), (_BLOCKS, "blocks"):
            self.memory.word(position, "i64", f"%{name}")
        moved = self.to.value(f"mul i64 {self.threads.register('ctaid.y')}, {SUM_ENTRIES}")
        self.memory.word(_ADDENDS, "ptr", "%a", moved)
        self.memory.word(_RESULT, "ptr", "%sums", moved)
        self.memory.word(_COLUMNS, "i64", "%columns", moved)

    def addend(self, index: str) -> str:
        """One of them."""
        return self.memory.load(self.float, self.memory.further("%a", self.float, index))

    def sum(self, first: str = _ZERO) -> CarriedValue:
        """What is added up from one to the next."""
        return CarriedValue("%sum", self.float, first)

    def added(self, one: str, other: str) -> str:
        """A sum of two."""
        return self.to.value(f"fadd {self.float} {one}, {other}")

    def chosen(self, name: str, here: str, else_from: str, else_sum: str, done: str, else_done: str = "0") -> None:
        """The sum of what is done, and how many that are: behind a block that may have been passed by."""
        for what, type, one, other in ("sum", self.float, name, else_sum), ("done", "i64", done, else_done):
            self.to.value(f"phi {type} [ {one}, %{here} ], [ {other}, %{else_from} ]", f"{name}.{what}")

    def store(self, value: str, index: str) -> None:
        """Write a sum."""
        self.memory.store(self.float, value, self.memory.further("%sums", self.float, index))


class _AddRows(_Sum):
    """The addends of a block of rows, in their order."""

    def kernel(self) -> None:
        self.read_table()
        first, step = self.threads.stride("x")
        with self.to.loop(loop_names("block", "blocks.head", "block.begin", "end"), first, "%blocks", step):
            self.to.value("mul i64 %block, %block_rows", "%row.first")
            self.to.least(self.to.value("add i64 %row.first, %block_rows"), "%rows", "%row.past")
            rows = loop_names("row", "rows.head", "row.begin", "block.end")
            with self.to.loop(rows, "%row.first", "%row.past", carried=[self.sum()]) as given:
                given.append(self.added("%sum", self.addend("%row")))
            self.store("%sum", "%block")


class _AddParts(_Sum):
    """The parts of a column: as NumPy adds up the first of two axes, and where there is one column, one axis."""

    def kernel(self) -> None:
        self.read_table()
        self.to.value("icmp eq i64 %columns, 1", "%is_one")
        first, step = self.threads.stride("x")
        with self.to.loop(loop_names("c", "columns.head", "column", "end"), first, "%columns", step):
            with self.to.when("%is_one", "pairwise", "parts"):
                self.to.value(f"call {self.float} @pairwise(ptr %a, i64 %blocks)", "%all")
            self.chosen("%all", "pairwise", "column", _ZERO, "%blocks")
            blocks = loop_names("b", "blocks.head", "block", "column.end")
            with self.to.loop(blocks, "%all.done", "%blocks", carried=[self.sum("%all.sum")]) as given:
                before = self.to.value("mul i64 %b, %columns")
                given.append(self.added("%sum", self.addend(self.to.value(f"add i64 {before}, %c"))))
            self.store("%sum", "%c")


class _Pairwise(_Sum):
    """`pairwise(a, n)`, which calls itself for halves."""

    def function(self) -> None:
        to = self.to
        self.memory.given("%a", _ADDENDS)
        to.value(f"and i64 %n, {-_SIDE_BY_SIDE}", "%whole")
        with to.when(to.value(f"icmp sgt i64 %n, {_MOST}", "%is_many"), "halves", "parts"):
            self._by_halves()
        self.chosen("%halved", "halves", "entry", _ZERO, "%n")
        to.value(f"icmp sge i64 %n, {_SIDE_BY_SIDE}", "%is_some")
        to.value("xor i1 %is_many, true", "%is_no_more")
        with to.when(to.value("and i1 %is_some, %is_no_more"), "side_by_side", "rest"):
            eighths = self._side_by_side()
        self.chosen(eighths, "eighths.past", "parts", "%halved.sum", "%whole", "%halved.done")
        names = loop_names("i", "rest.head", "rest.one", "rest.past")
        with to.loop(names, f"{eighths}.done", "%n", carried=[self.sum(f"{eighths}.sum")]) as given:
            given.append(self.added("%sum", self.addend("%i")))
        to.line(f"ret {self.float} %sum")

    def _by_halves(self) -> None:
        to = self.to
        to.value("lshr i64 %n, 1", "%middle")
        to.value(f"and i64 %middle, {-_SIDE_BY_SIDE}", "%low")
        to.value("sub i64 %n, %low", "%high")
        above = self.memory.further("%a", self.float, "%low")
        low = to.value(f"call {self.float} @pairwise(ptr %a, i64 %low)")
        high = to.value(f"call {self.float} @pairwise(ptr {above}, i64 %high)")
        to.value(f"fadd {self.float} {low}, {high}", "%halved")

    def _side_by_side(self) -> str:
        """Eight sums, added up by halves: the name of that."""
        firsts = [self.addend(str(k)) for k in range(_SIDE_BY_SIDE)]
        sums = [CarriedValue(f"%r{k}", self.float, first) for k, first in enumerate(firsts)]
        names = loop_names("e", "eighths.head", "eighths", "eighths.past")
        with self.to.loop(names, _SIDE_BY_SIDE, "%whole", _SIDE_BY_SIDE, sums) as given:
            for k, (name, _, _) in enumerate(sums):
                given.append(self.added(name, self.addend(self.to.value(f"add i64 %e, {k}"))))
        values = [name for name, _, _ in sums]
        while len(values) > 2:
            values = [self.added(one, other) for one, other in zip(values[::2], values[1::2], strict=True)]
        self.to.value(f"fadd {self.float} {values[0]}, {values[1]}", "%by_eighths")
        return "%by_eighths"
