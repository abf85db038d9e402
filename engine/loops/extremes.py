"""minimum and maximum as every compiled kernel has them: one comparison, and a look for NaN where there may be one."""

from __future__ import annotations

from typing import NamedTuple

from engine.loops.program import Loop


class Extreme(NamedTuple):
    """Choice of one of two: `first` if it is NaN or exceeds `second`, else `second`, which so may be NaN.

    `sees_nan` is false where `first` is a number: there is no need to look. Where `takes_ties`, it is `first` too if
    the two are equal. So of zeros of two signs it is the second operand of the kernel's instruction, as in NumPy.
    """

    first: int
    second: int
    sees_nan: bool
    takes_ties: bool


def extreme(loop: Loop, number: int) -> Extreme:
    """The minimum or maximum that is scalar `number`: a constant comes first."""
    first, second = loop.instructions[number].args
    turned = _is_number(loop, second)
    if turned:
        first, second = second, first
    # Of two equal numbers other than 0 it makes no difference, and without ties it is one instruction.
    return Extreme(first, second, not _is_number(loop, first), turned and not loop.instructions[first].data)


def _is_number(loop: Loop, scalar: int) -> bool:
    instruction = loop.instructions[scalar]
    return instruction.op == "constant" and bool(instruction.data == instruction.data)  # NaN is not
