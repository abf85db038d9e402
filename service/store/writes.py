"""Writes on their way to disk: new versions of tensors, graphs, models and answers, and commits of several of them.

A write without data (`data` or `record` is None) deletes the value under its name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

#: `if_match` of a tensor that must not exist yet, as with If-None-Match: *
ABSENT = ""


@dataclass(frozen=True, slots=True)
class Stored:
    """Request of a task to store a tensor: name, new version, and condition.

    `etag` identifies the new version by 16 hexadecimal digits. `if_match` is the etag that the current version must
    have, `ABSENT` if there must be none, None without a condition. If `durable`, the tensor is on disk before the
    answer is sent.
    """

    name: str
    etag: str
    dtype: str
    shape: tuple[int, ...]
    if_match: str | None = None
    durable: bool = True

    def summary(self, written_within_ms: int | None = None) -> dict[str, object]:
        """Describe the tensor without its elements, and if it is not on disk yet, tell when it will be."""
        summary: dict[str, object] = {
            "tensor_id": self.name,
            "dtype": self.dtype,
            "shape": self.shape,
            "bytes": nbytes_of(self.dtype, self.shape),
            "etag": self.etag,
            "durable": self.durable,
        }
        return summary if written_within_ms is None else summary | {"written_within_ms": written_within_ms}


def nbytes_of(dtype: str, shape: Sequence[int]) -> int:
    """Return the bytes of a tensor's elements."""
    return np.dtype(dtype).itemsize * math.prod(shape)


@dataclass(frozen=True, slots=True)
class TensorWrite:
    """Version of a tensor; `data` is row-major and little-endian."""

    namespace: str
    name: str
    etag: str
    dtype: str
    shape: tuple[int, ...]
    data: memoryview | None


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """Answer to a call with an Idempotency-Key, which repetitions get until `expires`, in Unix seconds.

    `fingerprint` distinguishes the request from another one with the same key. `headers` are those of the answer
    besides its media type.
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
    """Registered graph, as the JSON record of answers."""

    namespace: str
    graph_id: str
    record: bytes | None


@dataclass(frozen=True, slots=True)
class ModelWrite:
    """Model, as the JSON record of answers."""

    namespace: str
    name: str
    record: bytes | None


@dataclass(frozen=True, slots=True)
class Commit:
    """Writes that are made atomically: all of them or none."""

    tensors: Sequence[TensorWrite] = ()
    graphs: Sequence[GraphWrite] = ()
    answers: Sequence[AnswerRecord] = field(default=())
    models: Sequence[ModelWrite] = ()


Write = TensorWrite | GraphWrite | AnswerRecord | ModelWrite
#: kind of write, namespace, and name in it
Name = tuple[type[Write], str, str]


def name_of(write: Write) -> Name:
    """Return the name under which a later write replaces this one."""
    if isinstance(write, TensorWrite | ModelWrite):
        return type(write), write.namespace, write.name
    if isinstance(write, GraphWrite):
        return GraphWrite, write.namespace, write.graph_id
    return AnswerRecord, write.namespace, write.key


def commit_of(writes: Iterable[Write]) -> Commit:
    """Return one commit of these writes."""
    listed = list(writes)
    return Commit(
        [write for write in listed if isinstance(write, TensorWrite)],
        [write for write in listed if isinstance(write, GraphWrite)],
        [write for write in listed if isinstance(write, AnswerRecord)],
        [write for write in listed if isinstance(write, ModelWrite)],
    )
