"""Leaves, and ops that move elements: element by element, so that a complex step gives the gradient exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import numpy as np

from tests.reference.case import Array, Case, case, draw
from tests.reference.client import Graph

Place = tuple[int, ...]


def picked(shape: Sequence[int], source: Callable[[Place], Place | None], x: Any, fill: float = 0.0) -> Any:
    """y of `shape` with y[i] = x[source(i)], and `fill` if there is no source."""
    y = np.full(tuple(shape), fill, dtype=x.dtype)
    for i in np.ndindex(*shape):
        place = source(i)
        if place is not None:
            y[i] = x[place]
    return y


# ---------------------------------------------------------------- leaves


def write_leaf(graph: Graph, which: Case, spelling: str) -> tuple[list[int], list[int]]:
    """Write the leaf itself, with its declared attributes."""
    node = graph.leaf(which.arrays[0], spelling)
    graph.nodes[node]["attrs"] = dict(which.attrs)
    return [node], [node]


def write_grad(graph: Graph, which: Case, spelling: str) -> tuple[list[int], list[int]]:
    """Write the gradient of sum(x³ · c) with respect to x."""
    x, c = (graph.leaf(a) for a in which.arrays)
    cube = graph.add("mul", graph.add("square", x), x)
    return [x, c], [graph.add(spelling, cube, x, c)]


def write_plain_grad(graph: Graph, which: Case, spelling: str) -> tuple[list[int], list[int]]:
    """Write the gradient of sum(sin x) with respect to x."""
    x = graph.leaf(which.arrays[0])
    return [x], [graph.add(spelling, graph.add("sin", x), x)]


def write_second_part(graph: Graph, which: Case, spelling: str) -> tuple[list[int], list[int]]:
    """Write one part of three; the others stay unread."""
    x = graph.leaf(which.arrays[0])
    parts = graph.add("chunk", x, chunks=3)
    return [x], [graph.add(spelling, parts, **which.attrs)]


def leaf_cases() -> Iterator[Case]:
    declared: list[dict[str, Any]] = [{}, {"dtype": "float64", "shape": [2, -1]}, {"shape": [2, 3]}]
    for op in ("input", "parameter"):
        for attrs in declared:
            yield replace(case(op, lambda x, **_: x, draw(2, 3), pull=lambda g, x, **_: [g], **attrs), write=write_leaf)
        yield replace(case(op, lambda x, **_: x, 2.5, pull=lambda g, x, **_: [g], zero_d=True), write=write_leaf)
    for value in (draw(2, 3), np.array(-0.0), np.zeros((0, 2)), np.array([1, 2**62]), np.array([np.nan, -np.inf])):
        yield case("constant", lambda value: value, value=value)
    yield case("full", lambda: np.array(0.0))
    yield case("full", lambda shape, fill, **_: np.array([[fill] * 3] * 2), shape=[2, 3], fill=-1.5)
    yield case("full", lambda shape, dtype: np.zeros((0, 2), dtype), shape=[0, 2], dtype="float32")
    yield case("full", lambda fill, dtype: np.array(7, dtype), fill=7.0, dtype="int8")
    yield case("arange", lambda stop: np.array([0, 1, 2, 3]), stop=4)
    yield case("arange", lambda **_: np.array([1, 0.75, 0.5, 0.25]), start=1, stop=0, step=-0.25, dtype="float64")
    yield case("arange", lambda **_: np.zeros(0, "int64"), start=3, stop=3)
    second = case("get_output", lambda x, index: x[2 * index : 2 * index + 2], draw(5, 2), index=1)
    yield replace(second, write=write_second_part)
    yield replace(case("grad", lambda x, c: 3 * x**2 * c, draw(2, 3), draw(2, 3)), write=write_grad)
    yield replace(case("grad", np.cos, draw(3)), write=write_plain_grad)
    yield replace(case("grad", np.cos, 0.5), write=write_plain_grad)
    yield replace(case("grad", np.cos, np.zeros((0, 2))), write=write_plain_grad)


# ---------------------------------------------------------------- shapes


def reshaped(x: Any, shape: Sequence[int] = (), **_: Any) -> Any:
    return np.reshape(x, shape)


def transposed(x: Any, axes: Sequence[int] | None = None) -> Any:
    order = list(range(x.ndim))
    if axes is not None and len(axes) == x.ndim:
        order = [a % x.ndim for a in axes]
    else:
        i, j = axes or (-1, -2)
        order[i], order[j] = order[j], order[i]
    return picked([x.shape[a] for a in order], lambda i: tuple(i[order.index(a)] for a in range(x.ndim)), x)


def repeated(x: Any, shape: Sequence[int] = ()) -> Any:
    lead = len(shape) - x.ndim
    return picked(shape, lambda i: tuple(0 if e == 1 else k for e, k in zip(x.shape, i[lead:], strict=True)), x)


def shape_cases() -> Iterator[Case]:
    whole = np.array([[1, 2], [3, 4]])
    for x, attrs in (
        (draw(2, 3), {"shape": [3, -1]}),
        (draw(2, 3), {"shape": [6], "original_shape": [2, 3]}),
        (draw(1, 1), {}),
        (draw(0, 3), {"shape": [3, 0, 2]}),
        (draw(), {"shape": [1, 1]}),
        (whole, {"shape": [4]}),
    ):
        yield case("reshape", reshaped, x, **attrs)
    for axes in (None, [2, 0, 1], [0, -1]):
        yield case("transpose", transposed, draw(2, 3, 4), **({"axes": axes} if axes else {}))
    yield case("transpose", transposed, draw(0, 3))
    yield case("transpose", transposed, draw(2, 2), axes=[0, 1])
    for shape, wide in (((3,), [2, 3]), ((2, 1), [4, 2, 3]), ((), []), ((), [2]), ((1, 3), [0, 3])):
        yield case("broadcast_to", repeated, draw(*shape), shape=wide)
    for shape, attrs in (((1, 3, 1), {}), ((1, 3, 1), {"axes": [-1]}), ((2, 3), {}), ((), {}), ((1, 0), {"axes": [0]})):
        yield case("squeeze", lambda x, axes=None: np.squeeze(x, axes and tuple(axes)), draw(*shape), **attrs)
    for shape, axes in (((3,), [0]), ((2, 3), [1, -1]), ((), [0, 1]), ((0,), [-1])):
        yield case("unsqueeze", lambda x, axes: np.expand_dims(x, tuple(axes)), draw(*shape), axes=axes)
    yield case("flatten", lambda x: x.reshape(-1), draw(2, 3, 2))
    yield case("flatten", lambda x: x.reshape(1), draw())
    yield case("flatten", lambda x, axes: x.reshape(2, 6), draw(2, 3, 2), axes=[1, -1])
    yield case("flatten", lambda x: x.reshape(0), draw(2, 0))


# ---------------------------------------------------------------- joining and cutting


def cut(x: Any, sizes: Sequence[int], axis: int = 0) -> tuple[Any, ...]:
    moved, ends = np.moveaxis(x, axis, 0), np.cumsum([0, *sizes])
    return tuple(np.moveaxis(moved[a:b], 0, axis) for a, b in pairwise(ends))


def chunked(x: Any, chunks: int, axis: int = 0) -> tuple[Any, ...]:
    n = x.shape[axis]
    size = -(-n // chunks)
    return cut(x, [min(size, n - start) for start in range(0, n, size)], axis)


def joined(*xs: Any, axis: int = 0, **_: Any) -> Any:
    return np.concatenate(xs, axis)


def join_cases() -> Iterator[Case]:
    yield case("cat", joined, draw(2, 3), draw(1, 3))
    yield case("cat", joined, draw(2, 3), draw(2, 0), draw(2, 1), axis=-1, sizes=[3, 0, 1])
    yield case("cat", joined, draw(4))
    yield case("stack", lambda *xs, axis=0: np.stack(xs, axis), draw(2, 3), draw(2, 3))
    yield case("stack", lambda *xs, axis=0: np.stack(xs, axis), draw(2, 3), draw(2, 3), axis=-1)
    yield case("stack", lambda *xs, axis=0: np.stack(xs, axis), draw(), draw(), draw())
    for shape, chunks, axis in (((6,), 3, 0), ((5, 2), 3, 0), ((2, 6), 4, -1), ((3,), 7, 0), ((2, 3), 1, 1)):
        yield case("chunk", chunked, draw(*shape), chunks=chunks, axis=axis)
    yield case("chunk", chunked, draw(4), chunks=2)
    yield case("split", cut, draw(6, 2), sizes=[1, 2, 3])
    yield case("split", cut, draw(2, 4), sizes=[4, 0], axis=-1)


# ---------------------------------------------------------------- reading at indices


def sliced(x: Any, starts: Any = None, stops: Any = None, steps: Any = None) -> Any:
    entries = [[*(bound or []), *[None] * (x.ndim - len(bound or []))] for bound in (starts, stops, steps)]
    return x[tuple(slice(*bounds) for bounds in zip(*entries, strict=True))]


def selected(x: Any, index: int, axis: int = 0) -> Any:
    axis, shape = axis % x.ndim, [n for i, n in enumerate(x.shape) if i != axis % x.ndim]
    return picked(shape, lambda i: (*i[:axis], index % x.shape[axis], *i[axis:]), x)


def padded(x: Any, pad_width: Sequence[int], fill: float = 0.0) -> Any:
    before, after = pad_width[::2], pad_width[1::2]
    shape = [a + n + b for a, n, b in zip(before, x.shape, after, strict=True)]

    def source(i: Place) -> Place | None:
        place = tuple(k - a for k, a in zip(i, before, strict=True))
        return place if all(0 <= k < n for k, n in zip(place, x.shape, strict=True)) else None

    return picked(shape, source, x, fill)


def rolled(x: Any, shifts: Sequence[int], axes: Any = None) -> Any:
    if axes is None:
        return np.array([x.ravel()[(i - shifts[0]) % x.size] for i in range(x.size)]).reshape(x.shape)
    for shift, axis in zip(shifts, axes, strict=True):
        n = x.shape[axis]
        x = np.take(x, [(i - shift) % n for i in range(n)], axis)
    return x


def tiled(x: Any, repeats: Sequence[int]) -> Any:
    rank = max(x.ndim, len(repeats))
    shape = (1,) * (rank - x.ndim) + x.shape
    counts = (1,) * (rank - len(repeats)) + tuple(repeats)
    x = x.reshape(shape)
    whole = [n * c for n, c in zip(shape, counts, strict=True)]
    return picked(whole, lambda i: tuple(k % n for k, n in zip(i, shape, strict=True)), x.reshape(shape))


def flipped(x: Any, axes: Any = None) -> Any:
    back = [a % x.ndim for a in axes] if axes else list(range(x.ndim))

    def source(i: Place) -> Place:
        return tuple(x.shape[a] - 1 - k if a in back else k for a, k in enumerate(i))

    return picked(x.shape, source, x)


def banded(keep: Callable[[int], bool]) -> Callable[..., Any]:
    def apply(x: Any, offset: int = 0) -> Any:
        return picked(x.shape, lambda i: i if keep(i[-1] - i[-2] - offset) else None, x)

    return apply


def diagonal(x: Any, offset: int = 0) -> Any:
    down, right = max(-offset, 0), max(offset, 0)
    if x.ndim == 1:
        n = len(x) + abs(offset)
        return picked((n, n), lambda i: (i[0] - down,) if i[1] - i[0] == offset else None, x)
    m = max(min(x.shape[-2] - down, x.shape[-1] - right), 0)
    return picked((*x.shape[:-2], m), lambda i: (*i[:-1], i[-1] + down, i[-1] + right), x)


def reading_cases() -> Iterator[Case]:
    for shape, attrs in (
        ((4, 5), {"starts": [1, 0], "stops": [3, 5]}),
        ((7, 6), {"starts": [-6, 1], "stops": [7, -1], "steps": [2, 3]}),
        ((3, 4), {"stops": [9, -9]}),
        ((3, 4), {"starts": [1]}),
        ((2, 3, 4), {"starts": [1], "stops": [2, -1], "steps": [1, 2]}),
        ((3,), {}),
        ((0, 2), {"starts": [0, 1]}),
    ):
        yield case("slice", sliced, draw(*shape), **attrs)
    for shape, attrs in (
        ((3, 4), {"index": 1}),
        ((2, 3, 2), {"index": -1, "axis": 1}),
        ((2,), {"index": 0, "axis": -1}),
    ):
        yield case("select", selected, draw(*shape), **attrs)
    yield case("pad", padded, draw(2, 3), pad_width=[1, 0, 0, 2])
    yield case("pad", padded, draw(2), pad_width=[1, 1], fill=-2.5)
    yield case("pad", padded, draw(0, 1), pad_width=[1, 1, 0, 1])
    yield case("roll", rolled, draw(2, 3), shifts=[1])
    yield case("roll", rolled, draw(3, 4), shifts=[-1, 5], axes=[0, -1])
    yield case("roll", rolled, draw(3), shifts=[3], axes=[0])
    yield case("roll", rolled, draw(0, 2), shifts=[1])
    for shape, repeats in (((2,), [3]), ((2, 3), [2, 1]), ((3,), [2, 2]), ((2, 3), [2]), ((), [2]), ((2,), [0])):
        yield case("tile", tiled, draw(*shape), repeats=repeats)
    for shape, axes in (((2, 3), None), ((2, 3), [-1]), ((), None), ((0, 2), [1])):
        yield case("flip", flipped, draw(*shape), **({"axes": axes} if axes else {}))
    for shape, offset in product(((3, 3), (2, 4, 3), (0, 2)), (0, 1, -2)):
        yield case("tril", banded(lambda d: d <= 0), draw(*shape), offset=offset)
        yield case("triu", banded(lambda d: d >= 0), draw(*shape), offset=offset)
    for shape, offset in product(((3,), (3, 4), (2, 3, 3), (1,)), (0, 1, -1)):
        yield case("diag", diagonal, draw(*shape), offset=offset)
    for op, part, count in (("struct_field", "field_index", "total_fields"), ("map_lookup", "key_index", "total_keys")):
        for rows, which, total in ((6, 1, 3), (4, 0, 2), (4, 3, 4)):
            attrs = {part: which, count: total}
            rows_of = slice(which * rows // total, (which + 1) * rows // total)
            yield case(op, lambda x, rows_of=rows_of, **_: x[rows_of], draw(rows, 2), **attrs)


# ---------------------------------------------------------------- index tensors


def gathered(x: Any, index: Any = None, axis: int = 0, indices: Any = None) -> Any:
    axis %= x.ndim
    if index is None:
        return np.stack([np.take(x, i, axis) for i in indices], axis)
    return picked(index.shape, lambda i: (*i[:axis], int(index[i]), *i[axis + 1 :]), x)


def scattered(x: Any, index: Array, updates: Any, axis: int = 0) -> Any:
    y, axis = x + 0 * np.sum(updates), axis % x.ndim
    for i in np.ndindex(*index.shape):
        y[(*i[:axis], index[i], *i[axis + 1 :])] += updates[i]
    return y


def ordered(x: Any, axis: int) -> Any:
    return np.take_along_axis(x, np.argsort(np.real(x), axis, kind="stable"), axis)


def looked_up(weight: Any, indices: Array) -> Any:
    return picked((*indices.shape, weight.shape[1]), lambda i: (int(indices[i[:-1]]), i[-1]), weight)


def one_hot(indices: Array, classes: int, dtype: str = "float64") -> Any:
    return np.array([[c == i for c in range(classes)] for i in indices.ravel()], dtype).reshape(*indices.shape, classes)


def index_cases() -> Iterator[Case]:
    twice = np.array([[0, 2, 2], [2, 1, 2]])
    yield case("gather", gathered, draw(4, 3), twice)
    yield case("gather", gathered, draw(2, 4), np.array([[3, 3, 0], [1, 1, 1]]), axis=-1)
    yield case("gather", gathered, draw(3), np.array([2, 2, 0, 2], "int32"))
    yield case("gather", gathered, draw(4, 3), np.zeros((0, 3), "int64"))
    yield case("gather", gathered, draw(4, 3), indices=[2, 0, 2])
    yield case("gather", gathered, draw(2, 3), indices=[1, 1], axis=1)
    yield case("scatter_add", scattered, draw(4, 3), twice, draw(2, 3))
    yield case("scatter_add", scattered, draw(2, 4), np.array([[3, 3, 0], [1, 1, 1]]), draw(2, 3), axis=-1)
    yield case("embedding", looked_up, draw(4, 3), np.array([[1, 1], [3, 1]]))
    yield case("embedding", looked_up, draw(4, 2), np.array(2))
    yield case("embedding", looked_up, draw(4, 2), np.zeros((0, 3), "int64"))
    yield case("one_hot", one_hot, np.array([[0, 2], [1, 1]]), classes=3)
    yield case("one_hot", one_hot, np.array(1), classes=2, dtype="float32")
    yield case("one_hot", one_hot, np.array([1, 0]), classes=2, dtype="int64")
    tied = np.array([[2.0, 1.0, 2.0, 1.0], [0.0, -0.0, -1.0, 5.0]])
    for x, axis in ((draw(5), 0), (draw(3, 4), -1), (draw(3, 4), 0), (tied, 1), (draw(2, 0), 1)):
        yield case("sort", ordered, x, axis=axis)
        yield case("argsort", lambda x, axis: np.argsort(x, axis, kind="stable"), x, axis=axis)


def cases() -> Iterator[Case]:
    """All cases of this family."""
    yield from leaf_cases()
    yield from shape_cases()
    yield from join_cases()
    yield from reading_cases()
    yield from index_cases()
