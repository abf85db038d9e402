"""A clock for candidates that need no card: memory of the host, and times that a test has set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from engine.cuda.autotuning import StreamLaunch

#: bytes beside each piece of memory, which nobody may write to
_BESIDE = 512
_UNTOUCHED = 0xEE


class HostClock:
    """Times each launch by `seconds_of` what was launched last; `sizes` are those of the memory that was asked for."""

    def __init__(self, seconds_of: Callable[[], float]) -> None:
        self._seconds_of = seconds_of
        self.sizes: list[tuple[int, ...]] = []
        self.launches = 0

    @contextmanager
    def memory(self, sizes: Sequence[int]) -> Iterator[Sequence[int] | None]:
        """Of the host. Asserts that nobody has written beside it."""
        self.sizes.append(tuple(sizes))
        raws = [np.full(nbytes + 3 * _BESIDE, _UNTOUCHED, np.uint8) for nbytes in sizes]
        starts = [_BESIDE + -raw.ctypes.data % _BESIDE for raw in raws]
        for raw, start, nbytes in zip(raws, starts, sizes, strict=True):
            raw[start : start + nbytes] = 0  # numbers that nobody has trouble with
        yield [raw.ctypes.data + start for raw, start in zip(raws, starts, strict=True)]
        for raw, start, nbytes in zip(raws, starts, sizes, strict=True):
            assert (raw[:start] == _UNTOUCHED).all()
            assert (raw[start + nbytes :] == _UNTOUCHED).all()

    def seconds(self, launch: StreamLaunch) -> float | None:
        """No run is ever beside."""
        launch(0)
        self.launches += 1
        return self._seconds_of()
