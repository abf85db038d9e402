"""Transfers between host and card: a run's feeds, flags and results go to the card by one call, and back by one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, TypeVar

import numpy as np

from engine.executors.cuda_pinned import PinnedMemory
from engine.executors.interpreter import Buffer
from engine.graph.op import Array
from engine.graph.tensor_type import INT32, HostArray, TensorType

#: bytes of feeds that are carried together, and of results
MOST_CARRIED: Final = 1 << 20
#: parts begin at multiples, as memory of CuPy's pool does: libraries choose by the alignment of what they read
_ALIGNED: Final = 512

_Key = TypeVar("_Key", bound=Hashable)


class Exchange:
    """Feeds, flags and results of a plan, in this order, in memory of the card and in pinned memory of the host.

    `send` copies the first two to the card, and with them the flags cleared; `fetch` copies the last two back. Both are
    made on the current stream, and may be recorded: their addresses do not change.
    """

    def __init__(
        self, cupy: Any, pinned: PinnedMemory, fed: Mapping[Hashable, TensorType], flags: int, results: Sequence[int]
    ) -> None:
        """`flags` is how many there are, `results` the bytes of each buffer. Raises as `PinnedMemory.block`."""
        self._cupy = cupy
        sizes = [*(type.nbytes for type in fed.values()), INT32.itemsize * flags, *results]
        starts = [*accumulate((-(-nbytes // _ALIGNED) * _ALIGNED for nbytes in sizes), initial=0)]
        self._noted, self._found, self._end = starts[len(fed)], starts[len(fed) + 1], starts[-1]
        self._here = pinned.block(self._end)
        self._there = cupy.cuda.alloc(self._end)
        self._places = [self._on_host(type, at) for type, at in zip(fed.values(), starts, strict=False)]
        #: on the card
        self.feeds: dict[Hashable, Array] = {
            feed: cupy.ndarray(type.shape, type.dtype, self._there + at)
            for (feed, type), at in zip(fed.items(), starts, strict=False)
        }
        self.flags: Array = cupy.ndarray(flags, INT32, self._there + self._noted)
        self.buffers: list[Buffer] = [self._there + at for at in starts[len(fed) + 1 : -1]]
        #: as `fetch` has brought them
        self.fetched_flags = self._on_host(TensorType((flags,), INT32), self._noted)

    @property
    def nbytes(self) -> int:
        """Of both blocks."""
        return 2 * self._end

    def put(self, feeds: Mapping[Hashable, HostArray]) -> None:
        """Lay out what is sent next: arrays of the types that were stated."""
        for place, feed in zip(self._places, self.feeds, strict=True):
            place[...] = feeds[feed]
        self.fetched_flags.fill(0)

    def send(self) -> None:
        """Copy feeds to the card, and clear its flags."""
        self._copy(self._there.ptr, self._here.ptr, self._found, self._cupy.cuda.runtime.memcpyHostToDevice)

    def fetch(self) -> None:
        """Copy flags and results to the host."""
        here, there = self._here.ptr + self._noted, self._there.ptr + self._noted
        self._copy(here, there, self._end - self._noted, self._cupy.cuda.runtime.memcpyDeviceToHost)

    def fetched(self, array: Array) -> HostArray | None:
        """Where a dense array of the card lies on the host once it has been fetched; None of one elsewhere."""
        at = array.data.ptr - self._there.ptr if array.size else 0
        if not 0 <= at <= self._end - array.nbytes:
            return None
        return self._on_host(TensorType.of(array), at)

    def _on_host(self, type: TensorType, at: int) -> HostArray:
        return np.ndarray(type.shape, type.dtype, self._here.bytes, at)

    def _copy(self, to: int, of: int, nbytes: int, kind: int) -> None:
        stream = self._cupy.cuda.get_current_stream().ptr
        self._cupy.cuda.runtime.memcpyAsync(to, of, nbytes, kind, stream)


def carried(sizes: Mapping[_Key, int]) -> list[_Key]:
    """Of what takes so many bytes each, what is carried, the smallest first, in the order of `sizes`."""
    chosen, nbytes = set[_Key](), 0
    for key in sorted(sizes, key=sizes.__getitem__):
        nbytes += sizes[key]
        if nbytes > MOST_CARRIED:
            break
        chosen.add(key)
    return [key for key in sizes if key in chosen]
