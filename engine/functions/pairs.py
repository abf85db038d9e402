"""A kernel of complex numbers written in their parts: what every printer but NumPy's has."""

from __future__ import annotations

from engine.functions.complex_functions import COMPLEX_WRITERS, ComplexParts
from engine.loops.program import Instruction, Loop, LoopBuilder, Scalar, has_pairs


def split_pairs(loop: Loop) -> Loop:
    """The kernel with pairs only where they are read, taken apart, put together and written; others as they are."""
    if not has_pairs(loop):
        return loop
    builder = LoopBuilder(loop.dtype, loop.row_axes)
    loads = [builder.load(operand.level, operand.type) for operand in loop.operands]
    written: list[Scalar | ComplexParts] = []
    for instruction in loop.instructions:
        written.append(_written(builder, instruction, [written[a] for a in instruction.args], loads))
    for result in loop.results:
        value = written[result.value]
        builder.store(result.kind, builder.apply("pair", *value) if isinstance(value, ComplexParts) else value)
    return builder.loop()


def _written(
    builder: LoopBuilder, instruction: Instruction, args: list[Scalar | ComplexParts], loads: list[Scalar]
) -> Scalar | ComplexParts:
    op, data = instruction.op, instruction.data
    if op == "load":
        x = loads[data]
        return ComplexParts(x.real(), x.imag()) if x.type == "pair" else x
    if op == "constant":
        return builder.integer(data) if instruction.type == "int" else builder.constant(data)
    if instruction.type == "pair" or any(isinstance(a, ComplexParts) for a in args):
        found: Scalar | ComplexParts = COMPLEX_WRITERS[op](*args)
        return found
    return builder.apply(op, *(a for a in args if isinstance(a, Scalar)))
