"""Resident tensors between the front and its workers: versions that are lent to tasks, and those that workers know.

A worker knows the tensors that it has asked for, up to a number. It is never told in between: what has changed of what
it knows goes down its socket before the next task does, so a task never reads an older version than its client could
know of. The memory of a version stays as long as a task that reads it may be sent to a worker.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container, Mapping, MutableMapping, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

import numpy as np

from engine import HostArray
from service.api.residents import Find, Version
from service.core.allocation import VisibleBuffer
from service.core.budget import TENSOR_BYTES
from service.store.tables import TensorVersion
from service.store.writes import nbytes_of
from service.workers import frames
from service.workers.frames import TensorFrame
from service.workers.shared_memory import DescriptorChannel

#: (namespace, name)
TensorKey = tuple[str, str]
#: tensors that a worker knows at a time
MOST_KNOWN: Final = 4096
#: bytes of a version that a worker which rests does not keep for longer than it is current
LARGE_VERSION: Final = 1 << 20
_NOTHING: Final[dict[str, Version]] = {}


def array_of(data: memoryview | bytes, dtype: str, shape: tuple[int, ...]) -> HostArray:
    """View row-major, little-endian bytes as a read-only array; their memory goes with it."""
    if not len(data):
        return np.empty(shape, dtype)
    array = np.frombuffer(data, np.dtype(dtype).newbyteorder("<")).astype(dtype, copy=False).reshape(shape)
    array.flags.writeable = False
    return array


class Residents:
    """Versions by namespace and name."""

    def __init__(self, channel: DescriptorChannel) -> None:
        self._channel = channel
        self._known: dict[str, dict[str, Version]] = {}
        self._buffers: dict[tuple[str, str], int] = {}

    def of(self, namespace: str) -> Find:
        """Return the function that finds tensors of a namespace by name."""
        return self._known.get(namespace, _NOTHING).get

    def update(self, frame: bytes, at: int) -> None:
        """Take up another version than before, or none. The one before goes with its last reader."""
        told = frames.read_tensor(frame, at)
        if number := self._buffers.pop((told.namespace, told.name), 0):
            self._channel.forget(number)
        if not told.dtype:
            known = self._known.get(told.namespace, {})
            known.pop(told.name, None)
            if not known:
                self._known.pop(told.namespace, None)
            return
        data = told.data
        if told.buffer:
            data = memoryview(self._channel.mapped(told.buffer))[: nbytes_of(told.dtype, told.shape)]
            self._buffers[told.namespace, told.name] = told.buffer
        version = Version(told.etag, array_of(data, told.dtype, told.shape))
        self._known.setdefault(told.namespace, {})[told.name] = version


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
        """Know so many bytes of versions in buffers at most, beside those of the next task."""
        self._current = current
        self._most_mapped, self._mapped = most_mapped, 0
        self._known: OrderedDict[TensorKey, _KnownVersion] = OrderedDict()
        self._held = 0
        #: tensors that are not any more what the worker knows
        self.stale: dict[TensorKey, None] = {}

    def changed(self, key: TensorKey) -> bool:
        """Note that there is another version, or none any more; returns whether the worker has a large one."""
        known = self._known.get(key)
        if known is None:
            return False
        self.stale[key] = None
        return known.nbytes >= LARGE_VERSION

    def news(self, wanted: Sequence[TensorKey]) -> News:
        """Collect what has changed, and what is `wanted` for a task and not known: together, all that it needs."""
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


class Lending:
    """Count of who reads a version. For one thread."""

    def __init__(self) -> None:
        self._lent: dict[TensorVersion, int] = {}
        self._retired: set[TensorVersion] = set()

    def lend(self, version: TensorVersion) -> None:
        """Count one reader more, until the version is given back."""
        self._lent[version] = self._lent.get(version, 0) + 1

    def give_back(self, *versions: TensorVersion) -> None:
        """Count one reader less of each."""
        for version in versions:
            left = self._lent.pop(version) - 1
            if left:
                self._lent[version] = left
            elif version in self._retired:
                self._retired.discard(version)
                version.memory.give_back()

    def retire(self, version: TensorVersion) -> None:
        """Lend it no more: its memory goes with the last reader."""
        if version in self._lent:
            self._retired.add(version)
        else:
            version.memory.give_back()


class VersionSets:
    """Sets of versions that are read together, each known to workers under one name as long as it is read.

    A tensor may change between two tasks of one request; a set never does. For one thread.
    """

    def __init__(self, residents: MutableMapping[TensorKey, TensorVersion], lending: Lending) -> None:
        self._residents = residents
        self._lending = lending
        self._readers: dict[str, int] = {}

    def enter(self, versions: Mapping[str, TensorVersion]) -> str:
        """Count one reader more of these versions, which are lent; returns the name of their set."""
        digest = blake2b(digest_size=16)
        for tensor in sorted(versions):
            digest.update(f"{tensor}\n{versions[tensor].etag}\n".encode())
        name = f"={digest.hexdigest()}"
        self._readers[name] = self._readers.get(name, 0) + 1
        for tensor, version in versions.items():
            self._residents[name, tensor] = version
        return name

    def leave(self, name: str, versions: Mapping[str, TensorVersion]) -> list[TensorKey]:
        """Count one reader less, and give the versions back; returns the keys that nobody reads any more."""
        unread = list[TensorKey]()
        self._readers[name] -= 1
        if not self._readers[name]:
            del self._readers[name]
            unread = [(name, tensor) for tensor in versions]
            for key in unread:
                del self._residents[key]
        self._lending.give_back(*versions.values())
        return unread
