"""A commit as one object: safetensors, with a checksum over its head and one over the bytes of each item.

`__metadata__` says the format, and has what the items are as JSON; their bytes are the tensors "0", "1", and so on, as
the items are numbered. The tensor "checksum" stands first: the CRC-32 of all that is before it. So a head can be
checked alone, and so can the bytes of each item: nothing has to be read of what is not current any more.

`Reading` reads the commits of a place back and checks them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import orjson

from engine.graph.dtypes import ELEMENT_TYPES
from service.state.items import MODEL, TENSOR, Item

#: what the objects of a commit say of themselves; and those that have models, which versions without them do not read
COMMIT_FORMAT: Final = "gradserve commit 1"
COMMIT_FORMAT_OF_MODELS: Final = "gradserve commit 2"

#: of a safetensors file: bytes of the number in front, and where its header says what is no tensor
LENGTH: Final = 8
METADATA: Final = "__metadata__"
_FORMATS: Final = (COMMIT_FORMAT, COMMIT_FORMAT_OF_MODELS)
_KNOWN_FORMATS: Final = " and ".join(f"“{known}”" for known in _FORMATS)
_CHECKSUM: Final = 8  # bytes of the checksum behind the header
_SPELLINGS: Final = {element.name: element.safetensors for element in ELEMENT_TYPES}
_PARTS: Final = {element.name: element.parts for element in ELEMENT_TYPES if element.parts}
_BYTES: Final = _SPELLINGS["uint8"]  # of what is no tensor


def spelled(dtype: str, shape: Sequence[int]) -> dict[str, Any]:
    """Dtype and shape as safetensors has them: of complex numbers their parts, along a last axis of 2."""
    if dtype in _PARTS:
        return {"dtype": _SPELLINGS[_PARTS[dtype]], "shape": [*shape, 2]}
    return {"dtype": _SPELLINGS[dtype], "shape": shape}


class Damaged(Exception):
    """An object is not what was written: the message says why, as the end of a sentence that begins with its name."""


@dataclass(frozen=True, slots=True)
class Note:
    """Note in a commit beside its items, at a place that several servers reach.

    `lease`: seconds for which its server answers from memory after a look. `again`: the commit before it was sent more
    than once, and may arrive once more. `emptied`: it had items, of which none was current. `released`: its server
    answers no more. Where several servers share a state, `owner` is the address of the one that wrote it, and `began`
    when that made its opening, in Unix seconds.
    """

    lease: float | None = None
    again: bool = False
    emptied: bool = False
    released: bool = False
    owner: str | None = None
    began: float | None = None


_PLAIN: Final = Note()


@dataclass(frozen=True, slots=True)
class Contents:
    """The head of an object: which commit it is, by number and by a token of its own; its items, and all its bytes."""

    sequence: int
    token: str
    items: tuple[Item, ...]
    nbytes: int
    note: Note = _PLAIN

    @property
    def is_opening(self) -> bool:
        """True if a server began with it."""
        return not self.items and not self.note.emptied and not self.note.released


def encoded(
    sequence: int, token: str, said: Sequence[tuple[Item, memoryview | None]], note: Note = _PLAIN
) -> tuple[list[bytes | memoryview], Contents]:
    """The parts of the object that says these items, and its head."""
    checked = [item if data is None else replace(item, checksum=zlib.crc32(data)) for item, data in said]
    head = _head(sequence, token, checked, note)
    items, end = [], len(head)
    for item in checked:
        items.append(item if item.nbytes is None else replace(item, start=end))
        end += item.nbytes or 0
    return [head, *(data for _, data in said if data)], Contents(sequence, token, tuple(items), end, note)


def head_bytes(first: bytes) -> int:
    """Return the size of the head of an object, of which these are the first bytes. Raises Damaged."""
    if len(first) < LENGTH:
        raise Damaged("is cut off")
    return LENGTH + int.from_bytes(first[:LENGTH], "little") + _CHECKSUM


def decoded(head: bytes) -> Contents:
    """Decode the head of an object; bytes that follow it do no harm. Raises Damaged."""
    base = head_bytes(head)
    if len(head) < base:
        raise Damaged("is cut off, or was not written by gradserve")
    covered = memoryview(head)[: base - _CHECKSUM]
    if zlib.crc32(covered) != int.from_bytes(head[base - _CHECKSUM : base], "little"):
        raise Damaged("does not have the bytes that were written: its checksum is another")
    try:
        header = orjson.loads(covered[LENGTH:])
        stated = header[METADATA]["format"]
        if stated not in _FORMATS:
            raise Damaged(f"has the format “{stated}”, where this version of gradserve reads {_KNOWN_FORMATS}")
        return _contents(orjson.loads(header[METADATA]["commit"]), header, base)
    except (KeyError, TypeError, ValueError):
        raise Damaged("was not written by gradserve") from None


def require_whole(item: Item, data: bytes) -> None:
    """Raise Damaged where these are not the bytes of the item."""
    if len(data) != (item.nbytes or 0):
        raise Damaged("is cut off")
    if zlib.crc32(data) != item.checksum:
        raise Damaged(f"does not have the bytes that were written of its {item.kind}: their checksum is another")


def _head(sequence: int, token: str, items: Sequence[Item], note: Note) -> bytes:
    """The first bytes of an object, up to those of its items."""
    commit: dict[str, Any] = {"sequence": sequence, "token": token, "items": [_row(item) for item in items]}
    if note != _PLAIN:
        commit["note"] = {name: value for name, value in asdict(note).items() if value not in (None, False)}
    form = COMMIT_FORMAT_OF_MODELS if any(item.kind == MODEL for item in items) else COMMIT_FORMAT
    header: dict[str, Any] = {
        METADATA: {"format": form, "commit": orjson.dumps(commit).decode()},
        "checksum": {"dtype": "U64", "shape": [1], "data_offsets": [0, _CHECKSUM]},
    }
    end = _CHECKSUM
    for number, item in enumerate(items):
        if item.nbytes is not None:
            start, end = end, end + item.nbytes
            header[str(number)] = {**_kind_of_tensor(item), "data_offsets": [start, end]}
    text = orjson.dumps(header)
    text += b" " * (-len(text) % LENGTH)
    covered = len(text).to_bytes(LENGTH, "little") + text
    return covered + zlib.crc32(covered).to_bytes(_CHECKSUM, "little")


def _row(item: Item) -> dict[str, Any]:
    row = {"kind": item.kind, "namespace": item.namespace, "name": item.name, "facts": item.facts, "came": item.came}
    return row if item.nbytes is None else row | {"checksum": item.checksum}


def _kind_of_tensor(item: Item) -> dict[str, Any]:
    """Dtype and shape as safetensors has them, for whoever looks into an object with its library."""
    if item.kind != TENSOR:
        return {"dtype": _BYTES, "shape": [item.nbytes]}
    return spelled(item.facts["dtype"], item.facts["shape"])


def _contents(commit: dict[str, Any], header: dict[str, Any], base: int) -> Contents:
    items = tuple(_placed(commit["items"], header, base - _CHECKSUM))
    end = max((item.start + (item.nbytes or 0) for item in items), default=base)
    note = _noted(commit["note"]) if "note" in commit else _PLAIN
    return Contents(int(commit["sequence"]), str(commit["token"]), items, end, note)


def _noted(said: dict[str, Any]) -> Note:
    lease, owner, began = said.get("lease"), said.get("owner"), said.get("began")
    flags = {name: bool(said.get(name)) for name in ("again", "emptied", "released")}
    owned = None if owner is None else str(owner), None if began is None else float(began)
    return Note(None if lease is None else float(lease), flags["again"], flags["emptied"], flags["released"], *owned)


def _placed(rows: Sequence[dict[str, Any]], header: dict[str, Any], data: int) -> Iterable[Item]:
    """The items of these rows, with their places; `data` is where the bytes of the tensors begin."""
    for number, row in enumerate(rows):
        said = row["kind"], row["namespace"], row["name"]
        if "checksum" in row:
            start, stop = header[str(number)]["data_offsets"]
            yield Item(*said, stop - start, row["facts"], row["came"], data + start, row["checksum"])
        else:
            yield Item(*said, None, row["facts"], row["came"])
