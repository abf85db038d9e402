"""C of a fused kernel: its arrays in a row, its scalars, and the expressions that a sweep computes for an element."""

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

# In expressions, F is the kernel's float, I an int of the same width, and P a pair of floats; a bool is the int 0 or 1.
# Names in capitals are macros, so that another dialect of C (CUDA) only needs other definitions.

#: C types of scalars in registers, and in memory
NAMES: Final[dict[Scalars, str]] = {"float": "F", "int": "I", "bool": "int", "pair": "P"}
STORED: Final[dict[Scalars, str]] = {"float": "F", "int": "I", "bool": "unsigned char", "pair": "P"}

_INFIX: Final = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "iand": "&", "ior": "|", "ixor": "^",
    "ashr": ">>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "ieq": "==", "ilt": "<",
}  # fmt: skip
#: operations computed on unsigned integers, since signed overflow is undefined in C
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
#: definitions for every dialect
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
    """Print a number in C, exact to the last bit."""
    if type == "int":
        return f"((I)0x{int(number) & (1 << 64) - 1:x}ULL)"
    if math.isnan(number):
        return "NOT_A_NUMBER"
    if math.isinf(number):
        return "INFINITE" if number > 0 else "(-INFINITE)"
    # Hexadecimal notation loses no bits.
    return f"({number.hex()}{'f' if dtype == 'float32' else ''})"


def c_expression(fused: FusedKernel, number: int, args: Sequence[str]) -> str:
    """Print the primitive of scalar `number` applied to these operands."""
    op = fused.instructions[number].op
    if op == "pair":
        return f"PAIR({', '.join(args)})"
    if op in ("real", "imag"):
        return f"{args[0]}.{op}"
    refuse_pairs(fused, number)
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
    comparison = extreme(fused, number)
    names = dict(zip(fused.instructions[number].args, args, strict=True))
    first, second = names[comparison.first], names[comparison.second]
    if comparison.takes_ties:
        return f"{first} {'>=' if op == 'maximum' else '<='} {second} ? {first} : {second}"
    return c_extreme(op, first, second, sees_nan=comparison.sees_nan)


def c_extreme(op: str, first: str, second: str, *, sees_nan: bool = True) -> str:
    """Print the maximum or minimum of two floats as in `Extreme`; of equal floats, the second."""
    plain = {"maximum": "LARGER", "minimum": "SMALLER"}
    return f"{op.upper() if sees_nan else plain[op]}({first}, {second})"


#: initial values of reductions
FIRST: Final = {"row_sum": "0", "row_prod": "1", "row_max": "(-INFINITE)", "row_min": "INFINITE"}


class CKernel:
    """Printer of a kernel, line by line. The C code names the table `table` and the row `row`."""

    def __init__(self, fused: FusedKernel, passes: Schedule) -> None:
        self.fused = fused
        self.schedule = passes
        self.layout = table_layout(fused)

    def sizes(self) -> Iterator[str]:
        """Print the sizes of the space."""
        for size in ("columns", "length", "rows", "block_rows"):
            yield f"const long long {size} = table[{int(TableEntry[size.upper()])}];"

    def results(self, kind: str) -> list[int]:
        """List the numbers of the results of a kind."""
        return [n for n, result in enumerate(self.fused.results) if result.kind == kind]

    def pointers(self) -> Iterator[str]:
        """Print the address of this row in each array."""
        axes = range(self.fused.row_axes)
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
        """Yield operands and results that have strides: name, position in the table, type."""
        for n, (operand, position) in enumerate(zip(self.fused.operands, self.layout.operands, strict=True)):
            yield f"operand{n}", position, f"const {STORED[operand.type]}"
        for n, (result, position) in enumerate(zip(self.fused.results, self.layout.results, strict=True)):
            if not result.adds_up:
                yield f"result{n}", position, STORED[self.type(result.value)]

    def type(self, number: int) -> Scalars:
        """Return the type of a scalar."""
        return self.fused.instructions[number].type

    def name(self, number: int) -> str:
        """Print a scalar that has been defined, or a constant."""
        scalar = self.fused.instructions[number]
        return c_literal(scalar.data, scalar.type, self.fused.dtype) if scalar.op == "constant" else f"v{number}"

    def between(self, numbers: Iterable[int]) -> Iterator[str]:
        """Print the ROW scalars between two sweeps."""
        for number in numbers:
            yield self._defined(number, "0")

    def computed(self, sweep: Sweep, column: str) -> Iterator[str]:
        """Print the scalars that a sweep computes for the element in a column."""
        for number in sweep.computed:
            yield self._defined(number, column)

    def _defined(self, number: int, column: str) -> str:
        """Print the definition of a scalar: a load, or an expression of earlier scalars."""
        scalar = self.fused.instructions[number]
        if scalar.op == "load":
            value = f"operand{scalar.data}[{column}]"
        else:
            value = c_expression(self.fused, number, [self.name(a) for a in scalar.args])
        return f"const {NAMES[scalar.type]} v{number} = {value};"

    def reduced(self, i: int, so_far: str) -> str:
        """Print the update of a reduction with the current element of a sweep."""
        return f"{so_far} = {self.combined(i, self.name(self.fused.instructions[i].args[0]), so_far)};"

    def combined(self, i: int, first: str, second: str) -> str:
        """Print the combination of two values of a reduction."""
        op = self.fused.instructions[i].op
        sign = {"row_sum": "+", "row_prod": "*"}.get(op)
        return f"{second} {sign} {first}" if sign else c_extreme(op.replace("row_", "") + "imum", first, second)
