"""The pool of workers of a server that shares its state: each task reads versions that were found for it alone.

What a tensor is may be another server's to say, so workers know versions under a name for each set of them that tasks
have read together, and never under the tensor's own: what they know is right for ever. A worker asks for what a task
names, and it is sent again with what was found; what tasks like it have asked for is looked for before it is sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from engine.ir.lru import LRU
from service.core.errors import Refusal, fault
from service.core.settings import Settings
from service.store.tables import TensorVersion
from service.workers.frames import INLINE
from service.workers.pool import Done
from service.workers.process_pool import ProcessPool
from service.workers.residents import Lending, TensorKey
from service.workers.task import Reply, Task, refused
from service.workers.ticket import Ticket
from service.workers.worker_process import COMMAND

_logger = logging.getLogger("gradserve.cluster")

#: bytes at the beginning of a body by which tasks are alike that are of no registered graph
_PREFIX_BYTES: Final = 256
#: kinds of tasks that are remembered
_MAX_KINDS: Final = 1024
#: what tasks read of which nobody has asked yet: nothing is known under it
_NO_VERSIONS: Final = "?"
#: bytes of versions in buffers that a worker knows beside those of its next task
_MAX_MAPPED_BYTES: Final = 256 << 20
#: seconds in which what a task is expected to read has to be found, or it is sent without: it may read something else
_LOOK_AHEAD_SECONDS: Final = 0.05

#: the versions that a task reads, by name; they are lent
Versions = Mapping[str, TensorVersion]
#: the versions of these names in a namespace, found not later than at a time. Raises Refusal
FindVersions = Callable[[str, Sequence[str], float], Awaitable[Versions]]
#: those of them that were last known, where another server has them and all are here
RecallVersions = Callable[[str, Sequence[str]], Versions]


@dataclass
class Expectation:
    """Names that tasks of a kind read, the versions that the last one found, and whether the one before found these."""

    names: Sequence[str]
    etags: Mapping[str, str] = field(default_factory=dict)
    is_steady: bool = False

    def record(self, versions: Versions) -> None:
        """Note the versions that a task has found."""
        etags = etags_of(versions)
        self.is_steady, self.etags = etags == self.etags, etags


class ExpectedReads:
    """Memory of what tasks have asked for, by their graphs or beginnings; what is wrong is asked once more."""

    def __init__(self) -> None:
        self._kinds: LRU[Hashable, Expectation] = LRU(_MAX_KINDS)

    def of(self, task: Task) -> Expectation | None:
        """Look up what a task is expected to read; None where that is not known."""
        return self._kinds.hit(_kind_of(task))

    def learn(self, task: Task, names: Sequence[str]) -> None:
        """Remember the names that a task has asked for."""
        self._kinds.put(_kind_of(task), Expectation(names))


def etags_of(versions: Versions) -> Mapping[str, str]:
    """Map the names of the tensors to the etags of versions."""
    return {name: version.etag for name, version in versions.items()}


def _kind_of(task: Task) -> Hashable:
    return task.namespace, task.call, task.graph or bytes(task.body[:_PREFIX_BYTES])


class SpeculativeTask:
    """Task that is done with the versions that were last known, while their owner is asked whether there are others.

    The reply is held until the owner has said so, and so is of a moment after the request, like all that is read. Where
    there is another version, the task is done again with that. It pays where tensors stay as they are, as weights of a
    model in use do: then an answer takes as long as it would through the owner.
    """

    def __init__(
        self,
        task: Task,
        done: Done,
        expected: Expectation,
        lending: Lending,
        submit: Callable[[Task, Done, Versions], None],
    ) -> None:
        """`submit` takes up a task that reads these versions; with a refusal, they are given back."""
        self._task, self._done, self._expected = task, done, expected
        self._lending, self._submit = lending, submit
        self._lookup: asyncio.Task[None] | None = None
        self._reply: Reply | None = None
        #: what becomes of the reply, once that is known
        self._on_reply: Callable[[Reply], None] | None = None
        #: what there is, lent until it is known whether the task is done again with it
        self._versions: Versions | None = None

    def begin(self, known: Versions, find: Callable[[], Awaitable[Versions]]) -> None:
        """Have it done with what is known, while `find` finds what there is."""
        self._lookup = asyncio.get_running_loop().create_task(self._look_up(etags_of(known), find))
        self._submit(self._task, self._handle_reply, known)

    def end(self) -> None:
        """End the look, since nobody waits for the reply, or nothing of it is in doubt."""
        if self._lookup is not None:
            self._lookup.cancel()
        if self._reply is not None:
            reply, self._reply = self._reply, None
            reply.give_back()
        if self._versions is not None:
            versions, self._versions = self._versions, None
            self._lending.give_back(*versions.values())

    def leave_to_pool(self) -> None:
        """Leave a task to the pool that reads something else than was expected, which is found for it."""
        self.end()
        self._on_reply = self._answer

    async def _look_up(self, known: Mapping[str, str], find: Callable[[], Awaitable[Versions]]) -> None:
        on_reply: Callable[[Reply], None]
        try:
            versions = await find()
        except Refusal as refusal:
            on_reply = partial(self._refuse, refusal)
        except Exception:
            _logger.exception("request %s: what it reads could not be looked for", self._task.request_id)
            on_reply = partial(self._refuse, fault())
        else:
            self._expected.record(versions)
            self._versions = versions
            on_reply = self._answer if etags_of(versions) == known else self._repeat
        self._on_reply = on_reply
        if self._reply is not None:
            reply, self._reply = self._reply, None
            on_reply(reply)

    def _handle_reply(self, reply: Reply) -> None:
        if not reply.consulted:  # then it does not matter what there is
            self._answer(reply)
        elif self._on_reply is None:
            self._reply = reply
        else:
            self._on_reply(reply)

    def _answer(self, reply: Reply) -> None:
        self.end()
        self._done(reply)

    def _refuse(self, refusal: Refusal, reply: Reply) -> None:
        reply.give_back()
        self._answer(refused(refusal, self._task.request_id))

    def _repeat(self, reply: Reply) -> None:
        reply.give_back()
        assert self._versions is not None, "it was found"
        versions, self._versions = self._versions, None
        self._submit(self._task, self._answer, versions)


class ClusterPool(ProcessPool):
    """Finder of the versions that tasks read; `find` and `recall` are to be set before the first task."""

    find: FindVersions
    recall: RecallVersions

    def __init__(self, settings: Settings, lending: Lending, command: Sequence[str] = COMMAND) -> None:
        super().__init__(settings, command, lending)
        self.most_mapped = _MAX_MAPPED_BYTES
        self._current: dict[TensorKey, TensorVersion] = {}
        self._finding: dict[Ticket, asyncio.Task[None]] = {}
        self._expected = ExpectedReads()
        self._speculative: dict[Task, SpeculativeTask] = {}

    def place(self, namespace: str, name: str, resident: TensorVersion | None) -> None:
        """Place a version where those who look for it find it: nobody reads it otherwise."""
        before = self._current.pop((namespace, name), None)
        if resident is not None:
            self._current[namespace, name] = resident
        if before is not None:
            self._lending.retire(before)

    def submit(self, task: Task, done: Done) -> None:
        """Take up a task, with the versions that it is expected to read."""
        expected = self._expected.of(task)
        if expected is not None and (known := self._steady_versions(task, expected)):
            self._speculate(task, done, expected, known)
            return
        task.reads = _NO_VERSIONS
        ticket = self._admit(task, done)
        if ticket is not None and expected is not None:
            self._finding[ticket] = self._loop.create_task(self._look_ahead(ticket, expected))
        elif ticket is not None:
            self._enqueue(ticket)

    def cancel(self, task: Task) -> None:
        """Stop the work on a task whose reply nobody waits for any more."""
        if (run := self._speculative.pop(task, None)) is not None:
            run.end()
        super().cancel(task)

    def _steady_versions(self, task: Task, expected: Expectation) -> Versions:
        """Find what a short task reads, lent, where that is known here and likely to be what there is; or nothing."""
        if not expected.is_steady or task.memory is not None or len(task.body) > INLINE:
            return {}
        if self._cost_model.known(task)[0] is not None:
            return {}
        return self.recall(task.namespace, expected.names)

    def _speculate(self, task: Task, done: Done, expected: Expectation, known: Versions) -> None:
        def answered(reply: Reply) -> None:
            del self._speculative[task]
            done(reply)

        self._speculative[task] = run = SpeculativeTask(task, answered, expected, self._lending, self._submit_reading)
        run.begin(known, partial(self.find, task.namespace, expected.names, task.expires))

    def _submit_reading(self, task: Task, done: Done, versions: Versions) -> None:
        """Take up a task that reads these, which are lent."""
        task.reads = _NO_VERSIONS
        ticket = self._admit(task, done)
        if ticket is None:
            self._lending.give_back(*versions.values())
            return
        self._give_versions(ticket, versions)
        self._enqueue(ticket)

    def _give_versions(self, ticket: Ticket, versions: Versions) -> None:
        """Send a task with these, which are lent."""
        ticket.wanted = [*versions]
        self._read_together(ticket, versions)

    async def _look_ahead(self, ticket: Ticket, expected: Expectation) -> None:
        """Send a task with what it is expected to read, so that its worker need not ask."""
        task = ticket.task
        versions: Versions = {}
        try:
            async with asyncio.timeout(_LOOK_AHEAD_SECONDS):
                versions = await self.find(task.namespace, expected.names, task.expires)
        except (Refusal, TimeoutError):
            pass  # it is told so where it does read them
        except Exception:
            _logger.exception("request %s: what it may read could not be looked for", task.request_id)
        del self._finding[ticket]
        if versions:
            expected.record(versions)
            self._give_versions(ticket, versions)
        self._enqueue(ticket)

    def _find_tensors(self, ticket: Ticket) -> None:
        self._expected.learn(ticket.task, ticket.wanted)
        if ticket in self._pinned and self._pinned[ticket][1].keys() >= set(ticket.wanted):
            super()._find_tensors(ticket)
            return
        if (run := self._speculative.get(ticket.task)) is not None:
            run.leave_to_pool()
        self._unpin(ticket)  # it was expected to read something else
        self._lanes.hold(ticket)
        self._finding[ticket] = self._loop.create_task(self._look_up(ticket))

    async def _look_up(self, ticket: Ticket) -> None:
        task = ticket.task
        try:
            versions = await self.find(task.namespace, ticket.wanted, task.expires)
        except Refusal as refusal:
            self._fail_lookup(ticket, refusal)
        except Exception:
            _logger.exception("request %s: its tensors could not be found", task.request_id)
            self._fail_lookup(ticket, fault())
        else:
            del self._finding[ticket]
            self._read_together(ticket, versions)
            self._lanes.put_first(ticket)
        self._pump()

    def _fail_lookup(self, ticket: Ticket, refusal: Refusal) -> None:
        del self._finding[ticket]
        self._end(ticket, refused(refusal, ticket.task.request_id))

    def pin(self, ticket: Ticket, reads: Sequence[tuple[str, str]]) -> bool:
        """Do nothing: the versions that a task reads here were found for it alone."""
        return True

    def _unread(self, keys: Sequence[TensorKey]) -> None:
        """Do nothing: what workers know of a set is right for ever."""

    def _abandon(self, ticket: Ticket, refusal: Refusal | None = None) -> None:
        if (finding := self._finding.pop(ticket, None)) is None:
            super()._abandon(ticket, refusal)
            return
        finding.cancel()
        self._end(ticket, None if refusal is None else refused(refusal, ticket.task.request_id))
