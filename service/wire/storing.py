"""`store`: nodes of a request whose values are stored as resident tensors, and the answer's report of them."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final, NamedTuple

from engine import HostArray, printable
from engine.graph.tensor_type import dtype_name
from schemas import StoreEntry
from service.errors import Refusal
from service.state.tensor_names import checked_name
from service.state.values import Stored

_CONDITION: Final = re.compile(r"|\*|[0-9a-f]{16}")
_EXPECTED: Final = "an etag of 16 hexadecimal digits, * or empty"


class Kept(NamedTuple):
    """A tensor that is to be kept, and what the answer says of it."""

    stored: Stored
    told: dict[str, Any]
    array: HostArray


@dataclass(frozen=True, slots=True)
class Destination:
    """Place where the value of a node goes, or the `is_gradient` by it, and the condition for it."""

    node: int
    name: str
    if_match: str | None
    durable: bool
    is_gradient: bool = False

    @property
    def source(self) -> tuple[bool, int]:
        """The value or gradient that goes there; places may share one."""
        return self.is_gradient, self.node


class Storing:
    """The places of one request. What is not durable is on disk within `written_within_ms` milliseconds."""

    __slots__ = ("places", "sources", "written_within_ms")

    def __init__(self, places: Sequence[Destination], written_within_ms: int) -> None:
        self.places = places
        self.written_within_ms = written_within_ms
        #: what is kept, each once: values, then gradients
        self.sources = sources_of(places)

    def kept(self, arrays: Sequence[HostArray], conditions: Sequence[str | None] | None = None) -> list[Kept]:
        """New versions of `sources`, which are these; upon other `conditions`, where it came again with those."""
        values = dict(zip(self.sources, arrays, strict=True))
        stated = [place.if_match for place in self.places] if conditions is None else conditions
        return [self._kept(place, values[place.source], c) for place, c in zip(self.places, stated, strict=True)]

    def _kept(self, place: Destination, array: HostArray, condition: str | None) -> Kept:
        etag = new_etag()
        stored = Stored(place.name, etag, dtype_name(array.dtype), array.shape, condition, place.durable)
        told: dict[str, Any] = {
            "node": place.node,
            "tensor_id": place.name,
            "etag": etag,
            "durable": place.durable,
        }
        if not place.durable:
            told["written_within_ms"] = self.written_within_ms
        return Kept(stored, told, array)


def sources_of(places: Sequence[Destination]) -> tuple[tuple[bool, int], ...]:
    """List the sources of these places, each once: values of nodes, then gradients."""
    return tuple(sorted(dict.fromkeys(place.source for place in places), key=itemgetter(0)))


def check_gradients(places: Sequence[Destination], by: Collection[int]) -> None:
    """Refuse a gradient that is to be kept, where none is made by its node."""
    for i, place in enumerate(places):
        if place.is_gradient and place.node not in by:
            why = "no gradients come of this call" if not by else "there is one by each node of wrt alone"
            raise Refusal(
                "invalid_field",
                f"node {place.node}: store[{i}].gradient asks for the gradient by this node, but {why}",
                node=place.node,
                expected="a node of wrt, of a call that differentiates",
                got=f"node {place.node}",
                pointer=f"/store/{i}/gradient",
            )


def new_etag() -> str:
    """One that no other version has."""
    return os.urandom(8).hex()


def is_condition(value: object) -> bool:
    """Tell whether this is a valid `if_match`."""
    return type(value) is str and _CONDITION.fullmatch(value) is not None


def read_places(fields: Mapping[str, Any]) -> tuple[Destination, ...]:
    """The places that a request names. Raises Refusal: invalid_field."""
    listed: Sequence[StoreEntry] = fields.get("store", [])
    places = tuple(_place(one, i) for i, one in enumerate(listed))
    seen: set[str] = set()
    for i, place in enumerate(places):
        if place.name in seen:
            raise _twice(place, i)
        seen.add(place.name)
    return places


def _place(one: StoreEntry, i: int) -> Destination:
    node, condition = one["node"], one.get("if_match")
    name = checked_name(one["tensor_id"], f"store[{i}].tensor_id", f"/store/{i}/tensor_id", node)
    if condition is not None and not is_condition(condition):
        got = f"“{printable(condition)}”"
        raise Refusal(
            "invalid_field",
            f"node {node}: store[{i}].if_match must be {_EXPECTED}, but is {got}",
            node=node,
            expected=_EXPECTED,
            got=got,
            pointer=f"/store/{i}/if_match",
        )
    return Destination(node, name, condition, one.get("durable", True), one.get("gradient", False))


def _twice(place: Destination, i: int) -> Refusal:
    return Refusal(
        "invalid_field",
        f"store names the tensor “{place.name}” twice",
        node=place.node,
        expected="each tensor once",
        got="two values for one",
        pointer=f"/store/{i}/tensor_id",
    )
