"""Tables of stored values in memory, by namespace and name: tensors, graphs and models, each within a quota.

A value that has been decided on and is being written is *coming*: it counts against the quota, but requests do not see
it yet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final, Generic, NamedTuple, TypeVar

import orjson

from engine import printable
from service.core.allocation import Allocation
from service.core.errors import Refusal
from service.core.settings import Settings
from service.store.residency import UNLOADED, Residency
from service.store.writes import nbytes_of

_V = TypeVar("_V")
TableKey = tuple[str, str]  # namespace and name


class Quota(NamedTuple):
    """Number of values, and their bytes together."""

    most: int
    most_bytes: int


@dataclass(slots=True)
class Usage:
    """Number of values and their bytes, of the tables that share a quota."""

    count: int = 0
    nbytes: int = 0


#: function from a namespace to its quota
Share = Callable[[str], Quota]
#: function from a namespace and a limit to the value that the namespace's keys set for the limit, or None
KeyLimit = Callable[[str, str], int | None]
_NOTHING: Final = Quota(0, 0)
#: the server's own namespace; without API keys, everything is in it
_OWN = ""

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_EXPECTED: Final = "1 to 128 characters from A-Z a-z 0-9 _ . -, not starting with a dot or hyphen"
#: `expected` in the refusal of a missing model
MODEL_EXPECTED: Final = "the name of a model"
#: most models that a refusal names
_MOST_NAMED: Final = 10
#: extent that each call chooses
FREE: Final = -1

#: estimated bytes of a tensor besides its elements, of a graph besides its record, and of a model besides its record
TENSOR_OVERHEAD: Final = 500
OVERHEAD: Final = 1000
MODEL_OVERHEAD: Final = 500
#: end of a record's summary; within a JSON string, the quotation marks would be escaped
_BEFORE_THE_GRAPH: Final = b',"graph":'
_BEFORE_THE_LEAVES: Final = b',"inputs":'


class Table(Generic[_V]):
    """Values by key. For one thread.

    A coming value counts, and later decisions see it (`latest`); requests see it once it has settled (`find`).
    """

    #: name of the values in messages
    plural = "things"

    def __init__(self, quota: Quota, nbytes: Callable[[_V], int], share: Share | None = None) -> None:
        """Make an empty table with a `quota` for all values, and a `share` for each namespace if there are several."""
        self._quota = quota
        self._share = share
        self._nbytes = nbytes
        self._usage: dict[str, Quota] = {}  # of each namespace
        self._values: dict[str, dict[str, _V]] = {}
        self._coming: dict[TableKey, _V | None] = {}
        self._total = Usage()  # of all tables with the same quota, this one included
        self.count = 0
        self.nbytes = 0

    def find(self, key: TableKey) -> _V | None:
        """Return the value that requests see."""
        return self._values.get(key[0], {}).get(key[1])

    def latest(self, key: TableKey) -> _V | None:
        """Return the value as it will be when everything that is coming has settled."""
        return self._coming[key] if key in self._coming else self.find(key)

    def within(self, namespace: str) -> Mapping[str, _V]:
        """Return the values of a namespace, in the order in which their names were first used."""
        return self._values.get(namespace, {})

    def all_latest(self, namespace: str) -> Iterator[tuple[str, _V]]:
        """Iterate over a namespace, by name, as it will be when everything that is coming has settled."""
        coming = {name: value for (other, name), value in self._coming.items() if other == namespace}
        return ((name, value) for name, value in {**self.within(namespace), **coming}.items() if value is not None)

    def __iter__(self) -> Iterator[tuple[TableKey, _V]]:
        """Iterate over all values."""
        return (
            ((namespace, name), value) for namespace, values in self._values.items() for name, value in values.items()
        )

    def admit(self, changes: Mapping[TableKey, _V | None]) -> None:
        """Raise Refusal (store_full) unless these changes fit together.

        Changes that take no more than the values they replace always fit. A refusal tells a namespace nothing about
        others.
        """
        for namespace in dict.fromkeys(namespace for namespace, _ in changes):
            self._admit_share(namespace, {key: value for key, value in changes.items() if key[0] == namespace})
        count, held = self._growth(changes)
        (most, most_bytes), total = self._quota, self._total
        most, most_bytes = most - (total.count - self.count), most_bytes - (total.nbytes - self.nbytes)
        if self.count + count > max(most, self.count):
            raise self._full_for_all(f"{self.count} {self.plural}", f"at most {most} {self.plural}")
        if self.nbytes + held > max(most_bytes, self.nbytes):
            needed = f"{self._sum(list(changes.values()))} bytes"
            raise self._full_for_all(f"{self.nbytes} bytes of {self.plural}", f"at most {most_bytes} bytes", needed)

    def share_quota(self, total: Usage) -> None:
        """Share the quota with all tables that count in `total`, instead of those until now."""
        self._count_in_total(-self.count, -self.nbytes)
        self._total = total
        self._count_in_total(self.count, self.nbytes)

    def _count_in_total(self, count: int, nbytes: int) -> None:
        self._total.count += count
        self._total.nbytes += nbytes

    def _admit_share(self, namespace: str, changes: Mapping[TableKey, _V | None]) -> None:
        """Raise Refusal (store_full) if a namespace would have more than its share, and more than before."""
        if self._share is None:
            return
        (count, held), (has, has_bytes) = self._growth(changes), self._usage.get(namespace, _NOTHING)
        most, most_bytes = self._share(namespace)
        if has + count > max(most, has):
            raise table_full(f"your namespace already stores {has} {self.plural}", f"at most {most} {self.plural}")
        if has_bytes + held > max(most_bytes, has_bytes):
            needed = f"{self._sum(list(changes.values()))} bytes"
            usage = f"your namespace already stores {has_bytes} bytes of {self.plural}"
            raise table_full(usage, f"at most {most_bytes} bytes", needed)

    def _growth(self, changes: Mapping[TableKey, _V | None]) -> tuple[int, int]:
        """Return by how much the changes raise the number of values, and the bytes."""
        before, after = [self.latest(key) for key in changes], list(changes.values())
        count = sum(value is not None for value in after) - sum(value is not None for value in before)
        return count, self._sum(after) - self._sum(before)

    def expect(self, key: TableKey, value: _V | None) -> None:
        """Note that this value is coming; None: a deletion."""
        self._count_change(key[0], self.latest(key), value)
        self._coming[key] = value

    def settle(self, key: TableKey, value: _V | None) -> None:
        """Put the coming value into the table."""
        self._coming.pop(key, None)
        self._put(key, value)

    def drop(self, key: TableKey) -> None:
        """Forget the coming value: its write has failed."""
        if key in self._coming:
            self._count_change(key[0], self._coming.pop(key), self.find(key))

    def load(self, key: TableKey, value: _V | None) -> None:
        """Put a value from the journal into the table, even if the quota is smaller now."""
        self._count_change(key[0], self.find(key), value)
        self._put(key, value)

    def _put(self, key: TableKey, value: _V | None) -> None:
        namespace, name = key
        if value is not None:
            self._values.setdefault(namespace, {})[name] = value
            return
        values = self._values.get(namespace, {})
        values.pop(name, None)
        if not values:
            self._values.pop(namespace, None)

    def _count_change(self, namespace: str, before: _V | None, after: _V | None) -> None:
        count, held = (after is not None) - (before is not None), self._sum([after]) - self._sum([before])
        self.count, self.nbytes = self.count + count, self.nbytes + held
        self._count_in_total(count, held)
        has, has_bytes = self._usage.pop(namespace, _NOTHING)
        if has + count:
            self._usage[namespace] = Quota(has + count, has_bytes + held)

    def _sum(self, values: Iterable[_V | None]) -> int:
        return sum(self._nbytes(value) for value in values if value is not None)

    def _full_for_all(self, held: str, expected: str, needed: str | None = None) -> Refusal:
        """Return the refusal of a full server: with several namespaces, it does not tell what others store."""
        if self._share is None:
            return table_full(f"the server already stores {held}", expected, needed)
        detail = f"the server has no room for more {self.plural}, though your namespace has not filled its share"
        return Refusal("store_full", detail, got=needed or "one more")


def table_full(held: str, expected: str, needed: str | None = None) -> Refusal:
    """Return the refusal of a full table: `held` is its usage, `expected` its limit."""
    more = f", and this needs {needed}" if needed else ""
    detail = f"{held}, of {expected}{more}; delete some that you no longer need"
    return Refusal("store_full", detail, expected=expected, got=needed or "one more")


def total_quota(settings: Settings, things: str) -> Quota:
    """Return the quota for all values of one kind: graph, tensor, model or answer."""
    return Quota(getattr(settings, f"max_{things}s"), getattr(settings, f"max_{things}_bytes"))


def share_of_each(settings: Settings, things: str, key_limit: KeyLimit | None) -> Share | None:
    """Return the quota of each namespace: the limit of its keys, or a percentage of the total; None without API keys.

    The server's own namespace may use the total, unless one of its keys sets a limit.
    """
    if key_limit is None:
        return None

    def most(namespace: str, limit: str) -> int:
        limit_of_keys = key_limit(namespace, limit)
        of_all: int = getattr(settings, limit)
        if limit_of_keys is not None:
            return limit_of_keys
        return of_all if namespace == _OWN else of_all * settings.namespace_share // 100

    return lambda namespace: Quota(most(namespace, f"max_{things}s"), most(namespace, f"max_{things}_bytes"))


def is_name(name: str) -> bool:
    """Return whether a tensor may have this name."""
    return _NAME.fullmatch(name) is not None


def require_name(name: str, where: str, pointer: str | None = None, node: int | None = None) -> str:
    """Return a valid name unchanged; messages say `where` it stands. Raises Refusal (invalid_field)."""
    if is_name(name):
        return name
    received = f"“{printable(name)}”" if name else "empty"
    prefix = "" if node is None else f"node {node}: "
    detail = f"{prefix}{where} must be {_EXPECTED}, but is {received}"
    raise Refusal("invalid_field", detail, node=node, expected=_EXPECTED, got=received, pointer=pointer)


def unknown_tensor(name: str, pointer: str | None = None, node: int | None = None) -> Refusal:
    """Return the refusal of a missing tensor."""
    prefix = "" if node is None else f"node {node}: "
    detail = f"{prefix}there is no resident tensor “{name}”; GET /v1/tensors lists the stored tensors"
    return Refusal("not_found", detail, node=node, expected="the name of a resident tensor", got=name, pointer=pointer)


@dataclass(frozen=True, eq=False, slots=True)
class TensorVersion:
    """One version of a tensor. The view of `memory` has only its elements, row-major and little-endian.

    Of an unloaded version, they are in the journal alone (see `residency`).

    The elements are written once, before the version can be seen. A view of them stays valid as long as anybody holds
    it, even after the memory has been given back.
    """

    dtype: str
    shape: tuple[int, ...]
    etag: str
    memory: Allocation

    @property
    def nbytes(self) -> int:
        """Bytes of its elements, even after the memory has been given back."""
        return nbytes_of(self.dtype, self.shape)

    @property
    def is_unloaded(self) -> bool:
        """Whether its elements are not in memory."""
        return self.memory is UNLOADED


#: function that is called with each new version, or None for a deletion
Placed = Callable[[str, str, TensorVersion | None], None]


class TensorTable(Table[TensorVersion]):
    """Current versions of tensors by namespace and name."""

    plural = "tensors"

    def __init__(
        self,
        quota: Quota,
        placed: Placed,
        share: Share | None = None,
        residency: Residency | None = None,
        is_kept: Callable[[str, str, str], bool] = lambda *_: False,
    ) -> None:
        """Make an empty table. Versions that the journal has, by `is_kept`, become unloaded as `residency` demands."""
        super().__init__(quota, lambda version: TENSOR_OVERHEAD + version.nbytes, share)
        self._placed, self._residency, self._is_kept = placed, residency, is_kept

    def get(self, namespace: str, name: str) -> TensorVersion:
        """Return the current version. Raises Refusal (not_found)."""
        version = self.find((namespace, name))
        if version is None:
            raise unknown_tensor(name)
        return version

    def settle(self, key: TableKey, value: TensorVersion | None) -> None:
        """Put the coming version into the table; tasks read it from now on."""
        super().settle(key, value)
        self._place(key, value)
        if self._residency is not None:
            self._residency.make_room({(self, key)})

    def load(self, key: TableKey, value: TensorVersion | None) -> None:
        """Put a version from the journal into the table."""
        super().load(key, value)
        self._place(key, value)

    def unload(self, key: TableKey) -> bool:
        """Implement `Holder.unload`."""
        version = self.find(key)
        if version is None or not self._is_kept(*key, version.etag):
            return False
        self.load(key, replace(version, memory=UNLOADED))
        return True

    def _place(self, key: TableKey, value: TensorVersion | None) -> None:
        self._placed(*key, value)
        if self._residency is not None:
            self._residency.remove(self, key)
            if value is not None and not value.is_unloaded:
                self._residency.add(self, key, value.nbytes)


@dataclass(frozen=True, slots=True)
class Registered:
    """Registered graph: its `record` is the JSON of answers, and `summary` the same without the graph.

    Workers identify it by `key`, a hash of the whole record. The id is not enough: two graphs with the same id may name
    their nodes differently, and messages name nodes.
    """

    graph_id: str
    key: str
    record: bytes
    summary: bytes

    @classmethod
    def parse(cls, record: bytes) -> Registered:
        """Parse a record that a worker has written."""
        summary = record.partition(_BEFORE_THE_GRAPH)[0] + b"}"
        return cls(orjson.loads(summary)["graph_id"], blake2b(record, digest_size=32).hexdigest(), record, summary)

    @property
    def nbytes(self) -> int:
        """Estimated bytes in memory."""
        return OVERHEAD + len(self.record) + len(self.summary)


class GraphStore(Table[Registered]):
    """Registered graphs by namespace and id."""

    plural = "graphs"

    def __init__(self, quota: Quota, share: Share | None = None) -> None:
        super().__init__(quota, lambda graph: graph.nbytes, share)

    def get(self, namespace: str, graph_id: str) -> Registered:
        """Return the graph of this id. Raises Refusal (not_found)."""
        graph = self.find((namespace, graph_id))
        if graph is None:
            raise no_graph(graph_id)
        return graph


def no_graph(graph_id: str, pointer: str | None = None) -> Refusal:
    """Return the refusal of a missing graph."""
    shown = printable(graph_id)
    detail = (
        f"there is no graph “{shown}”; POST /v1/graphs registers one, and GET /v1/graphs lists the registered graphs"
    )
    return Refusal("not_found", detail, expected="the id of a registered graph", got=shown, pointer=pointer)


@dataclass(frozen=True, slots=True)
class StoredModel:
    """Model: its `record` is the JSON of answers, which includes its `etag`."""

    graph_id: str
    etag: str
    record: bytes

    @classmethod
    def parse(cls, record: bytes) -> StoredModel:
        """Parse a record that a worker has written."""
        summary = orjson.loads(record.partition(_BEFORE_THE_LEAVES)[0] + b"}")
        return cls(summary["graph_id"], summary["etag"], record)

    @property
    def nbytes(self) -> int:
        """Estimated bytes in memory."""
        return MODEL_OVERHEAD + len(self.record)


class ModelTable(Table[StoredModel]):
    """Models by namespace and name."""

    plural = "models"

    def __init__(self, quota: Quota, share: Share | None = None) -> None:
        super().__init__(quota, lambda model: model.nbytes, share)

    def get(self, namespace: str, name: str) -> StoredModel:
        """Return the model of this name. Raises Refusal (not_found)."""
        model = self.find((namespace, name))
        if model is None:
            raise no_model(name)
        return model

    def require_unused(self, key: TableKey) -> None:
        """Raise Refusal (in_use) if a model uses the graph of this namespace and id, or will."""
        namespace, graph_id = key
        users = sorted(name for name, model in self.all_latest(namespace) if model.graph_id == graph_id)
        if users:
            listed = ", ".join(users[:_MOST_NAMED])
            more = f" and {len(users) - _MOST_NAMED} more" if len(users) > _MOST_NAMED else ""
            named = "the model" if len(users) == 1 else "the models"
            advice = "delete the models that use it, and then the graph"
            detail = f"the graph {graph_id} is used by {named} {listed}{more}; {advice}"
            got = f"models that use it: {listed}{more}"
            raise Refusal("in_use", detail, expected="a graph that no model uses", got=got)


def graph_of_request(request: bytes) -> str:
    """Return the graph id in a request for a model, as a worker has written it."""
    graph_id: str = orjson.loads(request.partition(_BEFORE_THE_LEAVES)[0] + b"}")["graph_id"]
    return graph_id


def no_model(name: str) -> Refusal:
    """Return the refusal of a missing model."""
    shown = printable(name)
    detail = f"there is no model “{shown}”; PUT /v1/models/NAME creates one, and GET /v1/models lists the stored models"
    return Refusal("not_found", detail, expected=MODEL_EXPECTED, got=shown)
