"""Worker pool of a cluster's server: each task reads versions of tensors that were found for it alone.

Another server may decide what a tensor is at this moment. So workers do not cache versions by the names of tensors, but
by a name for each set of versions that tasks have read together: such an entry is never outdated. A worker asks for the
tensors that a task names, and the task is sent again with the versions that were found. What similar tasks have asked
for is found before the task is sent.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from engine.ir.lru import LRU
from service.cluster.owners import no_owner
from service.core.errors import Refusal, internal_error
from service.core.settings import Settings
from service.store.tables import Registered, TensorVersion, no_graph
from service.workers.frames import INLINE
from service.workers.pool import Done
from service.workers.process_pool import ProcessPool
from service.workers.residents import ReaderCounts, TensorKey
from service.workers.task import Reply, Task, refused
from service.workers.ticket import Ticket
from service.workers.worker_process import COMMAND

_logger = logging.getLogger("gradserve.cluster")

#: first bytes of a body that identify similar tasks without a registered graph
_PREFIX_BYTES: Final = 256
#: kinds of tasks in the cache
_MAX_KINDS: Final = 1024
#: name of the set of versions of tasks that have asked for none; workers know no versions under it
_NO_VERSIONS: Final = "?"
#: bytes of versions in shared buffers that a worker may map beside those of its next task
_MAX_MAPPED_BYTES: Final = 256 << 20
#: seconds to find the expected versions. After that the task is sent without: it may read others
_LOOK_AHEAD_SECONDS: Final = 0.05

#: versions that a task reads, by name; they are lent
Versions = Mapping[str, TensorVersion]
#: finds the versions of names in a namespace until a deadline. Raises Refusal
FindVersions = Callable[[str, Sequence[str], float], Awaitable[Versions]]
#: begins to look a registered graph up in a namespace; the result is shared, and raises Refusal
FindGraph = Callable[[str, str], "asyncio.Future[Registered | None]"]
#: returns the last known versions, if another server owns them and all are in memory here: those that the owner has
#: promised to be current, or any
RecallVersions = Callable[[str, Sequence[str]], Versions]


@dataclass
class Expectation:
    """Names that similar tasks read, the versions that the last one found, and whether they were the same before."""

    names: Sequence[str]
    etags: Mapping[str, str] = field(default_factory=dict)
    is_steady: bool = False

    def record(self, versions: Versions) -> None:
        """Record the versions that a task has found."""
        etags = etags_of(versions)
        self.is_steady, self.etags = etags == self.etags, etags


class ExpectedReads:
    """Cache of the names that tasks have asked for, by their graphs or first bytes. A wrong entry costs a question."""

    def __init__(self) -> None:
        self._kinds: LRU[Hashable, Expectation] = LRU(_MAX_KINDS)

    def find(self, task: Task) -> Expectation | None:
        """Return what a task is expected to read, None if unknown."""
        return self._kinds.hit(_kind_of(task))

    def learn(self, task: Task, names: Sequence[str]) -> None:
        """Record the names that a task has asked for."""
        self._kinds.put(_kind_of(task), Expectation(names))


def etags_of(versions: Versions) -> Mapping[str, str]:
    """Map the names of tensors to the etags of their versions."""
    return {name: version.etag for name, version in versions.items()}


def _kind_of(task: Task) -> Hashable:
    return task.namespace, task.call, task.graph or bytes(task.body[:_PREFIX_BYTES])


class SpeculativeTask:
    """Task that runs with the last known versions, while their owner is asked whether they are current.

    The reply is held until the owner has answered, so it is of a moment after the request, like every read. If a
    version is outdated, the task runs again. This pays for tensors that rarely change, such as the weights of a model
    in use: a reply then takes as long as from the owner itself.
    """

    def __init__(
        self,
        task: Task,
        done: Done,
        expected: Expectation,
        reader_counts: ReaderCounts,
        submit: Callable[[Task, Done, Versions], None],
    ) -> None:
        """`submit` accepts a task that reads these versions, or gives them back if the task is refused."""
        self._task, self._done, self._expected = task, done, expected
        self._reader_counts, self._submit = reader_counts, submit
        self._lookup: asyncio.Task[None] | None = None
        self._reply: Reply | None = None
        #: handler of the reply, once the owner has answered
        self._on_reply: Callable[[Reply], None] | None = None
        #: current versions, lent until it is known whether the task has to run again with them
        self._versions: Versions | None = None

    def begin(self, known: Versions, find: Callable[[], Awaitable[Versions]]) -> None:
        """Run the task with the known versions, while `find` finds the current ones."""
        self._lookup = asyncio.get_running_loop().create_task(self._look_up(etags_of(known), find))
        self._submit(self._task, self._handle_reply, known)

    def end(self) -> None:
        """End the lookup: nobody waits for the reply, or it is certain."""
        if self._lookup is not None:
            self._lookup.cancel()
        if self._reply is not None:
            reply, self._reply = self._reply, None
            reply.release()
        if self._versions is not None:
            versions, self._versions = self._versions, None
            self._reader_counts.drop_readers(*versions.values())

    def leave_to_pool(self) -> None:
        """Leave the task to the pool, since it reads other tensors than expected; the pool finds those."""
        self.end()
        self._on_reply = self._answer

    async def _look_up(self, known: Mapping[str, str], find: Callable[[], Awaitable[Versions]]) -> None:
        on_reply: Callable[[Reply], None]
        try:
            versions = await find()
        except Refusal as refusal:
            on_reply = partial(self._refuse, refusal)
        except Exception:
            _logger.exception("request %s: the lookup of its tensors failed", self._task.request_id)
            on_reply = partial(self._refuse, internal_error())
        else:
            self._expected.record(versions)
            self._versions = versions
            on_reply = self._answer if etags_of(versions) == known else self._repeat
        self._on_reply = on_reply
        if self._reply is not None:
            reply, self._reply = self._reply, None
            on_reply(reply)

    def _handle_reply(self, reply: Reply) -> None:
        if not reply.consulted:  # the task read no tensors, so their versions do not matter
            self._answer(reply)
        elif self._on_reply is None:
            self._reply = reply
        else:
            self._on_reply(reply)

    def _answer(self, reply: Reply) -> None:
        self.end()
        self._done(reply)

    def _refuse(self, refusal: Refusal, reply: Reply) -> None:
        reply.release()
        self._answer(refused(refusal, self._task.request_id))

    def _repeat(self, reply: Reply) -> None:
        reply.release()
        assert self._versions is not None, "it was found"
        versions, self._versions = self._versions, None
        self._submit(self._task, self._answer, versions)


class RecalledTask:
    """Task that runs on a registered graph of another server, while that one is asked whether the graph still exists.

    The reply is held until the owner has answered, as for tensors. If the graph was registered again with other names
    of nodes, the task runs again. Many tasks share one look-up, and none needs an asyncio task.
    """

    def __init__(self, task: Task, done: Done, find: FindGraph, submit: Callable[[Task, Done], None]) -> None:
        self._task, self._done, self._find, self._submit = task, done, find, submit
        self._reply: Reply | None = None
        #: handler of the reply, once the owner has answered
        self._on_reply: Callable[[Reply], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._ended = False

    def begin(self, over: Callable[[], object]) -> None:
        """Run the task; call `over` before its reply is passed on."""
        graph_id, self._task.recalled, self._over = str(self._task.recalled), None, over
        self._find(self._task.namespace, graph_id).add_done_callback(partial(self._found, graph_id))
        self._submit(self._task, self._handle_reply)

    def end(self) -> None:
        """End the task: nobody waits for the reply."""
        self._ended = True
        if self._reply is not None:
            reply, self._reply = self._reply, None
            reply.release()

    def _found(self, graph_id: str, looked_up: asyncio.Future[Registered | None]) -> None:
        """Decide what becomes of the reply."""
        if self._ended or self._on_reply is not None:
            return
        try:
            graph = looked_up.result()
            if graph is None:
                raise no_graph(graph_id)
        except Refusal as refusal:
            self._on_reply = partial(self._refuse, refusal)
        except Exception:
            _logger.exception("request %s: the lookup of its graph failed", self._task.request_id)
            self._on_reply = partial(self._refuse, internal_error())
        else:
            self._on_reply = self._answer if graph.key == self._task.graph else partial(self._repeat, graph)
        self._pass_on()

    def _handle_reply(self, reply: Reply) -> None:
        self._reply = reply
        if self._on_reply is None:
            seconds = max(0.0, self._task.expires - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(seconds, self._expire)
        else:
            self._pass_on()

    def _expire(self) -> None:
        if self._on_reply is None:
            self._on_reply = partial(self._refuse, no_owner())
            self._pass_on()

    def _pass_on(self) -> None:
        if self._reply is not None and self._on_reply is not None:
            reply, self._reply = self._reply, None
            self._on_reply(reply)

    def _answer(self, reply: Reply) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._over()
        self._done(reply)

    def _refuse(self, refusal: Refusal, reply: Reply) -> None:
        reply.release()
        self._answer(refused(refusal, self._task.request_id))

    def _repeat(self, graph: Registered, reply: Reply) -> None:
        reply.release()
        self._task.graph, self._task.graph_bytes = graph.key, graph.record
        self._submit(self._task, self._answer)


class ClusterPool(ProcessPool):
    """Process pool that finds the versions that tasks read. Set the functions before the first task."""

    find: FindVersions
    promised: RecallVersions
    recall: RecallVersions
    find_graph: FindGraph

    def __init__(self, settings: Settings, reader_counts: ReaderCounts, command: Sequence[str] = COMMAND) -> None:
        super().__init__(settings, command, reader_counts)
        self.mapped_limit = _MAX_MAPPED_BYTES
        self._current: dict[TensorKey, TensorVersion] = {}
        self._finding: dict[Ticket, asyncio.Task[None]] = {}
        self._expected = ExpectedReads()
        self._speculative: dict[Task, SpeculativeTask] = {}
        self._recalled: dict[Task, RecalledTask] = {}

    def place(self, namespace: str, name: str, resident: TensorVersion | None) -> None:
        """Store a version for those who look it up; workers do not read it otherwise."""
        before = self._current.pop((namespace, name), None)
        if resident is not None:
            self._current[namespace, name] = resident
        if before is not None:
            self._reader_counts.retire(before)

    def submit(self, task: Task, done: Done) -> None:
        """Accept a task, with the versions that it is expected to read."""
        if task.recalled is not None:
            self._recalled[task] = run = RecalledTask(task, done, self.find_graph, self.submit)
            run.begin(partial(self._recalled.pop, task))
            return
        expected = self._expected.find(task)
        if expected is not None and (promised := self.promised(task.namespace, expected.names)):
            self._submit_reading(task, done, promised)
            return
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
        """Cancel a task whose reply is not needed any more."""
        for runs in (self._recalled, self._speculative):
            if (run := runs.pop(task, None)) is not None:
                run.end()
        super().cancel(task)

    def _steady_versions(self, task: Task, expected: Expectation) -> Versions:
        """Lend the versions that a short task probably reads, if they are known here; otherwise return none."""
        # A run that may be wasted must be cheap: short bodies alone, and no tasks that are known to take long.
        if not expected.is_steady or task.memory is not None or len(task.body) > INLINE:
            return {}
        if self._cost_model.estimate(task)[0] is not None:
            return {}
        return self.recall(task.namespace, expected.names)

    def _speculate(self, task: Task, done: Done, expected: Expectation, known: Versions) -> None:
        def answered(reply: Reply) -> None:
            del self._speculative[task]
            done(reply)

        self._speculative[task] = run = SpeculativeTask(
            task, answered, expected, self._reader_counts, self._submit_reading
        )
        run.begin(known, partial(self.find, task.namespace, expected.names, task.expires))

    def _submit_reading(self, task: Task, done: Done, versions: Versions) -> None:
        """Accept a task that reads these versions, which are lent."""
        task.reads = _NO_VERSIONS
        ticket = self._admit(task, done)
        if ticket is None:
            self._reader_counts.drop_readers(*versions.values())
            return
        self._give_versions(ticket, versions)
        self._enqueue(ticket)

    def _give_versions(self, ticket: Ticket, versions: Versions) -> None:
        """Let a task read these versions, which are lent."""
        ticket.tensor_names = [*versions]
        self._read_together(ticket, versions)

    async def _look_ahead(self, ticket: Ticket, expected: Expectation) -> None:
        """Find what a task is expected to read before it is sent, so that its worker need not ask."""
        task = ticket.task
        versions: Versions = {}
        try:
            async with asyncio.timeout(_LOOK_AHEAD_SECONDS):
                versions = await self.find(task.namespace, expected.names, task.expires)
        except (Refusal, TimeoutError):
            pass  # if the task does read them, the worker asks and gets the error
        except Exception:
            _logger.exception("request %s: the lookup of tensors that it may read failed", task.request_id)
        del self._finding[ticket]
        if versions:
            expected.record(versions)
            self._give_versions(ticket, versions)
        self._enqueue(ticket)

    def _find_tensors(self, ticket: Ticket) -> None:
        self._expected.learn(ticket.task, ticket.tensor_names)
        # The task has them already: it is sent again with them.
        if ticket in self._pinned and self._pinned[ticket][1].keys() >= set(ticket.tensor_names):
            super()._find_tensors(ticket)
            return
        if (run := self._speculative.get(ticket.task)) is not None:
            run.leave_to_pool()
        self._unpin(ticket)  # the versions that were expected are not the ones that it reads
        self._lanes.hold(ticket)
        self._finding[ticket] = self._loop.create_task(self._look_up(ticket))

    async def _look_up(self, ticket: Ticket) -> None:
        task = ticket.task
        try:
            versions = await self.find(task.namespace, ticket.tensor_names, task.expires)
        except Refusal as refusal:
            self._fail_lookup(ticket, refusal)
        except Exception:
            _logger.exception("request %s: the lookup of its tensors failed", task.request_id)
            self._fail_lookup(ticket, internal_error())
        else:
            del self._finding[ticket]
            self._read_together(ticket, versions)
            self._lanes.put_first(ticket)
        self._pump()

    def _fail_lookup(self, ticket: Ticket, refusal: Refusal) -> None:
        del self._finding[ticket]
        self._end(ticket, refused(refusal, ticket.task.request_id))

    def pin(self, ticket: Ticket, reads: Sequence[tuple[str, str]]) -> bool:
        """Do nothing: the versions that a task reads were found for it alone."""
        return True

    def _unread(self, keys: Sequence[TensorKey]) -> None:
        """Do nothing: what workers know about a set of versions stays true."""

    def _abandon(self, ticket: Ticket, refusal: Refusal | None = None) -> None:
        if (finding := self._finding.pop(ticket, None)) is None:
            super()._abandon(ticket, refusal)
            return
        finding.cancel()
        self._end(ticket, None if refusal is None else refused(refusal, ticket.task.request_id))
