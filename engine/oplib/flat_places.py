"""Places in memory of the elements that an index tensor picks from an array: found a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from engine.graph.tensor_type import INT64, HostArray, Shape, TensorType

#: elements of a chunk: its positions stay in the second cache
PICKED_CHUNK: Final = 1 << 14


class PickedPlaces(NamedTuple):
    """Neighbours in an index tensor: what to index that by to see them, and what they pick.

    `places` is int64, dense and of their shape; it counts elements from number `first` of the array's memory, and holds
    until the next chunk is asked for.
    """

    where: tuple[Any, ...]
    first: int
    places: HostArray


def chunks_of(index: HostArray, steps: Sequence[int], axis: int) -> Iterator[PickedPlaces]:
    """All of `index`, in its order: it picks on `axis` of an array, and on the others the position that it stands at.

    `steps` has the array's distance between neighbours on each axis, in elements. In a chunk nothing is ever negative.
    """
    if not index.size:
        return
    cut, count = _cut(index.shape)
    own = _own_places(index.shape, steps, axis, cut, count)
    buffer: HostArray = np.empty((count, *index.shape[cut + 1 :]), INT64)
    outer = [0 if i == axis else step for i, step in enumerate(steps)]
    for lead in np.ndindex(index.shape[:cut]):
        begin = sum(i * step for i, step in zip(lead, outer, strict=False))
        for start in range(0, index.shape[cut], count):
            where = (*lead, slice(start, start + count))
            picked = index[where]
            places = np.multiply(picked, steps[axis], out=buffer[: len(picked)], dtype=INT64)
            if own is not None:
                places += own[: len(picked)]
            yield PickedPlaces(where, begin + start * outer[cut], places)


def chunk_bytes_of(index: TensorType) -> int:
    """What `chunks_of` allocates: the positions of a chunk, and what all of them have in common."""
    return 2 * INT64.itemsize * min(PICKED_CHUNK, index.size)


def memory_of(x: HostArray) -> HostArray | None:
    """The elements from x's first to its last as they lie in memory, 1-d; None where x has none, or runs backwards."""
    if not x.size or min(x.strides, default=0) < 0:
        return None
    length = 1 + sum((n - 1) * step for n, step in zip(x.shape, element_steps(x), strict=True))
    return np.lib.stride_tricks.as_strided(x, (length,), (x.itemsize,), writeable=False)


def is_walked_forwards(x: TensorType) -> bool:
    """Whether `memory_of` an array of this type is there."""
    return x.size > 0 and min(x.strides, default=0) >= 0


def element_steps(x: HostArray) -> Shape:
    """The strides of an array in elements."""
    return tuple(stride // x.itemsize for stride in x.strides)


def _cut(shape: Shape) -> tuple[int, int]:
    """The axis along which chunks follow one another, and the extent of one there; behind it they have all."""
    inner = 1
    for axis in reversed(range(len(shape))):
        if inner * shape[axis] > PICKED_CHUNK:
            return axis, PICKED_CHUNK // inner
        inner *= shape[axis]
    return 0, shape[0]


def _own_places(shape: Shape, steps: Sequence[int], axis: int, cut: int, count: int) -> HostArray | None:
    """What the coordinates off the axis add to the places of a chunk, counted from its first; None: nothing."""
    extents = (count, *shape[cut + 1 :])
    others = [i for i in range(cut, len(shape)) if i != axis and extents[i - cut] > 1]
    if not others:
        return None
    total: HostArray = np.zeros(extents, INT64)
    for i in others:
        total += (steps[i] * np.arange(extents[i - cut])).reshape(-1, *[1] * (len(shape) - 1 - i))
    return total
