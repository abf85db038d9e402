"""The language of fused kernels: a scalar program in single assignment, swept over rows of columns.

A `FusedKernel` states what is computed at each point of a space of rows and columns, and which results are stored. It
states no sizes, strides, blocks or passes: a `Space` has the sizes, and a printer decides the rest. A scalar stands at
a `Level`: the same everywhere, one a row, or one an element. A reduction of a row stands at ROW, and elements may use
it again. So softmax is one kernel of three passes over each row:

    x = load ELEMENT          operand 0
    m = row_max x             ROW
    e = exp (sub x m)         ELEMENT
    s = row_sum e             ROW
    y = div e s               ELEMENT, stored as result 0

A complex number is a pair: two floats side by side in an operand or a result. Primitives on pairs have the names of
those on floats. The NumPy printer has them; for all others `engine.codegen.functions` writes them in floats, so that a
printer only loads pairs, takes them apart, makes them of two floats, and stores them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Container, Iterable, Sequence
from ctypes import c_float
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final, Literal, NamedTuple

from engine.ir.kinds.scalars import exact
from engine.ir.tensor_type import HostArray

#: float: of the kernel's dtype; int: as wide, for the bits of a float; pair: a complex number, of two floats
Scalars = Literal["float", "bool", "int", "pair"]


class Level(IntEnum):
    """Frequency of a scalar."""

    CONSTANT = 0
    ROW = 1
    ELEMENT = 2


class Primitive(NamedTuple):
    """Operation that every printer can write: types of its operands and of its result."""

    takes: tuple[Scalars, ...]
    gives: Scalars


_F: Final = "float"
_B: Final = "bool"
_I: Final = "int"
_P: Final = "pair"


def _all(names: str, takes: tuple[Scalars, ...], gives: Scalars) -> dict[str, Primitive]:
    return {name: Primitive(takes, gives) for name in names.split()}


#: exact or correctly rounded, as IEEE 754 has them; minimum and maximum give NaN where either operand is NaN
ARITHMETIC: Final = {
    **_all("neg abs sqrt floor ceil rint", (_F,), _F),
    **_all("add sub mul div minimum maximum copysign", (_F, _F), _F),
    **_all("lt le gt ge eq ne", (_F, _F), _B),
    **_all("and or", (_B, _B), _B),
    **_all("not", (_B,), _B),
    **_all("select", (_B, _F, _F), _F),
    **_all("choose", (_B, _B, _B), _B),
}
#: functions of the mathematical library, which `functions` expands into the others; NumPy has its own
FUNCTIONS: Final = {
    **_all("exp expm1 log log1p log2 tanh sin cos erf erfc lgamma trigamma erfinv log_ndtr", (_F,), _F),
    **_all("mod", (_F, _F), _F),
}
#: random numbers, of a key and a counter that floats carry as their bits; `functions` expands them, too
RANDOM: Final = {**_all("threefry_uniform threefry_bits threefry_word", (_F, _F, _F, _F), _F)}
#: what expansions are written in beside ARITHMETIC: a fused multiply-add, and the bits of a float
BITS: Final = {
    **_all("fma", (_F, _F, _F), _F),
    **_all("bits", (_F,), _I),
    **_all("from_bits", (_I,), _F),
    **_all("iadd isub iand ior ixor shl ashr", (_I, _I), _I),
    **_all("ieq ilt", (_I, _I), _B),
}
#: over the columns of a row, in any order; max and min give NaN where an element is NaN
REDUCTIONS: Final = {**_all("row_sum row_prod row_max row_min", (_F,), _F)}
#: a complex number of two floats, and these of it
PAIR_PARTS: Final = {**_all("pair", (_F, _F), _P), **_all("real imag", (_P,), _F)}
PRIMITIVES: Final = {**ARITHMETIC, **FUNCTIONS, **RANDOM, **BITS, **REDUCTIONS, **PAIR_PARTS}
#: what complex numbers have, by the words for floats: NumPy has it, and `functions` writes it in PAIR_PARTS
PAIRS: Final = {
    **_all("neg conj reciprocal sqrt exp log sin cos sinh cosh tanh", (_P,), _P),
    **_all("add sub mul div", (_P, _P), _P),
    **_all("eq ne", (_P, _P), _B),
    **_all("select", (_B, _P, _P), _P),
    **_all("abs angle", (_P,), _F),
}


class Instruction(NamedTuple):
    """One scalar: an operation on earlier ones.

    Besides the primitives, `op` is constant (`data` is its number: a float as the dtype holds it, or an int), or load
    (`data` is the operand's number).
    """

    op: str
    args: tuple[int, ...]
    data: Any
    type: Scalars
    level: Level


class KernelOperand(NamedTuple):
    """Operand of a kernel: one value an element, side by side along a row, or one a row (all strides may be 0)."""

    level: Level
    type: Scalars


ResultKind = Literal["element", "row", "columns", "total"]


class KernelResult(NamedTuple):
    """Result of a kernel.

    `element` and `row` store a scalar of that level. `columns` adds elements up over the rows: one result a column.
    `total` adds up a scalar of level ROW over the rows: one result. Both add block by block, and then the blocks.
    """

    kind: ResultKind
    value: int

    @property
    def adds_up(self) -> bool:
        """Whether it is a sum over rows, and not stored."""
        return self.kind in ("columns", "total")


class FusedKernel(NamedTuple):
    """A program: equal ones are equal, and `repr` says all of it."""

    dtype: str  # float32, float64
    row_axes: int  # axes that the rows have, with a stride each in every operand
    operands: tuple[KernelOperand, ...]
    instructions: tuple[Instruction, ...]
    results: tuple[KernelResult, ...]


class Space(NamedTuple):
    """The sizes that a kernel runs over.

    Row r has the elements r · columns to min((r + 1) · columns, length): so the last row may be short. Where it is,
    there is one row axis, and what varies with the element lies densely. `rows` are the extents of the row axes.
    """

    rows: tuple[int, ...]
    columns: int
    length: int
    #: rows whose sums make one part; a result depends on it, and on nothing else of how the work is divided
    block: int
    #: for each operand, then each result: elements to step along each row axis; () for columns and total
    strides: tuple[tuple[int, ...], ...]


def has_pairs(loop: FusedKernel) -> bool:
    """Whether any number of a kernel is complex."""
    return any(instruction.type == _P for instruction in loop.instructions)


def refuse_pairs(loop: FusedKernel, number: int) -> None:
    """Raise TypeError for a scalar that is computed with complex numbers, which only NumPy's printer writes."""
    found = loop.instructions[number]
    if _P in (found.type, *(loop.instructions[a].type for a in found.args)):
        raise TypeError(f"{found.op} of complex numbers has to be written in their parts")


def part_elements(loop: FusedKernel, space: Space) -> int:
    """Count the elements of the sums that one part has of all results: a value a column, or one."""
    return sum({"columns": space.columns, "total": 1}.get(result.kind, 0) for result in loop.results)


@dataclass(eq=False, slots=True)
class KernelBuilder:
    """A fused kernel being written. Equal scalars are one."""

    dtype: str
    row_axes: int = 1
    operands: list[KernelOperand] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)
    results: list[KernelResult] = field(default_factory=list)
    _known: dict[Any, int] = field(default_factory=dict)

    def load(self, level: Level, type: Scalars = _F) -> Scalar:
        """Add an operand, and load it."""
        self.operands.append(KernelOperand(level, type))
        return self._scalar("load", (), len(self.operands) - 1, type, level)

    def constant(self, number: float) -> Scalar:
        """Make a number, rounded to the kernel's dtype; or as it is, if only an integer dtype has it."""
        held = c_float(number).value if self.dtype == "float32" else exact(number)
        return self._scalar("constant", (), held, _F, Level.CONSTANT)

    def integer(self, number: int) -> Scalar:
        """Make a whole number as wide as the dtype."""
        return self._scalar("constant", (), number, _I, Level.CONSTANT)

    def apply(self, op: str, *args: Scalar | float) -> Scalar:
        """Apply a primitive, which is that of complex numbers if one operand is a pair."""
        if any(isinstance(a, Scalar) and a.type == _P for a in args):
            return self._of_pairs(op, args)
        takes, gives = PRIMITIVES[op]
        operands = [a if isinstance(a, Scalar) else self.constant(a) for a in args]
        if op == "select" and operands[1].type == _B:
            op, takes, gives = "choose", *PRIMITIVES["choose"]
        types = tuple(a.type for a in operands)
        if types != takes:
            raise TypeError(f"{op} takes {', '.join(takes)}, but got {', '.join(types)}")
        level = Level.ROW if op in REDUCTIONS else max(a.level for a in operands)
        return self._scalar(op, tuple(a.number for a in operands), None, gives, level)

    def as_pair(self, x: Scalar | float) -> Scalar:
        """Return a pair as it is; make anything else one with the imaginary part 0."""
        if not isinstance(x, Scalar):
            return self.apply("pair", x, 0.0)
        if x.type == _B:
            x = x.where(1.0, 0.0)
        return x if x.type == _P else self.apply("pair", x, 0.0)

    def _of_pairs(self, op: str, args: Sequence[Scalar | float]) -> Scalar:
        """Apply a primitive of complex numbers. Real operands become complex before, except Python numbers."""
        if op in ("real", "imag"):
            return self._part(op, *args)
        if op in ("add", "sub", "mul", "div") and not all(isinstance(a, Scalar) for a in args):
            return self._with_number(op, *args)
        if op not in PAIRS:
            raise TypeError(f"there is no {op} of complex numbers")
        takes, gives = PAIRS[op]
        operands = [self.as_pair(a) if type == _P else a for a, type in zip(args, takes, strict=True)]
        assert all(isinstance(a, Scalar) for a in operands)
        scalars = [a for a in operands if isinstance(a, Scalar)]
        return self._scalar(op, tuple(a.number for a in scalars), None, gives, max(a.level for a in scalars))

    def _part(self, op: str, x: Scalar | float) -> Scalar:
        """Return a part of a pair; if the pair was made here, the float that it was made of."""
        assert isinstance(x, Scalar)
        made = self.instructions[x.number]
        if made.op == "pair":
            number = made.args[op == "imag"]
            return Scalar(self, number, _F, self.instructions[number].level)
        return self._scalar(op, (x.number,), None, _F, x.level)

    def _with_number(self, op: str, a: Scalar | float, b: Scalar | float) -> Scalar:
        """Apply arithmetic with a real number, which shifts the real part, and scales each part (C99)."""
        if not isinstance(a, Scalar):
            assert isinstance(b, Scalar)
            if op == "div":
                return b.reciprocal() if a == 1 else b.reciprocal() * a
            return self.apply("add", -b, a) if op == "sub" else self.apply(op, b, a)
        im = a.imag() if op in ("add", "sub") else self.apply(op, a.imag(), b)
        return self.apply("pair", self.apply(op, a.real(), b), im)

    def store(self, kind: ResultKind, value: Scalar) -> int:
        """Make a scalar a result, and return its number."""
        self.results.append(KernelResult(kind, value.number))
        return len(self.results) - 1

    def loop(self) -> FusedKernel:
        """Return the kernel that has been written."""
        operands, instructions, results = tuple(self.operands), tuple(self.instructions), tuple(self.results)
        return FusedKernel(self.dtype, self.row_axes, operands, instructions, results)

    def _scalar(self, op: str, args: tuple[int, ...], data: Any, type: Scalars, level: Level) -> Scalar:
        # 0.0 == -0.0, 1 == 1.0 and nan != nan: a constant is told by its bits
        bits = struct.pack("d", data) if isinstance(data, float) else data
        number = self._known.setdefault((op, args, type, bits), len(self.instructions))
        if number == len(self.instructions):
            self.instructions.append(Instruction(op, args, data, type, level))
        return Scalar(self, number, type, level)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar of a builder, as formulas handle it: a method for every primitive, operators, and Python numbers."""

    builder: KernelBuilder
    number: int
    type: Scalars
    level: Level

    @property
    def dtype(self) -> str:
        """float32 or float64: what the kernel computes in."""
        return self.builder.dtype

    def __getattr__(self, name: str) -> Callable[..., Scalar]:
        op = name.rstrip("_")  # and_, or_, not_
        if op not in PRIMITIVES and op not in PAIRS:
            raise AttributeError(f"there is no primitive {name}")
        return lambda *others: self.builder.apply(op, self, *others)

    def where(self, on_true: Scalar | float, on_false: Scalar | float) -> Scalar:
        """Return `on_true` where this is true, else `on_false`."""
        return self.builder.apply("select", self, on_true, on_false)

    def __add__(self, other: Scalar | float) -> Scalar:
        return self.builder.apply("add", self, other)

    def __sub__(self, other: Scalar | float) -> Scalar:
        return self.builder.apply("sub", self, other)

    def __mul__(self, other: Scalar | float) -> Scalar:
        return self.builder.apply("mul", self, other)

    def __truediv__(self, other: Scalar | float) -> Scalar:
        return self.builder.apply("div", self, other)

    def __radd__(self, other: float) -> Scalar:
        return self.builder.apply("add", other, self)

    def __rsub__(self, other: float) -> Scalar:
        return self.builder.apply("sub", other, self)

    def __rmul__(self, other: float) -> Scalar:
        return self.builder.apply("mul", other, self)

    def __rtruediv__(self, other: float) -> Scalar:
        return self.builder.apply("div", other, self)

    def __neg__(self) -> Scalar:
        return self.builder.apply("neg", self)

    def __lt__(self, other: Scalar | float) -> Scalar:
        return self.builder.apply("lt", self, other)

    def __le__(self, other: Scalar | float) -> Scalar:
        return self.builder.apply("le", self, other)

    def __gt__(self, other: Scalar | float) -> Scalar:
        return self.builder.apply("gt", self, other)

    def __ge__(self, other: Scalar | float) -> Scalar:
        return self.builder.apply("ge", self, other)


class Extreme(NamedTuple):
    """Minimum or maximum as one comparison: `first` if it is NaN or exceeds `second`, else `second`, which may be NaN.

    `sees_nan` is false where `first` is a number: there is no need to look. Where `takes_ties`, it is `first` too if
    the two are equal. So of zeros of two signs it is the second operand of the kernel's instruction, as in NumPy.
    """

    first: int
    second: int
    sees_nan: bool
    takes_ties: bool


def extreme(loop: FusedKernel, number: int) -> Extreme:
    """Return the minimum or maximum that is scalar `number`: a constant comes first."""
    first, second = loop.instructions[number].args
    turned = _is_number(loop, second)
    if turned:
        first, second = second, first
    # Of two equal numbers other than 0 it makes no difference, and without ties it is one instruction.
    return Extreme(first, second, not _is_number(loop, first), turned and not loop.instructions[first].data)


def _is_number(loop: FusedKernel, scalar: int) -> bool:
    instruction = loop.instructions[scalar]
    return instruction.op == "constant" and bool(instruction.data == instruction.data)  # NaN is not


# The passes of a fused kernel: what each sweep over a row computes, stores in scratch and reads back.
#
# Every printer follows them, and reads sizes, addresses and strides from one table of whole numbers.

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
