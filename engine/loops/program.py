"""The loop language: a scalar program in single assignment, swept over rows of columns.

A `Loop` says what is computed at each point of a space of rows and columns, and what becomes of it. It says nothing of
sizes, strides, blocks or passes: a `Space` has the sizes, and a printer decides the rest. A scalar stands at a `Level`:
the same everywhere, one a row, or one an element; what reduces a row stands at ROW and may be used by elements again,
so that softmax is one loop of three passes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from ctypes import c_float
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final, Literal, NamedTuple

from engine.graph.kinds.typed_number import exact

Scalars = Literal["float", "bool", "int"]  # float: of the loop's dtype; int: as wide, for the bits of a float


class Level(IntEnum):
    """Frequency of a scalar: how often it is there."""

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
PRIMITIVES: Final = {**ARITHMETIC, **FUNCTIONS, **RANDOM, **BITS, **REDUCTIONS}


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


class LoopOperand(NamedTuple):
    """Operand of a loop: one value an element, side by side along a row, or one a row (all strides may be 0)."""

    level: Level
    type: Scalars


ResultKind = Literal["element", "row", "columns", "total"]


class LoopResult(NamedTuple):
    """Result of a loop.

    `element` and `row` store a scalar of that level. `columns` adds elements up over the rows: one result a column.
    `total` adds up a scalar of level ROW over the rows: one result. Both add block by block, and then the blocks.
    """

    kind: ResultKind
    value: int

    @property
    def adds_up(self) -> bool:
        """Whether it is a sum over rows, and not stored."""
        return self.kind in ("columns", "total")


class Loop(NamedTuple):
    """A program: equal ones are equal, and `repr` says all of it."""

    dtype: str  # float32, float64
    row_axes: int  # axes that the rows have, with a stride each in every operand
    operands: tuple[LoopOperand, ...]
    instructions: tuple[Instruction, ...]
    results: tuple[LoopResult, ...]


class Space(NamedTuple):
    """The sizes that a loop runs over.

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


def part_elements(loop: Loop, space: Space) -> int:
    """Elements of the sums that one part has of all results: a value a column, or one."""
    return sum({"columns": space.columns, "total": 1}.get(result.kind, 0) for result in loop.results)


@dataclass(eq=False, slots=True)
class LoopBuilder:
    """A loop being written. Equal scalars are one."""

    dtype: str
    row_axes: int = 1
    operands: list[LoopOperand] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)
    results: list[LoopResult] = field(default_factory=list)
    _known: dict[Any, int] = field(default_factory=dict)

    def load(self, level: Level, type: Scalars = _F) -> Scalar:
        """A new operand, read."""
        self.operands.append(LoopOperand(level, type))
        return self._scalar("load", (), len(self.operands) - 1, type, level)

    def constant(self, number: float) -> Scalar:
        """A number, rounded to the loop's dtype: or as it is, where only an integer dtype has it."""
        held = c_float(number).value if self.dtype == "float32" else exact(number)
        return self._scalar("constant", (), held, _F, Level.CONSTANT)

    def integer(self, number: int) -> Scalar:
        """A whole number as wide as the dtype."""
        return self._scalar("constant", (), number, _I, Level.CONSTANT)

    def apply(self, op: str, *args: Scalar | float) -> Scalar:
        """A primitive of these."""
        takes, gives = PRIMITIVES[op]
        operands = [a if isinstance(a, Scalar) else self.constant(a) for a in args]
        if op == "select" and operands[1].type == _B:
            op, takes, gives = "choose", *PRIMITIVES["choose"]
        found = tuple(a.type for a in operands)
        if found != takes:
            raise TypeError(f"{op} takes {', '.join(takes)}, but got {', '.join(found)}")
        level = Level.ROW if op in REDUCTIONS else max(a.level for a in operands)
        return self._scalar(op, tuple(a.number for a in operands), None, gives, level)

    def store(self, kind: ResultKind, value: Scalar) -> int:
        """Make a scalar a result: its number."""
        self.results.append(LoopResult(kind, value.number))
        return len(self.results) - 1

    def loop(self) -> Loop:
        """What has been written."""
        return Loop(self.dtype, self.row_axes, tuple(self.operands), tuple(self.instructions), tuple(self.results))

    def _scalar(self, op: str, args: tuple[int, ...], data: Any, type: Scalars, level: Level) -> Scalar:
        # 0.0 == -0.0, 1 == 1.0 and nan != nan: a constant is told by its bits
        said = struct.pack("d", data) if isinstance(data, float) else data
        number = self._known.setdefault((op, args, type, said), len(self.instructions))
        if number == len(self.instructions):
            self.instructions.append(Instruction(op, args, data, type, level))
        return Scalar(self, number, type, level)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar of a builder, as formulas handle it: a method for every primitive, operators, and Python numbers."""

    builder: LoopBuilder
    number: int
    type: Scalars
    level: Level

    @property
    def dtype(self) -> str:
        """float32 or float64: what the loop computes in."""
        return self.builder.dtype

    def __getattr__(self, name: str) -> Callable[..., Scalar]:
        op = name.rstrip("_")  # and_, or_, not_
        if op not in PRIMITIVES:
            raise AttributeError(f"there is no primitive {name}")
        return lambda *others: self.builder.apply(op, self, *others)

    def where(self, on_true: Scalar | float, on_false: Scalar | float) -> Scalar:
        """`on_true` where this is true, else `on_false`."""
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
