"""Pool of worker processes: the path of a task from admission to its result.

The front parses no bodies, so it does not know how long a new task takes. A task is therefore tried as a short one,
and moves when a worker finds out more. Every task has a `Ticket`, and is WAITING, SENT, RUNNING, RETURNING, STOPPING
or ANSWERED. For example, a request of which nothing is known:

    submit      `Admission` accepts it, a `Ticket` is made                            WAITING
    short lane  the quick worker gets it, with a limit of `QUICK` seconds             SENT, RUNNING
    TooLong     the worker has planned it, and hands it back with an estimate         WAITING
    long lane   a general worker gets it as soon as it has no other long task         SENT, RUNNING
    Reply       the client is answered, the cost model learns the time                ANSWERED

The next task of its kind goes to the long lane at once, and is refused if the lane cannot meet its deadline. A worker
that lacks a graph, tensors or a model says so (`NeedsGraph`, `NeedsTensors`, `NeedsModel`), and gets the task again
with them. A sum over examples comes back as `Divisible`, and may be cut into pieces (`Sums`), which are tasks too.

Workers can hang or die. At its deadline a task is answered by the front, its worker is told to stop, and is killed if
it does not. The tasks of a worker that ended go to other workers, but not indefinitely: a task that was executing may
have killed it. There are no timers per task: every `_TICK` seconds `Watch` looks at all deadlines and workers.

A ticket lives until no worker has its task, which may be after the answer. Only then is the memory that the task holds
released: a worker may still read it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, cast

import numpy as np

from service.api.media import PIECE_SUMS
from service.core.allocation import Allocation
from service.core.errors import Refusal, deadline_exceeded, internal_error, stopping
from service.core.settings import Settings
from service.store.tables import TensorVersion
from service.workers.admission import MISJUDGED, QUICK, Account, Accounts, Admission, CostModel, TaskKind, kind_of
from service.workers.claims import Claim, Claims
from service.workers.frames import INLINE
from service.workers.lanes import Lanes
from service.workers.memory import BodyAllocation, BodyMemory, TensorMemory
from service.workers.pool import Done, Stats
from service.workers.residents import ReaderCounts, TensorKey, VersionSets
from service.workers.sums import PeerServers, PieceTicket, Sums
from service.workers.supervisor import GRACE, Supervisor, Watch, resident_bytes
from service.workers.task import (
    Divisible,
    Estimate,
    NeedsGraph,
    NeedsModel,
    NeedsTensors,
    NotDone,
    Reply,
    Task,
    TooLong,
    refused,
)
from service.workers.ticket import Length, TaskState, Ticket
from service.workers.worker_process import COMMAND, WorkerProcess

_logger = logging.getLogger("gradserve.pool")

#: shortcuts, since every task uses them: in Python 3.11, looking up an enum member takes ten times as long as a global
_STOPPING, _ANSWERED, _LONG = TaskState.STOPPING, TaskState.ANSWERED, Length.LONG

#: seconds between two checks of deadlines, and the number of these between two inspections of the workers
_TICK: Final = 0.02
_INSPECTION: Final = 50
#: weight of a worker's death for the task that it executed (1 for its other tasks), and the sum above which a task is
#: refused
_BLAME: Final = 3
_FORGIVEN: Final = 5
#: seconds that workers have to exit by themselves
_LEAVE: Final = 2.0


class ProcessPool:
    """Pool of tasks that run in worker processes. `start` it on the event loop that uses it; `close` it at the end."""

    def __init__(
        self, settings: Settings, command: Sequence[str] = COMMAND, reader_counts: ReaderCounts | None = None
    ) -> None:
        """Set up, but start nothing. `command` starts a worker, `reader_counts` counts readers of tensor versions."""
        self.device = ""
        #: other servers, which run pieces of sums; set before `start`
        self.peers: PeerServers | None = None
        self._settings = settings
        self._command = command
        self._admission = Admission(settings.workers + settings.queue)
        self._claims = Claims(settings.held_bytes)
        self._cost_model = CostModel()
        self._accounts = Accounts()
        self._tickets: dict[Task, Ticket] = {}
        #: current tensor versions by namespace and name: tasks that are sent from now on read these
        self.residents: dict[TensorKey, TensorVersion] = {}
        self.mapped_limit = float("inf")
        self._reader_counts = ReaderCounts() if reader_counts is None else reader_counts
        self._version_sets = VersionSets(self.residents, self._reader_counts)
        #: versions that are pinned for a task: the name of their set, and the set
        self._pinned: dict[Ticket, tuple[str, Mapping[str, TensorVersion]]] = {}
        self._draining = False
        self._may_divide = False
        self._displaced = 0
        self._ticks = 0
        self._timer: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Start the workers, and wait until they take tasks. Raises RuntimeError if the device cannot be opened."""
        self._loop = asyncio.get_running_loop()
        self._done = asyncio.Event()
        self._supervisor = Supervisor(self._settings, self, self._command)
        self._body_memory = BodyMemory(self._loop, self._forget_buffer)
        self._tensor_memory = TensorMemory(self._loop)
        self._lanes = Lanes(self._supervisor, self._accounts, self._too_late, self._overtaken)
        self._sums = Sums(self, self._abandon, self.peers)
        self._watch = Watch(self, self._tickets, self._supervisor, self._settings)
        self.device = await self._supervisor.start()
        self._may_divide = self._sums.may_divide  # known now: it depends on the number of workers
        self._timer = self._loop.call_later(_TICK, self._tick)

    async def close(self, grace: float) -> bool:
        """Accept no more tasks, and end the workers once all tasks are done, or after `grace` seconds.

        Returns whether all tasks were done.
        """
        self.drain()
        if self._tickets:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._done.wait(), grace)
        all_done = not self._tickets
        # Tasks that still wait are answered before the workers are killed.
        for ticket in tuple(self._tickets.values()):
            if ticket.is_awaited:
                self._abandon(ticket, stopping())
        if self._timer is not None:
            self._timer.cancel()
        await self._supervisor.close(_LEAVE if all_done else 0.0)
        if self.peers is not None:
            await self.peers.close()
        self._body_memory.buffers.close()
        return all_done

    @property
    def ready(self) -> bool:
        """Whether tasks are accepted, and a worker takes them."""
        return not self._draining and self._supervisor.ready > 0

    @property
    def busy(self) -> bool:
        """Whether any task runs or waits."""
        return bool(self._tickets)

    def stats(self) -> Stats:
        """Return the current statistics."""
        return Stats(
            queued={"quick": self._lanes.short.count, "long": self._lanes.long.count},
            running=len(self._tickets) - self._lanes.waiting - len(self._sums.runs),
            workers=self._supervisor.count(),
            restarts=dict(self._supervisor.ends),
            reserved=self._claims.held,
            resident=sum(resident_bytes(worker.pid) for worker in self._supervisor),
            device=sum(worker.page.vitals.device_bytes for worker in self._supervisor),
            incidents=dict(self._supervisor.incidents.counts),
            condemned=len(self._supervisor.incidents.condemned),
            compiled=self._supervisor.kernels + sum(worker.page.vitals.kernels for worker in self._supervisor),
            callers=self._accounts.present,
            displaced=self._displaced,
            pieces=self._sums.done,
            repeated=self._sums.repeated,
        )

    def allocate(self, nbytes: int, tenant: str = "") -> BodyAllocation:
        """Allocate memory for a body, which is written from the start. Raises Refusal: shutting_down."""
        if self._draining:
            raise stopping()
        return self._body_memory.allocate(nbytes, self._claims.claim(tenant))

    def allocate_tensor(self, nbytes: int) -> Allocation:
        """Allocate memory for a resident tensor. Raises Refusal (store_full) if the system has none."""
        return self._tensor_memory.allocate(nbytes)

    def place(self, namespace: str, name: str, resident: TensorVersion | None) -> None:
        """Set the version that tasks read from now on; None deletes the tensor."""
        key = namespace, name
        previous = self.residents.pop(key, None)
        if resident is not None:
            self.residents[key] = resident
        for worker in self._supervisor:
            worker.changed(key)
        if previous is not None:
            # Tasks that have been sent may still read the previous version.
            self._reader_counts.retire(previous)

    def submit(self, task: Task, done: Done) -> None:
        """Accept a task, or refuse it. It is answered by its deadline, whatever its worker does."""
        ticket = self._admit(task, done)
        if ticket is not None:
            self._enqueue(ticket)

    def _admit(self, task: Task, done: Done) -> Ticket | None:
        """Admit a task and return its ticket; a task that is refused has been answered."""
        now = time.monotonic()
        account = self._accounts.enter(task.tenant, now)
        if self._draining or (self._admission.full(self._held) and not self._displace(account)):
            refusal = stopping() if self._draining else self._admission.crowded(self._held)
            self._reject(task, done, refusal)
            return None
        ticket = Ticket(task, account, done, now, self._abandon)
        # Only a worker that has parsed the body knows which tensors the task reads. It may ask for them once.
        task.may_ask = True
        task.may_divide = self._may_divide and task.answer_type != PIECE_SUMS
        # A smaller body travels inside the frame.
        if task.memory is not None or len(task.body) > INLINE:
            try:
                self._place_body(ticket)
            except Refusal as refusal:
                self._reject(task, done, refusal)
                return None
        self._tickets[task] = ticket
        if ticket.memory is not None:
            ticket.memory.claim.holder = ticket
        account.tasks[task] = None
        self._watch.check_at(task.expires)
        return ticket

    def _enqueue(self, ticket: Ticket) -> None:
        """Put an admitted task into a lane: the long one if its kind is known to be long."""
        kind, estimate = self._cost_model.estimate(ticket.task)
        if kind is None or estimate is None:
            self._lanes.put(ticket)
        else:
            self._queue(ticket, kind, estimate)

    def cancel(self, task: Task) -> None:
        """Stop the work on a task whose result nobody waits for."""
        if (ticket := self._tickets.get(task)) and ticket.is_awaited:
            self._abandon(ticket)

    def drain(self) -> None:
        """Accept no more tasks; those that were accepted continue."""
        self._draining = True

    def replied(self, worker: WorkerProcess, ticket: Ticket, reply: Reply, seconds: float) -> None:
        """Take a worker's reply to a task, and learn from the time it took."""
        if reply.recycle is not None:
            self._supervisor.dismiss(worker, reply.recycle)
        self._charge(ticket, seconds, QUICK if not reply.cached else MISJUDGED)
        if (ticket.length is _LONG and ticket.sums is None) or (seconds > MISJUDGED and reply.cached):
            # A total only adds up sums that were computed as pieces: its time says nothing about the task as a whole.
            self._learn(ticket, seconds, planned=not reply.cached)
        if ticket.length >= _LONG:
            self._supervisor.trim()
        self._end(ticket, reply)
        if self._lanes.waiting or self._sums.runs:
            self._pump()

    def not_done(self, ticket: Ticket, reason: NotDone, seconds: float) -> None:
        """Send a task again with what the worker lacked, or move it to the long lane."""
        self._charge(ticket, seconds, QUICK)
        if not ticket.is_awaited:
            self._end(ticket)
        elif isinstance(reason, TooLong):
            kind = kind_of(ticket.task)
            self._queue(ticket, kind, self._cost_model.add_plan(kind, reason.estimate))
        elif isinstance(reason, Divisible) and ticket.task.may_divide:
            self._divide(ticket, reason)
        elif isinstance(reason, NeedsGraph) and not ticket.needs_graph:
            ticket.needs_graph = True
            self._lanes.put_back(ticket)
        elif isinstance(reason, NeedsTensors) and ticket.task.may_ask:
            ticket.tensor_names, ticket.task.may_ask = reason.names, False
            self._find_tensors(ticket)
        elif isinstance(reason, NeedsModel) and ticket.task.model is None:
            self._set_model(ticket, reason.name)
        else:
            _logger.error("request %s: a worker asked again for data that it already has", ticket.task.request_id)
            self._refuse(ticket, internal_error())
        self._pump()

    def _divide(self, ticket: Ticket, divisible: Divisible) -> None:
        """Divide a sum into pieces; if that saves nothing, have one worker do it."""
        # All pieces have to read the same versions, so from here on none may ask for tensors.
        ticket.task.may_divide = ticket.task.may_ask = False
        self._lanes.hold(ticket)
        try:
            divided = self._sums.divide(ticket, divisible)
        except Refusal as refusal:
            self._refuse(ticket, refusal)
            return
        if not divided:
            ticket.task.may_ask = True
            self._lanes.put_first(ticket)

    @property
    def _held(self) -> int:
        """Number of tasks that callers have in the pool, pieces of sums not counted."""
        return len(self._tickets) - self._sums.tickets

    def _pump(self) -> None:
        """Send waiting tasks to free workers, then pieces of sums to those that are still idle."""
        self._lanes.pump()
        if self._sums.runs:
            self._sums.fill()

    @property
    def can_help(self) -> bool:
        """Whether a worker is idle, and no task waits for one."""
        return self._lanes.has_idle

    @property
    def helpers(self) -> int:
        """Number of workers among which a sum may be divided."""
        return self._supervisor.long_workers

    def add_piece(self, ticket: PieceTicket) -> None:
        """Put a piece of a sum into a lane."""
        self._tickets[ticket.task] = ticket
        self._sums.tickets += 1
        self._watch.check_at(ticket.task.expires)
        self._lanes.put(ticket)

    def drop_piece(self, ticket: PieceTicket) -> None:
        """Stop a piece of a sum that is not needed any more."""
        if ticket.is_awaited:
            self._abandon(ticket)

    def pin(self, ticket: Ticket, reads: Sequence[tuple[str, str]]) -> bool:
        """Pin the current versions of tensors for a task and its pieces; return False if their etags are not these."""
        versions = dict[str, TensorVersion]()
        for name, etag in reads:
            version = self.residents.get((ticket.task.namespace, name))
            if version is None or version.etag != etag:
                return False
            versions[name] = version
        if versions:
            for version in versions.values():
                self._reader_counts.add_reader(version)
            self._read_together(ticket, versions)
        return True

    def _read_together(self, ticket: Ticket, versions: Mapping[str, TensorVersion]) -> None:
        """Have a task read these lent versions, whatever is placed under their names meanwhile."""
        ticket.task.reads = reads = self._version_sets.enter(versions)
        self._pinned[ticket] = reads, versions

    def _unpin(self, ticket: Ticket) -> None:
        """Release the versions that are pinned for a task."""
        if ticket in self._pinned:
            self._unread(self._version_sets.leave(*self._pinned.pop(ticket)))

    def allocate_sums(self, ticket: Ticket, nbytes: int, response_bytes: int) -> BodyAllocation:
        """Allocate memory for the sums, after reserving memory for the answer. Raises Refusal (queue_full)."""
        self._promise(ticket, response_bytes)
        memory = self._body_memory.allocate(nbytes, self._claims.claim(ticket.task.tenant))
        memory.claim.holder = ticket
        try:
            memory.reserve(nbytes)
        except Refusal:
            memory.release()
            raise
        return memory

    def go_on(self, ticket: Ticket) -> None:
        """Put a task that was held at the head of its lane."""
        ticket.length = max(ticket.length, _LONG)
        self._lanes.put_first(ticket)
        self._pump()

    def settle(self, ticket: Ticket, reply: Reply) -> None:
        """Answer a task that was held."""
        self._end(ticket, reply)

    def _find_tensors(self, ticket: Ticket) -> None:
        """Send a task again with the tensors that its worker asked for."""
        self._lanes.put_back(ticket)

    def _set_model(self, ticket: Ticket, name: str) -> None:
        try:
            ticket.task.set_model(name)
        except Refusal as refusal:
            self._refuse(ticket, refusal)
        else:
            self._lanes.put_back(ticket)

    def has_capacity(self) -> None:
        """Send a task to a worker that can take one again."""
        self._pump()

    def skipped(self, ticket: Ticket) -> None:
        """End a task that a worker did not do, or put it back if it is still wanted."""
        if ticket.is_awaited:
            self._lanes.put_back(ticket)
        else:
            self._end(ticket)
        self._pump()

    def lost(self, tickets: Sequence[Ticket], executing: Ticket | None) -> None:
        """Put back the tasks of a worker that has ended.

        The task that it executed may have killed it: it runs again, as a long task, so that none waits behind it.
        The others are probably innocent, but are not retried indefinitely.
        """
        for ticket in tickets:
            ticket.deaths += _BLAME if ticket is executing else 1
            if not ticket.is_awaited:
                self._end(ticket)
            elif ticket.deaths > _FORGIVEN:
                self._refuse(ticket, worker_died())
            else:
                if ticket is executing:
                    ticket.died()
                    ticket.length = max(ticket.length, _LONG)
                self._lanes.put_back(ticket)
        self._pump()

    def answered(self, tenant: str, nbytes: int) -> Claim:
        """Claim the bytes of an answer that a worker has written."""
        return self._claims.claim_existing(tenant, nbytes)

    def expired(self, ticket: Ticket) -> None:
        """Answer a task whose deadline has passed, whatever becomes of the work."""
        self._abandon(ticket, deadline_exceeded(ticket.task.timeout))

    def overran(self, worker: WorkerProcess, ticket: Ticket) -> None:
        """Move all tasks away that wait behind a task that was expected to be short, and runs long."""
        # In the quick worker, another takes over the short lane. A general worker just gets no more tasks.
        relieved = worker is not self._supervisor.quick or self._supervisor.relieve()
        if not relieved and worker.sent == 1 and not self._lanes.short.count:
            return  # no task waits behind it
        ticket.length = max(ticket.length, _LONG)
        ticket.kind = kind_of(ticket.task)
        # It has run for this long, so it may take as long again: the usual guess if nothing else is known.
        ticket.estimate = Estimate(2 * (time.monotonic() - worker.page.since), 0, 0)
        self._isolate(worker, ticket)
        # Nobody can replace the quick worker: so the task has to leave it, and starts again as a long one.
        if not relieved and not ticket.is_stopped:
            self._watch.check_at(ticket.stop(TaskState.RETURNING) + GRACE)
        self._pump()

    def _overtaken(self, worker: WorkerProcess, ticket: Ticket) -> None:
        """Move tasks away from behind this one, which has not run long enough for its kind to be called long."""
        ticket.length = Length.ALONE
        self._isolate(worker, ticket)
        self._pump()

    def _isolate(self, worker: WorkerProcess, ticket: Ticket) -> None:
        """Take back the tasks that wait behind this one, and send its worker no more."""
        worker.long = ticket
        for waiting in worker.take_back((ticket, worker.executing)):
            self._lanes.put_back(waiting)

    def _displace(self, account: Account) -> bool:
        """Drop a task of the caller with the most tasks, to make room for one of this account: the last not yet begun.

        Return False if this account would then have as many tasks as that caller.
        """
        most = self._accounts.greatest()
        if len(most.tasks) <= len(account.tasks) + 1:
            return False
        # The newest task has waited least, and is most likely not begun.
        for task in reversed(most.tasks):
            ticket = self._tickets[task]
            if ticket.is_awaited and ticket.begun() is None:
                self._displaced += 1
                self._abandon(ticket, self._admission.crowded(self._held))
                return True
        return False

    def _reject(self, task: Task, done: Done, refusal: Refusal) -> None:
        if task.memory is not None:
            task.memory.release()
        done(refused(refusal, task.request_id))

    def _place_body(self, ticket: Ticket) -> None:
        """Move a body into memory that workers can map."""
        task = ticket.task
        if task.memory is not None:
            ticket.memory = cast("BodyAllocation", task.memory)  # this pool has allocated it
            ticket.memory.shrink(len(task.body))
            return
        nbytes = len(task.body)
        ticket.memory = memory = self.allocate(nbytes, task.tenant)
        try:
            memory.reserve(nbytes)
        except Refusal:
            memory.release()
            raise
        memory.shrink(nbytes)
        memory.view[:] = task.body.data if isinstance(task.body, np.ndarray) else task.body
        task.body = memory.view

    def _charge(self, ticket: Ticket, seconds: float, patience: float) -> None:
        """Charge the caller for the time that a worker spent on a task, and count an overrun if it was to be short.

        `patience` is the time that is no overrun: longer if the plan was cached, since then the machine is busy, and
        the caller not to blame.
        """
        self._lanes.charge(ticket, seconds)
        if ticket.most_seconds is not None and seconds > patience:
            ticket.account.overran(seconds, time.monotonic())

    def _queue(self, ticket: Ticket, kind: TaskKind, estimate: Estimate) -> None:
        """Put a task into the long lane, or refuse it if those ahead of it leave it too little time."""
        ticket.length = max(ticket.length, _LONG)
        ticket.kind = kind
        ticket.estimate = estimate
        # The margin covers work that turns out longer than expected; it shrinks as measurements confirm the model.
        ahead = self._lanes.ahead(ticket)
        needed = (ahead + estimate.seconds) * self._cost_model.margin(ticket.task.tenant)
        remaining = ticket.task.expires - time.monotonic()
        try:
            # A worker that would be idle may try in any case: only a measurement corrects an estimate that is too high.
            if ahead and needed > remaining and not self._lanes.is_idle(ticket):
                raise self._admission.infeasible(needed, remaining)
            self._promise(ticket, estimate.response_bytes)
        except Refusal as refusal:
            self._refuse(ticket, refusal)
            return
        if ticket.state is not TaskState.WAITING:
            ticket.become(TaskState.WAITING)
        self._lanes.put(ticket)

    def _promise(self, ticket: Ticket, nbytes: int) -> None:
        """Reserve memory for the answer to a task. Raises Refusal (queue_full)."""
        if ticket.reserved is not None:
            ticket.reserved.end()
        ticket.reserved = self._claims.claim(ticket.task.tenant, nbytes)
        ticket.reserved.holder = ticket

    def _learn(self, ticket: Ticket, seconds: float, *, planned: bool) -> None:
        """Update the cost model with the time of a task; then refuse waiting tasks that will be too late."""
        kind = kind_of(ticket.task) if ticket.kind is None else ticket.kind
        self._cost_model.record(kind, ticket.estimate, seconds, planned=planned)
        for waiting in self._lanes.overdue(self._cost_model):
            self._lanes.drop(waiting)
            self._too_late(waiting)

    def _too_late(self, ticket: Ticket) -> None:
        remaining = ticket.task.expires - time.monotonic()
        self._refuse(ticket, self._admission.infeasible(self._lanes.expected(ticket), remaining))

    def _abandon(self, ticket: Ticket, refusal: Refusal | None = None) -> None:
        """Answer a task with this refusal, if any, and take it out of its lane or stop its worker."""
        reply = None if refusal is None else refused(refusal, ticket.task.request_id)
        if ticket.state is TaskState.WAITING:
            if not self._sums.drop(ticket):
                self._lanes.drop(ticket)
            self._end(ticket, reply)
            return
        # A worker has the task. The client is answered now, but the ticket ends when the worker has dropped the task.
        begun = ticket.begun()
        now = ticket.stop(_STOPPING)
        if begun is not None:
            self._charge(ticket, now - begun, MISJUDGED)
        self._watch.check_at(now + GRACE)
        if reply is not None:
            ticket.done(reply)

    def _refuse(self, ticket: Ticket, refusal: Refusal) -> None:
        self._end(ticket, refused(refusal, ticket.task.request_id))

    def _end(self, ticket: Ticket, reply: Reply | None = None) -> None:
        """Release everything that is held for a task that no worker has, and answer the client if it still waits."""
        is_awaited = ticket.state < _STOPPING
        ticket.become(_ANSWERED)
        self._release(ticket)
        if is_awaited and reply is not None:
            ticket.done(reply)
        elif reply is not None:
            # Nobody reads the reply, but it may lie in a buffer that its worker needs again.
            reply.release()

    def _release(self, ticket: Ticket) -> None:
        del self._tickets[ticket.task]
        if ticket.is_piece:
            self._sums.tickets -= 1
        else:
            del ticket.account.tasks[ticket.task]
            self._admission.replied()
        if ticket.reserved is not None:
            ticket.reserved.end()
        if ticket.memory is not None:
            # No view of the body may be left when the buffer is reused.
            ticket.task.body = b""
        if ticket.release_shared is not None:
            ticket.release_shared()
        elif ticket.memory is not None:
            ticket.memory.release()
        if self._pinned:
            self._unpin(ticket)
        if self._draining and not self._tickets:
            self._done.set()

    def _unread(self, keys: Sequence[TensorKey]) -> None:
        """Tell workers that the versions under these keys have no readers any more."""
        for key in keys:
            for worker in self._supervisor:
                worker.changed(key)

    def _forget_buffer(self, number: int) -> None:
        for worker in self._supervisor:
            worker.forget(number)

    def _tick(self) -> None:
        # Rescheduled first, so that an error below does not stop the clock.
        self._timer = self._loop.call_later(_TICK, self._tick)
        self._watch.look()
        self._ticks += 1
        if self._ticks % _INSPECTION == 0:
            self._admission.look(time.monotonic())
            self._accounts.look(time.monotonic())
            self._watch.inspect()
            self._body_memory.buffers.trim()


def worker_died() -> Refusal:
    """Return the refusal of a task whose worker ended while executing it, more than once."""
    detail = "the worker process that ran this request died; send the request again"
    return Refusal("worker_died", detail, retry_after=1)
