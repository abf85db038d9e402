"""A server in the simulation: the project's own journal, committer, fence, store and answers; no HTTP or workers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from service.core.errors import Refusal
from service.core.keys.caller import ANONYMOUS
from service.core.settings import Settings
from service.observe.store import StoreService
from service.store.changes import Change, Condition, tensor_deletion
from service.store.commits import Commits
from service.store.fence import Fence
from service.store.idempotency import Repetition
from service.store.object_journal import ObjectJournal, Tidiness
from service.store.tables import TableKey, TensorVersion
from service.store.writes import ABSENT, Stored
from service.web.repetition import answer_changes
from service.workers.memory import HeapAllocation
from service.workers.task import Reply, Task
from tests.simulation.checker import Operation
from tests.simulation.store import Remote, Store
from tests.simulation.virtual import Process, World

#: seconds until volatile writes are stored, and for which a server may write while it shuts down
BEHIND: Final = 1.0
GRACE: Final = 3.0
#: tidies after nearly every commit, and merges small objects
TIDY: Final = Tidiness(dead_objects=1, dead_bytes=1 << 30, worn_bytes=4096, small_objects=6, small_bytes=1 << 20)
#: seconds for which a server accepts requests after it has ended
LINGERS: Final = 0.8
#: the prefix of answers that report what a write replaced: `created`, `replaced`, or the value that was deleted
OK: Final = "ok "
CREATED: Final = f"{OK}created"
REPLACED: Final = f"{OK}replaced"
SETTINGS: Final = Settings(state="memory")


@dataclass
class Request:
    """A client's request, with its idempotency key, if any, and its timeout."""

    operation: Operation
    key: str | None
    seconds: float


class Pool:
    """Memory for tensors that are never read."""

    def allocate_tensor(self, nbytes: int) -> HeapAllocation:
        return HeapAllocation(nbytes)

    def place(self, namespace: str, name: str, resident: TensorVersion | None) -> None:
        pass


class Server:
    """One process, from its beginning to its end."""

    def __init__(self, world: World, store: Store, lease: float) -> None:
        self.process = process = Process(world)
        self.remote = Remote(store, process)
        self.journal = ObjectJournal(self.remote, "the place", TIDY, lease, process)
        self.store = StoreService(SETTINGS, Pool(), self.journal)  # type: ignore[arg-type]
        fence = Fence(self.journal, process.threads(1), process.now)
        self.store.commits = Commits(self.journal, BEHIND, lambda *_: None, process.threads(1), fence, process.now)
        #: when it owned the state, and the token of its opening
        self.began: tuple[float, str] | None = None
        process.thread(self._load)

    @property
    def serves(self) -> bool:
        """Whether the process accepts requests."""
        return self.began is not None and not self.process.dead

    @property
    def has_lost(self) -> bool:
        """Whether the server knows that another one owns the state."""
        return self.store.commits.lost is not None

    def kill(self) -> None:
        """Kill the process."""
        self.process.dead = True

    def release(self) -> None:
        """Shut down gracefully."""
        if self.serves:
            self.process.call_soon(lambda: self.process.create_task(self._end()))

    def ask(self, request: Request, on_answer: Callable[[object], object]) -> None:
        """Send a request; `on_answer` is called with the answer, if one comes."""
        if self.serves:
            self.process.call_soon(lambda: self.process.create_task(self._answer(request, on_answer)))

    def _load(self) -> None:
        opened = ""
        while not opened:
            with suppress(RuntimeError):
                loaded = self.store.load()
                opened = self.remote.made
        self.store.restore(loaded)
        self.began = self.process.world.now, opened

    async def _end(self) -> None:
        await self.store.commits.close(GRACE)
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
        store, operation = self.store, request.operation
        await store.commits.fence.wait_until_current(expires) if operation.kind != "write" or request.key else None
        if operation.kind == "read":
            return tuple(self._value(name) for name in operation.names)
        if request.key is None:
            return await self._changed(request, None, expires)
        repetition = Repetition("", request.key, "of this request")
        if stored := store.answers.begin(repetition):
            return stored.body.decode()
        try:
            return await self._changed(request, repetition, expires)
        finally:
            store.answers.end(repetition)

    async def _changed(self, request: Request, repetition: Repetition | None, expires: float) -> object:
        store, operation = self.store, request.operation
        if operation.kind == "delete":
            (name,) = operation.writes
            match = operation.match.get(name)
            condition = Condition(match=(etag_of(match),)) if match is not None else Condition()
            change = tensor_deletion(store.tensors, ("", name), condition)
            return await delete(store, change, repetition, expires, request.seconds)
        if operation.is_put:
            (name,) = operation.writes
            return await put(store, stored_of(operation, name), repetition, expires, request.seconds)
        reply = Reply(200, "text/plain", [b"ok"])
        more = answer_changes(store.answers, repetition, reply)
        reply.stored = [stored_of(operation, name) for name in operation.writes]
        reply.stored_data = [b"\0" for _ in reply.stored]
        job = Task("forward", b"", "request", request.seconds, expires)
        reply = await store.settle_and_wait(job, ANONYMOUS, reply, Condition(), more)
        return "ok" if reply.status == 200 else code_of(reply)

    def _value(self, name: str) -> int | None:
        key: TableKey = ("", name)
        version = self.store.tensors.find(key)
        return None if version is None else int(version.etag, 16)


async def delete(
    store: StoreService, change: Change, repetition: Repetition | None, expires: float, seconds: float
) -> str:
    """Delete a tensor like the route, and return its answer with the previous value."""
    reply = Reply(200, "text/plain", [])

    def complete(replaced: Sequence[Any]) -> Sequence[Change]:
        reply.parts = [f"{OK}{int(replaced[0].etag, 16)}".encode()]
        return [change, *answer_changes(store.answers, repetition, reply)]

    await store.commit([change, *answer_changes(store.answers, repetition, reply)], expires, seconds, complete)
    return reply.body.decode()


async def put(
    store: StoreService, stored: Stored, repetition: Repetition | None, expires: float, seconds: float
) -> str:
    """Store a tensor like the route, and return its answer, which tells whether there was a previous version."""
    reply = Reply(200, "text/plain", [], stored=[stored], stored_data=[b"\0"])

    def complete(replaced: Sequence[Any]) -> Sequence[Change]:
        reply.parts = [(CREATED if replaced[0] is None else REPLACED).encode()]
        return answer_changes(store.answers, repetition, reply)

    task = Task("forward", b"", "request", seconds, expires)
    changes = answer_changes(store.answers, repetition, reply)
    settled = await store.settle_and_wait(task, ANONYMOUS, reply, Condition(), changes, complete)
    return settled.body.decode() if settled.status == 200 else code_of(settled)


def stored_of(operation: Operation, name: str) -> Stored:
    expected_etag = None
    if name in operation.match:
        value = operation.match[name]
        expected_etag = ABSENT if value is None else etag_of(value)
    return Stored(name, etag_of(operation.writes[name]), "uint8", (1,), expected_etag, operation.durable)


def etag_of(value: int | None) -> str:
    return f"{value:016x}"


def code_of(reply: Reply) -> str:
    import orjson

    code: str = orjson.loads(reply.body)["code"]
    return "412" if code == "precondition_failed" else code
