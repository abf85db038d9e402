"""The models that callers have put, as bytes: names for the leaves and the outputs of a graph that is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import orjson

from engine import printable
from service.errors import Refusal
from service.state.table import Quota, Share, Table, TableKey

#: an extent that each call states anew
FREE: Final = -1
#: what the refusal of a model that is not there expects
MODEL_WANTED: Final = "the name of a model"
#: bytes that a model takes beside its record
MODEL_OVERHEAD: Final = 500
#: between what tells of a model and its leaves: in a string, a quotation mark would have a backslash before it
_BEFORE_THE_LEAVES: Final = b',"inputs":'
#: names that a refusal tells
_TOLD: Final = 10


@dataclass(frozen=True, slots=True)
class KeptModel:
    """A model that is kept: its `record` is the JSON that it is answered with, and has its `etag` in it."""

    graph_id: str
    etag: str
    record: bytes

    @classmethod
    def of(cls, record: bytes) -> KeptModel:
        """The model that a worker has made this record of."""
        told = orjson.loads(record.partition(_BEFORE_THE_LEAVES)[0] + b"}")
        return cls(told["graph_id"], told["etag"], record)

    @property
    def nbytes(self) -> int:
        """The bytes that keeping it takes."""
        return MODEL_OVERHEAD + len(self.record)


class ModelTable(Table[KeptModel]):
    """Models by namespace and name."""

    plural = "models"

    def __init__(self, quota: Quota, share: Share | None = None) -> None:
        super().__init__(quota, lambda model: model.nbytes, share)

    def get(self, namespace: str, name: str) -> KeptModel:
        """The model of this name. Raises Refusal: not_found."""
        found = self.find((namespace, name))
        if found is None:
            raise no_model(name)
        return found

    def require_unused(self, key: TableKey) -> None:
        """Return where no model is of the graph of this namespace and id, nor will be. Raises Refusal: in_use."""
        namespace, graph_id = key
        users = sorted(name for name, model in self.all_latest(namespace) if model.graph_id == graph_id)
        if users:
            told = ", ".join(users[:_TOLD])
            more = f" and {len(users) - _TOLD} more" if len(users) > _TOLD else ""
            are = "is a model" if len(users) == 1 else "are models"
            advice = "delete what is no longer needed, and then the graph"
            detail = f"there {are} of the graph {graph_id}: {told}{more}; {advice}"
            raise Refusal("in_use", detail, expected="a graph that no model is of", got=f"models of it: {told}{more}")


def graph_of_request(stated: bytes) -> str:
    """The graph that a model is to be of, as a worker has written down what was asked."""
    told: str = orjson.loads(stated.partition(_BEFORE_THE_LEAVES)[0] + b"}")["graph_id"]
    return told


def no_model(name: str) -> Refusal:
    """The report for a model that is not there."""
    shown = printable(name)
    detail = f"there is no model “{shown}”; PUT /v1/models/NAME makes one, and GET /v1/models lists those that are kept"
    return Refusal("not_found", detail, expected=MODEL_WANTED, got=shown)
