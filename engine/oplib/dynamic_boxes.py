"""Boxes whose starts are computed: where they lie in an array, and the same of many examples, each with its own."""

from __future__ import annotations

from collections.abc import Sequence

from engine.graph.by_device import DeviceFunction
from engine.graph.ir import Value
from engine.graph.op import Array
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import INT64, HostArray, Shape
from engine.oplib.operands import with_extent


@DeviceFunction
def read_box(run: RunContext, x: Array, starts: Array, out: Array) -> None:
    """out = the box of x of that shape which begins at `starts`, moved into x where it reaches beyond.

    Axis by axis at computed places, so that nobody waits for these.
    """
    xp = run.xp
    for axis, (size, place) in enumerate(zip(out.shape, _places(run, x, starts, out.shape), strict=True)):
        if size < x.shape[axis]:
            x = xp.take(x, place, axis)
    out[...] = x


@read_box.on("cpu")
def _read_box(_: RunContext, x: HostArray, starts: HostArray, out: HostArray) -> None:
    out[...] = x[_box(x.shape, starts, out.shape)]


@DeviceFunction
def write_box(run: RunContext, out: Array, starts: Array, updates: Array) -> None:
    """The box of `out` of updates' shape that begins at `starts`, moved into it where it reaches beyond, is updates."""
    if updates.ndim:
        out[run.xp.ix_(*_places(run, out, starts, updates.shape))] = updates
    else:
        out[...] = updates


@write_box.on("cpu")
def _write_box(_: RunContext, out: HostArray, starts: HostArray, updates: HostArray) -> None:
    out[_box(out.shape, starts, updates.shape)] = updates


def _box(shape: Shape, starts: HostArray, sizes: Shape) -> tuple[slice, ...]:
    firsts = [min(max(start, 0), n - size) for start, n, size in zip(starts.tolist(), shape, sizes, strict=True)]
    return tuple(slice(first, first + size) for first, size in zip(firsts, sizes, strict=True))


def _places(run: RunContext, x: Array, starts: Array, sizes: Shape) -> list[Array]:
    xp = run.xp
    return [
        xp.clip(starts[i].astype(INT64), 0, n - size) + xp.arange(size)
        for i, (n, size) in enumerate(zip(x.shape, sizes, strict=True))
    ]


def read_boxes(x: Value, starts: Value, sizes: Sequence[int]) -> Value:
    """Of N examples x [N, …] and starts [N, rank], each box: a gather along each axis that is cut."""
    for i, size in enumerate(sizes):
        axis = i + 1
        if size < x.shape[axis]:
            first = _firsts(starts, i, x.shape[axis] - size)
            places = first.add(x.builder.arange(size))
            column = places.reshape(shape=_at(x.ndim, axis, x.shape[0], size))
            x = x.gather(column.broadcast_to(shape=with_extent(x.shape, axis, size)), axis=axis)
    return x


def write_boxes(x: Value, updates: Value, starts: Value) -> Value:
    """Of N examples x [N, …], each with its box of updates [N, …] at starts [N, rank]: a choice at each place."""
    n = x.shape[0]
    inside: Value | None = None
    for i, extent in enumerate(x.shape[1:]):
        axis, size = i + 1, updates.shape[i + 1]
        if size == extent:
            continue
        if not size:
            return x
        own = x.builder.arange(extent).sub(_firsts(starts, i, extent - size))
        here = (own >= 0).logical_and(own < size).reshape(shape=_at(x.ndim, axis, n, extent))
        inside = here if inside is None else inside.logical_and(here)
        column = own.clamp(min=0, max=size - 1).reshape(shape=_at(x.ndim, axis, n, extent))
        shape = with_extent(updates.shape, axis, extent)
        updates = updates.gather(column.broadcast_to(shape=shape), axis=axis)
    return updates if inside is None else inside.where(updates, x)


def _firsts(starts: Value, axis: int, last: int) -> Value:
    """Where boxes begin on an axis: int64 [N, 1]."""
    column = starts.slice(starts=(0, axis), stops=(starts.shape[0], axis + 1))
    return column.cast(dtype=INT64).clamp(min=0, max=last)


def _at(rank: int, axis: int, n: int, size: int) -> list[int]:
    return [n if i == 0 else size if i == axis else 1 for i in range(rank)]
