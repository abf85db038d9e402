"""What the tests of state share: values, journals on places that end with the test, and what a journal comes to."""

from __future__ import annotations

import errno
import shutil
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

from service.store.journal import Journal, Loaded
from service.store.object_journal import ObjectJournal, Tidiness
from service.store.objects import Data, Objects
from service.store.places import claim_objects, write_format
from service.store.writes import AnswerRecord, Commit, GraphWrite, ModelWrite, TensorWrite
from tests.service.store.memory_objects import MemoryObjects

#: tidies after every commit, and moves what is not much
EAGER = Tidiness(dead_objects=1, dead_bytes=1, worn_bytes=2048, small_objects=4, small_bytes=2048)
#: never tidies by itself
LAZY = Tidiness(dead_objects=1 << 40, dead_bytes=1 << 60, worn_bytes=1 << 60, small_objects=1 << 40)
AWAY = "another server writes to"


def tensor(name: str, value: float, count: int = 1, namespace: str = "") -> TensorWrite:
    """A tensor full of one value, whose etag tells the value too."""
    data = struct.pack("<d", value) * count
    return TensorWrite(namespace, name, f"{int(value):016x}", "float64", (count,), memoryview(data))


def ended(name: str, namespace: str = "") -> TensorWrite:
    """The end of a tensor."""
    return TensorWrite(namespace, name, "", "float64", (), None)


def graph(graph_id: str, record: bytes | None = b"{}") -> GraphWrite:
    """A graph, or its end."""
    return GraphWrite("", graph_id, record)


def answer(key: str, expires: float, body: bytes = b"{}") -> AnswerRecord:
    """An answer that may be asked for again."""
    return AnswerRecord("", key, "of the request", "application/json", body, expires)


def model(name: str, record: bytes | None = b"{}") -> ModelWrite:
    """A model, or its end."""
    return ModelWrite("", name, record)


def put(
    *tensors: TensorWrite,
    graphs: Sequence[GraphWrite] = (),
    answers: Sequence[AnswerRecord] = (),
    models: Sequence[ModelWrite] = (),
) -> list[Commit]:
    """A batch of one commit."""
    return [Commit(tensors, graphs, answers, models)]


def values(loaded: Loaded) -> dict[str, float]:
    """The tensors by name, each by its value; all elements and the etag have to say the same."""
    return {write.name: value_of(write) for write in loaded.tensors}


def value_of(write: TensorWrite) -> float:
    """The value that a tensor is full of."""
    assert write.data is not None
    found = set(struct.unpack(f"<{write.shape[0]}d", write.data))
    assert len(found) <= 1, "torn"
    value = found.pop() if found else 0.0
    assert write.etag == f"{int(value):016x}"
    return value


def journal(place: Path, tidiness: Tidiness = LAZY, kind: type[ObjectJournal] = ObjectJournal) -> ObjectJournal:
    """A journal of a folder, not yet loaded."""
    objects, _ = claim_objects(str(place))
    write_format(objects)
    return kind(objects, f"the state folder {place}", tidiness)


def after(objects: MemoryObjects) -> Loaded:
    """What a server would find that starts now; the objects stay as they are."""
    copy = MemoryObjects()
    copy._kept = dict(objects._kept)
    return ObjectJournal(copy, "the copy").load()


def copied(place: Path, to: Path) -> Path:
    """The folder as a crash would leave it now, under another name."""
    shutil.copytree(place, to)
    return to


def commits(objects: Objects) -> list[int]:
    """The numbers of the commits that are there."""
    return sorted(int(key.removeprefix("commits/")) for key in objects.list("commits/"))


def reopened(place: Path) -> Loaded:
    """What a server would load from this folder."""
    opened: Journal = journal(place)
    try:
        return opened.load()
    finally:
        opened.close()


class Failing(MemoryObjects):
    """Objects of one server alone, whose next writes fail, before they are made or after."""

    exclusive = True

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[tuple[int, bool]] = []

    def fail(self, number: int = errno.EIO, *, kept: bool = False) -> None:
        """The next write fails with this errno; `kept` says that it is made all the same."""
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
