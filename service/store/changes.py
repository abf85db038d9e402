"""Changes of stored values: the table, what is written to disk, and the condition on the version that is replaced."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from engine import printable
from service.core.errors import Refusal
from service.store.idempotency import AnswerTable, under_way
from service.store.tables import (
    GraphStore,
    KeptModel,
    ModelTable,
    Registered,
    Table,
    TableKey,
    TensorTable,
    TensorVersion,
    no_graph,
    no_model,
    unknown_tensor,
)
from service.store.writes import ABSENT, AnswerRecord, GraphWrite, ModelWrite, Name, TensorWrite, Write, name_of

#: matches any version
ANY_VERSION: Final = "*"
_TAG: Final = re.compile(r'[ \t]*(W/)?"([\x21\x23-\x7e]*)"[ \t]*')


@dataclass(frozen=True, slots=True)
class Condition:
    """Condition of a request on the version that it would replace or read (RFC 9110, section 13).

    The present version must have one of the etags of `match`, and none of `none_match`. None demands nothing.
    """

    match: Sequence[str] | None = None
    none_match: Sequence[str] | None = None

    def __bool__(self) -> bool:
        """Return whether anything is demanded."""
        return self.match is not None or self.none_match is not None

    def holds(self, etag: str | None) -> bool:
        """Return whether it holds for the version of this etag; None: nothing is there."""
        matches = self.match is None or _among(etag, self.match)
        return matches and not (self.none_match is not None and _among(etag, self.none_match))

    def require(self, name: str, etag: str | None, what: str = "tensor") -> None:
        """Raise Refusal (precondition_failed) unless it holds for the tensor of this name, or for another `what`."""
        if self.holds(etag):
            return
        expected = "another version"
        if self.match is not None:
            tags = ("any version" if tag == ANY_VERSION else printable(tag) for tag in self.match)
            expected = " or ".join(tags) or "a strong etag"
        if self.none_match is not None and ANY_VERSION in self.none_match:
            expected = f"no such {what}"
        present = "is not there" if etag is None else f"has the version {etag}"
        detail = f"the {what} “{printable(name)}” {present}, and the request demands {expected}; nothing was written"
        raise Refusal("precondition_failed", detail, expected=expected, got=etag or f"no such {what}")


ALWAYS: Final = Condition()


def store_condition(if_match: str | None) -> Condition:
    """Return the condition that `if_match` of a `store` entry states."""
    if if_match is None:
        return ALWAYS
    return Condition(none_match=(ANY_VERSION,)) if if_match == ABSENT else Condition(match=(if_match,))


def header_condition(if_match: Sequence[str], if_none_match: Sequence[str]) -> Condition:
    """Parse the condition of these header fields. Raises Refusal (invalid_field) for a malformed list of etags.

    If-Match compares strongly, so that a weak etag matches nothing; If-None-Match weakly (RFC 9110, 8.8.3.2).
    """
    strong = [tag for tag, weak in _tags("If-Match", if_match) if not weak]
    loose = [tag for tag, _ in _tags("If-None-Match", if_none_match)]
    return Condition(strong if if_match else None, loose if if_none_match else None)


def _among(etag: str | None, stated: Sequence[str]) -> bool:
    return etag is not None and (etag in stated or ANY_VERSION in stated)


def _tags(field: str, values: Sequence[str]) -> list[tuple[str, bool]]:
    """Parse the etags of a header field, each with whether it is weak. `*` stands alone."""
    stated = ",".join(values).strip()
    if stated in (ANY_VERSION, ""):
        return [(ANY_VERSION, False)] if stated else []
    tags, position = [], 0
    while position < len(stated):
        tag = _TAG.match(stated, position)
        if tag is None or stated[tag.end() : tag.end() + 1] not in ("", ","):
            got = printable(stated)
            detail = f"{field} is {got}: etags in quotation marks, separated by commas, or * were expected"
            raise Refusal("invalid_field", detail, expected='etags such as "0123456789abcdef", or *', got=got)
        tags.append((tag[2], tag[1] is not None))
        position = tag.end() + 1
    return tags


@dataclass(frozen=True, eq=False, slots=True)
class Change:
    """New value of a table under a key, and the write that keeps it.

    `check` gets the value that the change replaces, and returns whether the change is still needed, or raises Refusal.
    """

    table: Table[Any]
    key: TableKey
    value: Any
    write: Write
    check: Callable[[Any], bool]

    @property
    def name(self) -> Name:
        """The name of the write: changes of one name follow each other."""
        return name_of(self.write)


def new_tensor(table: TensorTable, key: TableKey, version: TensorVersion, condition: Condition) -> Change:
    """Make the change to a new version of a tensor; `check` may raise precondition_failed."""

    def check(there: TensorVersion | None) -> bool:
        condition.require(key[1], None if there is None else there.etag)
        return True

    write = TensorWrite(*key, version.etag, version.dtype, version.shape, version.memory.view)
    return Change(table, key, version, write, check)


def end_of_tensor(table: TensorTable, key: TableKey, condition: Condition) -> Change:
    """Make the deletion of a tensor; `check` may raise not_found and precondition_failed."""
    check = _existing(key[1], condition, "tensor", unknown_tensor)
    return Change(table, key, None, TensorWrite(*key, "", "", (), None), check)


def new_graph(table: GraphStore, key: TableKey, graph: Registered) -> Change:
    """Make the addition of a graph, which is not needed if one of its id is there: the first one stays."""
    return Change(table, key, graph, GraphWrite(*key, graph.record), lambda there: there is None)


def end_of_graph(table: GraphStore, models: ModelTable, key: TableKey) -> Change:
    """Make the deletion of a graph; `check` may raise not_found, and in_use if there are `models` of it."""

    def check(there: Registered | None) -> bool:
        if there is None:
            raise no_graph(key[1])
        models.require_unused(key)
        return True

    return Change(table, key, None, GraphWrite(*key, None), check)


def new_model(table: ModelTable, graphs: GraphStore, key: TableKey, model: KeptModel, condition: Condition) -> Change:
    """Make the change to a new version of a model; `check` may raise precondition_failed and not_found (its graph)."""

    def check(there: KeptModel | None) -> bool:
        condition.require(key[1], None if there is None else there.etag, "model")
        if graphs.latest((key[0], model.graph_id)) is None:
            raise no_graph(model.graph_id, "/graph_id")
        return True

    return Change(table, key, model, ModelWrite(*key, model.record), check)


def end_of_model(table: ModelTable, key: TableKey, condition: Condition) -> Change:
    """Make the deletion of a model; `check` may raise not_found and precondition_failed."""
    return Change(table, key, None, ModelWrite(*key, None), _existing(key[1], condition, "model", no_model))


def _existing(name: str, condition: Condition, what: str, missing: Callable[[str], Refusal]) -> Callable[[Any], bool]:
    """Make the check of a deletion."""

    def check(there: TensorVersion | KeptModel | None) -> bool:
        condition.require(name, None if there is None else there.etag, what)
        if there is None:
            raise missing(name)
        return True

    return check


def new_answer(table: AnswerTable, record: AnswerRecord) -> Change:
    """Make the addition of an answer; `check` may raise conflict, if another server had the call as well."""

    def check(there: AnswerRecord | None) -> bool:
        if there is not None and table.is_fresh(there):
            raise under_way()
        return True

    return Change(table, (record.namespace, record.key), record, record, check)
