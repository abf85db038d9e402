"""Resident tensors between front and workers: the versions that each worker has, and those that tasks still read.

A worker has the tensors that it has asked for, up to a limit. It gets no message when one of them changes: the front
sends all changes down the socket ahead of the next task. So a task never reads an older version than its client could
know of. The memory of a version stays as long as a task that reads it may be sent to a worker.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container, Mapping, MutableMapping, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

import numpy as np

from engine import HostArray
from service.api.residents import FindTensor, Version
from service.core.allocation import VisibleBuffer
from service.core.budget import TENSOR_BYTES
from service.store.tables import TensorVersion
from service.store.writes import nbytes_of
from service.workers import frames
from service.workers.frames import TensorFrame
from service.workers.shared_memory import DescriptorChannel

#: namespace and name
TensorKey = tuple[str, str]
#: most tensors that a worker has at a time
MOST_KNOWN: Final = 4096
#: size from which on an idle worker is made to drop a version that is not current any more
LARGE_VERSION: Final = 1 << 20
_NOTHING: Final[dict[str, Version]] = {}


def array_of(data: memoryview | bytes, dtype: str, shape: tuple[int, ...]) -> HostArray:
    """View row-major, little-endian bytes as a read-only array, which keeps their memory alive."""
    if not len(data):
        return np.empty(shape, dtype)
    array = np.frombuffer(data, np.dtype(dtype).newbyteorder("<")).astype(dtype, copy=False).reshape(shape)
    array.flags.writeable = False
    return array


class Residents:
    """Versions that this worker has, by namespace and name."""

    def __init__(self, channel: DescriptorChannel) -> None:
        self._channel = channel
        self._known: dict[str, dict[str, Version]] = {}
        self._buffers: dict[tuple[str, str], int] = {}

    def finder(self, namespace: str) -> FindTensor:
        """Return the function that finds tensors of a namespace by name."""
        return self._known.get(namespace, _NOTHING).get

    def update(self, frame: bytes, start: int) -> None:
        """Replace or delete a tensor. The previous version is released with its last reader."""
        update = frames.read_tensor(frame, start)
        # Arrays that still view the old buffer keep its memory.
        if number := self._buffers.pop((update.namespace, update.name), 0):
            self._channel.forget(number)
        if not update.dtype:
            known = self._known.get(update.namespace, {})
            known.pop(update.name, None)
            if not known:
                self._known.pop(update.namespace, None)
            return
        data = update.data
        if update.buffer:
            data = memoryview(self._channel.mapped(update.buffer))[: nbytes_of(update.dtype, update.shape)]
            self._buffers[update.namespace, update.name] = update.buffer
        version = Version(update.etag, array_of(data, update.dtype, update.shape))
        self._known.setdefault(update.namespace, {})[update.name] = version


class _KnownVersion(NamedTuple):
    """Size of a version that the worker has, and the number of its buffer; 0 if the worker has a copy."""

    nbytes: int
    buffer: int

    @property
    def held(self) -> int:
        return 0 if self.buffer else self.nbytes


class Replica:
    """Record of the versions that one worker has, as the front keeps it."""

    def __init__(self, current: Mapping[TensorKey, TensorVersion], mapped_limit: float = float("inf")) -> None:
        """Record what changes in `current`; at most `mapped_limit` bytes in buffers, beside those of the next task."""
        self._current = current
        self._mapped_limit, self._mapped = mapped_limit, 0
        self._known: OrderedDict[TensorKey, _KnownVersion] = OrderedDict()
        self._held = 0
        #: tensors of which the worker has a version that is not current
        self.stale: dict[TensorKey, None] = {}

    def changed(self, key: TensorKey) -> bool:
        """Note that a tensor was replaced or deleted; return whether the worker has a large version of it."""
        known = self._known.get(key)
        if known is None:
            return False
        self.stale[key] = None
        return known.nbytes >= LARGE_VERSION

    def updates(self, needed: Sequence[TensorKey]) -> Updates:
        """Collect all changes, and the `needed` tensors that the worker lacks: after these, a task can be sent."""
        updates = Updates([], [], [])
        for key in self.stale:
            if self._forget(key, updates) and key not in self._current:
                updates.frames.append(_deletion(key))
        # Changed tensors are sent again even if this task does not read them: the worker has used them before.
        fresh = dict.fromkeys([*self.stale, *needed])
        self.stale.clear()
        for key in fresh:
            if key in self._known:
                self._known.move_to_end(key)
            elif (resident := self._current.get(key)) is not None:
                self._send(key, resident, updates)
        self._evict(fresh, updates)
        return updates

    def _evict(self, needed: Container[TensorKey], updates: Updates) -> None:
        """Have the worker drop the tensors used longest ago, up to the first that is needed now."""
        while len(self._known) > MOST_KNOWN or self._held > TENSOR_BYTES or self._mapped > self._mapped_limit:
            oldest = next(iter(self._known))
            # Tensors that are needed were moved to the end, so no later one can be dropped either.
            if oldest in needed:
                return
            self._forget(oldest, updates)
            updates.frames.append(_deletion(oldest))

    def _send(self, key: TensorKey, resident: TensorVersion, updates: Updates) -> None:
        number, memory = 0, resident.memory
        if memory.buffer is not None:
            number = memory.buffer.number
            updates.buffers.append(memory.buffer)
        data = memoryview(b"") if number else memory.view
        updates.frames.append(
            frames.tensor_frame(TensorFrame(*key, resident.etag, resident.dtype, resident.shape, number, data))
        )
        self._known[key] = known = _KnownVersion(len(memory.view), number)
        self._held += known.held
        self._mapped += known.nbytes - known.held

    def _forget(self, key: TensorKey, updates: Updates) -> bool:
        """Drop the record of a version; return whether the worker had it."""
        known = self._known.pop(key, None)
        if known is None:
            return False
        self._held -= known.held
        self._mapped -= known.nbytes - known.held
        if known.buffer:
            updates.hidden.append(known.buffer)
        return True


class Updates(NamedTuple):
    """Updates for a worker: frames, buffers to pass before them, and numbers of buffers to hide."""

    frames: list[bytes]
    buffers: list[VisibleBuffer]
    hidden: list[int]


def _deletion(key: TensorKey) -> bytes:
    return frames.tensor_frame(TensorFrame(*key))


class ReaderCounts:
    """Count of the readers of each version. For one thread."""

    def __init__(self) -> None:
        self._counts: dict[TensorVersion, int] = {}
        self._retired: set[TensorVersion] = set()

    def add_reader(self, version: TensorVersion) -> None:
        """Count a reader, until it gives the version back."""
        self._counts[version] = self._counts.get(version, 0) + 1

    def drop_readers(self, *versions: TensorVersion) -> None:
        """Count a reader of each version less."""
        for version in versions:
            remaining = self._counts.pop(version) - 1
            if remaining:
                self._counts[version] = remaining
            elif version in self._retired:
                self._retired.discard(version)
                version.memory.release()

    def retire(self, version: TensorVersion) -> None:
        """Note that a version is not current any more: its memory is released with its last reader."""
        if version in self._counts:
            self._retired.add(version)
        else:
            version.memory.release()


class VersionSets:
    """Sets of versions that are read together; workers know each by one name as long as it is read.

    A tensor may change between two tasks of one request; a set never does. For one thread.
    """

    def __init__(self, residents: MutableMapping[TensorKey, TensorVersion], reader_counts: ReaderCounts) -> None:
        self._residents = residents
        self._reader_counts = reader_counts
        self._readers: dict[str, int] = {}

    def enter(self, versions: Mapping[str, TensorVersion]) -> str:
        """Count a reader of these versions, which are lent; return the name of their set."""
        # The name is a digest of the etags: tasks that read the same versions share a set, and the workers' copies.
        digest = blake2b(digest_size=16)
        for tensor in sorted(versions):
            digest.update(f"{tensor}\n{versions[tensor].etag}\n".encode())
        name = f"={digest.hexdigest()}"
        self._readers[name] = self._readers.get(name, 0) + 1
        for tensor, version in versions.items():
            self._residents[name, tensor] = version
        return name

    def leave(self, name: str, versions: Mapping[str, TensorVersion]) -> list[TensorKey]:
        """Count a reader less, and give the versions back; return the keys without readers."""
        unread = list[TensorKey]()
        self._readers[name] -= 1
        if not self._readers[name]:
            del self._readers[name]
            unread = [(name, tensor) for tensor in versions]
            for key in unread:
                del self._residents[key]
        self._reader_counts.drop_readers(*versions.values())
        return unread
