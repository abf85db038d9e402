"""Commits as objects: safetensors files with a checksum over the head, and one over the bytes of each item.

    8 bytes              length of the header
    header (JSON)        __metadata__: format, and the commit: sequence, token, and a row for each item
    8 bytes              tensor "checksum": CRC-32 of all before it
    tensors "0", "1" …   bytes of the items, by their index; none for an item that deletes a key

A commit that stores the tensor `w` and deletes `b` has two rows and one tensor, "0", which any safetensors library
reads with its dtype and shape. The head and each item can be read and checked alone, so that nothing has to be read of
items that are not current any more.

`encoded` writes an object, `decoded` reads its head, and `Reading` reads the commits of a place, several at a time.
"""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from dataclasses import fields as dataclass_fields
from typing import Any, Final, NamedTuple

import orjson

from engine.ir.tensor_type import ELEMENT_TYPES
from service.store.journal import SYSTEM, Environment, Loaded
from service.store.objects import Missing, Objects
from service.store.writes import AnswerRecord, Commit, GraphWrite, ModelWrite, TensorWrite

TENSOR: Final = "tensor"
GRAPH: Final = "graph"
ANSWER: Final = "answer"
MODEL: Final = "model"

#: format of the objects of a commit; and of those with models, which versions without models do not read
COMMIT_FORMAT: Final = "gradserve commit 1"
COMMIT_FORMAT_OF_MODELS: Final = "gradserve commit 2"
_FORMATS: Final = (COMMIT_FORMAT, COMMIT_FORMAT_OF_MODELS)
_KNOWN_FORMATS: Final = " and ".join(f"“{known}”" for known in _FORMATS)

#: safetensors: size of the length field in front, and the key in the header that is no tensor
LENGTH: Final = 8
METADATA: Final = "__metadata__"
_CHECKSUM: Final = 8  # bytes of the checksum behind the header
_SPELLINGS: Final = {element.name: element.safetensors for element in ELEMENT_TYPES}
_PARTS: Final = {element.name: element.parts for element in ELEMENT_TYPES if element.parts}

COMMITS: Final = "commits/"
_NUMBER: Final = re.compile(r"[0-9]{20}")
_HEAD: Final = 64 << 10  # bytes that hold most heads, and most small commits entirely
_TOGETHER: Final = 4 << 20  # longest range in which several items are read with one request
_READS_AT_ONCE: Final = 16  # objects that are read at a time

#: kind, namespace and name
ItemKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Item:
    """Row of a commit about one key, without its bytes: `nbytes` of them, or None if the row deletes the key.

    `facts` are further fields of the kind, as JSON. An item that is moved into a later object keeps its
    `first_commit`. In an object, the bytes begin at `start`, and have a CRC-32.
    """

    kind: str
    namespace: str
    name: str
    nbytes: int | None
    facts: dict[str, Any] = field(default_factory=dict)
    first_commit: int = 0
    start: int = 0
    checksum: int = 0

    @property
    def key(self) -> ItemKey:
        """Key under which a later item replaces it."""
        return self.kind, self.namespace, self.name

    @property
    def expires(self) -> float | None:
        """Time at which the item expires, in Unix seconds; None: never."""
        return float(self.facts["expires"]) if self.kind == ANSWER else None


def items_of(batch: Sequence[Commit], first_commit: int) -> dict[ItemKey, tuple[Item, memoryview | None]]:
    """Return the last item for each key in these commits, with its bytes."""
    pairs = (pair for commit in batch for pair in _commit_items(commit, first_commit))
    return {item.key: (item, data) for item, data in pairs}


def loaded(items: Iterable[tuple[Item, bytes | None]]) -> Loaded:
    """Convert items to a state, in the order in which they came first. Tensors may be without their bytes."""
    result = Loaded()
    for item, data in sorted(items, key=lambda pair: pair[0].first_commit):
        facts = item.facts
        if item.kind == TENSOR:
            shape, view = tuple(facts["shape"]), None if data is None else memoryview(data)
            result.tensors.append(TensorWrite(item.namespace, item.name, facts["etag"], facts["dtype"], shape, view))
            continue
        assert data is not None, "only tensors are without"
        if item.kind == GRAPH:
            result.graphs.append(GraphWrite(item.namespace, item.name, data))
        elif item.kind == MODEL:
            result.models.append(ModelWrite(item.namespace, item.name, data))
        else:
            headers = tuple((name, value) for name, value in facts["headers"])
            known = (facts["fingerprint"], facts["media_type"], data, facts["expires"], facts["status"], headers)
            result.answers.append(AnswerRecord(item.namespace, item.name, *known))
    return result


def _commit_items(commit: Commit, first_commit: int) -> Iterable[tuple[Item, memoryview | None]]:
    for tensor in commit.tensors:
        facts: dict[str, Any] = {"etag": tensor.etag, "dtype": tensor.dtype, "shape": list(tensor.shape)}
        yield _item(TENSOR, tensor.namespace, tensor.name, tensor.data, facts, first_commit)
    for graph in commit.graphs:
        yield _item(GRAPH, graph.namespace, graph.graph_id, graph.record, {}, first_commit)
    for model in commit.models:
        yield _item(MODEL, model.namespace, model.name, model.record, {}, first_commit)
    for answer in commit.answers:
        facts = {
            "fingerprint": answer.fingerprint,
            "media_type": answer.media_type,
            "expires": answer.expires,
            "status": answer.status,
            "headers": [list(header) for header in answer.headers],
        }
        yield _item(ANSWER, answer.namespace, answer.key, answer.body, facts, first_commit)


def _item(
    kind: str, namespace: str, name: str, data: bytes | memoryview | None, facts: dict[str, Any], first_commit: int
) -> tuple[Item, memoryview | None]:
    view = None if data is None else memoryview(data).cast("B") if memoryview(data).nbytes else memoryview(b"")
    return Item(kind, namespace, name, None if view is None else view.nbytes, facts, first_commit), view


def safetensors_type(dtype: str, shape: Sequence[int]) -> dict[str, Any]:
    """Return dtype and shape as safetensors has them: complex numbers become pairs of parts along a last axis of 2."""
    if dtype in _PARTS:
        return {"dtype": _SPELLINGS[_PARTS[dtype]], "shape": [*shape, 2]}
    return {"dtype": _SPELLINGS[dtype], "shape": shape}


class Damaged(Exception):
    """Damage of an object; the message ends a sentence that begins with the object's name."""


@dataclass(frozen=True, slots=True)
class Past:
    """Summary of the commits before an opening, in it. Later readers rely on it instead of reading all of them.

    `live`: the numbers of those that have items. All others are superseded: nobody reads them any more. `fixed`: those
    of `live` that may arrive again, so that they must not be deleted before the next opening. `lease`: the longest
    lease, in seconds, of earlier owners that may still answer. `floor`: the number up to which nothing superseded is
    deleted, because servers without this rule have written there.
    """

    live: tuple[int, ...]
    fixed: tuple[int, ...]
    lease: float
    floor: int

    def to_json(self) -> dict[str, Any]:
        """Return the fields; runs of neighbouring numbers are written as their ends."""
        return {"live": _runs(self.live), "fixed": self.fixed, "lease": self.lease, "floor": self.floor}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Past:
        """Read the fields. Raises KeyError, TypeError, ValueError."""
        live = (number for first, last in fields["live"] for number in range(int(first), int(last) + 1))
        return cls(tuple(live), tuple(map(int, fields["fixed"])), float(fields["lease"]), int(fields["floor"]))


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    """Return the first and last number of each run in ascending numbers."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs


@dataclass(frozen=True, slots=True)
class Note:
    """Note in a commit beside its items, at a place that several servers reach.

    `lease`: seconds for which the server answers from memory after a look. `again`: the commit before was sent more
    than once, and may arrive again. `emptied`: the commit is a stub, whose items were removed. `released`: the server
    answers no more. `opening`: the number of the opening with which the server began; the opening itself has a `past`.
    If servers forward requests to each other, `owner` is the address of the server that wrote the commit, and `began`
    the time of its opening, in Unix seconds. A server that hands the place over to another one names it as `successor`,
    with the time of that as `began`.
    """

    lease: float | None = None
    again: bool = False
    emptied: bool = False
    released: bool = False
    opening: int | None = None
    past: Past | None = None
    owner: str | None = None
    began: float | None = None
    successor: str | None = None


_PLAIN: Final = Note()


@dataclass(frozen=True, slots=True)
class Contents:
    """Head of an object: number and token of the commit, its items, and the size of the object."""

    sequence: int
    token: str
    items: tuple[Item, ...]
    nbytes: int
    note: Note = _PLAIN

    @property
    def is_opening(self) -> bool:
        """True if a server began with this commit."""
        return not self.items and not self.note.emptied and not self.note.released


def encode_commit(
    sequence: int, token: str, pairs: Sequence[tuple[Item, memoryview | None]], note: Note = _PLAIN
) -> tuple[list[bytes | memoryview], Contents]:
    """Encode a commit: return the parts of its object, and its head."""
    checked = [item if data is None else replace(item, checksum=zlib.crc32(data)) for item, data in pairs]
    head = _head(sequence, token, checked, note)
    items: list[Item] = []
    end = len(head)
    for item in checked:
        items.append(item if item.nbytes is None else replace(item, start=end))
        end += item.nbytes or 0
    return [head, *(data for _, data in pairs if data)], Contents(sequence, token, tuple(items), end, note)


def head_bytes(first: bytes) -> int:
    """Return the size of a head, given its first bytes. Raises Damaged."""
    if len(first) < LENGTH:
        raise Damaged("is truncated")
    return LENGTH + int.from_bytes(first[:LENGTH], "little") + _CHECKSUM


def decode_head(head: bytes) -> Contents:
    """Decode the head of an object; bytes behind it are ignored. Raises Damaged."""
    base = head_bytes(head)
    if len(head) < base:
        raise Damaged("is truncated, or was not written by gradserve")
    covered = memoryview(head)[: base - _CHECKSUM]
    if zlib.crc32(covered) != int.from_bytes(head[base - _CHECKSUM : base], "little"):
        raise Damaged("is corrupt: its checksum does not match")
    try:
        header = orjson.loads(covered[LENGTH:])
        format = header[METADATA]["format"]
        if format not in _FORMATS:
            raise Damaged(f"has the format “{format}”, but this version of gradserve reads {_KNOWN_FORMATS}")
        commit = orjson.loads(header[METADATA]["commit"])
        items = tuple(_located(commit["items"], header, base - _CHECKSUM))
        end = max((item.start + (item.nbytes or 0) for item in items), default=base)
        note = _note(commit["note"]) if "note" in commit else _PLAIN
        return Contents(int(commit["sequence"]), str(commit["token"]), items, end, note)
    except (KeyError, TypeError, ValueError):
        raise Damaged("was not written by gradserve") from None


def require_whole(item: Item, data: bytes) -> None:
    """Raise Damaged if these are not the bytes of the item."""
    if len(data) != (item.nbytes or 0):
        raise Damaged("is truncated")
    if zlib.crc32(data) != item.checksum:
        raise Damaged(f"is corrupt: the checksum of its {item.kind} does not match")


def _head(sequence: int, token: str, items: Sequence[Item], note: Note) -> bytes:
    """Encode the head of an object."""
    rows: list[dict[str, Any]] = []
    for item in items:
        row = {
            "kind": item.kind,
            "namespace": item.namespace,
            "name": item.name,
            "facts": item.facts,
            "came": item.first_commit,
        }
        rows.append(row if item.nbytes is None else row | {"checksum": item.checksum})
    commit: dict[str, Any] = {"sequence": sequence, "token": token, "items": rows}
    if note != _PLAIN:
        fields = {field.name: getattr(note, field.name) for field in dataclass_fields(note)}
        fields["past"] = None if note.past is None else note.past.to_json()
        commit["note"] = {name: value for name, value in fields.items() if value not in (None, False)}
    form = COMMIT_FORMAT_OF_MODELS if any(item.kind == MODEL for item in items) else COMMIT_FORMAT
    header: dict[str, Any] = {
        METADATA: {"format": form, "commit": orjson.dumps(commit).decode()},
        "checksum": {"dtype": "U64", "shape": [1], "data_offsets": [0, _CHECKSUM]},
    }
    end = _CHECKSUM
    for number, item in enumerate(items):
        if item.nbytes is not None:
            start, end = end, end + item.nbytes
            dtype, shape = (
                (item.facts["dtype"], item.facts["shape"]) if item.kind == TENSOR else ("uint8", [item.nbytes])
            )
            header[str(number)] = {**safetensors_type(dtype, shape), "data_offsets": [start, end]}
    text = orjson.dumps(header)
    text += b" " * (-len(text) % LENGTH)
    covered = len(text).to_bytes(LENGTH, "little") + text
    return covered + zlib.crc32(covered).to_bytes(_CHECKSUM, "little")


def _note(fields: dict[str, Any]) -> Note:
    lease, owner, began = fields.get("lease"), fields.get("owner"), fields.get("began")
    opening, past, successor = fields.get("opening"), fields.get("past"), fields.get("successor")
    return Note(
        lease=None if lease is None else float(lease),
        again=bool(fields.get("again")),
        emptied=bool(fields.get("emptied")),
        released=bool(fields.get("released")),
        owner=None if owner is None else str(owner),
        began=None if began is None else float(began),
        opening=None if opening is None else int(opening),
        past=None if past is None else Past.from_json(past),
        successor=None if successor is None else str(successor),
    )


def _located(rows: Sequence[dict[str, Any]], header: dict[str, Any], data: int) -> Iterable[Item]:
    """Yield the items of these rows with their positions; the bytes of the tensors begin at `data`."""
    for number, row in enumerate(rows):
        identity = row["kind"], row["namespace"], row["name"]
        if "checksum" in row:
            start, stop = header[str(number)]["data_offsets"]
            yield Item(*identity, stop - start, row["facts"], row["came"], data + start, row["checksum"])
        else:
            yield Item(*identity, None, row["facts"], row["came"])


class Vanished(Exception):
    """Disappearance of an object that was listed: another server is tidying the place."""


def commit_key(sequence: int) -> str:
    """Return the key of a commit; keys sort like the numbers."""
    return f"{COMMITS}{sequence:020}"


def read_head(objects: Objects, sequence: int) -> Contents:
    """Read the head of a commit. Raises Missing, Damaged, OSError."""
    key = commit_key(sequence)
    first = objects.get(key, 0, _HEAD)
    needed = head_bytes(first)
    head = decode_head(first if needed <= len(first) else objects.get(key, 0, needed))
    if head.sequence != sequence:
        raise Damaged(f"contains commit {head.sequence}")
    return head


def read_items(objects: Objects, sequence: int, items: Sequence[Item]) -> list[bytes]:
    """Read the bytes of several items of a commit, with few requests. Raises Missing, Damaged, OSError."""
    start = min(item.start for item in items)
    stop = max(item.start + (item.nbytes or 0) for item in items)
    # One range may include bytes of other items, but not much more than is needed.
    nbytes = sum(item.nbytes or 0 for item in items)
    if len(items) == 1 or stop - start > min(2 * nbytes, _TOGETHER):
        return [read_item(objects, sequence, item) for item in items]
    block = objects.get(commit_key(sequence), start, stop) if nbytes else b""
    parts = [block[item.start - start : item.start - start + (item.nbytes or 0)] for item in items]
    for item, part in zip(items, parts, strict=True):
        require_whole(item, part)
    return parts


def read_item(objects: Objects, sequence: int, item: Item) -> bytes:
    """Read the bytes of an item of a commit. Raises Missing, Damaged, OSError."""
    data = objects.get(commit_key(sequence), item.start, item.start + item.nbytes) if item.nbytes else b""
    require_whole(item, data)
    return data


def _extent(item: Item) -> tuple[object, ...]:
    return item.key, item.start, item.nbytes


class Chain(NamedTuple):
    """Numbers of the commits of a place, in order: all that are listed, and those that count.

    `past`: what the last opening says about the commits before it. Those that it does not know count no more, and may
    have arrived late. It is None if no opening says anything, and then all of them count.
    """

    listed: Sequence[int]
    valid: Sequence[int]
    past: Past | None


class Reading:
    """Parallel reader of the commits of a place, which messages call `place`."""

    def __init__(self, objects: Objects, place: str, environment: Environment = SYSTEM) -> None:
        self._objects, self._place = objects, place
        self._threads = environment.threads(_READS_AT_ONCE, "gradserve-read")

    def __enter__(self) -> Reading:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown()

    def sequences(self, after: int = 0) -> list[int]:
        """List the numbers of the commits after a number. Raises RuntimeError if there are other keys, and OSError."""
        listed = map(self._sequence, self._objects.list(COMMITS, commit_key(after) if after else ""))
        return sorted(sequence for sequence in listed if sequence > after)  # a store may ignore where to begin

    def chain(self) -> Chain:
        """List the commits, and find those that count. Raises Vanished, and RuntimeError like `heads`."""
        listed = self.sequences()
        if not listed:
            return Chain((), (), None)
        last = self._existing_head(listed[-1])
        number = last.note.opening
        opening = last if number in (None, last.sequence) else self._existing_head(number)
        if (past := opening.note.past) is None:
            return Chain(listed, listed, None)
        live = set(past.live)
        return Chain(listed, [n for n in listed if n >= opening.sequence or n in live], past)

    def heads(self, sequences: Iterable[int]) -> dict[int, Contents]:
        """Read the heads of commits; those that have been deleted meanwhile are left out.

        Raises RuntimeError if one is damaged or cannot be read.
        """
        listed = list(sequences)
        return {n: head for n, head in zip(listed, self._threads.map(self._head, listed), strict=True) if head}

    def data(self, numbered: Iterable[tuple[int, Item]]) -> Iterator[tuple[Item, bytes]]:
        """Read the bytes of items, each given with the number of its commit.

        Raises RuntimeError like `heads`, and Vanished.
        """
        by_commit = defaultdict[int, list[Item]](list)
        for sequence, item in numbered:
            by_commit[sequence].append(item)
        for (_, items), data in zip(by_commit.items(), self._threads.map(self._data, by_commit.items()), strict=True):
            yield from zip(items, data, strict=True)

    def _sequence(self, key: str) -> int:
        name = key.removeprefix(COMMITS)
        if not _NUMBER.fullmatch(name):
            raise RuntimeError(f"{self._place} has {key!r}, which is not a commit of gradserve; move it elsewhere")
        return int(name)

    def _existing_head(self, sequence: int) -> Contents:
        head = self._head(sequence)
        if head is None:
            raise Vanished
        return head

    def _head(self, sequence: int) -> Contents | None:
        try:
            return read_head(self._objects, sequence)
        except Missing:
            return None
        except Damaged as error:
            raise self._damage(sequence, error) from None
        except OSError as error:
            raise self._unreadable(sequence, error) from None

    def _data(self, numbered: tuple[int, list[Item]]) -> list[bytes]:
        sequence, items = numbered
        try:
            data = read_items(self._objects, *numbered)
        except Missing:
            raise Vanished from None
        except Damaged as error:
            self._require_items(sequence, items)
            raise self._damage(sequence, error) from None
        except OSError as error:
            self._require_items(sequence, items)
            raise self._unreadable(sequence, error) from None
        if not any(data):  # then nothing was read, and the commit may be gone
            self._require_items(sequence, items)
        return data

    def _require_items(self, sequence: int, items: Sequence[Item]) -> None:
        """Raise Vanished if a commit does not have these items any more."""
        head = self._head(sequence)
        if head is None or not set(map(_extent, items)) <= set(map(_extent, head.items)):
            raise Vanished

    def _unreadable(self, sequence: int, error: OSError) -> RuntimeError:
        return RuntimeError(f"cannot read {self._place}: {commit_key(sequence)}: {error.strerror or error}")

    def _damage(self, sequence: int, error: Damaged) -> RuntimeError:
        advice = "restore a backup, or move the damaged state elsewhere to start empty"
        return RuntimeError(f"{self._place} is damaged: {commit_key(sequence)} {error}; {advice}")
