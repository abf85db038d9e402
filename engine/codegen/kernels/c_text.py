"""A fused kernel as C: its arrays in a row, its scalars, and what a sweep computes of an element."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from engine.codegen.kernels.program import (
    FusedKernel,
    Scalars,
    Schedule,
    Sweep,
    TableEntry,
    extreme,
    refuse_pairs,
    table_layout,
)

# In the expressions, F is the kernel's float, I an int as wide, P a pair of floats; a bool is an int of 0 or 1. The
# names in capitals are macros, so that another dialect of C needs other definitions and nothing else.

#: types of scalars, and of what lies in memory
NAMES: Final[dict[Scalars, str]] = {"float": "F", "int": "I", "bool": "int", "pair": "P"}
STORED: Final[dict[Scalars, str]] = {"float": "F", "int": "I", "bool": "unsigned char", "pair": "P"}

_INFIX: Final = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "iand": "&", "ior": "|", "ixor": "^",
    "ashr": ">>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "ieq": "==", "ilt": "<",
}  # fmt: skip
#: signed overflow is not defined in C, so these are computed without a sign
_UNSIGNED: Final = {"iadd": "+", "isub": "-", "shl": "<<"}
_FUNCTIONS: Final = ("abs", "sqrt", "floor", "ceil", "rint", "copysign", "fma", "bits", "from_bits")

_HOST: Final = """\
typedef {float} F; typedef {int} I; typedef unsigned {int} U; typedef struct {{ F real, imag; }} P;
#define RESTRICT restrict
#define PAIR(re, im) (P){{re, im}}
#define ABS __builtin_fabs{suffix}
#define SQRT __builtin_sqrt{suffix}
#define FLOOR __builtin_floor{suffix}
#define CEIL __builtin_ceil{suffix}
#define RINT __builtin_rint{suffix}
#define COPYSIGN __builtin_copysign{suffix}
#define FMA __builtin_fma{suffix}
#define INFINITE __builtin_inf{suffix}()
#define NOT_A_NUMBER __builtin_nan{suffix}("")
static inline I BITS(F x) {{ union {{ F f; I i; }} u; u.f = x; return u.i; }}
static inline F FROM_BITS(I x) {{ union {{ F f; I i; }} u; u.i = x; return u.f; }}
"""
#: for every dialect
EXTREMES: Final = """\
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define SMALLER(a, b) ((a) < (b) ? (a) : (b))
#define MAXIMUM(a, b) ((a) != (a) ? (a) : LARGER(a, b))
#define MINIMUM(a, b) ((a) != (a) ? (a) : SMALLER(a, b))
"""


def host_definitions(dtype: str) -> str:
    """Print the macros of expressions for gcc and clang."""
    words = ("float", "int", "f") if dtype == "float32" else ("double", "long long", "")
    return _HOST.format(float=words[0], int=words[1], suffix=words[2]) + EXTREMES


def c_literal(number: float, type: Scalars, dtype: str) -> str:
    """Print a number in C, to the last bit."""
    if type == "int":
        return f"((I)0x{int(number) & (1 << 64) - 1:x}ULL)"
    if math.isnan(number):
        return "NOT_A_NUMBER"
    if math.isinf(number):
        return "INFINITE" if number > 0 else "(-INFINITE)"
    return f"({number.hex()}{'f' if dtype == 'float32' else ''})"


def c_expression(loop: FusedKernel, number: int, args: Sequence[str]) -> str:
    """Print the primitive of scalar `number` on these operands."""
    op = loop.instructions[number].op
    if op == "pair":
        return f"PAIR({', '.join(args)})"
    if op in ("real", "imag"):
        return f"{args[0]}.{op}"
    refuse_pairs(loop, number)
    if op in _INFIX:
        return f"{args[0]} {_INFIX[op]} {args[1]}"
    if op in _UNSIGNED:
        return f"(I)((U){args[0]} {_UNSIGNED[op]} (U){args[1]})"
    if op in _FUNCTIONS:
        return f"{op.upper()}({', '.join(args)})"
    if op in ("select", "choose"):
        return f"{args[0]} ? {args[1]} : {args[2]}"
    if op in ("neg", "not"):
        return f"{'-' if op == 'neg' else '!'}{args[0]}"
    found = extreme(loop, number)
    names = dict(zip(loop.instructions[number].args, args, strict=True))
    first, second = names[found.first], names[found.second]
    if found.takes_ties:
        return f"{first} {'>=' if op == 'maximum' else '<='} {second} ? {first} : {second}"
    return c_extreme(op, first, second, sees_nan=found.sees_nan)


def c_extreme(op: str, first: str, second: str, *, sees_nan: bool = True) -> str:
    """Print the maximum or minimum of two floats, as `Extreme` says; of equal ones the second."""
    plain = {"maximum": "LARGER", "minimum": "SMALLER"}
    return f"{op.upper() if sees_nan else plain[op]}({first}, {second})"


#: first values of reductions
FIRST: Final = {"row_sum": "0", "row_prod": "1", "row_max": "(-INFINITE)", "row_min": "INFINITE"}


class CKernel:
    """Printer of a kernel, line by line. The table is `table`, a row `row`."""

    def __init__(self, loop: FusedKernel, passes: Schedule) -> None:
        self.loop = loop
        self.schedule = passes
        self.layout = table_layout(loop)

    def sizes(self) -> Iterator[str]:
        """Print the sizes of the space."""
        for size in ("columns", "length", "rows", "block_rows"):
            yield f"const long long {size} = table[{int(TableEntry[size.upper()])}];"

    def results(self, kind: str) -> list[int]:
        """List the results of a kind, by number."""
        return [n for n, result in enumerate(self.loop.results) if result.kind == kind]

    def pointers(self) -> Iterator[str]:
        """Print the place of this row in each array."""
        axes = range(self.loop.row_axes)
        yield "long long rest = row;"
        for axis in reversed(axes[1:]):
            extent = f"table[{TableEntry.EXTENTS + axis}]"
            yield f"const long long index{axis} = rest % {extent}; rest /= {extent};"
        if axes:
            yield "const long long index0 = rest;"
        for name, position, stored in self._arrays():
            steps = "".join(f" + index{axis} * table[{position + 1 + axis}]" for axis in axes)
            yield f"{stored}* RESTRICT {name} = ({stored}*)table[{position}]{steps};"

    def _arrays(self) -> Iterator[tuple[str, int, str]]:
        """List operands and results that have strides: name, position in the table, type."""
        for n, (operand, position) in enumerate(zip(self.loop.operands, self.layout.operands, strict=True)):
            yield f"operand{n}", position, f"const {STORED[operand.type]}"
        for n, (result, position) in enumerate(zip(self.loop.results, self.layout.results, strict=True)):
            if not result.adds_up:
                yield f"result{n}", position, STORED[self.type(result.value)]

    def type(self, number: int) -> Scalars:
        """Return the type of a scalar."""
        return self.loop.instructions[number].type

    def name(self, number: int) -> str:
        """Print a scalar that has been defined, or a number."""
        found = self.loop.instructions[number]
        return c_literal(found.data, found.type, self.loop.dtype) if found.op == "constant" else f"v{number}"

    def between(self, numbers: Iterable[int]) -> Iterator[str]:
        """Print scalars of a row, between its sweeps."""
        for number in numbers:
            yield self._defined(number, "0")

    def computed(self, sweep: Sweep, at: str) -> Iterator[str]:
        """Print the scalars that a sweep computes of the element in column `at`."""
        for number in sweep.computed:
            yield self._defined(number, at)

    def _defined(self, number: int, at: str) -> str:
        """Print a scalar: its load, or an expression of earlier ones."""
        found = self.loop.instructions[number]
        if found.op == "load":
            value = f"operand{found.data}[{at}]"
        else:
            value = c_expression(self.loop, number, [self.name(a) for a in found.args])
        return f"const {NAMES[found.type]} v{number} = {value};"

    def reduced(self, i: int, so_far: str) -> str:
        """Combine a reduction so far with the element of a sweep."""
        return f"{so_far} = {self.combined(i, self.name(self.loop.instructions[i].args[0]), so_far)};"

    def combined(self, i: int, one: str, other: str) -> str:
        """Combine two values of a reduction."""
        op = self.loop.instructions[i].op
        sign = {"row_sum": "+", "row_prod": "*"}.get(op)
        return f"{other} {sign} {one}" if sign else c_extreme(op.replace("row_", "") + "imum", one, other)
