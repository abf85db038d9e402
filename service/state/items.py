"""Items of a commit, one by one: a value under a key, or that there is none any more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from service.state.journal import Loaded
from service.state.values import AnswerRecord, Commit, GraphWrite, ModelWrite, TensorWrite

TENSOR: Final = "tensor"
GRAPH: Final = "graph"
ANSWER: Final = "answer"
MODEL: Final = "model"

#: kind, namespace and name
ItemKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Item:
    """Statement of a commit on one key, without its bytes: `nbytes` of them, or the end of the key where that is None.

    `facts` are what the kind has to tell beside, as JSON. `came` is the commit that said it first: an item that is
    moved into a later object keeps it. Where the bytes are is known once it is in an object: from its byte `start` on,
    with a CRC-32.
    """

    kind: str
    namespace: str
    name: str
    nbytes: int | None
    facts: dict[str, Any] = field(default_factory=dict)
    came: int = 0
    start: int = 0
    checksum: int = 0

    @property
    def key(self) -> ItemKey:
        """The key under which a later item replaces it."""
        return self.kind, self.namespace, self.name

    @property
    def expires(self) -> float | None:
        """The time at which it expires, in Unix seconds; None: never."""
        return float(self.facts["expires"]) if self.kind == ANSWER else None


def items_of(batch: Sequence[Commit], came: int) -> dict[ItemKey, tuple[Item, memoryview | None]]:
    """Return the last item of each key in these commits, and its bytes."""
    said = (pair for commit in batch for pair in _said(commit, came))
    return {item.key: (item, data) for item, data in said}


def loaded(found: Iterable[tuple[Item, bytes]]) -> Loaded:
    """The values of these items, in the order in which they came."""
    result = Loaded()
    for item, data in sorted(found, key=lambda pair: pair[0].came):
        facts = item.facts
        if item.kind == TENSOR:
            shape = tuple(facts["shape"])
            write = TensorWrite(item.namespace, item.name, facts["etag"], facts["dtype"], shape, memoryview(data))
            result.tensors.append(write)
        elif item.kind == GRAPH:
            result.graphs.append(GraphWrite(item.namespace, item.name, data))
        elif item.kind == MODEL:
            result.models.append(ModelWrite(item.namespace, item.name, data))
        else:
            headers = tuple((name, value) for name, value in facts["headers"])
            known = (facts["fingerprint"], facts["media_type"], data, facts["expires"], facts["status"], headers)
            result.answers.append(AnswerRecord(item.namespace, item.name, *known))
    return result


def _said(commit: Commit, came: int) -> Iterable[tuple[Item, memoryview | None]]:
    for tensor in commit.tensors:
        facts: dict[str, Any] = {"etag": tensor.etag, "dtype": tensor.dtype, "shape": list(tensor.shape)}
        yield _item(TENSOR, tensor.namespace, tensor.name, tensor.data, facts, came)
    for graph in commit.graphs:
        yield _item(GRAPH, graph.namespace, graph.graph_id, graph.record, {}, came)
    for model in commit.models:
        yield _item(MODEL, model.namespace, model.name, model.record, {}, came)
    for answer in commit.answers:
        facts = {
            "fingerprint": answer.fingerprint,
            "media_type": answer.media_type,
            "expires": answer.expires,
            "status": answer.status,
            "headers": [list(header) for header in answer.headers],
        }
        yield _item(ANSWER, answer.namespace, answer.key, answer.body, facts, came)


def _item(
    kind: str, namespace: str, name: str, data: bytes | memoryview | None, facts: dict[str, Any], came: int
) -> tuple[Item, memoryview | None]:
    view = None if data is None else memoryview(data).cast("B") if memoryview(data).nbytes else memoryview(b"")
    return Item(kind, namespace, name, None if view is None else view.nbytes, facts, came), view
