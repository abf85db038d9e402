"""Tables in memory of what is kept, by namespace and name: tensors, graphs and models, each within a quota.

What has been decided upon and is still being written is *coming*: it counts against the quota, and is not seen yet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Generic, NamedTuple, TypeVar

import orjson

from engine import printable
from service.core.allocation import Allocation
from service.core.errors import Refusal
from service.core.settings import Settings
from service.store.writes import nbytes_of

_V = TypeVar("_V")
TableKey = tuple[str, str]  # namespace and name


class Quota(NamedTuple):
    """Quota of things, and of the bytes that they may take together."""

    most: int
    most_bytes: int


#: what a namespace may keep; None: as much as there is memory for
Share = Callable[[str], Quota]


class Table(Generic[_V]):
    """Things by key. For one thread.

    What is *coming* has been decided upon and is being written. It counts, and whoever decides next sees it (`latest`);
    others see it once it has settled (`get`).
    """

    #: what the things are called
    plural = "things"

    def __init__(self, quota: Quota, nbytes: Callable[[_V], int], share: Share | None = None) -> None:
        """`quota` is for all together, and `share` for each namespace, where there are several."""
        self._quota = quota
        self._share = share
        self._nbytes = nbytes
        self._of: dict[str, Quota] = {}  # what each namespace has now
        self._kept: dict[str, dict[str, _V]] = {}
        self._coming: dict[TableKey, _V | None] = {}
        #: how many things, and bytes of them, other tables have out of the same quota
        self.beside: Callable[[], Quota] = lambda: _NOTHING
        self.count = 0
        self.held = 0

    def find(self, key: TableKey) -> _V | None:
        """Return the value that everybody sees."""
        return self._kept.get(key[0], {}).get(key[1])

    def latest(self, key: TableKey) -> _V | None:
        """Return the value that will be there when all that is coming has settled."""
        return self._coming[key] if key in self._coming else self.find(key)

    def within(self, namespace: str) -> Mapping[str, _V]:
        """Return the values of a namespace, in the order in which the names came."""
        return self._kept.get(namespace, {})

    def all_latest(self, namespace: str) -> Iterator[tuple[str, _V]]:
        """Iterate over what will be in a namespace when all that is coming has settled, by name."""
        coming = {name: value for (other, name), value in self._coming.items() if other == namespace}
        return ((name, value) for name, value in {**self.within(namespace), **coming}.items() if value is not None)

    def __iter__(self) -> Iterator[tuple[TableKey, _V]]:
        """Iterate over all values."""
        return (((namespace, name), value) for namespace, kept in self._kept.items() for name, value in kept.items())

    def admit(self, changes: Mapping[TableKey, _V | None]) -> None:
        """Return where there is memory for these changes together. What takes no more than before always fits.

        A namespace is told of itself alone: what others keep is nobody's business. Raises Refusal: store_full.
        """
        for namespace in dict.fromkeys(namespace for namespace, _ in changes):
            self._admit_share(namespace, {key: value for key, value in changes.items() if key[0] == namespace})
        count, held = self._growth(changes)
        (most, most_bytes), beside = self._quota, self.beside()
        most, most_bytes = most - beside.most, most_bytes - beside.most_bytes
        if self.count + count > max(most, self.count):
            raise self._full_for_all(f"{self.count} {self.plural}", f"at most {most} {self.plural}")
        if self.held + held > max(most_bytes, self.held):
            wanted = f"{self._sum(list(changes.values()))} bytes"
            raise self._full_for_all(f"{self.plural} of {self.held} bytes", f"at most {most_bytes} bytes", wanted)

    def _admit_share(self, namespace: str, changes: Mapping[TableKey, _V | None]) -> None:
        """Raise Refusal (store_full) where a namespace would keep more than its share, and more than before."""
        if self._share is None:
            return
        (count, held), (has, has_bytes) = self._growth(changes), self._of.get(namespace, _NOTHING)
        most, most_bytes = self._share(namespace)
        if has + count > max(most, has):
            raise table_full(f"your namespace keeps {has} {self.plural}", f"at most {most} {self.plural}")
        if has_bytes + held > max(most_bytes, has_bytes):
            wanted = f"{self._sum(list(changes.values()))} bytes"
            kept = f"your namespace keeps {self.plural} of {has_bytes} bytes"
            raise table_full(kept, f"at most {most_bytes} bytes", wanted)

    def _growth(self, changes: Mapping[TableKey, _V | None]) -> tuple[int, int]:
        """Return the growth of the count and of the bytes."""
        before, after = [self.latest(key) for key in changes], list(changes.values())
        count = sum(value is not None for value in after) - sum(value is not None for value in before)
        return count, self._sum(after) - self._sum(before)

    def expect(self, key: TableKey, value: _V | None) -> None:
        """Note that this value is coming; None: the end of what is there."""
        self._counted(key[0], self.latest(key), value)
        self._coming[key] = value

    def settle(self, key: TableKey, value: _V | None) -> None:
        """Settle the value that was expected."""
        self._coming.pop(key, None)
        self._put(key, value)

    def drop(self, key: TableKey) -> None:
        """Drop the value that was expected: it is not coming."""
        if key in self._coming:
            self._counted(key[0], self._coming.pop(key), self.find(key))

    def load(self, key: TableKey, value: _V | None) -> None:
        """Take up what was kept before: it is there whatever the quota has become."""
        self._counted(key[0], self.find(key), value)
        self._put(key, value)

    def _put(self, key: TableKey, value: _V | None) -> None:
        namespace, name = key
        if value is not None:
            self._kept.setdefault(namespace, {})[name] = value
            return
        kept = self._kept.get(namespace, {})
        kept.pop(name, None)
        if not kept:
            self._kept.pop(namespace, None)

    def _counted(self, namespace: str, before: _V | None, after: _V | None) -> None:
        count, held = (after is not None) - (before is not None), self._sum([after]) - self._sum([before])
        self.count, self.held = self.count + count, self.held + held
        has, has_bytes = self._of.pop(namespace, _NOTHING)
        if has + count:
            self._of[namespace] = Quota(has + count, has_bytes + held)

    def _sum(self, values: Iterable[_V | None]) -> int:
        return sum(self._nbytes(value) for value in values if value is not None)

    def _full_for_all(self, held: str, expected: str, needed: str | None = None) -> Refusal:
        """The refusal where the server has no memory: with several namespaces, it tells nobody what the others keep."""
        if self._share is None:
            return table_full(f"the server keeps {held}", expected, needed)
        detail = f"the server has no room for more {self.plural}, though your namespace has not filled its share"
        return Refusal("store_full", detail, got=needed or "one more")


_NOTHING: Final = Quota(0, 0)


def table_full(held: str, expected: str, needed: str | None = None) -> Refusal:
    """The refusal where so much is held already, and no more may be than is `expected`."""
    more = f", and this takes {needed}" if needed else ""
    detail = f"{held} already, of {expected}{more}; delete what is no longer needed"
    return Refusal("store_full", detail, expected=expected, got=needed or "one more")


# Share that one namespace may fill of what a server keeps.

#: what the keys of a namespace state for a limit of that name; None where they state nothing
StatedLimit = Callable[[str, str], int | None]
#: the namespace of the server itself, which is all of it where no keys are asked for
_OWN = ""


def total_quota(settings: Settings, things: str) -> Quota:
    """The quota for all `things` together: graph, tensor, model or answer."""
    return Quota(getattr(settings, f"max_{things}s"), getattr(settings, f"max_{things}_bytes"))


def share_of_each(settings: Settings, things: str, stated: StatedLimit | None) -> Share | None:
    """The quota of a namespace: what its keys state, or else its percentage of all; None where no keys are asked for.

    The server's own namespace may fill all, unless a key of it states less.
    """
    if stated is None:
        return None

    def most(namespace: str, limit: str) -> int:
        own = stated(namespace, limit)
        of_all: int = getattr(settings, limit)
        if own is not None:
            return own
        return of_all if namespace == _OWN else of_all * settings.namespace_share // 100

    return lambda namespace: Quota(most(namespace, f"max_{things}s"), most(namespace, f"max_{things}_bytes"))


# Names of resident tensors: what may be one, and what is said where one is none, or means nothing.

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_EXPECTED: Final = "1 to 128 of A-Z a-z 0-9 _ . - with neither a dot nor a hyphen first"


def is_name(name: str) -> bool:
    """Return whether a tensor may be called this."""
    return _NAME.fullmatch(name) is not None


def checked_name(name: str, where: str, pointer: str | None = None, node: int | None = None) -> str:
    """`name`, once it may be one; `where` it stands is for the sentence. Raises Refusal: invalid_field."""
    if is_name(name):
        return name
    got = f"“{printable(name)}”" if name else "empty"
    at = "" if node is None else f"node {node}: "
    detail = f"{at}{where} must be {_EXPECTED}, but is {got}"
    raise Refusal("invalid_field", detail, node=node, expected=_EXPECTED, got=got, pointer=pointer)


def unknown_tensor(name: str, pointer: str | None = None, node: int | None = None) -> Refusal:
    """The refusal of a tensor that is not there."""
    at = "" if node is None else f"node {node}: "
    detail = f"{at}there is no resident tensor “{name}”; GET /v1/tensors lists those that are kept"
    return Refusal("not_found", detail, node=node, expected="the name of a resident tensor", got=name, pointer=pointer)


# The tensors that callers have stored: their present versions, without their elements.

#: bytes that a tensor takes beside its elements
TENSOR_OVERHEAD: Final = 500


@dataclass(frozen=True, eq=False, slots=True)
class TensorVersion:
    """One version of a tensor. The view of `memory` holds its elements, row-major and little-endian, and nothing else.

    They are written once, before anybody is told. A view that was taken of them stays what it is for as long as anybody
    holds it, also when the memory has been given back.
    """

    dtype: str
    shape: tuple[int, ...]
    etag: str
    memory: Allocation

    @property
    def nbytes(self) -> int:
        """The bytes that its elements take, also once the memory has been given back."""
        return nbytes_of(self.dtype, self.shape)


#: told of each tensor that has a new version, or None any more
Placed = Callable[[str, str, TensorVersion | None], None]


class TensorTable(Table[TensorVersion]):
    """Present versions by namespace and name."""

    plural = "tensors"

    def __init__(self, quota: Quota, placed: Placed, share: Share | None = None) -> None:
        super().__init__(quota, lambda version: TENSOR_OVERHEAD + version.nbytes, share)
        self._placed = placed

    def get(self, namespace: str, name: str) -> TensorVersion:
        """The present version. Raises Refusal: not_found."""
        found = self.find((namespace, name))
        if found is None:
            raise unknown_tensor(name)
        return found

    def settle(self, key: TableKey, value: TensorVersion | None) -> None:
        """Settle a version: jobs read it from now on."""
        super().settle(key, value)
        self._placed(*key, value)

    def load(self, key: TableKey, value: TensorVersion | None) -> None:
        """Take up what was kept before."""
        super().load(key, value)
        self._placed(*key, value)


# The graphs that callers have registered, as bytes: whoever computes reads them, and the front never does.

#: bytes that a graph takes beside its record
OVERHEAD: Final = 1000
#: between what tells of a graph and the graph: in a string, a quotation mark would have a backslash before it
_BEFORE_THE_GRAPH: Final = b',"graph":'


@dataclass(frozen=True, slots=True)
class Registered:
    """A graph that is kept: its `record` is the JSON that it is answered with, and `summary` that without the graph.

    `key` is what workers know it by. It stands for the record to the letter, where the id does not: two graphs of one
    id may name their nodes differently, and messages name them.
    """

    graph_id: str
    key: str
    record: bytes
    summary: bytes

    @classmethod
    def of(cls, record: bytes) -> Registered:
        """The graph that a worker has made this record of."""
        summary = record.partition(_BEFORE_THE_GRAPH)[0] + b"}"
        return cls(orjson.loads(summary)["graph_id"], blake2b(record, digest_size=32).hexdigest(), record, summary)

    @property
    def nbytes(self) -> int:
        """The bytes that keeping it takes."""
        return OVERHEAD + len(self.record) + len(self.summary)


class GraphStore(Table[Registered]):
    """Registered graphs by namespace and id."""

    plural = "graphs"

    def __init__(self, quota: Quota, share: Share | None = None) -> None:
        super().__init__(quota, lambda graph: graph.nbytes, share)

    def get(self, namespace: str, graph_id: str) -> Registered:
        """The graph of this id. Raises Refusal: not_found."""
        found = self.find((namespace, graph_id))
        if found is None:
            raise no_graph(graph_id)
        return found


def no_graph(graph_id: str, pointer: str | None = None) -> Refusal:
    """The report for a graph that is not there."""
    shown = printable(graph_id)
    detail = f"there is no graph “{shown}”; POST /v1/graphs registers one, and GET /v1/graphs lists those that are kept"
    return Refusal("not_found", detail, expected="the id of a registered graph", got=shown, pointer=pointer)


# The models that callers have put, as bytes: names for the leaves and the outputs of a graph that is kept.

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
