"""Single instructions of a kernel as LLVM IR: on scalars (one of it), or on vectors of explicit width."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from engine.loops.assembly import Assembly
from engine.loops.extremes import extreme
from engine.loops.program import PAIR_PARTS, Loop, Scalars, refuse_pairs

_BINARY: Final = {
    "add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "and": "and", "or": "or",
    "iadd": "add", "isub": "sub", "iand": "and", "ior": "or", "ixor": "xor", "shl": "shl", "ashr": "ashr",
}  # fmt: skip
_COMPARISONS: Final = {
    "lt": "fcmp olt", "le": "fcmp ole", "gt": "fcmp ogt", "ge": "fcmp oge", "eq": "fcmp oeq", "ne": "fcmp une",
    "ieq": "icmp eq", "ilt": "icmp slt",
}  # fmt: skip
_INTRINSICS: Final = {
    "abs": "fabs", "sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "rint": "rint", "copysign": "copysign",
    "fma": "fma",
}  # fmt: skip


def literal(number: float, type: Scalars) -> str:
    """A number as a constant of LLVM: a float by the bits of a double, of either width."""
    if type == "float":
        return f"0x{struct.unpack('Q', struct.pack('d', number))[0]:016X}"
    return str(int(number))


def instruction(to: Assembly, loop: Loop, number: int, args: Sequence[str], lanes: int = 0) -> str:
    """Write the primitive that scalar `number` is, of these operands: the name of its result."""
    op, operands = loop.instructions[number].op, loop.instructions[number].args
    type = loop.instructions[operands[0]].type
    taken, floats, bools = to.name(type, lanes), to.name("float", lanes), to.name("bool", lanes)
    if op in PAIR_PARTS:
        return to.paired(args[0], args[1], lanes) if op == "pair" else to.part(args[0], lanes, int(op == "imag"))
    refuse_pairs(loop, number)
    if op in _BINARY:
        return to.value(f"{_BINARY[op]} {taken} {args[0]}, {args[1]}")
    if op in _COMPARISONS:
        return to.value(f"{_COMPARISONS[op]} {taken} {args[0]}, {args[1]}")
    if op in _INTRINSICS:
        return _intrinsic(to, _INTRINSICS[op], args, lanes)
    if op in ("select", "choose"):
        chosen = to.name(loop.instructions[number].type, lanes)
        return to.value(f"select {bools} {args[0]}, {chosen} {args[1]}, {chosen} {args[2]}")
    if op in ("bits", "from_bits"):
        return to.value(f"bitcast {taken} {args[0]} to {to.name(loop.instructions[number].type, lanes)}")
    if op in ("neg", "not"):
        true = "splat (i1 true)" if lanes else "true"
        return to.value(f"fneg {floats} {args[0]}" if op == "neg" else f"xor {bools} {args[0]}, {true}")
    found = extreme(loop, number)
    by_number = dict(zip(operands, args, strict=True))
    first, second = by_number[found.first], by_number[found.second]
    if found.takes_ties:
        return _either(to, "oge" if op == "maximum" else "ole", first, second, lanes)
    return larger(to, op, first, second, lanes, sees_nan=found.sees_nan)


def larger(to: Assembly, op: str, first: str, second: str, lanes: int, *, sees_nan: bool = True) -> str:
    """The larger of two floats, or for "minimum" the smaller, as `Extreme` says; of equal ones the second."""
    floats, bools = to.name("float", lanes), to.name("bool", lanes)
    found = _either(to, "ogt" if op == "maximum" else "olt", first, second, lanes)
    if not sees_nan:
        return found
    nan = to.value(f"fcmp uno {floats} {first}, {first}")
    return to.value(f"select {bools} {nan}, {floats} {first}, {floats} {found}")


def _either(to: Assembly, comparison: str, first: str, second: str, lanes: int) -> str:
    """`first` where it compares so with `second`, else `second`."""
    floats, bools = to.name("float", lanes), to.name("bool", lanes)
    holds = to.value(f"fcmp {comparison} {floats} {first}, {second}")
    return to.value(f"select {bools} {holds}, {floats} {first}, {floats} {second}")


def _intrinsic(to: Assembly, function: str, args: Sequence[str], lanes: int) -> str:
    floats, name = to.name("float", lanes), f"llvm.{function}.{to.suffix('float', lanes)}"
    to.declare(floats, name, *(floats for _ in args))
    return to.value(f"call {floats} @{name}(" + ", ".join(f"{floats} {a}" for a in args) + ")")
