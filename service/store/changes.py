"""Changes of stored values: the table, the write to disk, and the condition on the version that is replaced."""

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
    ModelTable,
    Registered,
    StoredModel,
    Table,
    TableKey,
    TensorTable,
    TensorVersion,
    no_graph,
    no_model,
    unknown_tensor,
)
from service.store.writes import ABSENT, AnswerRecord, GraphWrite, ModelWrite, Name, TensorWrite, Write, name_of

#: etag that matches any version
ANY_VERSION: Final = "*"
_TAG: Final = re.compile(r'[ \t]*(W/)?"([\x21\x23-\x7e]*)"[ \t]*')


@dataclass(frozen=True, slots=True)
class Condition:
    """Condition of a request on the version that it would replace or read (RFC 9110, section 13).

    The current version must have one of the etags in `match`, and none of `none_match`. None sets no condition.
    """

    match: Sequence[str] | None = None
    none_match: Sequence[str] | None = None

    def __bool__(self) -> bool:
        """Return whether there is any condition."""
        return self.match is not None or self.none_match is not None

    def holds(self, etag: str | None) -> bool:
        """Return whether the condition holds for the version with this etag; None: there is no version."""
        matches = self.match is None or _among(etag, self.match)
        return matches and not (self.none_match is not None and _among(etag, self.none_match))

    def require(self, name: str, etag: str | None, what: str = "tensor") -> None:
        """Raise Refusal (precondition_failed) unless the condition holds for the `what` of this name."""
        if self.holds(etag):
            return
        expected, requirement = "another version", None
        if self.match is not None:
            tags = ("any version" if tag == ANY_VERSION else printable(tag) for tag in self.match)
            expected = " or ".join(tags) or "a strong etag"
        if self.none_match is not None and ANY_VERSION in self.none_match:
            expected, requirement = f"no such {what}", "that it does not exist"
        present = "does not exist" if etag is None else f"has the version {etag}"
        required = requirement or expected
        detail = f"the {what} “{printable(name)}” {present}, but the request requires {required}; nothing was written"
        raise Refusal("precondition_failed", detail, expected=expected, got=etag or f"no such {what}")


ALWAYS: Final = Condition()


def store_condition(if_match: str | None) -> Condition:
    """Return the condition in the `if_match` of a `store` entry."""
    if if_match is None:
        return ALWAYS
    return Condition(none_match=(ANY_VERSION,)) if if_match == ABSENT else Condition(match=(if_match,))


def header_condition(if_match: Sequence[str], if_none_match: Sequence[str]) -> Condition:
    """Parse the condition of these header fields. Raises Refusal (invalid_field) for a malformed list of etags.

    If-Match compares strongly, so a weak etag matches nothing; If-None-Match compares weakly (RFC 9110, 8.8.3.2).
    """
    strong = [tag for tag, weak in _tags("If-Match", if_match) if not weak]
    loose = [tag for tag, _ in _tags("If-None-Match", if_none_match)]
    return Condition(strong if if_match else None, loose if if_none_match else None)


def _among(etag: str | None, tags: Sequence[str]) -> bool:
    return etag is not None and (etag in tags or ANY_VERSION in tags)


def _tags(field: str, values: Sequence[str]) -> list[tuple[str, bool]]:
    """Parse the etags of a header field, each with whether it is weak. `*` must be alone."""
    header = ",".join(values).strip()
    if header in (ANY_VERSION, ""):
        return [(ANY_VERSION, False)] if header else []
    tags, position = [], 0
    while position < len(header):
        tag = _TAG.match(header, position)
        if tag is None or header[tag.end() : tag.end() + 1] not in ("", ","):
            shown = printable(header)
            detail = f"{field} must be * or etags in quotation marks, separated by commas, but is {shown}"
            raise Refusal("invalid_field", detail, expected='etags such as "0123456789abcdef", or *', got=shown)
        tags.append((tag[2], tag[1] is not None))
        position = tag.end() + 1
    return tags


@dataclass(frozen=True, eq=False, slots=True)
class Change:
    """New value of a table under a key, and the write that stores it.

    `check` gets the value that the change replaces. It returns whether the change is still needed, or raises Refusal.
    """

    table: Table[Any]
    key: TableKey
    value: Any
    write: Write
    check: Callable[[Any], bool]

    @property
    def name(self) -> Name:
        """Name of the write; changes with the same name follow each other."""
        return name_of(self.write)


def new_tensor(table: TensorTable, key: TableKey, version: TensorVersion, condition: Condition) -> Change:
    """Return the change to a new version of a tensor; `check` may raise precondition_failed."""

    def check(current: TensorVersion | None) -> bool:
        condition.require(key[1], None if current is None else current.etag)
        return True

    write = TensorWrite(*key, version.etag, version.dtype, version.shape, version.memory.view)
    return Change(table, key, version, write, check)


def tensor_deletion(table: TensorTable, key: TableKey, condition: Condition) -> Change:
    """Return the deletion of a tensor; `check` may raise not_found and precondition_failed."""
    check = _existing(key[1], condition, "tensor", unknown_tensor)
    return Change(table, key, None, TensorWrite(*key, "", "", (), None), check)


def new_graph(table: GraphStore, key: TableKey, graph: Registered) -> Change:
    """Return the addition of a graph; it is not needed if the id exists, since the first graph stays."""
    return Change(table, key, graph, GraphWrite(*key, graph.record), lambda current: current is None)


def graph_deletion(table: GraphStore, models: ModelTable, key: TableKey) -> Change:
    """Return the deletion of a graph; `check` may raise not_found, and in_use if `models` use it."""

    def check(current: Registered | None) -> bool:
        if current is None:
            raise no_graph(key[1])
        models.require_unused(key)
        return True

    return Change(table, key, None, GraphWrite(*key, None), check)


def new_model(table: ModelTable, graphs: GraphStore, key: TableKey, model: StoredModel, condition: Condition) -> Change:
    """Return the change to a new version of a model; `check` may raise precondition_failed, and not_found (graph)."""

    def check(current: StoredModel | None) -> bool:
        condition.require(key[1], None if current is None else current.etag, "model")
        if graphs.latest((key[0], model.graph_id)) is None:
            raise no_graph(model.graph_id, "/graph_id")
        return True

    return Change(table, key, model, ModelWrite(*key, model.record), check)


def model_deletion(table: ModelTable, key: TableKey, condition: Condition) -> Change:
    """Return the deletion of a model; `check` may raise not_found and precondition_failed."""
    return Change(table, key, None, ModelWrite(*key, None), _existing(key[1], condition, "model", no_model))


def _existing(name: str, condition: Condition, what: str, missing: Callable[[str], Refusal]) -> Callable[[Any], bool]:
    """Return the check of a deletion."""

    def check(current: TensorVersion | StoredModel | None) -> bool:
        condition.require(name, None if current is None else current.etag, what)
        if current is None:
            raise missing(name)
        return True

    return check


def new_answer(table: AnswerTable, record: AnswerRecord) -> Change:
    """Return the addition of an answer; `check` may raise conflict if another server has run the call as well."""

    def check(current: AnswerRecord | None) -> bool:
        if current is not None and table.is_fresh(current):
            raise under_way()
        return True

    return Change(table, (record.namespace, record.key), record, record, check)
