"""Changes of what is kept: the table, what is written down, and the condition on the version that is replaced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from service.state.conditions import Condition
from service.state.graphs import GraphStore, Registered, no_graph
from service.state.idempotency import AnswerTable, under_way
from service.state.models import KeptModel, ModelTable, no_model
from service.state.table import Table, TableKey
from service.state.tensor_names import unknown_tensor
from service.state.tensors import TensorTable, TensorVersion
from service.state.values import AnswerRecord, GraphWrite, ModelWrite, TensorWrite
from service.state.writes import Name, Write, name_of


@dataclass(frozen=True, eq=False, slots=True)
class Change:
    """New value of a table under a key, and how that is written down.

    `check` is given what will be there before it. It says whether the change is still needed, or raises Refusal.
    """

    table: Table[Any]
    key: TableKey
    value: Any
    write: Write
    check: Callable[[Any], bool]

    @property
    def name(self) -> Name:
        """The name that no other change may concern at the same time."""
        return name_of(self.write)


def new_tensor(table: TensorTable, key: TableKey, version: TensorVersion, condition: Condition) -> Change:
    """A new version of a tensor; `check` may raise precondition_failed."""

    def check(there: TensorVersion | None) -> bool:
        condition.require(key[1], None if there is None else there.etag)
        return True

    write = TensorWrite(*key, version.etag, version.dtype, version.shape, version.memory.view)
    return Change(table, key, version, write, check)


def end_of_tensor(table: TensorTable, key: TableKey, condition: Condition) -> Change:
    """The end of a tensor; `check` may raise not_found and precondition_failed."""

    def check(there: TensorVersion | None) -> bool:
        condition.require(key[1], None if there is None else there.etag)
        if there is None:
            raise unknown_tensor(key[1])
        return True

    return Change(table, key, None, TensorWrite(*key, "", "", (), None), check)


def new_graph(table: GraphStore, key: TableKey, graph: Registered) -> Change:
    """A graph, unless one of its id is there: the first to come stands."""
    return Change(table, key, graph, GraphWrite(*key, graph.record), lambda there: there is None)


def end_of_graph(table: GraphStore, models: ModelTable, key: TableKey) -> Change:
    """The end of a graph; `check` may raise not_found, and in_use where there are `models` of it."""

    def check(there: Registered | None) -> bool:
        if there is None:
            raise no_graph(key[1])
        models.require_unused(key)
        return True

    return Change(table, key, None, GraphWrite(*key, None), check)


def new_model(table: ModelTable, graphs: GraphStore, key: TableKey, model: KeptModel, condition: Condition) -> Change:
    """A model, of one of these `graphs`; `check` may raise precondition_failed, and not_found for the graph."""

    def check(there: KeptModel | None) -> bool:
        condition.require(key[1], None if there is None else there.etag, "model")
        if graphs.latest((key[0], model.graph_id)) is None:
            raise no_graph(model.graph_id, "/graph_id")
        return True

    return Change(table, key, model, ModelWrite(*key, model.record), check)


def end_of_model(table: ModelTable, key: TableKey, condition: Condition) -> Change:
    """The end of a model; `check` may raise not_found and precondition_failed."""

    def check(there: KeptModel | None) -> bool:
        condition.require(key[1], None if there is None else there.etag, "model")
        if there is None:
            raise no_model(key[1])
        return True

    return Change(table, key, None, ModelWrite(*key, None), check)


def new_answer(table: AnswerTable, record: AnswerRecord) -> Change:
    """An answer that may be asked for again; `check` may raise conflict, where another server had the call as well."""

    def check(there: AnswerRecord | None) -> bool:
        if there is not None and table.is_fresh(there):
            raise under_way()
        return True

    return Change(table, (record.namespace, record.key), record, record, check)
