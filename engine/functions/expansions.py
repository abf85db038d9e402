"""Functions of the mathematical library, written out in primitives that every processor has.

What is written has no branches: it is the same for every element, so a vector takes no longer than a number. Bounds of
the errors are in docs/accuracy.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from engine.functions.circular import CIRCULAR_LIMIT, write_cos, write_sin
from engine.functions.error_functions import write_erf, write_erfc
from engine.functions.exponentials import write_exp, write_expm1, write_tanh
from engine.functions.gamma_functions import write_lgamma, write_trigamma
from engine.functions.logarithms import write_log, write_log1p, write_log2
from engine.functions.normal_functions import write_erfinv, write_log_ndtr
from engine.functions.pairs import split_pairs
from engine.functions.products import may_leave_range
from engine.functions.remainder import has_long_quotient, write_mod
from engine.functions.threefry import write_threefry_bits, write_threefry_uniform, write_threefry_word
from engine.loops.program import Instruction, Level, Loop, LoopBuilder, Scalar

WRITERS: Final[Mapping[str, Callable[..., Scalar]]] = {
    "exp": write_exp,
    "expm1": write_expm1,
    "log": write_log,
    "log1p": write_log1p,
    "log2": write_log2,
    "tanh": write_tanh,
    "sin": write_sin,
    "cos": write_cos,
    "erf": write_erf,
    "erfc": write_erfc,
    "lgamma": write_lgamma,
    "trigamma": write_trigamma,
    "erfinv": write_erfinv,
    "log_ndtr": write_log_ndtr,
    "mod": write_mod,
    "threefry_uniform": write_threefry_uniform,
    "threefry_bits": write_threefry_bits,
    "threefry_word": write_threefry_word,
}


def _is_far(x: Scalar) -> Scalar:
    return x.abs() > CIRCULAR_LIMIT[x.dtype]


#: whether arguments are out of the range that a function is written for, or a product is right for in any order
OUT_OF_RANGE: Final[Mapping[str, Callable[..., Scalar]]] = {
    "sin": _is_far,
    "cos": _is_far,
    "lgamma": lambda x: x < 0.0,
    "trigamma": lambda x: x < 0.0,
    "mod": has_long_quotient,
    "row_prod": may_leave_range,
}


def reports_range(loop: Loop) -> bool:
    """Whether `expand_functions` adds a result, which says that arguments are out of range."""
    return any(i.op in OUT_OF_RANGE for i in split_pairs(loop).instructions)


def expand_functions(loop: Loop) -> Loop:
    """The kernel with FUNCTIONS and RANDOM written in ARITHMETIC and BITS, and PAIRS in PAIR_PARTS; all else stays.

    Where `reports_range` is true, there is one result more, the last: a total, which is 0 where no arguments are
    `OUT_OF_RANGE`. Where it is not, all other results are to be computed in another way.
    """
    loop = split_pairs(loop)
    builder = LoopBuilder(loop.dtype, loop.row_axes)
    loads = [builder.load(operand.level, operand.type) for operand in loop.operands]
    written: list[Scalar] = []
    out_of_range: list[Scalar] = []
    for instruction in loop.instructions:
        args = [written[a] for a in instruction.args]
        if instruction.op in OUT_OF_RANGE:
            out_of_range.append(OUT_OF_RANGE[instruction.op](*args))
        written.append(_written(builder, instruction, args, loads))
    for result in loop.results:
        builder.store(result.kind, written[result.value])
    if out_of_range:
        builder.store("total", _count(out_of_range))
    return builder.loop()


def _written(builder: LoopBuilder, instruction: Instruction, args: list[Scalar], loads: list[Scalar]) -> Scalar:
    match instruction.op:
        case "load":
            operand: int = instruction.data
            return loads[operand]
        case "constant" if instruction.type == "int":
            return builder.integer(instruction.data)
        case "constant":
            return builder.constant(instruction.data)
        case op if op in WRITERS:
            return WRITERS[op](*args)
        case op:
            return builder.apply(op, *args)


def _count(conditions: list[Scalar]) -> Scalar:
    """How often any of them is true in a row, or whether it is, for a row itself."""
    first, *others = conditions
    for other in others:
        first = first.or_(other)
    count = first.where(1.0, 0.0)
    return count if count.level == Level.ROW else count.row_sum()
