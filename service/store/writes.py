"""Writes: new versions of tensors, graphs, models and answers, and commits of several of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

#: what `if_match` says where a tensor must not be there yet, as If-None-Match: * does
ABSENT = ""


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor that a job wants to have kept: under which name, as which version, and upon what condition.

    `etag` is the version's own, 16 hexadecimal digits that no other has. `if_match` is the etag that the tensor must
    have for all of this to be kept, `ABSENT` where it must not be there, None where nothing is asked of it. `durable`
    says that it has to be on disk before the answer.
    """

    name: str
    etag: str
    dtype: str
    shape: tuple[int, ...]
    if_match: str | None = None
    durable: bool = True

    def summary(self, written_within_ms: int | None = None) -> dict[str, object]:
        """Describe the tensor without its elements, and if it is not on disk yet, say when it will be."""
        told: dict[str, object] = {
            "tensor_id": self.name,
            "dtype": self.dtype,
            "shape": self.shape,
            "bytes": nbytes_of(self.dtype, self.shape),
            "etag": self.etag,
            "durable": self.durable,
        }
        return told if written_within_ms is None else told | {"written_within_ms": written_within_ms}


def nbytes_of(dtype: str, shape: Sequence[int]) -> int:
    """The bytes of a tensor's elements."""
    return np.dtype(dtype).itemsize * math.prod(shape)


@dataclass(frozen=True, slots=True)
class TensorWrite:
    """A version of a tensor on its way to disk, or the end of one where `data` is None; row-major, little-endian."""

    namespace: str
    name: str
    etag: str
    dtype: str
    shape: tuple[int, ...]
    data: memoryview | None


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """The answer to a call that had an Idempotency-Key, for when it comes again before `expires`, in Unix seconds.

    `fingerprint` is of the request, so that another one under the same key is told apart. `headers` are those that go
    with the answer beside its media type.
    """

    namespace: str
    key: str
    fingerprint: str
    media_type: str
    body: bytes
    expires: float
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class GraphWrite:
    """A registered graph on its way to disk, as the record that it is answered with; its end, where that is None."""

    namespace: str
    graph_id: str
    record: bytes | None


@dataclass(frozen=True, slots=True)
class ModelWrite:
    """A model on its way to disk, as the record that it is answered with; its end, where that is None."""

    namespace: str
    name: str
    record: bytes | None


@dataclass(frozen=True, slots=True)
class Commit:
    """Values kept as one: all of it or nothing."""

    tensors: Sequence[TensorWrite] = ()
    graphs: Sequence[GraphWrite] = ()
    answers: Sequence[AnswerRecord] = field(default=())
    models: Sequence[ModelWrite] = ()


# Names of writes, and commits made of them.

Write = TensorWrite | GraphWrite | AnswerRecord | ModelWrite
#: what a write is of, in which namespace, under which name
Name = tuple[type[Write], str, str]


def name_of(write: Write) -> Name:
    """Return the name that no other write may concern at the same time."""
    if isinstance(write, TensorWrite | ModelWrite):
        return type(write), write.namespace, write.name
    if isinstance(write, GraphWrite):
        return GraphWrite, write.namespace, write.graph_id
    return AnswerRecord, write.namespace, write.key


def commit_of(writes: Iterable[Write]) -> Commit:
    """Make one commit of these writes."""
    tensors: list[TensorWrite] = []
    graphs: list[GraphWrite] = []
    answers: list[AnswerRecord] = []
    models: list[ModelWrite] = []
    for write in writes:
        if isinstance(write, TensorWrite):
            tensors.append(write)
        elif isinstance(write, GraphWrite):
            graphs.append(write)
        elif isinstance(write, ModelWrite):
            models.append(write)
        else:
            answers.append(write)
    return Commit(tensors, graphs, answers, models)
