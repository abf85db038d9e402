"""Kernels along axes: casts, reversed copies, argmax and argmin, sums over channels, and triangular systems."""

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

#: approximate number of elements of an item
ITEM: Final = 1 << 12
#: vectors of partial sums that are accumulated side by side
ABREAST_SUMS: Final = 4
#: bytes of a float → LLVM's name of its type
_FLOATS: Final = {4: "float", 8: "double"}


def broadcast_strides(shape: Shape, operand: TensorType) -> Shape:
    """Return an operand's strides in bytes along the axes of the `shape` that it broadcasts to; 0 on repeated axes."""
    steps = [0 if extent == 1 else step for extent, step in zip(operand.shape, operand.strides, strict=True)]
    return (0,) * (len(shape) - operand.ndim) + tuple(steps)


def batch_type(type: TensorType) -> TensorType:
    """Return the type without its last two axes."""
    return Strided(TensorType(type.shape[:-2], type.dtype), type.strides[:-2])


@dataclass(frozen=True)
class Axes:
    """Merged axes of a loop over arrays: the extents of the `outer` axes, and a `run` whose parts are the items.

    `steps` are each array's strides along the outer axes and along the run. An item has at most `most` elements.
    """

    outer: Shape
    run: int
    steps: tuple[Shape, ...]
    most: int

    @classmethod
    def of(cls, shape: Shape, strides: Sequence[Shape], most: int = ITEM) -> Axes:
        """Merge the axes of a space of this shape, over arrays with these strides."""
        merged = merged_axes(shape, strides)
        *outer, run = [extent for extent, _ in merged]
        steps = tuple(tuple(each[k] for _, each in merged) for k in range(len(strides)))
        return cls(tuple(outer), run, steps, most)

    @property
    def items(self) -> int:
        """Number of parts of all runs."""
        return math.prod(self.outer) * self._parts

    @property
    def _parts(self) -> int:
        return -(-self.run // self.most)

    def item(self, ir: Routine, index: Int64, places: Sequence[str]) -> tuple[list[str], Int64]:
        """Write the address of an item in each array, and its number of elements."""
        row, part = ir.divided(index, self._parts)
        lead, begin = ir.unravelled(row, self.outer), ir.mul(part, self.most)
        pointers = [
            ir.at(ir.moved(place, lead, steps[:-1]), ir.mul(begin, steps[-1]))
            for place, steps in zip(places, self.steps, strict=True)
        ]
        return pointers, self.run if self._parts == 1 else ir.minimum(self.most, ir.sub(self.run, begin))


def merged_axes(shape: Shape, strides: Sequence[Shape]) -> list[tuple[int, Shape]]:
    """Merge neighbouring axes where all arrays allow it; return the extents and all arrays' strides.

    Axes of extent 1 are dropped, but at least one axis remains.
    """
    axes = [(extent, tuple(inner_step[a] for inner_step in strides)) for a, extent in enumerate(shape) if extent != 1]
    merged = axes[-1:] or [(1, (0,) * len(strides))]
    # From the last axis outwards: an axis is merged if every array steps over it as over more of the axis inside.
    for (extent, steps), (inner, within) in reversed(list(pairwise(axes))):
        if all(step == inner_step * inner for step, inner_step in zip(steps, within, strict=True)):
            merged[0] = extent * merged[0][0], merged[0][1]
        else:
            merged.insert(0, (extent, steps))
    return merged


def cast(out: TensorType, x: TensorType) -> Recipe | None:
    """Cast operand 0, which broadcasts to the result, like NumPy's astype; None for float16 and complex numbers."""
    if any(type.is_complex or (type.is_float and type.dtype.itemsize not in _FLOATS) for type in (out, x)):
        return None
    axes, ir = Axes.of(out.shape, [broadcast_strides(out.shape, x), out.strides]), Routine("float64", 1)
    places = [ir.place("operand", 0), ir.place("result", 0)]
    with ir.loop("%first", "%past") as item:
        (source, place), count = axes.item(ir, item.index, places)
        with ir.loop(0, count) as index:
            value = ir.memory.load(_stored(x), ir.at(source, ir.mul(index.index, axes.steps[0][-1])))
            ir.memory.store(
                _stored(out), _cast(ir, value, x, out), ir.at(place, ir.mul(index.index, axes.steps[1][-1]))
            )
    return Recipe((ir.phase(axes.items, math.prod(out.shape)),))


def _stored(type: TensorType) -> str:
    """Return the LLVM name of an element's type in memory."""
    return _FLOATS[type.dtype.itemsize] if type.dtype.kind == "f" else f"i{8 * type.dtype.itemsize}"


def _cast(ir: Routine, value: str, x: TensorType, out: TensorType) -> str:
    source, target, signed = _stored(x), _stored(out), x.dtype.kind == "i"
    if out.dtype.kind == "b":
        differs = f"fcmp une {source} {value}, 0.0" if x.dtype.kind == "f" else f"icmp ne {source} {value}, 0"
        return ir.assembly.value(f"zext i1 {ir.assembly.value(differs)} to i8")
    if x.dtype.kind == "f" and out.dtype.kind == "f":
        if source == target:
            return value
        return ir.assembly.value(f"{'fpext' if target == 'double' else 'fptrunc'} {source} {value} to {target}")
    if out.dtype.kind == "f":
        return ir.assembly.value(f"{'sitofp' if signed else 'uitofp'} {source} {value} to {target}")
    if x.dtype.kind == "f":
        # Convert by way of the signed integer that C compilers use, so that out-of-range numbers give NumPy's results.
        integer = "i64" if out.dtype.itemsize == 8 or out.dtype.name == "uint32" else "i32"
        truncated = ir.assembly.value(f"fptosi {source} {value} to {integer}")
        return truncated if target == integer else ir.assembly.value(f"trunc {integer} {truncated} to {target}")
    if x.dtype.itemsize == out.dtype.itemsize:
        return value
    instruction = "trunc" if x.dtype.itemsize > out.dtype.itemsize else "sext" if signed else "zext"
    return ir.assembly.value(f"{instruction} {source} {value} to {target}")


def arg_extremum(x: TensorType, axis: int, function: Literal["argmax", "argmin"]) -> Recipe | None:
    """Find the index of an extremum of operand 0, int64: the first of equal elements; the first NaN wins over all.

    The result is dense. Returns None for float16.
    """
    kind = x.dtype.kind
    if kind == "f" and x.dtype.itemsize not in _FLOATS:
        return None
    # Comparison of an element with the best so far. For floats it is unordered, so that NaN is better than a number.
    relation = "gt" if function == "argmax" else "lt"
    comparison = f"fcmp u{relation}" if kind == "f" else f"icmp {'s' if kind == 'i' else 'u'}{relation}"
    kept_axes = [a for a in range(x.ndim) if a != axis]
    kept_type = Strided(TensorType(tuple(x.shape[a] for a in kept_axes), x.dtype), [x.strides[a] for a in kept_axes])
    result = TensorType(kept_type.shape, INT64)
    axes, ir = Axes.of(kept_type.shape, [kept_type.strides, result.strides]), Routine("float64", 1)
    places = [ir.place("operand", 0), ir.place("result", 0)]
    with ir.loop("%first", "%past") as item:
        (source, place), count = axes.item(ir, item.index, places)
        with ir.loop(0, count) as each:
            pointer = ir.at(source, ir.mul(each.index, axes.steps[0][-1]))
            best_index = _first(ir, pointer, _stored(x), x.shape[axis], x.strides[axis], comparison)
            ir.memory.store("i64", best_index, ir.at(place, ir.mul(each.index, axes.steps[1][-1])))
    return Recipe((ir.phase(axes.items, x.size),))


def _first(ir: Routine, x: str, type: str, extent: int, step: int, comparison: str) -> str:
    """Write the index of the best of `extent` elements, `step` bytes apart."""
    start = ir.memory.load(type, x)
    with ir.loop(1, extent, carried=[(type, start), ("i64", "0")]) as each:
        best, best_index = each.carried
        read = ir.memory.load(type, ir.at(x, ir.mul(each.index, step)))
        better = ir.assembly.value(f"{comparison} {type} {read}, {best}")
        if comparison.startswith("fcmp"):  # an element is never better than NaN
            better = ir.assembly.value(f"and i1 {better}, {ir.assembly.value(f'fcmp ord {type} {best}, {best}')}")
        each.carry = [
            ir.assembly.value(f"select i1 {better}, {type} {read}, {type} {best}"),
            ir.assembly.value(f"select i1 {better}, i64 {each.index}, i64 {best_index}"),
        ]
    return each.carried[1]


def substitution(out: TensorType, a: TensorType, b: TensorType, *, lower: bool, transpose: bool) -> Recipe:
    """Solve triangular systems of operand 0 for each column of operand 1 by substitution. Batch axes broadcast."""
    ir, n = Routine(out.dtype.name, 1), out.shape[-2]
    batch = out.shape[:-2]
    matrix_steps = a.strides[:-3:-1] if transpose else a.strides[-2:]
    operand_steps = (a, 0), (b, b.strides[-1]), (out, out.strides[-1])
    steps = [(*broadcast_strides(batch, batch_type(type)), step) for type, step in operand_steps]
    places = [ir.place("operand", 0), ir.place("operand", 1), ir.place("result", 0)]
    with ir.loop("%first", "%past") as item:
        indices = ir.unravelled(item.index, (*batch, out.shape[-1]))
        t, right, y = (ir.moved(place, indices, each) for place, each in zip(places, steps, strict=True))
        with ir.loop(0, n) as step:
            # A lower system is solved from the first row on. The transpose of a lower matrix is upper.
            forwards = lower is not transpose
            row = step.index if forwards else ir.sub(n - 1, step.index)
            solved = (0, row) if forwards else (ir.add(row, 1), n)
            start = ir.load_number(ir.at(right, ir.mul(row, b.strides[-2])))
            matrix_row = ir.at(t, ir.mul(row, matrix_steps[0]))
            remainder = _subtract_solved(ir, matrix_row, y, solved, start, (matrix_steps[1], out.strides[-2]))
            divided = f"fdiv {ir.number} {remainder}, {ir.load_number(ir.at(matrix_row, ir.mul(row, matrix_steps[1])))}"
            ir.store_number(ir.assembly.value(divided), ir.at(y, ir.mul(row, out.strides[-2])))
    return Recipe((ir.phase(math.prod(batch) * out.shape[-1], out.size * n),))


def _subtract_solved(
    ir: Routine, t: str, y: str, solved: tuple[Int64, Int64], start: str, steps: tuple[int, int]
) -> str:
    """Subtract from a right-hand side the products of a row with the unknowns that are solved already."""
    with ir.loop(*solved, carried=[(ir.number, start)]) as each:
        factors = [ir.load_number(ir.at(x, ir.mul(each.index, step))) for x, step in zip((t, y), steps, strict=True)]
        product = ir.assembly.value(f"fmul {ir.number} {factors[0]}, {factors[1]}")
        each.carry = [ir.assembly.value(f"fsub {ir.number} {each.carried[0]}, {product}")]
    return each.carried[0]


class ChannelSums(NamedTuple):
    """y[c] = Σ x[o, c, i] over o and i, such as images and positions: extents, and bytes to the next o and c.

    i and y are dense.
    """

    dtype: str
    itemsize: int
    outer: int
    channels: int
    inner: int
    outer_step: int
    channel_step: int


def channel_sums(geometry: ChannelSums) -> Recipe:
    """Write the kernel; an item is a channel. For each o, it adds four vectors at a time, then the rest of the run.

    The four vectors of sums are added at the end, and then the lanes by halves. The order does not depend on threads.
    """
    ir = Routine(geometry.dtype, SUMMED // geometry.itemsize)
    width = ir.lanes * ir.size
    whole = geometry.inner - geometry.inner % (ABREAST_SUMS * ir.lanes)
    with ir.loop("%first", "%past") as channel:
        x = ir.at(ir.place("operand", 0), ir.mul(channel.index, geometry.channel_step))
        # Independent sums hide the latency of additions. Their number is fixed, since it determines the order.
        sums = [(ir.vector, ir.zero)] * ABREAST_SUMS
        with ir.loop(0, geometry.outer, carried=[*sums, ("ptr", x)]) as outer:
            *so_far, row = outer.carried
            with ir.loop(0, whole, ABREAST_SUMS * ir.lanes, carried=[(ir.vector, s) for s in so_far]) as block:
                vectors = ir.at(row, ir.mul(block.index, ir.size))
                block.carry = [
                    ir.sum(total, ir.load(ir.at(vectors, k * width))) for k, total in enumerate(block.carried)
                ]
            first, *other_sums = block.carried
            for rest in range(whole, geometry.inner, ir.lanes):
                mask = ir.below(geometry.inner - rest)
                first = ir.sum(first, ir.load(ir.at(row, rest * ir.size), mask))
            outer.carry = [first, *other_sums, ir.at(row, geometry.outer_step)]
        a, b, c, d = outer.carried[:-1]
        total = ir.halved(ir.sum(ir.sum(a, b), ir.sum(c, d)))
        ir.store_number(total, ir.at(ir.place("result", 0), ir.mul(channel.index, ir.size)))
    return Recipe((ir.phase(geometry.channels, geometry.outer * geometry.channels * geometry.inner),))


def as_channel_sums(
    dtype: str, itemsize: int, shape: tuple[int, ...], strides: tuple[int, ...], axes: tuple[int, ...]
) -> ChannelSums | None:
    """Express a sum over `axes` as channel sums; None if the other axes are not in the middle, or cannot be merged."""
    remaining = [i for i in range(len(shape)) if i not in axes]
    if (
        not remaining
        or remaining != list(range(remaining[0], remaining[-1] + 1))
        or not 0 < remaining[0] <= remaining[-1] < len(shape) - 1
    ):
        return None
    first, past = remaining[0], remaining[-1] + 1
    parts = (range(first), range(first, past), range(past, len(shape)))
    steps = [_step(shape, strides, part) for part in parts]
    if None in steps or steps[2] != itemsize:
        return None
    outer, channels, inner = (math.prod(shape[i] for i in part) for part in parts)
    return ChannelSums(dtype, itemsize, outer, channels, inner, steps[0] or 0, steps[1] or 0)


def _step(shape: tuple[int, ...], strides: tuple[int, ...], part: range) -> int | None:
    """Return the stride in bytes over these axes merged to one; None if they cannot be merged."""
    axes = [i for i in part if shape[i] > 1]
    if any(strides[a] != strides[b] * shape[b] for a, b in pairwise(axes)):
        return None
    return strides[axes[-1]] if axes else strides[part[-1]]


def reversed_copy(itemsize: int, shape: Shape, strides: tuple[int, ...]) -> Recipe:
    """Copy operand 0 as plain bits, vector by vector. Its strides are in bytes, and the last is −itemsize."""
    ir = Routine(MOVED_AS[itemsize], lanes_for(itemsize))
    x, y, run = ir.place("operand", 0), ir.place("result", 0), shape[-1]
    whole = run - run % ir.lanes
    with ir.loop("%first", "%past") as row:
        target = ir.at(y, ir.mul(row.index, run * itemsize))
        source = ir.moved(x, ir.unravelled(row.index, shape[:-1]), strides[:-1])
        with ir.loop(0, whole, ir.lanes) as column:
            last = ir.mul(ir.add(column.index, ir.lanes - 1), -itemsize)
            ir.store(ir.reversed(ir.load(ir.at(source, last))), ir.at(target, ir.mul(column.index, itemsize)))
        for i in range(whole, run):
            ir.store_number(ir.load_number(ir.at(source, -i * itemsize)), ir.at(target, i * itemsize))
    return Recipe((ir.phase(math.prod(shape[:-1]), math.prod(shape)),))
