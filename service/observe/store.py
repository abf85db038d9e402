"""Store service: keeps tensors, graphs, models and answers for callers, and commits what workers reply with."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeVar

import numpy as np

from service.core.errors import Refusal, fault
from service.core.keys.caller import Caller, KeyScope
from service.core.settings import Settings
from service.observe.tally import Holdings
from service.store.changes import ALWAYS, Change, Condition, new_tensor, store_condition
from service.store.commits import CommitCallback, Commits, Completion, Proposal
from service.store.idempotency import AnswerTable, Repetition
from service.store.journal import Journal, Loaded
from service.store.tables import (
    GraphStore,
    KeptModel,
    ModelTable,
    Registered,
    StatedLimit,
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

_T = TypeVar("_T")
_Settle = Callable[[Task, Caller, Reply, Done, Condition, Sequence[Change]], None]
_Copies = Sequence[tuple[memoryview, bytes | memoryview]]


class StateStore(Protocol):
    """Store that keeps things for those who call, as computing calls need it: here, or at whichever server has them."""

    answers: AnswerTable

    def known_graph(self, namespace: str, graph_id: str) -> Registered | None:
        """Return a graph, where it is known at once what is there."""

    async def graph(self, namespace: str, graph_id: str, expires: float) -> Registered | None:
        """Return the graph of an id, if there is one. Raises Refusal: not_ready."""

    async def begin(self, asked: Repetition, expires: float) -> AnswerRecord | None:
        """Begin a call that may have been answered before. Raises Refusal: not_ready, invalid_field, conflict."""

    def end(self, asked: Repetition) -> None:
        """End a call that is done, or given up."""

    def settle(
        self,
        task: Task,
        caller: Caller,
        reply: Reply,
        done: Done,
        condition: Condition = ALWAYS,
        more: Sequence[Change] = (),
    ) -> None:
        """Call `done` with a reply once what it has for keeping is kept, and `more` with it; or with a refusal."""

    async def settled(
        self, task: Task, caller: Caller, reply: Reply, condition: Condition = ALWAYS, more: Sequence[Change] = ()
    ) -> Reply:
        """Settle a reply, and return what `done` would get."""

    async def current(self, expires: float) -> None:
        """Return where the server can answer, as far as what is kept concerns every request. Raises Refusal."""

    def load(self) -> Loaded:
        """Read what was kept before, as far as it is taken up at a start; blocks. Raises RuntimeError."""

    def restore(self, loaded: Loaded) -> None:
        """Take up what was kept before."""

    def drain(self) -> None:
        """Let others have what is kept from now on: the server is about to end."""

    async def close(self, seconds: float) -> bool:
        """Take nothing more, and write down all that is left; whether that was done within so many seconds."""


class StoreService:
    """Tensors, graphs, models and answers, and who commits them. `pool` is told of every tensor."""

    def __init__(
        self,
        settings: Settings,
        pool: Pool,
        journal: Journal,
        on_commit: CommitCallback = lambda outcome, seconds: None,
        stated: StatedLimit | None = None,
    ) -> None:
        """`stated` are the limits that keys state for their namespaces, where keys are asked for."""
        self._pool = pool
        self._journal = journal
        self._place = settings.state
        shares = {things: share_of_each(settings, things, stated) for things in ("tensor", "graph", "model", "answer")}
        self.tensors = TensorTable(total_quota(settings, "tensor"), pool.place, shares["tensor"])
        self.graphs = GraphStore(total_quota(settings, "graph"), shares["graph"])
        self.models = ModelTable(total_quota(settings, "model"), shares["model"])
        self.answers = AnswerTable(
            total_quota(settings, "answer"), settings.idempotency_seconds, share=shares["answer"]
        )
        self.commits = Commits(journal, settings.write_behind_ms / 1000, on_commit)

    def load(self) -> Loaded:
        """Read what was kept before; blocks. Raises RuntimeError with one sentence where that cannot be read."""
        try:
            return self._journal.load()
        except OSError as error:
            raise RuntimeError(f"the state in {self._place} cannot be read: {error.strerror or error}") from error

    def restore(self, loaded: Loaded) -> None:
        """Take up what was kept before."""
        for graph in loaded.graphs:
            if graph.record is not None:
                self.graphs.load((graph.namespace, graph.graph_id), Registered.of(graph.record))
        for model in loaded.models:
            if model.record is not None:
                self.models.load((model.namespace, model.name), KeptModel.of(model.record))
        for record in loaded.answers:
            self.answers.load((record.namespace, record.key), record)
        for tensor in loaded.tensors:
            if tensor.data is not None:
                memory = self._pool.allocate_tensor(tensor.data.nbytes)
                _copy([(memory.view, tensor.data)])
                version = TensorVersion(tensor.dtype, tensor.shape, tensor.etag, memory)
                self.tensors.load((tensor.namespace, tensor.name), version)

    async def current(self, expires: float) -> None:
        """Return where what is kept here is what there is, in time. Raises Refusal: not_ready."""
        await self.commits.fence.passed(expires)

    def known_graph(self, namespace: str, graph_id: str) -> Registered | None:
        """Return a graph, where it is known without a look what is there."""
        return self.graphs.find((namespace, graph_id)) if self.is_current else None

    async def graph(self, namespace: str, graph_id: str, expires: float) -> Registered | None:
        """Return the graph of an id, if there is one. Raises Refusal: not_ready."""
        await self.commits.fence.passed(expires)
        return self.graphs.find((namespace, graph_id))

    async def versions(self, namespace: str, names: Sequence[str], expires: float) -> Mapping[str, TensorVersion]:
        """Find the versions of these names, as far as there are any, of one moment. Raises Refusal: not_ready."""
        await self.commits.fence.passed(expires)
        found = {name: self.tensors.find((namespace, name)) for name in names}
        return {name: version for name, version in found.items() if version is not None}

    async def begin(self, asked: Repetition, expires: float) -> AnswerRecord | None:
        """Begin a call that may have been answered before. Raises Refusal: not_ready, invalid_field, conflict."""
        await self.commits.fence.passed(expires)
        return self.answers.begin(asked)

    def end(self, asked: Repetition) -> None:
        """End a call that is done, or given up."""
        self.answers.end(asked)

    def drain(self) -> None:
        """Do nothing: the place is this server's until it closes."""

    async def close(self, seconds: float) -> bool:
        """Take nothing more, and write down all that is left; whether that was done within so many seconds."""
        return await self.commits.close(seconds)

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
        """Call `done` with a reply once what it has for keeping is kept, and `more` with it; or with a refusal instead.

        Tensors are kept upon the conditions that they have themselves, and `condition`. A reply that rests on what is
        kept waits until that is known to be what there is. `complete` is called with the versions that are replaced,
        before anything is written, and returns `more` again, filled in.
        """
        if reply.stored:
            self._keep(task, caller, reply, done, condition, more, complete)
        elif reply.consulted and not self.is_current:
            self._when_current(task, reply, done)
        else:
            done(reply)

    def _keep(
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
        answered = False  # before it is known what comes of it

        def finish(refusal: Refusal | None) -> None:
            if refusal is not None:
                for change in changes:
                    change.value.memory.give_back()
            if refusal is not None or answered:
                reply.give_back()
            if not answered:
                done(reply if refusal is None else refused(refusal, task.request_id))

        def unsure(refusal: Refusal) -> None:
            nonlocal answered
            answered = True
            done(refused(refusal, task.request_id))

        try:
            caller.require(KeyScope.WRITE)
            for stored, data in zip(reply.stored, reply.kept, strict=True):
                memory = self._pool.allocate_tensor(len(data))
                version = TensorVersion(stored.dtype, stored.shape, stored.etag, memory)
                demanded = condition or store_condition(stored.if_match)
                changes.append(new_tensor(self.tensors, (task.namespace, stored.name), version, demanded))
        except Refusal as refusal:
            finish(refusal)
            return
        durable = any(stored.durable for stored in reply.stored)
        # The answer first: who had the call at another server as well gets that one's, whatever it has changed since.
        proposal = Proposal([*more, *changes], finish, durable, task.expires, task.timeout, unsure)
        if complete is not None:
            proposal.complete = lambda replaced: [*complete(replaced[len(more) :]), *changes]
        copies = [(change.value.memory.view, data) for change, data in zip(changes, reply.kept, strict=True)]
        _when_copied(copies, lambda: self.commits.submit(proposal), finish)

    def holdings(self) -> Holdings:
        """Count what is kept at this moment."""
        tensors, graphs, models = self.tensors, self.graphs, self.models
        held = tensors.count, tensors.held, graphs.count, graphs.held, models.count, models.held
        return Holdings(*held, self.commits.behind)

    @property
    def is_current(self) -> bool:
        """Whether what is kept here is what there is, without a look at the place."""
        return self.commits.fence.open

    def _when_current(self, task: Task, reply: Reply, done: Done) -> None:
        looking = asyncio.get_running_loop().create_task(self.commits.fence.passed(task.expires))

        def looked(looking: asyncio.Task[None]) -> None:
            error = None if looking.cancelled() else looking.exception()
            if error is None:
                done(reply)
                return
            reply.give_back()
            done(refused(error if isinstance(error, Refusal) else fault(), task.request_id))

        looking.add_done_callback(looked)

    async def commit(
        self, changes: Sequence[Change], expires: float, seconds: float, complete: Completion | None = None
    ) -> None:
        """Return when all of these are made. Raises Refusal where none is.

        `complete` fills in an answer that tells what they replace, see `Proposal`. Where the outcome is not known when
        the time of so many seconds `expires`, it raises unconfirmed.
        """
        found: asyncio.Future[Refusal | None] = asyncio.get_running_loop().create_future()

        def done(refusal: Refusal | None) -> None:
            _set(found, refusal)

        self.commits.submit(Proposal(changes, done, True, expires, seconds, done, complete))
        refusal = await outcome(found)
        if refusal is not None:
            raise refusal

    async def settled(
        self,
        task: Task,
        caller: Caller,
        reply: Reply,
        condition: Condition = ALWAYS,
        more: Sequence[Change] = (),
        complete: Completion | None = None,
    ) -> Reply:
        """Settle a reply, and return what `done` would get."""
        settle = partial(self.settle, complete=complete)
        return await outcome(settling(settle, task, caller, reply, condition, more))


def settling(
    settle: _Settle, task: Task, caller: Caller, reply: Reply, condition: Condition, more: Sequence[Change]
) -> asyncio.Future[Reply]:
    """Return a future of the reply that `settle` calls `done` with."""
    found: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

    def done(reply: Reply) -> None:
        if not _set(found, reply):
            reply.give_back()

    settle(task, caller, reply, done, condition, more)
    return found


async def outcome(found: asyncio.Future[_T]) -> _T:
    """Wait for a commit. It goes through whoever leaves, so the first cancellation waits for the end of it."""
    try:
        return await asyncio.shield(found)
    except asyncio.CancelledError:
        return await found


def _set(found: asyncio.Future[_T], value: _T) -> bool:
    """Whether somebody still waits for it."""
    if not found.done():
        found.set_result(value)
        return True
    return False


def _when_copied(copies: _Copies, go_on: Callable[[], None], finish: Callable[[Refusal], None]) -> None:
    """Copy, on a thread where that takes long, and go on; or finish, where it could not be done."""
    nbytes = sum(len(data) for _, data in copies)
    copying = offload(asyncio.get_running_loop(), nbytes, lambda: _copy(copies))
    if copying is None:
        go_on()
        return

    def copied(copying: asyncio.Future[object]) -> None:
        if (error := copying.exception()) is None:
            go_on()
        else:
            _logger.error("what is to be kept could not be copied", exc_info=error)
            finish(fault())

    copying.add_done_callback(copied)


def _copy(copies: _Copies) -> None:
    """Each to its place; NumPy lets others run meanwhile."""
    for place, data in copies:
        if len(data):
            np.copyto(np.frombuffer(place, np.uint8), np.frombuffer(data, np.uint8))
