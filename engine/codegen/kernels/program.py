"""The language of fused kernels: a scalar program in single assignment form, swept over rows of columns.

A `FusedKernel` is a list of instructions on scalars, as in LLVM, and the scalars that are stored as results. It
describes one point of a space of rows and columns, without sizes, strides, blocks or passes. A `Space` has the sizes,
and a printer (NumPy, LLVM IR, C, CUDA) decides the rest.

Each scalar has a `Level`: constant, one value a row, or one value an element. A reduction turns the ELEMENT scalars of
a row into one ROW scalar, which later ELEMENT scalars may use, so that a kernel may need several passes over a row:

    x = load ELEMENT          operand 0
    m = row_max x             ROW
    e = exp (sub x m)         ELEMENT
    s = row_sum e             ROW
    y = div e s               ELEMENT, stored as result 0: softmax(x)

`schedule` divides a program into sweeps over the columns, each as early as its operands allow. Here there are three:

    sweep 0    loads x, reduces m
    sweep 1    loads x again, computes e, reduces s, saves e in scratch because exp is costly
    sweep 2    fetches e from scratch, computes and stores y

The row stays in the cache between sweeps, and m, e and s never become whole arrays. Sums over rows (the result kinds
`columns` and `total`) are added within blocks of rows, and then over the blocks in a fixed order, so that their bits do
not depend on the number of threads. Programs are built with `KernelBuilder`, which merges equal scalars.

A complex number is a pair of floats, stored side by side. Primitives on pairs have the names of those on floats, but
only the NumPy printer has them. For the other printers, `engine.codegen.functions` rewrites them in floats, so that
these printers only load, split, make and store pairs.
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

#: types of scalars. float: the kernel's dtype; int: as wide as a float, for its bits; pair: a complex number
Scalars = Literal["float", "bool", "int", "pair"]


class Level(IntEnum):
    """Frequency at which a scalar is computed: once, once per row, or once per element."""

    CONSTANT = 0
    ROW = 1
    ELEMENT = 2


class Primitive(NamedTuple):
    """Operation that every printer supports: the types of its operands and of its result."""

    operands: tuple[Scalars, ...]
    result: Scalars


_F: Final = "float"
_B: Final = "bool"
_I: Final = "int"
_P: Final = "pair"


def _all(names: str, takes: tuple[Scalars, ...], gives: Scalars) -> dict[str, Primitive]:
    return {name: Primitive(takes, gives) for name in names.split()}


#: exact or correctly rounded operations of IEEE 754; minimum and maximum are NaN if either operand is NaN
ARITHMETIC: Final = {
    **_all("neg abs sqrt floor ceil rint", (_F,), _F),
    **_all("add sub mul div minimum maximum copysign", (_F, _F), _F),
    **_all("lt le gt ge eq ne", (_F, _F), _B),
    **_all("and or", (_B, _B), _B),
    **_all("not", (_B,), _B),
    **_all("select", (_B, _F, _F), _F),
    **_all("choose", (_B, _B, _B), _B),
}
#: functions of the mathematical library: NumPy's own, or expanded by `engine.codegen.functions` into other primitives
FUNCTIONS: Final = {
    **_all("exp expm1 log log1p log2 tanh sech2 sin cos erf erfc lgamma trigamma erfinv log_ndtr", (_F,), _F),
    **_all("mod", (_F, _F), _F),
}
#: random numbers from a key and a counter, passed as the bits of floats; expanded like FUNCTIONS
RANDOM: Final = {**_all("threefry_uniform threefry_bits threefry_word", (_F, _F, _F, _F), _F)}
#: operations that expansions use besides ARITHMETIC: fused multiply-add, and integer operations on a float's bits
BITS: Final = {
    **_all("fma", (_F, _F, _F), _F),
    **_all("bits", (_F,), _I),
    **_all("from_bits", (_I,), _F),
    **_all("iadd isub iand ior ixor shl ashr", (_I, _I), _I),
    **_all("ieq ilt", (_I, _I), _B),
}
#: reductions over the columns of a row, in any order; max and min are NaN if an element is NaN
REDUCTIONS: Final = {**_all("row_sum row_prod row_max row_min", (_F,), _F)}
#: conversions between a complex number and its two floats
PAIR_PARTS: Final = {**_all("pair", (_F, _F), _P), **_all("real imag", (_P,), _F)}
PRIMITIVES: Final = {**ARITHMETIC, **FUNCTIONS, **RANDOM, **BITS, **REDUCTIONS, **PAIR_PARTS}
#: operations on complex numbers, under the names of those on floats: NumPy's own, or rewritten in PAIR_PARTS
PAIRS: Final = {
    **_all("neg conj reciprocal sqrt exp log sin cos sinh cosh tanh", (_P,), _P),
    **_all("add sub mul div", (_P, _P), _P),
    **_all("eq ne", (_P, _P), _B),
    **_all("select", (_B, _P, _P), _P),
    **_all("abs angle", (_P,), _F),
}


class Instruction(NamedTuple):
    """One scalar: an operation on earlier scalars.

    Besides the primitives, `op` may be constant (`data` is its value: a float as the dtype holds it, or an int), or
    load (`data` is the operand's number).
    """

    op: str
    args: tuple[int, ...]
    data: Any
    type: Scalars
    level: Level


class KernelOperand(NamedTuple):
    """Operand of a kernel: one value an element, contiguous along a row, or one value a row (all strides may be 0)."""

    level: Level
    type: Scalars


ResultKind = Literal["element", "row", "columns", "total"]


class KernelResult(NamedTuple):
    """Result of a kernel.

    `element` and `row` store a scalar of that level. `columns` sums elements over the rows, one result a column.
    `total` sums a ROW scalar over the rows, one result. Both sums are added within each block, and then over the
    blocks.
    """

    kind: ResultKind
    value: int

    @property
    def adds_up(self) -> bool:
        """Whether the result is a sum over rows."""
        return self.kind in ("columns", "total")


class FusedKernel(NamedTuple):
    """A program. Equal programs compare equal, and `repr` describes the program completely."""

    dtype: str  # float32, float64
    row_axes: int  # axes of the rows; every operand has a stride along each
    operands: tuple[KernelOperand, ...]
    instructions: tuple[Instruction, ...]
    results: tuple[KernelResult, ...]


class Space(NamedTuple):
    """Sizes of the space that a kernel runs over.

    Row r has the elements r · columns to min((r + 1) · columns, length), so that the last row may be short. If it is,
    there is one row axis, and arrays with one value an element are contiguous. `rows` are the extents of the row axes.
    """

    rows: tuple[int, ...]
    columns: int
    length: int
    #: rows of a block, whose sums make one part; no other choice in dividing the work affects the bits of a result
    block: int
    #: for each operand, then each result: strides in elements along the row axes; () for columns and total
    strides: tuple[tuple[int, ...], ...]


def has_pairs(fused: FusedKernel) -> bool:
    """Whether any scalar of a kernel is complex."""
    return any(instruction.type == _P for instruction in fused.instructions)


def refuse_pairs(fused: FusedKernel, number: int) -> None:
    """Raise TypeError if a scalar is computed with complex numbers, which only NumPy's printer supports."""
    instruction = fused.instructions[number]
    if _P in (instruction.type, *(fused.instructions[a].type for a in instruction.args)):
        raise TypeError(f"{instruction.op} of complex numbers has to be written in their parts")


def part_elements(fused: FusedKernel, space: Space) -> int:
    """Count the elements of one block's parts of all sums: a value a column for `columns`, one for `total`."""
    return sum({"columns": space.columns, "total": 1}.get(result.kind, 0) for result in fused.results)


@dataclass(eq=False, slots=True)
class KernelBuilder:
    """A fused kernel under construction. Equal scalars are merged."""

    dtype: str
    row_axes: int = 1
    operands: list[KernelOperand] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)
    results: list[KernelResult] = field(default_factory=list)
    _numbers: dict[Any, int] = field(default_factory=dict)

    def load(self, level: Level, type: Scalars = _F) -> Scalar:
        """Add an operand and load it."""
        self.operands.append(KernelOperand(level, type))
        return self._scalar("load", (), len(self.operands) - 1, type, level)

    def constant(self, number: float) -> Scalar:
        """Return a constant, rounded to the kernel's dtype; an integer that no float holds stays exact."""
        value = c_float(number).value if self.dtype == "float32" else exact(number)
        return self._scalar("constant", (), value, _F, Level.CONSTANT)

    def integer(self, number: int) -> Scalar:
        """Return an integer constant, as wide as the dtype."""
        return self._scalar("constant", (), number, _I, Level.CONSTANT)

    def apply(self, op: str, *args: Scalar | float) -> Scalar:
        """Apply a primitive; on complex numbers if an operand is a pair."""
        if any(isinstance(a, Scalar) and a.type == _P for a in args):
            return self._apply_to_pairs(op, args)
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
        """Return a pair unchanged, and anything else as a pair with imaginary part 0."""
        if not isinstance(x, Scalar):
            return self.apply("pair", x, 0.0)
        if x.type == _B:
            x = x.where(1.0, 0.0)
        return x if x.type == _P else self.apply("pair", x, 0.0)

    def _apply_to_pairs(self, op: str, args: Sequence[Scalar | float]) -> Scalar:
        """Apply a primitive to complex numbers. Real operands are converted to pairs, except Python numbers."""
        if op in ("real", "imag"):
            return self._real_or_imag(op, *args)
        if op in ("add", "sub", "mul", "div") and not all(isinstance(a, Scalar) for a in args):
            return self._with_number(op, *args)
        if op not in PAIRS:
            raise TypeError(f"there is no {op} of complex numbers")
        takes, gives = PAIRS[op]
        operands = [self.as_pair(a) if type == _P else a for a, type in zip(args, takes, strict=True)]
        assert all(isinstance(a, Scalar) for a in operands)
        scalars = [a for a in operands if isinstance(a, Scalar)]
        return self._scalar(op, tuple(a.number for a in scalars), None, gives, max(a.level for a in scalars))

    def _real_or_imag(self, op: str, x: Scalar | float) -> Scalar:
        """Return a part of a pair; if the pair was built in this kernel, the float that it was built from."""
        assert isinstance(x, Scalar)
        pair = self.instructions[x.number]
        if pair.op == "pair":
            number = pair.args[op == "imag"]
            return Scalar(self, number, _F, self.instructions[number].level)
        return self._scalar(op, (x.number,), None, _F, x.level)

    def _with_number(self, op: str, a: Scalar | float, b: Scalar | float) -> Scalar:
        """Apply arithmetic with a real number, which shifts only the real part, or scales both parts (C99)."""
        if not isinstance(a, Scalar):
            assert isinstance(b, Scalar)
            if op == "div":
                return b.reciprocal() if a == 1 else b.reciprocal() * a
            return self.apply("add", -b, a) if op == "sub" else self.apply(op, b, a)
        im = a.imag() if op in ("add", "sub") else self.apply(op, a.imag(), b)
        return self.apply("pair", self.apply(op, a.real(), b), im)

    def store(self, kind: ResultKind, value: Scalar) -> int:
        """Make a scalar a result; return the result's number."""
        self.results.append(KernelResult(kind, value.number))
        return len(self.results) - 1

    def build(self) -> FusedKernel:
        """Return the finished kernel."""
        operands, instructions, results = tuple(self.operands), tuple(self.instructions), tuple(self.results)
        return FusedKernel(self.dtype, self.row_axes, operands, instructions, results)

    def _scalar(self, op: str, args: tuple[int, ...], data: Any, type: Scalars, level: Level) -> Scalar:
        # Constants are compared by their bits, since 0.0 == -0.0, 1 == 1.0 and nan != nan.
        bits = struct.pack("d", data) if isinstance(data, float) else data
        number = self._numbers.setdefault((op, args, type, bits), len(self.instructions))
        if number == len(self.instructions):
            self.instructions.append(Instruction(op, args, data, type, level))
        return Scalar(self, number, type, level)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar of a builder, for use in formulas: a method for every primitive, operators, and Python numbers."""

    builder: KernelBuilder
    number: int
    type: Scalars
    level: Level

    @property
    def dtype(self) -> str:
        """float32 or float64: the dtype of the kernel's floats."""
        return self.builder.dtype

    def __getattr__(self, name: str) -> Callable[..., Scalar]:
        op = name.rstrip("_")  # and_, or_, not_
        if op not in PRIMITIVES and op not in PAIRS:
            raise AttributeError(f"there is no primitive {name}")
        return lambda *others: self.builder.apply(op, self, *others)

    def where(self, on_true: Scalar | float, on_false: Scalar | float) -> Scalar:
        """Return `on_true` where this scalar is true, else `on_false`."""
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

    If `sees_nan` is false, `first` is known to be a number and needs no check. If `takes_ties`, `first` also wins if
    the two are equal. So of zeros with different signs, the instruction's second operand wins, as in NumPy.
    """

    first: int
    second: int
    sees_nan: bool
    takes_ties: bool


def extreme(fused: FusedKernel, number: int) -> Extreme:
    """Return the minimum or maximum that is scalar `number`, with a constant moved to the first place."""
    first, second = fused.instructions[number].args
    swapped = _is_number(fused, second)
    if swapped:
        first, second = second, first
    # A tie only matters between zeros of different signs. Without ties the comparison is one machine instruction.
    return Extreme(first, second, not _is_number(fused, first), swapped and not fused.instructions[first].data)


def _is_number(fused: FusedKernel, scalar: int) -> bool:
    instruction = fused.instructions[scalar]
    return instruction.op == "constant" and bool(instruction.data == instruction.data)  # false for NaN


# The schedule of a fused kernel: the values that each sweep over a row computes, saves in scratch and fetches back.
#
# Every printer follows the same schedule, and reads sizes, addresses and strides from one table of integers.

#: cost of recomputing an element, in additions, from which it is saved for later sweeps instead
COSTLY = 8
#: limit of the bytes of all instructions' vectors of a kernel: the size of the machine code grows with them
MOST_VECTOR_BYTES = 96 * 1024
#: bytes of one vector: four AVX-512 registers, whose latencies overlap; and one register
WIDEST_VECTOR, NARROWEST_VECTOR = 256, 64


class Sweep(NamedTuple):
    """One pass over the columns of a row. Lists of scalars are in the order of the program."""

    #: ROW scalars computed before the sweep
    before: tuple[int, ...]
    #: ELEMENT scalars read back from scratch
    fetched: tuple[int, ...]
    #: ELEMENT scalars computed, including loads
    computed: tuple[int, ...]
    #: computed scalars that are saved in scratch
    saved: tuple[int, ...]
    reductions: tuple[int, ...]
    #: numbers of the `element` and `columns` results that are written
    results: tuple[int, ...]


class Schedule(NamedTuple):
    """Order of the work on a row: the sweeps, the ROW scalars `after` them, then the results `row` and `total`.

    `scratch` lists the saved scalars; the one at position p is stored in row p of the scratch memory.
    """

    sweeps: tuple[Sweep, ...]
    after: tuple[int, ...]
    scratch: tuple[int, ...]


def schedule(fused: FusedKernel, *, use_scratch: bool = True) -> Schedule:
    """Schedule the sweeps of a kernel, each as early as possible. Scalars that no result needs are left out.

    Without `use_scratch`, a later sweep recomputes the scalars that it needs again.
    """
    live = _closure(fused, (result.value for result in fused.results))
    ready = _ready(fused, live)
    reductions = [i for i in sorted(live) if fused.instructions[i].op in REDUCTIONS]
    swept = [r for r, result in enumerate(fused.results) if result.kind in ("element", "columns")]
    starts = {i: ready[fused.instructions[i].args[0]] for i in reductions}
    writes = {r: ready[fused.results[r].value] for r in swept}
    # A reduction runs in the sweep in which its operand becomes ready; a result is stored in the first sweep that can.
    count = 1 + max([*starts.values(), *writes.values()], default=-1)
    roots = [
        [fused.instructions[i].args[0] for i in reductions if starts[i] == p]
        + [fused.results[r].value for r in swept if writes[r] == p]
        for p in range(count)
    ]
    rows = [
        i
        for i in sorted(live)
        if (scalar := fused.instructions[i]).level != Level.ELEMENT and scalar.op not in {"constant", *REDUCTIONS}
    ]
    # Only scalars that a later sweep really fetches get a row of scratch.
    read = _read_elements(fused, roots, _costly_reused(fused, roots) if use_scratch else set())
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


def lanes_of(fused: FusedKernel, columns: int) -> int:
    """Choose the elements of a vector: a power of two, enough for the columns, fewer for long programs.

    The bits of a row's sum depend on the number of lanes.
    """
    width = 4 if fused.dtype == "float32" else 8
    lanes = WIDEST_VECTOR // width
    # Each instruction is printed once for a vector of this width, and LLVM splits it into registers. So a long program
    # of wide vectors makes long machine code.
    while lanes * width > NARROWEST_VECTOR and lanes * width * len(fused.instructions) > MOST_VECTOR_BYTES:
        lanes //= 2
    return min(lanes, 1 << max(columns - 1, 0).bit_length())


def _closure(fused: FusedKernel, roots: Iterable[int]) -> set[int]:
    """Return the scalars that the roots depend on, including the roots."""
    closure: set[int] = set()
    pending = list(roots)
    while pending:
        number = pending.pop()
        if number not in closure:
            closure.add(number)
            pending += fused.instructions[number].args
    return closure


def _ready(fused: FusedKernel, live: Container[int]) -> list[int]:
    """Count for each scalar the sweeps that must be over before it can be computed."""
    ready: list[int] = []
    for i, instruction in enumerate(fused.instructions):
        sweeps = max((ready[a] for a in instruction.args), default=0) if i in live else 0
        # A reduction is complete only after the sweep in which its operand is computed.
        ready.append(sweeps + (instruction.op in REDUCTIONS))
    return ready


def _read_elements(
    fused: FusedKernel, roots: list[list[int]], saved: set[int]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """List for each sweep the ELEMENT scalars that it fetches (from the `saved`) and the ones that it computes."""
    computed = set[int]()
    sweeps = []
    for needed in roots:
        elements = _elements(fused, needed, saved & computed)
        fetched = elements & saved & computed
        computed |= elements - fetched
        sweeps.append((tuple(sorted(fetched)), tuple(sorted(elements - fetched))))
    return sweeps


def _costly_reused(fused: FusedKernel, roots: list[list[int]]) -> set[int]:
    """Return scalars that later sweeps reuse and that are costly to recompute, as close to their use as possible.

    A scalar that is cheap to compute from other saved scalars is not saved.
    """
    computed, saved = set[int](), set[int]()
    for needed in roots:
        # From the scalars that this sweep needs, walk back to costly scalars of earlier sweeps, and no further: those
        # found first are the closest to their use.
        costly = {i for i in computed if _is_costly(fused, i, ())}
        elements = _elements(fused, needed, costly)
        saved |= elements & costly
        computed |= elements - costly
    # Once other scalars are saved, recomputing one may have become cheap.
    for number in sorted(saved):
        if not _is_costly(fused, number, saved - {number}):
            saved.discard(number)
    return saved


def _elements(fused: FusedKernel, roots: Iterable[int], ends: Container[int]) -> set[int]:
    """Return the ELEMENT scalars that the roots depend on, without those that only `ends` need."""
    reached: set[int] = set()
    pending = list(roots)
    while pending:
        number = pending.pop()
        if number not in reached and fused.instructions[number].level == Level.ELEMENT:
            reached.add(number)
            pending += () if number in ends else fused.instructions[number].args
    return reached


def _is_costly(fused: FusedKernel, number: int, known: Container[int]) -> bool:
    """Whether recomputing a scalar costs COSTLY or more if the `known` scalars can be read."""
    visited, pending, cost = {number}, [number], 0
    while pending and cost < COSTLY:
        instruction = fused.instructions[pending.pop()]
        cost += COSTLY if instruction.op in ("div", "sqrt") or instruction.op in FUNCTIONS else 1
        for a in instruction.args:
            if a not in visited and a not in known and fused.instructions[a].level == Level.ELEMENT:
                visited.add(a)
                pending.append(a)
    return cost >= COSTLY


class TableEntry(IntEnum):
    """Positions of the sizes in a kernel's table of integers; the extents of the row axes come last."""

    COLUMNS = 0
    LENGTH = 1
    ROWS = 2
    BLOCK_ROWS = 3
    EXTENTS = 4


class TableLayout(NamedTuple):
    """Positions of the operands' and results' addresses in the table. Strides along row axes follow each address."""

    operands: tuple[int, ...]
    results: tuple[int, ...]
    scratch: int

    @property
    def size(self) -> int:
        """Number of entries of the table."""
        return self.scratch + 1


def put_space(tables: HostArray, layout: TableLayout, space: Space) -> None:
    """Write the sizes and strides of a space into tables, int64 [threads, entries]."""
    sizes = space.columns, space.length, math.prod(space.rows), space.block, *space.rows
    tables[:, TableEntry.COLUMNS : TableEntry.COLUMNS + len(sizes)] = sizes
    for position, strides in zip((*layout.operands, *layout.results), space.strides, strict=True):
        tables[:, position + 1 : position + 1 + len(strides)] = strides


def table_layout(fused: FusedKernel) -> TableLayout:
    """Lay out a table: columns, length, rows, block, row axes' extents; operands, results, and a thread's scratch.

    The results `columns` and `total` have no strides: the part of block b begins at element b · columns, or is number
    b.
    """
    position = TableEntry.EXTENTS + fused.row_axes
    operands, results = [], []
    for _ in fused.operands:
        operands.append(position)
        position += 1 + fused.row_axes
    for result in fused.results:
        results.append(position)
        position += 1 + (0 if result.adds_up else fused.row_axes)
    return TableLayout(tuple(operands), tuple(results), position)
