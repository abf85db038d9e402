"""Store service: stores tensors, graphs, models and responses, and commits the tensors in workers' replies."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, Protocol, TypeVar

import numpy as np

from service.core.errors import Refusal, internal_error
from service.core.keys.caller import Caller, KeyScope
from service.core.settings import Settings
from service.observe.tally import Holdings
from service.store.changes import ALWAYS, Change, Condition, new_tensor, store_condition
from service.store.commits import CommitCallback, Commits, Completion, Proposal
from service.store.fence import Fence, unseen
from service.store.idempotency import AnswerTable, Repetition
from service.store.journal import SYSTEM, Environment, Journal, Loaded
from service.store.residency import UNLOADED, Residency
from service.store.tables import (
    GraphStore,
    KeyLimit,
    ModelTable,
    Registered,
    StoredModel,
    TensorTable,
    TensorVersion,
    share_of_each,
    total_quota,
)
from service.store.writes import AnswerRecord
from service.workers.memory import offload
from service.workers.pool import Done, Pool
from service.workers.task import Reply, Task, refused

_logger = logging.getLogger("gradserve")

#: seconds until a commit that is in the journal is in the tables, too
_SETTLING: Final = 0.005

_T = TypeVar("_T")
_Settle = Callable[[Task, Caller, Reply, Done, Condition, Sequence[Change]], None]
_Copies = Sequence[tuple[memoryview, bytes | memoryview]]


class StateStore(Protocol):
    """Store interface that computing calls need; the data is here, or on the server that owns it."""

    answers: AnswerTable

    def known_graph(self, namespace: str, graph_id: str) -> Registered | None:
        """Return a graph if it can be found without waiting."""

    def recalled_graph(self, namespace: str, graph_id: str) -> Registered | None:
        """Return a graph as an earlier call found it at another server, which must be asked whether it still exists."""

    async def graph(self, namespace: str, graph_id: str, expires: float) -> Registered | None:
        """Return the graph with this id, or None. Raises Refusal: not_ready."""

    async def begin(self, call: Repetition, expires: float) -> AnswerRecord | None:
        """Begin a call that may have been answered before. Raises Refusal: not_ready, invalid_field, conflict."""

    def end(self, call: Repetition) -> None:
        """End a call that is done or was given up."""

    def settle(
        self,
        task: Task,
        caller: Caller,
        reply: Reply,
        done: Done,
        condition: Condition = ALWAYS,
        more: Sequence[Change] = (),
    ) -> None:
        """Store the reply's tensors, and `more` changes with them; then call `done` with the reply or a refusal."""

    async def settle_and_wait(
        self, task: Task, caller: Caller, reply: Reply, condition: Condition = ALWAYS, more: Sequence[Change] = ()
    ) -> Reply:
        """Settle a reply, and return the reply that `done` would be called with."""

    async def current(self, expires: float) -> None:
        """Wait until the state is known to be current, if that is known for the state as a whole. Raises Refusal."""

    def load(self) -> Loaded:
        """Read the stored state that is needed at startup; blocks. Raises RuntimeError."""

    def restore(self, loaded: Loaded) -> None:
        """Put the loaded state into the tables."""

    def drain(self) -> None:
        """Hand the state over to other servers: this one is about to stop."""

    async def close(self, seconds: float) -> bool:
        """Accept nothing more and write all pending changes; return whether that was done within `seconds`."""


class StoreService:
    """Tables of tensors, graphs, models and responses, and their commits. `pool` gets the memory of every tensor."""

    def __init__(
        self,
        settings: Settings,
        pool: Pool,
        journal: Journal,
        on_commit: CommitCallback = lambda outcome, seconds: None,
        key_limit: KeyLimit | None = None,
        environment: Environment = SYSTEM,
        residency: Residency | None = None,
    ) -> None:
        """`key_limit` looks up the limits that keys set for their namespaces; `environment` has threads for commits.

        With a `residency`, only the elements of tensors that it allows are in memory.
        """
        self._pool = pool
        self._journal = journal
        self._place = settings.state
        shares = {
            things: share_of_each(settings, things, key_limit) for things in ("tensor", "graph", "model", "answer")
        }
        self._residency, self._reserved = residency, 0
        self.tensors = TensorTable(
            total_quota(settings, "tensor"),
            pool.place,
            shares["tensor"],
            residency,
            journal.keeps,
        )
        self.graphs = GraphStore(total_quota(settings, "graph"), shares["graph"])
        self.models = ModelTable(total_quota(settings, "model"), shares["model"])
        self.answers = AnswerTable(
            total_quota(settings, "answer"), settings.idempotency_seconds, share=shares["answer"]
        )
        self.commits = Commits(
            journal,
            settings.write_behind_ms / 1000,
            on_commit,
            environment.threads(1, "gradserve-commit"),
            Fence(journal, environment.threads(1, "gradserve-look")),
        )

    def load(self) -> Loaded:
        """Read the stored state; blocks. Raises RuntimeError with one sentence if it cannot be read."""
        try:
            return self._journal.load(int if self._residency is None else self._reserve)
        except BaseException as error:
            self._reserve(0)
            if not isinstance(error, OSError):
                raise
            raise RuntimeError(f"cannot read the state in {self._place}: {error.strerror or error}") from error

    def _reserve(self, nbytes: int) -> int:
        """Reserve memory for the elements of tensors, instead of what was reserved before."""
        if self._residency is not None:
            self._residency.give_back(self._reserved)
            self._reserved = self._residency.reserve(nbytes)
        return self._reserved

    def restore(self, loaded: Loaded) -> None:
        """Put the loaded state into the tables."""
        for graph in loaded.graphs:
            if graph.record is not None:
                self.graphs.load((graph.namespace, graph.graph_id), Registered.parse(graph.record))
        for model in loaded.models:
            if model.record is not None:
                self.models.load((model.namespace, model.name), StoredModel.parse(model.record))
        for record in loaded.answers:
            self.answers.load((record.namespace, record.key), record)
        for tensor in loaded.tensors:
            version = TensorVersion(tensor.dtype, tensor.shape, tensor.etag, UNLOADED)
            if tensor.data is not None:
                version = self._present(version, tensor.data)
            self.tensors.load((tensor.namespace, tensor.name), version)
        self._reserve(0)
        if self._residency is not None:
            self._residency.make_room()

    def _present(self, version: TensorVersion, data: bytes | memoryview) -> TensorVersion:
        """Return an unloaded version with its elements in memory."""
        memory = self._pool.allocate_tensor(len(data))
        _copy([(memory.view, data)])
        return replace(version, memory=memory)

    async def current(self, expires: float) -> None:
        """Wait until the tables are known to match the stored state. Raises Refusal: not_ready."""
        await self.commits.fence.wait_until_current(expires)

    def known_graph(self, namespace: str, graph_id: str) -> Registered | None:
        """Return a graph if the tables are known to be current without a check of the stored state."""
        return self.graphs.find((namespace, graph_id)) if self.is_current else None

    def recalled_graph(self, namespace: str, graph_id: str) -> Registered | None:
        """Return None: this server owns all graphs."""
        return None

    async def graph(self, namespace: str, graph_id: str, expires: float) -> Registered | None:
        """Return the graph with this id, or None. Raises Refusal: not_ready."""
        await self.commits.fence.wait_until_current(expires)
        return self.graphs.find((namespace, graph_id))

    async def versions(self, namespace: str, names: Sequence[str], expires: float) -> Mapping[str, TensorVersion]:
        """Return the existing versions of these tensors, all at one moment. Raises Refusal: not_ready."""
        elements: dict[str, bytes] = {}
        while True:
            await self.commits.fence.wait_until_current(expires)
            found = {name: self.tensors.find((namespace, name)) for name in names}
            versions = {name: version for name, version in found.items() if version is not None}
            unread = {n: v.etag for n, v in versions.items() if v.is_unloaded and v.etag not in elements}
            if not unread:
                break
            elements |= await self._read(namespace, unread, expires)
        if self._residency is not None:
            for name, version in versions.items():
                if version.is_unloaded:
                    versions[name] = self._present(version, elements[version.etag])
                    self.tensors.load((namespace, name), versions[name])
                self._residency.use(self.tensors, (namespace, name))
            self._residency.make_room({(self.tensors, (namespace, name)) for name in versions})
        return versions

    async def _read(self, namespace: str, etags: Mapping[str, str], expires: float) -> dict[str, bytes]:
        """Read the elements of unloaded versions, by etag, except those that have been replaced. Raises Refusal."""
        assert self._residency is not None, "otherwise none is unloaded"
        loop = asyncio.get_running_loop()
        reads = {
            etag: loop.run_in_executor(self._residency.executor, self._journal.read, namespace, name, etag)
            for name, etag in etags.items()
        }
        done, pending = await asyncio.wait(reads.values(), timeout=expires - self.commits.clock())
        for read in pending:
            read.add_done_callback(lambda read: read.cancelled() or read.exception())
        for error in filter(None, [read.exception() for read in done]):
            _logger.warning("cannot read a tensor: %s", error)
            raise unseen()
        if pending:
            raise unseen()
        elements = {etag: read.result() for etag, read in reads.items()}
        if None in elements.values():
            await asyncio.sleep(_SETTLING)  # a newer version is in the journal, and soon in the table
        return {etag: data for etag, data in elements.items() if data is not None}

    async def begin(self, call: Repetition, expires: float) -> AnswerRecord | None:
        """Begin a call that may have been answered before. Raises Refusal: not_ready, invalid_field, conflict."""
        await self.commits.fence.wait_until_current(expires)
        return self.answers.begin(call)

    def end(self, call: Repetition) -> None:
        """End a call that is done or was given up."""
        self.answers.end(call)

    def drain(self) -> None:
        """Do nothing: the state belongs to this server until it closes."""

    async def close(self, seconds: float, successor: str | None = None) -> bool:
        """Accept nothing more and write all pending changes; return whether that was done within `seconds`.

        The place goes to the server at `successor`, if given.
        """
        return await self.commits.close(seconds, successor)

    def settle(
        self,
        task: Task,
        caller: Caller,
        reply: Reply,
        done: Done,
        condition: Condition = ALWAYS,
        more: Sequence[Change] = (),
        complete: Completion | None = None,
    ) -> None:
        """Store the reply's tensors, and `more` changes with them; then call `done` with the reply or a refusal.

        Each tensor is stored under `condition`, or else under its own one. A reply that was computed from stored data
        waits until that data is known to be current. `complete` is called with the versions that are replaced, before
        anything is written, and returns `more` with their data filled in.
        """
        if reply.stored:
            self._store(task, caller, reply, done, condition, more, complete)
        elif reply.consulted and not self.is_current:
            self._answer_when_current(task, reply, done)
        else:
            done(reply)

    def _store(
        self,
        task: Task,
        caller: Caller,
        reply: Reply,
        done: Done,
        condition: Condition,
        more: Sequence[Change],
        complete: Completion | None,
    ) -> None:
        changes: list[Change] = []
        answered = False  # True if `done` was called before the outcome of the commit was known

        def finish(refusal: Refusal | None) -> None:
            if refusal is not None:
                for change in changes:
                    change.value.memory.release()
            if refusal is not None or answered:
                reply.release()
            if not answered:
                done(reply if refusal is None else refused(refusal, task.request_id))

        def unsure(refusal: Refusal) -> None:
            nonlocal answered
            answered = True
            done(refused(refusal, task.request_id))

        try:
            caller.require(KeyScope.WRITE)
            for stored, data in zip(reply.stored, reply.stored_data, strict=True):
                memory = self._pool.allocate_tensor(len(data))
                version = TensorVersion(stored.dtype, stored.shape, stored.etag, memory)
                demanded = condition or store_condition(stored.if_match)
                changes.append(new_tensor(self.tensors, (task.namespace, stored.name), version, demanded))
        except Refusal as refusal:
            finish(refusal)
            return
        durable = any(stored.durable for stored in reply.stored)
        # The recorded response comes first: if another server has recorded one for the same call, the client gets that
        # one, whatever has changed since.
        proposal = Proposal([*more, *changes], finish, durable, task.expires, task.timeout, unsure)
        if complete is not None:
            proposal.complete = lambda replaced: [*complete(replaced[len(more) :]), *changes]
        copies = [(change.value.memory.view, data) for change, data in zip(changes, reply.stored_data, strict=True)]
        _when_copied(copies, lambda: self.commits.submit(proposal), finish)

    def holdings(self) -> Holdings:
        """Return the current numbers of stored things."""
        tensors, graphs, models = self.tensors, self.graphs, self.models
        counts = tensors.count, tensors.nbytes, graphs.count, graphs.nbytes, models.count, models.nbytes
        return Holdings(*counts, self.commits.behind)

    @property
    def is_current(self) -> bool:
        """Whether the tables are known to match the stored state, without a check."""
        return self.commits.fence.open

    def _answer_when_current(self, task: Task, reply: Reply, done: Done) -> None:
        checking = asyncio.get_running_loop().create_task(self.commits.fence.wait_until_current(task.expires))

        def checked(checking: asyncio.Task[None]) -> None:
            error = None if checking.cancelled() else checking.exception()
            if error is None:
                done(reply)
                return
            reply.release()
            done(refused(error if isinstance(error, Refusal) else internal_error(), task.request_id))

        checking.add_done_callback(checked)

    async def commit(
        self, changes: Sequence[Change], expires: float, seconds: float, complete: Completion | None = None
    ) -> None:
        """Return when all changes are made. Raises Refusal if none is.

        `complete` fills in a response that reports what the changes replace, see `Proposal`. If the outcome is unknown
        when the `seconds` that end at `expires` are over, `commit` raises Refusal (unconfirmed).
        """
        result: asyncio.Future[Refusal | None] = asyncio.get_running_loop().create_future()

        def done(refusal: Refusal | None) -> None:
            _set(result, refusal)

        self.commits.submit(Proposal(changes, done, True, expires, seconds, done, complete))
        refusal = await outcome(result)
        if refusal is not None:
            raise refusal

    async def settle_and_wait(
        self,
        task: Task,
        caller: Caller,
        reply: Reply,
        condition: Condition = ALWAYS,
        more: Sequence[Change] = (),
        complete: Completion | None = None,
    ) -> Reply:
        """Settle a reply, and return the reply that `done` would be called with."""
        settle = partial(self.settle, complete=complete)
        return await outcome(settling(settle, task, caller, reply, condition, more))


def settling(
    settle: _Settle, task: Task, caller: Caller, reply: Reply, condition: Condition, more: Sequence[Change]
) -> asyncio.Future[Reply]:
    """Return a future of the reply that `settle` calls `done` with."""
    result: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

    def done(reply: Reply) -> None:
        if not _set(result, reply):
            reply.release()

    settle(task, caller, reply, done, condition, more)
    return result


async def outcome(result: asyncio.Future[_T]) -> _T:
    """Wait for a commit. It goes on even if the caller leaves, so the first cancellation waits for its end."""
    try:
        return await asyncio.shield(result)
    except asyncio.CancelledError:
        return await result


def _set(future: asyncio.Future[_T], value: _T) -> bool:
    """Set the result of a future; return whether somebody still waits for it."""
    if not future.done():
        future.set_result(value)
        return True
    return False


def _when_copied(copies: _Copies, proceed: Callable[[], None], finish: Callable[[Refusal], None]) -> None:
    """Copy, on a thread if that takes long, then call `proceed`, or `finish` with a refusal if copying failed."""
    nbytes = sum(len(data) for _, data in copies)
    copying = offload(asyncio.get_running_loop(), nbytes, lambda: _copy(copies))
    if copying is None:
        proceed()
        return

    def copied(copying: asyncio.Future[object]) -> None:
        if (error := copying.exception()) is None:
            proceed()
        else:
            _logger.error("cannot copy the data of a write", exc_info=error)
            finish(internal_error())

    copying.add_done_callback(copied)


def _copy(copies: _Copies) -> None:
    """Copy each buffer to its destination; NumPy releases the GIL for that."""
    for destination, data in copies:
        if len(data):
            np.copyto(np.frombuffer(destination, np.uint8), np.frombuffer(data, np.uint8))
