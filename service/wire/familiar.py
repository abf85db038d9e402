"""Suggestions for a field that a message does not have, or for null."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from service.spelling import hint

#: what to send in place of null for a list that may be absent
OR_LEFT_OUT: Final = "leave the field out or send []"
#: how other systems call a field → ours, of which a message has one at most
_FAMILIAR: Final[Mapping[str, tuple[str, ...]]] = {
    "args": ("operands",),
    "input": ("operands",),
    "inputs": ("operands", "feeds", "types"),
    "parents": ("operands",),
    "attr": ("attrs",),
    "attributes": ("attrs",),
    "params": ("attrs",),
    "kind": ("op",),
    "type": ("op", "dtype"),
    "label": ("name",),
    "feed": ("feeds",),
    "values": ("feeds", "types", "data"),
    "value": ("tensor", "data"),
    "dims": ("shape",),
    "size": ("shape",),
    "id": ("node",),
    "index": ("node",),
}


def advice(name: str, fields: Iterable[str]) -> str:
    """Suggest a field for the unknown field `name` of a message with these; empty if none is near."""
    known = {field: field for field in fields}
    word = name.lower()
    if word == "id" and "operands" in known:
        return "a node's id is its index in nodes: leave it out"
    meant = next((field for field in _FAMILIAR.get(word, ()) if field in known), word)
    return hint(meant, known, "")
