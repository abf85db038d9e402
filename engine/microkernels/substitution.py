"""Systems with triangular matrices, one right-hand side after the other: each unknown from those before it."""

from __future__ import annotations

import math

from engine.graph.tensor_type import TensorType
from engine.microkernels.axes import steps_over, without_matrices
from engine.microkernels.recipe import Recipe
from engine.microkernels.routine import Int64, Routine


def substitution(out: TensorType, a: TensorType, b: TensorType, *, lower: bool, transpose: bool) -> Recipe:
    """Operand 0 has the triangles, operand 1 the right-hand sides; batch axes broadcast."""
    to, n = Routine(out.dtype.name, 1), out.shape[-2]
    batch = out.shape[:-2]
    across = a.strides[:-3:-1] if transpose else a.strides[-2:]
    beside = (a, 0), (b, b.strides[-1]), (out, out.strides[-1])
    steps = [(*steps_over(batch, without_matrices(type)), step) for type, step in beside]
    places = [to.place("operand", 0), to.place("operand", 1), to.place("result", 0)]
    with to.loop("%first", "%past") as item:
        at = to.unravelled(item.index, (*batch, out.shape[-1]))
        t, right, y = (to.moved(place, at, each) for place, each in zip(places, steps, strict=True))
        with to.loop(0, n) as step:
            forwards = lower is not transpose
            row = step.index if forwards else to.sub(n - 1, step.index)
            known = (0, row) if forwards else (to.add(row, 1), n)
            start = to.load_number(to.at(right, to.mul(row, b.strides[-2])))
            here = to.at(t, to.mul(row, across[0]))
            left = _without(to, here, y, known, start, (across[1], out.strides[-2]))
            divided = f"fdiv {to.number} {left}, {to.load_number(to.at(here, to.mul(row, across[1])))}"
            to.store_number(to.to.value(divided), to.at(y, to.mul(row, out.strides[-2])))
    return Recipe((to.phase(math.prod(batch) * out.shape[-1], out.size * n),))


def _without(to: Routine, t: str, y: str, known: tuple[Int64, Int64], start: str, steps: tuple[int, int]) -> str:
    """What is left of a right-hand side without the products of a row with what is known."""
    with to.loop(*known, carried=[(to.number, start)]) as each:
        read = [to.load_number(to.at(x, to.mul(each.index, step))) for x, step in zip((t, y), steps, strict=True)]
        product = to.to.value(f"fmul {to.number} {read[0]}, {read[1]}")
        each.carry = [to.to.value(f"fsub {to.number} {each.carried[0]}, {product}")]
    return each.carried[0]
