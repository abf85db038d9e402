"""Helpers of the tests of state: values, journals in temporary places, and the state that a journal loads."""

from __future__ import annotations

import errno
import shutil
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

from service.store import places
from service.store.journal import Environment, Journal, Loaded
from service.store.object_journal import ObjectJournal, Tidiness
from service.store.objects import Data, Objects
from service.store.places import claim_objects, write_format
from service.store.writes import AnswerRecord, Commit, GraphWrite, ModelWrite, TensorWrite
from tests.service.store.memory_objects import MemoryObjects

#: tidies after every commit, and moves small objects
EAGER = Tidiness(dead_objects=1, dead_bytes=1, worn_bytes=2048, small_objects=4, small_bytes=2048)
#: never tidies by itself
LAZY = Tidiness(dead_objects=1 << 40, dead_bytes=1 << 60, worn_bytes=1 << 60, small_objects=1 << 40)
AWAY = "another server writes to"


class Clock(Environment):
    """Environment whose time passes when a server sleeps, or a test says so."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def today(self) -> float:
        return 1e9 + self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


def tensor(name: str, value: float, count: int = 1, namespace: str = "") -> TensorWrite:
    """Build a tensor filled with one value, which is also its etag."""
    data = struct.pack("<d", value) * count
    return TensorWrite(namespace, name, f"{int(value):016x}", "float64", (count,), memoryview(data))


def ended(name: str, namespace: str = "") -> TensorWrite:
    """Build the deletion of a tensor."""
    return TensorWrite(namespace, name, "", "float64", (), None)


def graph(graph_id: str, record: bytes | None = b"{}") -> GraphWrite:
    """Build a graph, or its deletion."""
    return GraphWrite("", graph_id, record)


def answer(key: str, expires: float, body: bytes = b"{}") -> AnswerRecord:
    """Build a recorded answer."""
    return AnswerRecord("", key, "of the request", "application/json", body, expires)


def model(name: str, record: bytes | None = b"{}") -> ModelWrite:
    """Build a model, or its deletion."""
    return ModelWrite("", name, record)


def put(
    *tensors: TensorWrite,
    graphs: Sequence[GraphWrite] = (),
    answers: Sequence[AnswerRecord] = (),
    models: Sequence[ModelWrite] = (),
) -> list[Commit]:
    """Build a batch of one commit."""
    return [Commit(tensors, graphs, answers, models)]


def values(loaded: Loaded) -> dict[str, float]:
    """Map tensors by name to their values; all elements and the etag must agree."""
    return {write.name: value_of(write) for write in loaded.tensors}


def value_of(write: TensorWrite) -> float:
    """Return the value that a tensor is filled with."""
    assert write.data is not None
    elements = set(struct.unpack(f"<{write.shape[0]}d", write.data))
    assert len(elements) <= 1, "torn"
    value = elements.pop() if elements else 0.0
    assert write.etag == f"{int(value):016x}"
    return value


def journal(place: Path, tidiness: Tidiness = LAZY, kind: type[ObjectJournal] = ObjectJournal) -> ObjectJournal:
    """Open a journal of a folder without loading it."""
    objects, _ = claim_objects(str(place))
    write_format(objects)
    return kind(objects, f"the state folder {place}", tidiness)


def after(objects: MemoryObjects) -> Loaded:
    """Load a copy of the objects, as a server would that starts now."""
    copy = MemoryObjects()
    copy._kept = dict(objects._kept)
    return ObjectJournal(copy, "the copy").load()


def copied(place: Path, to: Path) -> Path:
    """Copy the folder as a crash would leave it now."""
    shutil.copytree(place, to)
    return to


def commits(objects: Objects) -> list[int]:
    """List the numbers of the existing commits."""
    return sorted(int(key.removeprefix("commits/")) for key in objects.list("commits/"))


def reopened(place: Path) -> Loaded:
    """Load a folder, as a server would."""
    opened: Journal = journal(place)
    try:
        return opened.load()
    finally:
        opened.close()


class FailingObjects(MemoryObjects):
    """Objects of a single server whose next writes fail, either before or after they are made."""

    exclusive = True

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[tuple[int, bool]] = []

    def fail(self, number: int = errno.EIO, *, kept: bool = False) -> None:
        """Make the next write fail with this errno; with `kept`, the object is written nevertheless."""
        self.failures.append((number, kept))

    def put_new(self, key: str, data: Sequence[Data]) -> None:
        if not self.failures:
            return super().put_new(key, data)
        number, kept = self.failures.pop(0)
        if kept:
            super().put_new(key, data)
        raise OSError(number, "failed on purpose")


def names(writes: Iterable[TensorWrite]) -> list[str]:
    return sorted(write.name for write in writes)


def open_shared(place: str, shards: int) -> Objects:
    """Open the objects of a place that servers share, in so many shards. Raises RuntimeError with one sentence."""
    objects = places.open_objects(place)
    places.prepare_shared(objects, places.place_name(place), shards)
    return objects
