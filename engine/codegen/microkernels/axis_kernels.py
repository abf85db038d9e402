"""Kernels along axes: casts, reversed copies, extrema, sums over channels, and triangular systems."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from engine.codegen.microkernels.recipe import Recipe
from engine.codegen.microkernels.register_tile import SUMMED, lanes_for
from engine.codegen.microkernels.routine import MOVED_AS, Int64, Routine
from engine.ir.tensor_type import INT64, Shape, Strided, TensorType

#: elements of an item, about
ITEM: Final = 1 << 12
#: vectors of a sum that are under way at once
ABREAST_SUMS: Final = 4
#: floats of so many bytes, in LLVM's words
_FLOATS: Final = {4: "float", 8: "double"}


def steps_over(shape: Shape, operand: TensorType) -> Shape:
    """Return the bytes to step along each axis of `shape` in an operand that broadcasts to it; 0 if it is repeated."""
    steps = [0 if extent == 1 else step for extent, step in zip(operand.shape, operand.strides, strict=True)]
    return (0,) * (len(shape) - operand.ndim) + tuple(steps)


def without_matrices(type: TensorType) -> TensorType:
    """Return the type without its last two axes."""
    return Strided(TensorType(type.shape[:-2], type.dtype), type.strides[:-2])


@dataclass(frozen=True)
class Axes:
    """Axes over which arrays are stepped, as few as can be: `outer` extents, and a `run` of which an item is a part.

    `steps` are those of each array along the outer axes, and along the run. A part has `most` elements at the most.
    """

    outer: Shape
    run: int
    steps: tuple[Shape, ...]
    most: int

    @classmethod
    def of(cls, shape: Shape, strides: Sequence[Shape], most: int = ITEM) -> Axes:
        """Merge the axes of a space of this shape, and of arrays of these strides along it."""
        merged = merged_axes(shape, strides)
        *outer, run = [extent for extent, _ in merged]
        steps = tuple(tuple(each[k] for _, each in merged) for k in range(len(strides)))
        return cls(tuple(outer), run, steps, most)

    @property
    def items(self) -> int:
        """Number of parts of runs."""
        return math.prod(self.outer) * self._parts

    @property
    def _parts(self) -> int:
        return -(-self.run // self.most)

    def item(self, to: Routine, index: Int64, places: Sequence[str]) -> tuple[list[str], Int64]:
        """Write the place in each array of the part of a run that an item is, and its number of elements."""
        row, part = to.divided(index, self._parts)
        lead, begin = to.unravelled(row, self.outer), to.mul(part, self.most)
        pointers = [
            to.at(to.moved(place, lead, steps[:-1]), to.mul(begin, steps[-1]))
            for place, steps in zip(places, self.steps, strict=True)
        ]
        return pointers, self.run if self._parts == 1 else to.least(self.most, to.sub(self.run, begin))


def merged_axes(shape: Shape, strides: Sequence[Shape]) -> list[tuple[int, Shape]]:
    """Return extents, and the steps of all arrays: neighbouring axes along which all step as along one are merged.

    At least one axis, without those of extent 1.
    """
    axes = [(extent, tuple(each[a] for each in strides)) for a, extent in enumerate(shape) if extent != 1]
    merged = axes[-1:] or [(1, (0,) * len(strides))]
    for (extent, steps), (inner, within) in reversed(list(pairwise(axes))):
        if all(step == each * inner for step, each in zip(steps, within, strict=True)):
            merged[0] = extent * merged[0][0], merged[0][1]
        else:
            merged.insert(0, (extent, steps))
    return merged


def casting(out: TensorType, x: TensorType) -> Recipe | None:
    """Cast operand 0, which broadcasts to the result, as NumPy's astype; None for float16, and for complex numbers."""
    if any(type.is_complex or (type.is_float and type.dtype.itemsize not in _FLOATS) for type in (out, x)):
        return None
    axes, to = Axes.of(out.shape, [steps_over(out.shape, x), out.strides]), Routine("float64", 1)
    places = [to.place("operand", 0), to.place("result", 0)]
    with to.loop("%first", "%past") as item:
        (source, place), count = axes.item(to, item.index, places)
        with to.loop(0, count) as each:
            read = to.memory.load(_stored(x), to.at(source, to.mul(each.index, axes.steps[0][-1])))
            to.memory.store(_stored(out), _cast(to, read, x, out), to.at(place, to.mul(each.index, axes.steps[1][-1])))
    return Recipe((to.phase(axes.items, math.prod(out.shape)),))


def _stored(type: TensorType) -> str:
    """Name the type of an element in memory in LLVM's words."""
    return _FLOATS[type.dtype.itemsize] if type.dtype.kind == "f" else f"i{8 * type.dtype.itemsize}"


def _cast(to: Routine, read: str, x: TensorType, out: TensorType) -> str:
    source, wanted, signed = _stored(x), _stored(out), x.dtype.kind == "i"
    if out.dtype.kind == "b":
        differs = f"fcmp une {source} {read}, 0.0" if x.dtype.kind == "f" else f"icmp ne {source} {read}, 0"
        return to.to.value(f"zext i1 {to.to.value(differs)} to i8")
    if x.dtype.kind == "f" and out.dtype.kind == "f":
        if source == wanted:
            return read
        return to.to.value(f"{'fpext' if wanted == 'double' else 'fptrunc'} {source} {read} to {wanted}")
    if out.dtype.kind == "f":
        return to.to.value(f"{'sitofp' if signed else 'uitofp'} {source} {read} to {wanted}")
    if x.dtype.kind == "f":
        # Cut off by way of a signed integer as wide as C takes: what does not fit is as it is with NumPy.
        by = "i64" if out.dtype.itemsize == 8 or out.dtype.name == "uint32" else "i32"
        cut = to.to.value(f"fptosi {source} {read} to {by}")
        return cut if wanted == by else to.to.value(f"trunc {by} {cut} to {wanted}")
    if x.dtype.itemsize == out.dtype.itemsize:
        return read
    how = "trunc" if x.dtype.itemsize > out.dtype.itemsize else "sext" if signed else "zext"
    return to.to.value(f"{how} {source} {read} to {wanted}")


def searching(x: TensorType, axis: int, function: Literal["argmax", "argmin"]) -> Recipe | None:
    """Search operand 0 for the place of an extremum, int64: the first of equal ones, and the first NaN before all.

    The result is dense. None for float16.
    """
    kind = x.dtype.kind
    if kind == "f" and x.dtype.itemsize not in _FLOATS:
        return None
    # This is true of a better element and the best so far; of floats, it is of NaN beside a number, too.
    relation = "gt" if function == "argmax" else "lt"
    comparison = f"fcmp u{relation}" if kind == "f" else f"icmp {'s' if kind == 'i' else 'u'}{relation}"
    others = [a for a in range(x.ndim) if a != axis]
    kept = Strided(TensorType(tuple(x.shape[a] for a in others), x.dtype), [x.strides[a] for a in others])
    result = TensorType(kept.shape, INT64)
    axes, to = Axes.of(kept.shape, [kept.strides, result.strides]), Routine("float64", 1)
    places = [to.place("operand", 0), to.place("result", 0)]
    with to.loop("%first", "%past") as item:
        (source, place), count = axes.item(to, item.index, places)
        with to.loop(0, count) as each:
            here = to.at(source, to.mul(each.index, axes.steps[0][-1]))
            found = _first(to, here, _stored(x), x.shape[axis], x.strides[axis], comparison)
            to.memory.store("i64", found, to.at(place, to.mul(each.index, axes.steps[1][-1])))
    return Recipe((to.phase(axes.items, x.size),))


def _first(to: Routine, x: str, type: str, extent: int, step: int, comparison: str) -> str:
    """Write the number of the best of `extent` elements, `step` bytes apart."""
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


def substitution(out: TensorType, a: TensorType, b: TensorType, *, lower: bool, transpose: bool) -> Recipe:
    """Solve triangular systems of operand 0 for the right-hand sides of operand 1, one by one; batch axes broadcast."""
    to, n = Routine(out.dtype.name, 1), out.shape[-2]
    batch = out.shape[:-2]
    across = a.strides[:-3:-1] if transpose else a.strides[-2:]
    beside = (a, 0), (b, b.strides[-1]), (out, out.strides[-1])
    steps = [(*steps_over(batch, without_matrices(type)), step) for type, step in beside]
    places = [to.place("operand", 0), to.place("operand", 1), to.place("result", 0)]
    with to.loop("%first", "%past") as item:
        indices = to.unravelled(item.index, (*batch, out.shape[-1]))
        t, right, y = (to.moved(place, indices, each) for place, each in zip(places, steps, strict=True))
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
    """Subtract from a right-hand side the products of a row with the unknowns that are known."""
    with to.loop(*known, carried=[(to.number, start)]) as each:
        read = [to.load_number(to.at(x, to.mul(each.index, step))) for x, step in zip((t, y), steps, strict=True)]
        product = to.to.value(f"fmul {to.number} {read[0]}, {read[1]}")
        each.carry = [to.to.value(f"fsub {to.number} {each.carried[0]}, {product}")]
    return each.carried[0]


class ChannelSums(NamedTuple):
    """y[c] = Σ x[o, c, i] over o and i, as over images and positions: extents, and bytes to the next o and c.

    i and y are dense.
    """

    dtype: str
    itemsize: int
    outer: int
    channels: int
    inner: int
    outer_step: int
    channel_step: int


def channel_sums(of: ChannelSums) -> Recipe:
    """An item is a channel: each o in lanes, four vectors at a time and what is left, then the lanes by halves."""
    to = Routine(of.dtype, SUMMED // of.itemsize)
    width = to.lanes * to.size
    whole = of.inner - of.inner % (ABREAST_SUMS * to.lanes)
    with to.loop("%first", "%past") as channel:
        x = to.at(to.place("operand", 0), to.mul(channel.index, of.channel_step))
        sums = [(to.vector, to.zero)] * ABREAST_SUMS
        with to.loop(0, of.outer, carried=[*sums, ("ptr", x)]) as outer:
            *so_far, row = outer.carried
            with to.loop(0, whole, ABREAST_SUMS * to.lanes, carried=[(to.vector, s) for s in so_far]) as some:
                here = to.at(row, to.mul(some.index, to.size))
                some.carry = [to.sum(total, to.load(to.at(here, k * width))) for k, total in enumerate(some.carried)]
            first, *others = some.carried
            for rest in range(whole, of.inner, to.lanes):
                mask = to.below(of.inner - rest)
                first = to.sum(first, to.load(to.at(row, rest * to.size), mask))
            outer.carry = [first, *others, to.at(row, of.outer_step)]
        a, b, c, d = outer.carried[:-1]
        total = to.halved(to.sum(to.sum(a, b), to.sum(c, d)))
        to.store_number(total, to.at(to.place("result", 0), to.mul(channel.index, to.size)))
    return Recipe((to.phase(of.channels, of.outer * of.channels * of.inner),))


def as_channel_sums(
    dtype: str, itemsize: int, shape: tuple[int, ...], strides: tuple[int, ...], axes: tuple[int, ...]
) -> ChannelSums | None:
    """Bring a sum over `axes` into this form; None if the axes that stay are not in the middle, or lie otherwise."""
    kept = [i for i in range(len(shape)) if i not in axes]
    if not kept or kept != list(range(kept[0], kept[-1] + 1)) or not 0 < kept[0] <= kept[-1] < len(shape) - 1:
        return None
    first, past = kept[0], kept[-1] + 1
    parts = (range(first), range(first, past), range(past, len(shape)))
    steps = [_step(shape, strides, part) for part in parts]
    if None in steps or steps[2] != itemsize:
        return None
    outer, channels, inner = (math.prod(shape[i] for i in part) for part in parts)
    return ChannelSums(dtype, itemsize, outer, channels, inner, steps[0] or 0, steps[1] or 0)


def _step(shape: tuple[int, ...], strides: tuple[int, ...], part: range) -> int | None:
    """Return the step in bytes over these axes as one; None if they cannot be merged."""
    axes = [i for i in part if shape[i] > 1]
    if any(strides[a] != strides[b] * shape[b] for a, b in pairwise(axes)):
        return None
    return strides[axes[-1]] if axes else strides[part[-1]]


def reversing(itemsize: int, shape: Shape, strides: tuple[int, ...]) -> Recipe:
    """Copy operand 0, of these strides in bytes, the last of which is −itemsize, vector by vector, as plain bits."""
    to = Routine(MOVED_AS[itemsize], lanes_for(itemsize))
    x, y, run = to.place("operand", 0), to.place("result", 0), shape[-1]
    whole = run - run % to.lanes
    with to.loop("%first", "%past") as row:
        there = to.at(y, to.mul(row.index, run * itemsize))
        here = to.moved(x, to.unravelled(row.index, shape[:-1]), strides[:-1])
        with to.loop(0, whole, to.lanes) as column:
            last = to.mul(to.add(column.index, to.lanes - 1), -itemsize)
            to.store(to.reversed(to.load(to.at(here, last))), to.at(there, to.mul(column.index, itemsize)))
        for i in range(whole, run):
            to.store_number(to.load_number(to.at(here, -i * itemsize)), to.at(there, i * itemsize))
    return Recipe((to.phase(math.prod(shape[:-1]), math.prod(shape)),))
