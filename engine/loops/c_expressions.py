"""Single instructions of a kernel as expressions of C, and the macros that these are written in.

F is the kernel's float, I an int as wide, P a pair of floats, a bool is an int of 0 or 1. The names in capitals are
macros, so that another dialect of C needs other definitions and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from engine.loops.extremes import extreme
from engine.loops.program import Loop, Scalars, refuse_pairs

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
    """What expressions are written in, for gcc and clang."""
    words = ("float", "int", "f") if dtype == "float32" else ("double", "long long", "")
    return _HOST.format(float=words[0], int=words[1], suffix=words[2]) + EXTREMES


def c_literal(number: float, type: Scalars, dtype: str) -> str:
    """A number as C has it, to the last bit."""
    if type == "int":
        return f"((I)0x{int(number) & (1 << 64) - 1:x}ULL)"
    if math.isnan(number):
        return "NOT_A_NUMBER"
    if math.isinf(number):
        return "INFINITE" if number > 0 else "(-INFINITE)"
    return f"({number.hex()}{'f' if dtype == 'float32' else ''})"


def c_expression(loop: Loop, number: int, args: Sequence[str]) -> str:
    """The primitive that scalar `number` is, of these operands."""
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
    """The maximum or minimum of two floats, as `Extreme` says; of equal ones the second."""
    plain = {"maximum": "LARGER", "minimum": "SMALLER"}
    return f"{op.upper() if sees_nan else plain[op]}({first}, {second})"
