"""The place of an extremum along an axis, int64: the first of equal ones, and the first NaN before all."""

from __future__ import annotations

from typing import Literal

from engine.graph.tensor_type import INT64, Strided, TensorType
from engine.microkernels.axes import Axes
from engine.microkernels.recipe import Recipe
from engine.microkernels.routine import Routine


def searching(x: TensorType, axis: int, function: Literal["argmax", "argmin"]) -> Recipe | None:
    """Of operand 0, into a dense result; None for float16."""
    kind, size = x.dtype.kind, x.dtype.itemsize
    if kind == "f" and size not in (4, 8):
        return None
    type = {4: "float", 8: "double"}[size] if kind == "f" else f"i{8 * size}"
    others = [a for a in range(x.ndim) if a != axis]
    kept = Strided(TensorType(tuple(x.shape[a] for a in others), x.dtype), [x.strides[a] for a in others])
    result = TensorType(kept.shape, INT64)
    axes, to = Axes.of(kept.shape, [kept.strides, result.strides]), Routine("float64", 1)
    places = [to.place("operand", 0), to.place("result", 0)]
    with to.loop("%first", "%past") as item:
        (source, place), count = axes.item(to, item.index, places)
        with to.loop(0, count) as each:
            here = to.at(source, to.mul(each.index, axes.steps[0][-1]))
            found = _first(to, here, type, x.shape[axis], x.strides[axis], _comparison(kind, function))
            to.memory.store("i64", found, to.at(place, to.mul(each.index, axes.steps[1][-1])))
    return Recipe((to.phase(axes.items, x.size),))


def _comparison(kind: str, function: str) -> str:
    """What is true of a better element and the best so far; of floats, it is of NaN beside a number, too."""
    relation = "gt" if function == "argmax" else "lt"
    return f"fcmp u{relation}" if kind == "f" else f"icmp {'s' if kind == 'i' else 'u'}{relation}"


def _first(to: Routine, x: str, type: str, extent: int, step: int, comparison: str) -> str:
    """The number of the best of `extent` elements, `step` bytes apart."""
    start = to.memory.load(type, x)
    with to.loop(1, extent, carried=[(type, start), ("i64", "0")]) as each:
        best, at = each.carried
        read = to.memory.load(type, to.at(x, to.mul(each.index, step)))
        better = to.to.value(f"{comparison} {type} {read}, {best}")
        if comparison.startswith("fcmp"):  # nothing is better than NaN
            better = to.to.value(f"and i1 {better}, {to.to.value(f'fcmp ord {type} {best}, {best}')}")
        each.carry = [
            to.to.value(f"select i1 {better}, {type} {read}, {type} {best}"),
            to.to.value(f"select i1 {better}, i64 {each.index}, i64 {at}"),
        ]
    return each.carried[1]
