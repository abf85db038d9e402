"""minimum and maximum as every compiled kernel has them: one comparison, and a look for NaN where there may be one."""

from __future__ import annotations

from typing import NamedTuple

from engine.loops.program import Loop


class Extreme(NamedTuple):
    """How one is computed: `first` if it is NaN or exceeds `second`, else `second`, which so may be NaN.

    Of zeros of two signs it is the second. `sees_nan` is false where `first` is a number: there is no need to look.
    """

    first: int
    second: int
    sees_nan: bool


def extreme(loop: Loop, number: int) -> Extreme:
    """The minimum or maximum that is scalar `number`: a constant comes first."""
    first, second = loop.instructions[number].args
    if _is_number(loop, second):
        first, second = second, first
    return Extreme(first, second, not _is_number(loop, first))


def _is_number(loop: Loop, scalar: int) -> bool:
    instruction = loop.instructions[scalar]
    return instruction.op == "constant" and bool(instruction.data == instruction.data)  # NaN is not
