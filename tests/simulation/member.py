"""A server of a cluster in the simulation: the project's own owners, questions and stores; messages instead of HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
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
from service.store.objects import ShardObjects
from service.web.repetition import answer_changes
from service.workers.residents import ReaderCounts
from service.workers.task import Reply, Task
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
    stored_of,
)
from tests.simulation.store import Remote, Store
from tests.simulation.virtual import Process, World

#: seconds of silence after which a server is asked whether it lives, and that it has to say so
_SILENCE: Final = 1.0
#: what a request for a deletion is asked as, which is passed on whole
_DELETION: Final = "deletion"


class Member:
    """One process, from when it begins until it ends; `peers` are the processes by their addresses."""

    began = None
    has_lost = False

    def __init__(self, world: World, store: Store, lease: float, address: str, peers: dict[str, Member]) -> None:
        self.process = process = Process(world)
        self._lease, self._address = lease, address
        self._remote = Remote(store, process)
        directory = OwnerDirectory(self._remote)
        owned_shards = OwnedShards(self._make, process.threads(4))
        self.owners = Owners(address, owned_shards, directory, process.threads(4), process.now, process.today)
        links = _Links(self, peers)
        self.store = SharedStore(SETTINGS, Pool(), self.owners, links, ReaderCounts())  # type: ignore[arg-type]
        self.questions: Mapping[str, Callable[..., Any]] = {
            **PeerQuestions(self.owners).by_name,
            _DELETION: self._delete_for_another,
        }
        self._links = links
        peers[address] = self
        process.call_soon(lambda: self.store.restore(Loaded()))

    @property
    def serves(self) -> bool:
        """Whether it can be asked."""
        return not self.process.dead

    def kill(self) -> None:
        """It is no more."""
        self.process.dead = True

    def release(self) -> None:
        """It ends, in order."""
        if self.serves:
            self.process.call_soon(lambda: self.process.create_task(self._end()))

    def ask(self, request: Request, told: Callable[[object], object]) -> None:
        """Send it a request; `told` is called with the answer, if any comes."""
        if self.serves:
            self.process.call_soon(lambda: self.process.create_task(self._answer(request, told)))

    def _make(self, shard: int) -> StoreService:
        process = self.process
        objects = ShardObjects(self._remote, shard)
        journal = ObjectJournal(objects, "the place", TIDY, self._lease, process, self._address)
        store = StoreService(SETTINGS, Pool(), journal)  # type: ignore[arg-type]
        fence = Fence(journal, process.threads(1), process.now)
        store.commits = Commits(journal, BEHIND, lambda *_: None, process.threads(1), fence, process.now)
        return store

    async def _end(self) -> None:
        self.store.drain()
        await self.store.close(GRACE)
        await asyncio.sleep(LINGERS)  # somebody may ask still
        self.process.dead = True

    async def _answer(self, request: Request, told: Callable[[object], object]) -> None:
        expires = self.process.now() + request.seconds
        try:
            answer = await self._done(request, expires)
        except Refusal as refusal:
            answer = {"precondition_failed": "412", "not_found": "404"}.get(refusal.code, refusal.code)
        world = self.process.world
        world.at(world.now + 0.002, lambda: told(answer))

    async def _done(self, request: Request, expires: float) -> object:
        operation = request.operation
        if operation.kind == "read":
            found = await self.store.versions("", operation.names, expires)
            return tuple(int(found[name].etag, 16) if name in found else None for name in operation.names)
        if operation.kind == "delete":
            return await self._deleted(request, expires)
        if request.key is None:
            return await self._written(request, None, expires)
        asked = Repetition("", request.key, "of this request")
        if known := await self.store.begin(asked, expires):
            return known.body.decode()
        try:
            return await self._written(request, asked, expires)
        finally:
            self.store.end(asked)

    async def _written(self, request: Request, asked: Repetition | None, expires: float) -> object:
        operation = request.operation
        reply = Reply(200, "text/plain", [b"ok"])
        more = answer_changes(self.store.answers, asked, reply)
        reply.stored = [stored_of(operation, name) for name in operation.writes]
        reply.stored_data = [b"\0" for _ in reply.stored]
        job = Task("forward", b"", "request", request.seconds, expires)
        reply = await self.store.settle_and_wait(job, ANONYMOUS, reply, Condition(), more)
        return "ok" if reply.status == 200 else code_of(reply)

    async def _deleted(self, request: Request, expires: float) -> object:
        operation = request.operation
        (name,) = operation.writes
        head = {"name": name, "match": operation.match.get(name), "key": request.key, "seconds": request.seconds}

        async def here(store: StoreService) -> object:
            return await _delete(store, head, expires)

        async def there(address: str) -> object:
            return (await self._links.ask(address, _DELETION, head, (), expires)).head["answer"]

        return await self.owners.at_owner("", here, there, expires, repeats=False)

    async def _delete_for_another(self, head: dict[str, Any], _: memoryview, expires: float) -> PeerResponse:
        return {"answer": await _delete(await self.owners.owned_store("", expires), head, expires)}, ()


async def _delete(store: StoreService, head: Mapping[str, Any], expires: float) -> object:
    """As a route deletes a tensor, once however often it is asked."""
    asked = None if head["key"] is None else Repetition("", head["key"], "of this request")
    if asked is not None and (known := await store.begin(asked, expires)):
        return known.body.decode()
    try:
        await store.commits.fence.wait_until_current(expires)
        condition = Condition() if head["match"] is None else Condition(match=(etag_of(head["match"]),))
        change = tensor_deletion(store.tensors, ("", head["name"]), condition)
        return await delete(store, change, asked, expires, head["seconds"])
    finally:
        if asked is not None:
            store.end(asked)


class _Links:
    """What a process asks of others: it arrives late, or not at all, and so does what they say."""

    def __init__(self, member: Member, peers: dict[str, Member]) -> None:
        self._process, self._peers = member.process, peers

    async def ask(
        self, address: str, what: str, head: Mapping[str, Any], blobs: Sequence[bytes | memoryview], expires: float
    ) -> Answer:
        """As `Peers` has it."""
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
        said, rest = read_message(answered.result())
        if "moved" in said:
            raise Moved(said["moved"])
        if "refused" in said:
            raise refusal_of_row(said["refused"])
        return Answer(said, rest)

    async def close(self) -> None:
        """As `Peers` has it."""

    def _reached(self, peer: Member, what: str, message: bytes, answered: asyncio.Future[bytes]) -> None:
        peer.process.create_task(self._served(peer, what, message, answered))

    async def _served(self, peer: Member, what: str, message: bytes, answered: asyncio.Future[bytes]) -> None:
        said, rest = read_message(message)
        try:
            head, blobs = await peer.questions[what](said, rest, peer.process.now() + said["left"])
        except Moved as moved:
            head, blobs = {"moved": moved.owner}, ()
        except Refusal as refusal:
            head, blobs = {"refused": row_of_refusal(refusal)}, ()
        message = b"".join(message_of(head, blobs))
        if peer.process.cut or self._process.cut:
            return
        world = peer.process.world
        tell = partial(self._process.at, world.now, lambda: None if answered.done() else answered.set_result(message))
        world.at(world.now + world.chance.uniform(0.001, 0.02), tell)
