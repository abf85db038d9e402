"""Resident tensors in messages: versions that requests read, feeds of rows, and results that are stored."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final, NamedTuple

from engine import HostArray, printable
from engine.ir.tensor_type import dtype_name
from schemas import Feed, StoreEntry
from service.core.errors import Refusal
from service.store.tables import require_name
from service.store.writes import Stored

_IF_MATCH: Final = re.compile(r"|\*|[0-9a-f]{16}")
_EXPECTED_IF_MATCH: Final = "an etag of 16 hexadecimal digits, * or empty"


class ResidentFeed(NamedTuple):
    """Name of a resident tensor, and whether only some rows of it are fed."""

    name: str
    has_rows: bool


def fed_rows(array: HostArray, feed: Feed, role: str, i: int) -> HostArray:
    """Return the rows that a feed states, as a view. Raises Refusal for invalid rows."""
    rows = feed["rows"]
    if len(rows) != 2:
        raise rows_refusal(feed, role, i, "two whole numbers, start and stop", f"a list of {len(rows)}")
    if not array.ndim:
        raise rows_refusal(feed, role, i, "absent for a 0-d tensor", _listed(rows))
    start, stop = rows
    if not 0 <= start <= stop <= array.shape[0]:
        expected = f"within 0 to {array.shape[0]}, with start at most stop"
        raise rows_refusal(feed, role, i, expected, _listed(rows))
    return array[start:stop]


def rows_from(array: HostArray, start: int, count: int) -> HostArray | None:
    """Return `count` rows from `start`, as a view; None if the tensor does not have them."""
    if not array.ndim or not 0 <= start <= start + count <= array.shape[0]:
        return None
    return array[start : start + count]


def is_span(rows: Any) -> bool:
    """Return whether this is a valid span of rows: two whole numbers in order."""
    return type(rows) is list and len(rows) == 2 and all(type(row) is int for row in rows) and 0 <= rows[0] <= rows[1]


def rows_refusal(feed: Feed, role: str, i: int, expected: str, got: str) -> Refusal:
    """Return the refusal of invalid rows."""
    node = feed["node"]
    detail = f"node {node}: {role}[{i}].rows must be {expected}, but is {got}"
    return Refusal("invalid_field", detail, node=node, expected=expected, got=got, pointer=f"/{role}/{i}/rows")


def _listed(rows: list[int]) -> str:
    return "[" + ", ".join(map(str, rows)) + "]"


class Version(NamedTuple):
    """One version of a resident tensor: its etag, and its read-only elements."""

    etag: str
    array: HostArray


#: returns the version of a name, None if it is unknown
FindTensor = Callable[[str], Version | None]


class NewVersion(NamedTuple):
    """A tensor to be stored, and its entry in the answer."""

    stored: Stored
    entry: dict[str, Any]
    array: HostArray


@dataclass(frozen=True, slots=True)
class Destination:
    """Name under which to store the value of a node, or the gradient with respect to it, and the condition for that."""

    node: int
    name: str
    if_match: str | None
    durable: bool
    is_gradient: bool = False

    @property
    def source(self) -> tuple[bool, int]:
        """The value or gradient to store; destinations may share it."""
        return self.is_gradient, self.node


class StoreTargets:
    """Destinations of a request. Tensors that are not durable are on disk within `written_within_ms` milliseconds."""

    __slots__ = ("destinations", "sources", "written_within_ms")

    def __init__(self, destinations: Sequence[Destination], written_within_ms: int) -> None:
        self.destinations = destinations
        self.written_within_ms = written_within_ms
        #: sources of all destinations, each once: values, then gradients
        self.sources = sources_of(destinations)

    def new_versions(
        self, arrays: Sequence[HostArray], conditions: Sequence[str | None] | None = None
    ) -> list[NewVersion]:
        """Make new versions of `sources` from these arrays; a cached request may have other `conditions`."""
        values = dict(zip(self.sources, arrays, strict=True))
        if_matches = [destination.if_match for destination in self.destinations] if conditions is None else conditions
        return [
            self._new_version(destination, values[destination.source], c)
            for destination, c in zip(self.destinations, if_matches, strict=True)
        ]

    def _new_version(self, destination: Destination, array: HostArray, condition: str | None) -> NewVersion:
        etag = new_etag()
        stored = Stored(destination.name, etag, dtype_name(array.dtype), array.shape, condition, destination.durable)
        entry: dict[str, Any] = {
            "node": destination.node,
            "tensor_id": destination.name,
            "etag": etag,
            "durable": destination.durable,
        }
        if not destination.durable:
            entry["written_within_ms"] = self.written_within_ms
        return NewVersion(stored, entry, array)


def sources_of(destinations: Sequence[Destination]) -> tuple[tuple[bool, int], ...]:
    """List the sources of these destinations, each once: values, then gradients."""
    return tuple(sorted(dict.fromkeys(destination.source for destination in destinations), key=itemgetter(0)))


def check_gradients(destinations: Sequence[Destination], differentiated: Collection[int]) -> None:
    """Raise Refusal for a gradient to store that the call does not compute."""
    for i, destination in enumerate(destinations):
        if destination.is_gradient and destination.node not in differentiated:
            node, expected, pointer = (
                destination.node,
                "a node in wrt, in a call that computes gradients",
                f"/store/{i}/gradient",
            )
            reason = (
                "this call computes no gradients"
                if not differentiated
                else "the call computes gradients only with respect to the nodes in wrt"
            )
            detail = f"node {node}: store[{i}].gradient asks for the gradient with respect to this node, but {reason}"
            raise Refusal("invalid_field", detail, node=node, expected=expected, got=f"node {node}", pointer=pointer)


def new_etag() -> str:
    """Return a new, unique etag."""
    return os.urandom(8).hex()


def is_condition(value: object) -> bool:
    """Return whether this is a valid `if_match`."""
    return type(value) is str and _IF_MATCH.fullmatch(value) is not None


def read_destinations(fields: Mapping[str, Any]) -> tuple[Destination, ...]:
    """Read the entries of `store`. Raises Refusal (invalid_field)."""
    listed: Sequence[StoreEntry] = fields.get("store", [])
    destinations = tuple(_read_destination(entry, i) for i, entry in enumerate(listed))
    seen: set[str] = set()
    for i, destination in enumerate(destinations):
        if destination.name in seen:
            detail, pointer = f"store names the tensor “{destination.name}” twice", f"/store/{i}/tensor_id"
            expected, got = "each tensor once", "two values for one"
            raise Refusal("invalid_field", detail, node=destination.node, expected=expected, got=got, pointer=pointer)
        seen.add(destination.name)
    return destinations


def _read_destination(entry: StoreEntry, i: int) -> Destination:
    node, condition = entry["node"], entry.get("if_match")
    name = require_name(entry["tensor_id"], f"store[{i}].tensor_id", f"/store/{i}/tensor_id", node)
    if condition is not None and not is_condition(condition):
        got, pointer = f"“{printable(condition)}”", f"/store/{i}/if_match"
        detail = f"node {node}: store[{i}].if_match must be {_EXPECTED_IF_MATCH}, but is {got}"
        raise Refusal("invalid_field", detail, node=node, expected=_EXPECTED_IF_MATCH, got=got, pointer=pointer)
    return Destination(node, name, condition, entry.get("durable", True), entry.get("gradient", False))
