"""Segments, slices, indices along an axis and the largest entries; gradients by complex steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tests.reference.case import Array, Case, case, draw


def segment_sum(x: Any, segment_ids: Array, segments: int) -> Any:
    y = np.zeros((segments, *x.shape[1:]), x.dtype)
    for row, segment in zip(x, segment_ids, strict=True):
        y[segment] += row
    return y


def update_slice(x: Any, update: Any, starts: Sequence[int]) -> Any:
    y = x.astype(np.result_type(x, update))
    for place in np.ndindex(*update.shape):
        y[tuple(s % n + k for s, n, k in zip(starts, x.shape, place, strict=True))] = update[place]
    return y


def take_along(x: Any, index: Array, axis: int = 0) -> Any:
    return np.take_along_axis(x, index, axis)


def topk(x: Any, k: int, axis: int = 0) -> tuple[Any, Any]:
    # Of equal entries the first wins: a stable sort of −x.
    order = np.argsort(-np.real(x), axis, kind="stable")
    first = np.take(order, range(k), axis)
    return np.take_along_axis(x, first, axis), first


def cases() -> Iterator[Case]:
    """All cases of this family."""
    for shape, ids, segments in (((5, 2), [2, 0, 2, 2, 1], 4), ((3,), [0, 0, 0], 1), ((0, 2), [], 2)):
        yield case("segment_sum", segment_sum, draw(*shape), np.array(ids, "int32"), segments=segments)
    for shape, box, starts in (((4, 5), (2, 3), [1, 2]), ((3, 4), (3, 1), [0, -1]), ((3,), (0,), [2])):
        yield case("update_slice", update_slice, draw(*shape), draw(*box), starts=starts)
    twice = np.array([[0, 2, 2], [2, 1, 2]])
    yield case("take_along", take_along, draw(4, 3), twice)
    yield case("take_along", take_along, draw(4, 1), twice)
    yield case("take_along", take_along, draw(3, 4), np.array([[3, 3, 0, 1, 3]], "uint8"), axis=-1)
    yield case("take_along", take_along, draw(3), np.array([2, 2, 0, 2]))
    tied = np.array([[2.0, 1.0, 2.0, 1.0], [0.0, -0.0, -1.0, 5.0]])
    for x, attrs in (
        (draw(5), {"k": 3}),
        (draw(3, 4), {"k": 2, "axis": -1}),
        (draw(3, 4), {"k": 3}),
        (tied, {"k": 3, "axis": 1}),
        (draw(2, 3), {"k": 0, "axis": 1}),
    ):
        yield case("topk", topk, x, **attrs)
