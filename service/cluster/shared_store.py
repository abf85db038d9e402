"""Store of a cluster's server, as computing calls use it: own shards directly, other shards through their owners.

The versions of tensors are found before a task reads them, all names in one question, so that they are of one moment.
Answers can be used again as long as the owner has promised (see `service.store.promises`).
The owner stores the results of a reply, as it does for its own workers. A question is repeated if another server has
become the owner. A proposal is not, once it may have reached one.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import numpy as np
import orjson

from engine.ir.lru import LRU
from service.api.media import PROBLEM
from service.cluster.http_peers import HttpPeers
from service.cluster.owners import Owners, no_owner, within
from service.cluster.protocol import Answer, Moved, Silent, Slow, Unreachable, record_of, row_of_record, row_of_stored
from service.cluster.watch import Watch
from service.core.errors import Refusal, internal_error
from service.core.keys.caller import Caller, KeyScope
from service.core.settings import Settings
from service.observe.store import StoreService, outcome, settling
from service.observe.tally import ClusterStats, Holdings
from service.store.changes import ALWAYS, Change, Condition, new_answer
from service.store.idempotency import AnswerTable, Repetition
from service.store.journal import SYSTEM, Loaded
from service.store.tables import Registered, TableKey, TensorVersion, total_quota
from service.store.together import Together
from service.store.writes import AnswerRecord, nbytes_of
from service.workers.pool import Done, Pool
from service.workers.residents import ReaderCounts
from service.workers.task import Reply, Task, refused

#: caches of other servers' tensors and graphs have this fraction of the limits for stored ones
_CACHE_DIVISOR: Final = 4
#: questions about a shard in one window, and seconds of a window, after which its owner is asked to release it
_RELEASE_THRESHOLD: Final = 100
WINDOW: Final = 10.0

_logger = logging.getLogger("gradserve.cluster")


class _Known(NamedTuple):
    """Etag of a tensor's version or key of a graph, and until when the owner has promised that it is current."""

    label: str
    until: float


class SharedStore:
    """Store for the calls of a cluster's server. For one event loop."""

    def __init__(
        self,
        settings: Settings,
        pool: Pool,
        owners: Owners,
        peers: HttpPeers,
        reader_counts: ReaderCounts,
        watch: Watch | None = None,
        now: Callable[[], float] = SYSTEM.now,
    ) -> None:
        """`now` returns the time in seconds, which goes on while the machine sleeps."""
        self._now = now
        self._pool, self._owners, self._peers, self._reader_counts = pool, owners, peers, reader_counts
        self._versions: LRU[str, TensorVersion] = LRU(
            settings.max_tensor_bytes // _CACHE_DIVISOR,
            lambda version: version.nbytes,
            keep_newest=True,
            evicted=reader_counts.retire,
        )
        #: etags of the last known versions, by name; the versions themselves may have been evicted
        self._latest: LRU[str, _Known] = LRU(settings.max_tensors, keep_newest=True)
        self._graphs: LRU[str, Registered] = LRU(
            settings.max_graph_bytes // _CACHE_DIVISOR, lambda graph: graph.nbytes, keep_newest=True
        )
        #: keys of graphs by id, for the question whether the owner still has the same graph
        self._graph_keys: LRU[str, _Known] = LRU(settings.max_graphs, keep_newest=True)
        #: calls under way whose responses other servers store
        self.answers = AnswerTable(total_quota(settings, "answer"), settings.idempotency_seconds)
        self._begun: dict[TableKey, StoreService] = {}
        self._settling: set[asyncio.Task[None]] = set()
        self._grace = float(settings.shutdown_grace)
        self._watch = watch
        self._tasks: list[asyncio.Task[None]] = []
        self.forwarded: Counter[str] = Counter()
        self._timeout = settings.timeout_ms / 1000
        #: messages under way, by address and text; and look-ups of graphs
        self._asking = Together[tuple[Answer, float]]()
        self._finding = Together[Registered | None]()

    async def current(self, expires: float) -> None:
        """Return if the server can answer; each shard is checked when it is used. Raises Refusal: not_ready."""
        if self._watch is not None:
            self._watch.require_ready()

    def load(self) -> Loaded:
        """Load nothing: a shard is taken when it is first used. Raises RuntimeError for its address or the place."""
        if self._watch is not None:
            self._watch.begin()
        return Loaded()

    def restore(self, loaded: Loaded) -> None:
        """Begin to move shards to the servers that use them, and to watch the surroundings."""
        running = [self.balance()] if self._watch is None else [self.balance(), self._watch.run()]
        self._tasks = [asyncio.get_running_loop().create_task(each) for each in running]

    def known_graph(self, namespace: str, graph_id: str) -> Registered | None:
        """Return a graph if it is in memory and known to be current."""
        store = self._owners.local_store(namespace)
        if store is not None:
            return store.known_graph(namespace, graph_id)
        known = self._graph_keys.hit(f"{namespace}\n{graph_id}")
        return None if known is None or known.until <= self._now() else self._graphs.hit(known.label)

    def recalled_graph(self, namespace: str, graph_id: str) -> Registered | None:
        """Return a graph of another server as it was last, if it is in memory here."""
        if self._owners.owns(namespace):
            return None
        return self._last_graph(f"{namespace}\n{graph_id}")

    async def graph(self, namespace: str, graph_id: str, expires: float) -> Registered | None:
        """Find a graph here or at its owner. Raises Refusal: not_ready, deadline_exceeded."""
        try:
            return await within(asyncio.shield(self.find_graph(namespace, graph_id)), expires - self._owners.clock())
        except TimeoutError:
            raise no_owner() from None

    def find_graph(self, namespace: str, graph_id: str) -> asyncio.Task[Registered | None]:
        """Return a look-up of a graph that begins after this call, and must not be cancelled. Raises as `graph`."""
        return self._finding.join(
            (namespace, graph_id), lambda: self._find_graph(namespace, graph_id, self._owners.clock() + self._timeout)
        )

    async def _find_graph(self, namespace: str, graph_id: str, expires: float) -> Registered | None:
        async def remote(address: str) -> Registered | None:
            name = f"{namespace}\n{graph_id}"
            cached = self._last_graph(name)
            cached_key = None if cached is None else cached.key
            question = {"namespace": namespace, "graph_id": graph_id, "known": cached_key}
            began = self._now()
            answer = await self._ask(address, "graph", question, (), expires)
            if answer.head["key"] is None:
                return None
            graph = cached
            if graph is None or answer.head["key"] != cached_key:
                graph = Registered.parse(bytes(answer.blobs))
                if self._graphs.hit(graph.key) is None:
                    self._graphs.put(graph.key, graph)
            self._graph_keys.put(name, _Known(graph.key, began + answer.head.get("promised", 0.0)))
            return graph

        return await self._owners.at_owner(
            namespace, lambda store: store.graph(namespace, graph_id, expires), remote, expires
        )

    async def versions(self, namespace: str, names: Sequence[str], expires: float) -> Mapping[str, TensorVersion]:
        """Lend the versions of these names at one moment. Raises Refusal: not_ready, deadline_exceeded."""
        if promised := self.promised(namespace, names):
            return promised

        async def local(store: StoreService) -> Mapping[str, TensorVersion]:
            return self._lend(await store.versions(namespace, names, expires))

        async def remote(address: str) -> Mapping[str, TensorVersion]:
            return await self._versions_of(address, namespace, names, expires)

        return await self._owners.at_owner(namespace, local, remote, expires)

    def promised(self, namespace: str, names: Sequence[str]) -> Mapping[str, TensorVersion]:
        """Lend the last known versions if the owner has promised that all of them are current; otherwise none."""
        now = self._now()
        known = (self._latest.hit(f"{namespace}\n{name}") for name in names)
        if self._owners.owns(namespace) or not all(each is not None and each.until > now for each in known):
            return {}
        versions = self._last_known(namespace, names)
        return self._lend(versions) if len(versions) == len(names) else {}

    def recall(self, namespace: str, names: Sequence[str]) -> Mapping[str, TensorVersion]:
        """Lend the last known versions, perhaps outdated, if another server owns them and all are in memory here."""
        if self._owners.owns(namespace):
            return {}
        known = self._last_known(namespace, names)
        return self._lend(known) if len(known) == len(names) else {}

    async def begin(self, repetition: Repetition, expires: float) -> AnswerRecord | None:
        """Begin a call that may have been answered before. Raises Refusal: not_ready, invalid_field, conflict."""

        async def local(store: StoreService) -> AnswerRecord | None:
            record = await store.begin(repetition, expires)
            if record is None:
                self._begun[repetition.namespace, repetition.key] = store
            return record

        async def remote(address: str) -> AnswerRecord | None:
            # Under way here as well, so that a second one on this server gets `conflict` without a question.
            self.answers.begin(repetition)
            try:
                answer = await self._ask(address, "answer", {"asked": list(repetition)}, (), expires)
                row = answer.head["record"]
                record = None if row is None else record_of(row, bytes(answer.blobs))
            except BaseException:
                self.answers.end(repetition)
                raise
            if record is not None:
                self.answers.end(repetition)
            return record

        return await self._owners.at_owner(repetition.namespace, local, remote, expires)

    def end(self, repetition: Repetition) -> None:
        """End a call that is finished, or given up."""
        store = self._begun.pop((repetition.namespace, repetition.key), None)
        (self.answers if store is None else store.answers).end(repetition)

    def settle(
        self,
        task: Task,
        caller: Caller,
        reply: Reply,
        done: Done,
        condition: Condition = ALWAYS,
        more: Sequence[Change] = (),
    ) -> None:
        """Store the results of a reply, and call `done`. What it read was found for it, and was current then."""
        if not reply.stored:
            done(reply)
            return
        settlement = asyncio.get_running_loop().create_task(self._settle(task, caller, reply, done, condition, more))
        self._settling.add(settlement)
        settlement.add_done_callback(self._settling.discard)

    async def settle_and_wait(
        self, task: Task, caller: Caller, reply: Reply, condition: Condition = ALWAYS, more: Sequence[Change] = ()
    ) -> Reply:
        """Settle a reply, and return what `done` gets."""
        return await outcome(settling(self.settle, task, caller, reply, condition, more))

    def drain(self) -> None:
        """Release all shards, so that other servers need not wait."""
        self._owners.owned_shards.drain(self._grace)

    async def close(self, seconds: float) -> bool:
        """Release all shards; return whether everything was written in time."""
        for task in self._tasks:
            task.cancel()
        closed = await self._owners.owned_shards.close(seconds)
        await self._peers.close()
        return closed

    def holdings(self) -> Holdings:
        """Count what is stored at this moment, in all shards of this server."""
        holdings = [store.holdings() for store in self._owners.owned_shards]
        return Holdings(*map(sum, zip(*holdings, strict=True))) if holdings else Holdings()

    def stats(self) -> ClusterStats:
        """Return the metrics of this server."""
        owning = self._owners.owned_shards
        has_conflict = self._watch is not None and self._watch.has_conflict
        return ClusterStats(
            len(list(owning)),
            self._owners.takeovers,
            owning.state_checks,
            self.forwarded,
            owning.moves,
            owning.blind,
            has_conflict,
            0 if owning.residency is None else owning.residency.nbytes,
        )

    async def balance(self) -> None:
        """Ask for the shards that this server uses more than all others do, once per window."""
        while True:
            await asyncio.sleep(WINDOW)
            forwarded, self._owners.forwarded = self._owners.forwarded, Counter()
            self._owners.begin_window()
            for shard, count in forwarded.items():
                owner = self._owners.known_owners.get(shard)
                if owner is not None and count >= _RELEASE_THRESHOLD:
                    with suppress(Refusal, Moved, Unreachable, Silent, Slow):
                        expires = self._owners.clock() + WINDOW
                        head = {"shard": shard, "asked": count, "address": self._owners.address}
                        await self._peers.ask(owner.address, "release", head, (), expires)

    async def _settle(
        self, task: Task, caller: Caller, reply: Reply, done: Done, condition: Condition, more: Sequence[Change]
    ) -> None:
        records = [change.value for change in more]

        async def local(store: StoreService) -> Reply:
            changes = [new_answer(store.answers, record) for record in records]
            return await settling(store.settle, task, caller, reply, condition, changes)

        async def remote(address: str) -> Reply:
            return await self._propose(address, task, reply, records)

        try:
            # Not repeated at another owner: the first one may have stored the results before it failed.
            caller.require(KeyScope.WRITE)
            result = await self._owners.at_owner(task.namespace, local, remote, task.expires, repeats=False)
        except Refusal as refusal:
            result = refused(refusal, task.request_id)
        except Exception:
            _logger.exception("request %s: its write may or may not be stored", task.request_id)
            result = refused(internal_error(), task.request_id)
        if result is not reply:
            reply.release()
        done(result)

    async def _propose(self, address: str, task: Task, reply: Reply, records: Sequence[AnswerRecord]) -> Reply:
        """Let the owner store the results of a reply; return the reply, or the owner's response instead."""
        head = {
            "namespace": task.namespace,
            "request_id": task.request_id,
            "timeout": task.timeout,
            "stored": [row_of_stored(stored) for stored in reply.stored],
            "records": [row_of_record(record) for record in records],
        }
        blobs = [*reply.stored_data, *(record.body for record in records)]
        answer = await self._ask(address, "proposal", head, blobs, task.expires)
        if answer.head["kept"]:
            return reply
        headers = tuple((name, value) for name, value in answer.head["headers"])
        return Reply(answer.head["status"], PROBLEM, [bytes(answer.blobs)], headers)

    async def _versions_of(
        self, address: str, namespace: str, names: Sequence[str], expires: float
    ) -> Mapping[str, TensorVersion]:
        """Ask an owner for versions; it sends those that are not in memory here."""
        # Lent until the answer is here: the owner leaves out what this server claims to have.
        lent = [*self._lend(self._last_known(namespace, names)).values()]
        try:
            head = {"namespace": namespace, "names": list(names), "known": [version.etag for version in lent]}
            answer, until = await self._ask_together(address, "versions", head, expires)
            position = 0
            for etag, dtype, shape in answer.head["sent"]:
                end = position + nbytes_of(dtype, shape)
                lent.append(self._cache_version(etag, dtype, tuple(shape), answer.blobs[position:end]))
                self._reader_counts.add_reader(lent[-1])  # otherwise the next version might evict it
                position = end
            by_etag = {version.etag: version for version in lent}
            versions = {name: by_etag[etag] for name, etag in answer.head["versions"].items()}
            for name, version in versions.items():
                self._latest.put(f"{namespace}\n{name}", _Known(version.etag, until))
            return self._lend(versions)
        finally:
            self._reader_counts.drop_readers(*lent)

    def _last_known(self, namespace: str, names: Sequence[str]) -> Mapping[str, TensorVersion]:
        """Return the last known versions of these names, as far as they are in memory."""
        latest = ((name, self._latest.hit(f"{namespace}\n{name}")) for name in names)
        cached = ((name, self._versions.hit(known.label)) for name, known in latest if known is not None)
        return {name: version for name, version in cached if version}

    def _last_graph(self, name: str) -> Registered | None:
        """Return the last known graph of this name, if it is in memory."""
        known = self._graph_keys.hit(name)
        return None if known is None else self._graphs.hit(known.label)

    def _cache_version(self, etag: str, dtype: str, shape: tuple[int, ...], data: memoryview) -> TensorVersion:
        """Copy a received version into memory, and cache it."""
        if (cached := self._versions.hit(etag)) is not None:
            return cached
        memory = self._pool.allocate_tensor(len(data))
        if len(data):
            np.copyto(np.frombuffer(memory.view, np.uint8), np.frombuffer(data, np.uint8))
        version = TensorVersion(dtype, shape, etag, memory)
        self._versions.put(etag, version)
        return version

    def _lend(self, versions: Mapping[str, TensorVersion]) -> Mapping[str, TensorVersion]:
        for version in versions.values():
            self._reader_counts.add_reader(version)
        return versions

    async def _ask_together(
        self, address: str, question: str, head: Mapping[str, Any], expires: float
    ) -> tuple[Answer, float]:
        """Ask a question in one message with others who ask the same; return until when the answer is promised, too."""

        async def ask() -> tuple[Answer, float]:
            began = self._now()
            answer = await self._ask(address, question, head, (), self._owners.clock() + self._timeout)
            return answer, began + answer.head.get("promised", 0.0)

        asking = self._asking.join((address, orjson.dumps([question, head])), ask)
        try:
            return await within(asyncio.shield(asking), expires - self._owners.clock())
        except TimeoutError:
            self._peers.suspect(address)
            raise Slow(address) from None

    async def _ask(
        self, address: str, question: str, head: Mapping[str, Any], blobs: Sequence[bytes | memoryview], expires: float
    ) -> Answer:
        self.forwarded[question] += 1
        return await self._peers.ask(address, question, head, blobs, expires)
