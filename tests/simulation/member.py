"""A server of a cluster in the simulation: the project's own owners, peer requests and stores; messages, not HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from service.cluster.owners import OwnedShards, OwnerDirectory, Owners
from service.cluster.peer_routes import PeerQuestions, PeerResponse
from service.cluster.protocol import (
    Answer,
    Moved,
    Silent,
    Slow,
    Unreachable,
    message_of,
    read_message,
    refusal_of_row,
    row_of_refusal,
)
from service.cluster.shared_store import SharedStore
from service.core.errors import Refusal
from service.core.keys.caller import ANONYMOUS
from service.observe.store import StoreService
from service.store.changes import Condition, tensor_deletion
from service.store.commits import Commits
from service.store.fence import Fence
from service.store.idempotency import Repetition
from service.store.journal import Loaded
from service.store.object_journal import ObjectJournal
from service.store.objects import ShardObjects, shard_of
from service.store.residency import Residency
from service.web.repetition import answer_changes
from service.workers.residents import ReaderCounts
from service.workers.task import Reply, Task
from tests.simulation.checker import Operation
from tests.simulation.server import (
    BEHIND,
    GRACE,
    LINGERS,
    SETTINGS,
    TIDY,
    Pool,
    Request,
    code_of,
    delete,
    etag_of,
    put,
    stored_of,
)
from tests.simulation.store import Remote, Store
from tests.simulation.virtual import Process, World

INF: Final = float("inf")
#: seconds of silence before a server is asked whether it is alive, and for its answer
_SILENCE: Final = 1.0
#: seconds in which another server must have replaced one that does not reach the store
_REPLACED: Final = 10.0
#: the shard of all registers
_SHARD: Final = shard_of("", 16)
#: the name of the peer request for a deletion or a PUT, which is forwarded whole
_WRITE: Final = "write"


class Member:
    """One process, from its beginning to its end; `peers` has the processes by address."""

    began = None
    has_lost = False

    def __init__(
        self, world: World, store: Store, lease: float, address: str, peers: dict[str, Member], memory: float = INF
    ) -> None:
        """Begin to own shards; only `memory` bytes of elements are in memory."""
        self.process = process = Process(world)
        self._lease, self.address = lease, address
        self._residency = None if memory == INF else Residency(memory, process.threads(4))
        self._remote = Remote(store, process)
        directory = OwnerDirectory(self._remote)
        owned_shards = OwnedShards(self._make, process.threads(4))
        self.owners = Owners(address, owned_shards, directory, process.threads(4), process.now, process.today)
        self.owners.ask_elsewhere = self._ask_elsewhere
        links = _Links(self, peers)
        self.store = SharedStore(SETTINGS, Pool(), self.owners, links, ReaderCounts(), now=process.now)  # type: ignore[arg-type]
        self.questions: Mapping[str, Callable[..., Any]] = {
            **PeerQuestions(self.owners).by_name,
            _WRITE: self._write_for_another,
        }
        self._links, self._peers = links, peers
        peers[address] = self
        process.call_soon(lambda: self.store.restore(Loaded()))

    @property
    def serves(self) -> bool:
        """Whether the process accepts requests."""
        return not self.process.dead

    def kill(self) -> None:
        """Kill the process."""
        self.process.dead = True

    def release(self) -> None:
        """Shut down gracefully."""
        if self.serves:
            self.process.call_soon(lambda: self.process.create_task(self._end()))

    def hand_over(self, address: str) -> None:
        """Hand the shard over to the server at `address`, if the process owns it."""
        self.process.call_soon(lambda: self.owners.hand_over(_SHARD, address, GRACE))

    def ask(self, request: Request, on_answer: Callable[[object], object]) -> None:
        """Send a request; `on_answer` is called with the answer, if one comes."""
        if self.serves:
            self.process.call_soon(lambda: self.process.create_task(self._answer(request, on_answer)))

    async def _ask_elsewhere(self, shard: int) -> str | None:
        """Act like the method of `Watch`."""
        if not self.owners.owned_shards.blind:
            return None
        head = {"shard": shard, "address": self.address}
        for address, peer in self._peers.items():
            if peer is not self and not peer.owners.owned_shards.blind:
                with suppress(Refusal, Moved, Unreachable, Silent, Slow):
                    answer = await self._links.ask(address, "owner", head, (), self.process.now() + _REPLACED)
                    return str(answer.head["owner"])
        return None

    def _make(self, shard: int) -> StoreService:
        process = self.process
        objects = ShardObjects(self._remote, shard)
        journal = ObjectJournal(objects, "the place", TIDY, self._lease, process, self.address)
        store = StoreService(SETTINGS, Pool(), journal, residency=self._residency)  # type: ignore[arg-type]
        fence = Fence(journal, process.threads(1), process.now)
        store.commits = Commits(journal, BEHIND, lambda *_: None, process.threads(1), fence, process.now)
        return store

    async def _end(self) -> None:
        self.store.drain()
        await self.store.close(GRACE)
        await asyncio.sleep(LINGERS)  # late requests may still come
        self.process.dead = True

    async def _answer(self, request: Request, on_answer: Callable[[object], object]) -> None:
        expires = self.process.now() + request.seconds
        try:
            answer = await self._compute(request, expires)
        except Refusal as refusal:
            answer = {"precondition_failed": "412", "not_found": "404"}.get(refusal.code, refusal.code)
        world = self.process.world
        world.at(world.now + 0.002, lambda: on_answer(answer))

    async def _compute(self, request: Request, expires: float) -> object:
        operation = request.operation
        if operation.kind == "read":
            versions = await self.store.versions("", operation.names, expires)
            return tuple(int(versions[name].etag, 16) if name in versions else None for name in operation.names)
        if operation.kind == "delete" or operation.is_put:
            return await self._forwarded(request, expires)
        if request.key is None:
            return await self._written(request, None, expires)
        repetition = Repetition("", request.key, "of this request")
        if stored := await self.store.begin(repetition, expires):
            return stored.body.decode()
        try:
            return await self._written(request, repetition, expires)
        finally:
            self.store.end(repetition)

    async def _written(self, request: Request, repetition: Repetition | None, expires: float) -> object:
        operation = request.operation
        reply = Reply(200, "text/plain", [b"ok"])
        more = answer_changes(self.store.answers, repetition, reply)
        reply.stored = [stored_of(operation, name) for name in operation.writes]
        reply.stored_data = [b"\0" for _ in reply.stored]
        job = Task("forward", b"", "request", request.seconds, expires)
        reply = await self.store.settle_and_wait(job, ANONYMOUS, reply, Condition(), more)
        return "ok" if reply.status == 200 else code_of(reply)

    async def _forwarded(self, request: Request, expires: float) -> object:
        operation = request.operation
        head = {"kind": operation.kind, "writes": operation.writes, "match": operation.match}
        head |= {"key": request.key, "seconds": request.seconds}

        async def at_this_server(store: StoreService) -> object:
            return await _written_here(store, head, expires)

        async def at_another_server(address: str) -> object:
            return (await self._links.ask(address, _WRITE, head, (), expires)).head["answer"]

        return await self.owners.at_owner("", at_this_server, at_another_server, expires, repeats=False)

    async def _write_for_another(self, head: dict[str, Any], _: memoryview, expires: float) -> PeerResponse:
        return {"answer": await _written_here(await self.owners.owned_store("", expires), head, expires)}, ()


async def _written_here(store: StoreService, head: Mapping[str, Any], expires: float) -> object:
    """Store or delete a tensor like the route, once even if the request is repeated."""
    repetition = None if head["key"] is None else Repetition("", head["key"], "of this request")
    if repetition is not None and (stored := await store.begin(repetition, expires)):
        return stored.body.decode()
    operation = Operation(head["kind"], 0.0, (), head["writes"], head["match"])
    (name,) = operation.writes
    try:
        if operation.is_put:
            return await put(store, stored_of(operation, name), repetition, expires, head["seconds"])
        await store.commits.fence.wait_until_current(expires)
        condition = Condition(match=(etag_of(operation.match[name]),)) if name in operation.match else Condition()
        change = tensor_deletion(store.tensors, ("", name), condition)
        return await delete(store, change, repetition, expires, head["seconds"])
    finally:
        if repetition is not None:
            store.end(repetition)


class _Links:
    """Requests of a process to its peers: they and their answers arrive late, or never."""

    def __init__(self, member: Member, peers: dict[str, Member]) -> None:
        self._process, self._peers = member.process, peers

    async def ask(
        self, address: str, what: str, head: Mapping[str, Any], blobs: Sequence[bytes | memoryview], expires: float
    ) -> Answer:
        """Act like `Peers`."""
        world, process = self._process.world, self._process
        peer = self._peers[address]
        answered: asyncio.Future[bytes] = process.create_future()
        message = b"".join(message_of({**head, "left": expires - process.now()}, blobs))
        await asyncio.sleep(world.chance.uniform(0.001, 0.02))
        if peer.process.dead:
            raise Unreachable(address)
        peer.process.call_soon(partial(self._reached, peer, what, message, answered))
        while not answered.done():
            await asyncio.wait([answered], timeout=2 * _SILENCE)
            is_silent = peer.process.dead or peer.process.paused > world.now or peer.process.cut or process.cut
            if not answered.done() and is_silent:
                raise Silent(address)
            if process.now() >= expires:
                raise Slow(address)
        answer_head, rest = read_message(answered.result())
        if "moved" in answer_head:
            raise Moved(answer_head["moved"], is_blind=answer_head["is_blind"])
        if "refused" in answer_head:
            raise refusal_of_row(answer_head["refused"])
        return Answer(answer_head, rest)

    def suspect(self, address: str) -> None:
        """Act like `Peers`, but without a probe."""

    async def close(self) -> None:
        """Act like `Peers`."""

    def _reached(self, peer: Member, what: str, message: bytes, answered: asyncio.Future[bytes]) -> None:
        peer.process.create_task(self._served(peer, what, message, answered))

    async def _served(self, peer: Member, what: str, message: bytes, answered: asyncio.Future[bytes]) -> None:
        request_head, rest = read_message(message)
        try:
            head, blobs = await peer.questions[what](request_head, rest, peer.process.now() + request_head["left"])
        except Moved as moved:
            head, blobs = {"moved": moved.owner, "is_blind": moved.is_blind}, ()
        except Refusal as refusal:
            head, blobs = {"refused": row_of_refusal(refusal)}, ()
        message = b"".join(message_of(head, blobs))
        if peer.process.cut or self._process.cut:
            return
        world = peer.process.world
        tell = partial(self._process.at, world.now, lambda: None if answered.done() else answered.set_result(message))
        world.at(world.now + world.chance.uniform(0.001, 0.02), tell)
