"""Resident tensors between the front and its workers: versions that are lent to tasks, and those that workers know.

A worker knows the tensors that it has asked for, up to a number. It is never told in between: what has changed of what
it knows goes down its socket before the next task does, so a task never reads an older version than its client could
know of. The memory of a version stays as long as a task that reads it may be sent to a worker.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container, Mapping, Sequence
from typing import Final, NamedTuple

from service.allocation import VisibleBuffer
from service.budget import TENSOR_BYTES
from service.state.tensors import TensorVersion
from service.transport import frames
from service.transport.frames import TensorFrame
from service.worker.residents import MOST_KNOWN

#: (namespace, name)
TensorKey = tuple[str, str]

#: bytes of a version that a worker which rests does not keep for longer than it is current
BURDEN: Final = 1 << 20


class _KnownVersion(NamedTuple):
    """A version that the worker knows, of so many bytes: in the buffer of this number, or 0 for memory of its own."""

    nbytes: int
    buffer: int

    @property
    def held(self) -> int:
        return 0 if self.buffer else self.nbytes


class Replica:
    """The versions that one worker knows."""

    def __init__(self, current: Mapping[TensorKey, TensorVersion], most_mapped: float = float("inf")) -> None:
        """Of versions in buffers, so many bytes at most are known that are not needed for the next task."""
        self._current = current
        self._most_mapped, self._mapped = most_mapped, 0
        self._known: OrderedDict[TensorKey, _KnownVersion] = OrderedDict()
        self._held = 0
        #: tensors that are not any more what the worker knows
        self.stale: dict[TensorKey, None] = {}

    def changed(self, key: TensorKey) -> bool:
        """There is another version, or none any more. Whether the worker has one that is large."""
        known = self._known.get(key)
        if known is None:
            return False
        self.stale[key] = None
        return known.nbytes >= BURDEN

    def news(self, wanted: Sequence[TensorKey]) -> News:
        """What has changed, and what is `wanted` for a task and not known: together, all that the task needs."""
        news = News([], [], [])
        for key in self.stale:
            if self._forget(key, news) and key not in self._current:
                news.frames.append(_gone(key))
        fresh = dict.fromkeys([*self.stale, *wanted])
        self.stale.clear()
        for key in fresh:
            if key in self._known:
                self._known.move_to_end(key)
            elif (resident := self._current.get(key)) is not None:
                self._tell(key, resident, news)
        self._bound(fresh, news)
        return news

    def _bound(self, needed: Container[TensorKey], news: News) -> None:
        """Let the worker forget what it was told of longest ago, but nothing that is needed now."""
        while len(self._known) > MOST_KNOWN or self._held > TENSOR_BYTES or self._mapped > self._most_mapped:
            oldest = next(iter(self._known))
            if oldest in needed:
                return
            self._forget(oldest, news)
            news.frames.append(_gone(oldest))

    def _tell(self, key: TensorKey, resident: TensorVersion, news: News) -> None:
        number, memory = 0, resident.memory
        if memory.buffer is not None:
            number = memory.buffer.number
            news.buffers.append(memory.buffer)
        data = memoryview(b"") if number else memory.view
        news.frames.append(
            frames.tensor_frame(TensorFrame(*key, resident.etag, resident.dtype, resident.shape, number, data))
        )
        self._known[key] = known = _KnownVersion(len(memory.view), number)
        self._held += known.held
        self._mapped += known.nbytes - known.held

    def _forget(self, key: TensorKey, news: News) -> bool:
        """Whether the worker knew it."""
        known = self._known.pop(key, None)
        if known is None:
            return False
        self._held -= known.held
        self._mapped -= known.nbytes - known.held
        if known.buffer:
            news.hidden.append(known.buffer)
        return True


class News(NamedTuple):
    """Frames for a worker, the buffers that it has to see before them, and the numbers of those it needs no more."""

    frames: list[bytes]
    buffers: list[VisibleBuffer]
    hidden: list[int]


def _gone(key: TensorKey) -> bytes:
    return frames.tensor_frame(TensorFrame(*key))
