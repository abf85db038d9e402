"""The pool of worker processes: the way of a task from its admission to its reply.

A task is admitted or refused (`Admission`), gets a `Ticket`, and waits in a lane (`Lanes`) until a worker can take it.
Short tasks go to the quick worker. A task that turns out to be long comes back as `TooLong`, with an estimate, and
waits with the long ones; one whose deadline cannot be met is refused. A worker that lacks something (a graph, tensors,
a model) says so, and the task is sent again with that. A sum over examples may be divided into pieces (`Sums`). When
a worker ends, its tasks are done by others.

Every `_TICK` seconds the pool looks at deadlines and workers (`Watch`), without a timer for each task. A ticket lives
until no worker has it any more, which may be after its reply: only then is what is held for the task given back.
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
from service.core.errors import Refusal, fault, late, stopping
from service.core.settings import Settings
from service.store.tables import TensorVersion
from service.workers.admission import MISJUDGED, QUICK, Account, Accounts, Admission, CostModel, TaskKind, kind_of
from service.workers.claims import Claim, Claims
from service.workers.frames import INLINE
from service.workers.lanes import Lanes
from service.workers.memory import BodyAllocation, BodyMemory, TensorMemory
from service.workers.pool import Done, Stats
from service.workers.residents import Lending, TensorKey, VersionSets
from service.workers.sums import Elsewhere, PieceTicket, Sums
from service.workers.supervisor import GRACE, Supervisor, Watch, resident_bytes
from service.workers.task import (
    Divisible,
    Estimate,
    NeedsGraph,
    NotDone,
    Reply,
    Task,
    TooLong,
    WantsModel,
    WantsTensors,
    refused,
)
from service.workers.ticket import Length, TaskState, Ticket
from service.workers.worker_process import COMMAND, WorkerProcess

_logger = logging.getLogger("gradserve.pool")

#: every task meets these: in Python 3.11 a member of an enumeration takes ten times as long to find as a name
_STOPPING, _ANSWERED, _LONG = TaskState.STOPPING, TaskState.ANSWERED, Length.LONG

#: seconds between two looks at what is late, and looks between two inspections of the workers
_TICK: Final = 0.02
_INSPECTION: Final = 50
#: what the death of its worker counts for a task that was executed, where it counts 1 for another; and what is too much
_BLAME: Final = 3
_FORGIVEN: Final = 5
#: seconds that workers have to end by themselves
_LEAVE: Final = 2.0


class ProcessPool:
    """Tasks in processes of their own. `start` it on the event loop that it is used on, `close` it at the end."""

    def __init__(self, settings: Settings, command: Sequence[str] = COMMAND, lending: Lending | None = None) -> None:
        """`command` is what a worker runs; `lending` knows who else reads versions of tensors."""
        self.device = ""
        #: other servers, which do pieces of sums; to be said before the start
        self.elsewhere: Elsewhere | None = None
        self._settings = settings
        self._command = command
        self._admission = Admission(settings.workers + settings.queue)
        self._claims = Claims(settings.held_bytes)
        self._cost_model = CostModel()
        self._accounts = Accounts()
        self._tickets: dict[Task, Ticket] = {}
        #: by namespace and name: what tasks read that are sent from now on
        self.residents: dict[TensorKey, TensorVersion] = {}
        self.most_mapped = float("inf")
        self._lending = Lending() if lending is None else lending
        self._version_sets = VersionSets(self.residents, self._lending)
        #: what tasks read that was pinned for them: the name of a set, and the set
        self._pinned: dict[Ticket, tuple[str, Mapping[str, TensorVersion]]] = {}
        self._draining = False
        self._may_divide = False
        self._displaced = 0
        self._looks = 0
        self._ticking: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Start the workers, and wait until tasks can be done. Raises RuntimeError when the device cannot be had."""
        self._loop = asyncio.get_running_loop()
        self._done = asyncio.Event()
        self._supervisor = Supervisor(self._settings, self, self._command)
        self._body_memory = BodyMemory(self._loop, self._forget)
        self._tensor_memory = TensorMemory(self._loop)
        self._lanes = Lanes(self._supervisor, self._accounts, self._too_late, self._overtaken)
        self._sums = Sums(self, self._abandon, self.elsewhere)
        self._watch = Watch(self, self._tickets, self._supervisor, self._settings)
        self.device = await self._supervisor.start()
        self._may_divide = self._sums.may_divide  # as many workers as there are to be are known now
        self._ticking = self._loop.call_later(_TICK, self._tick)

    async def close(self, grace: float) -> bool:
        """Accept nothing more, and end the workers once all is done, or after `grace` seconds; False if not all was."""
        self.drain()
        if self._tickets:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._done.wait(), grace)
        done = not self._tickets
        for ticket in tuple(self._tickets.values()):
            if ticket.is_wanted:
                self._abandon(ticket, stopping())
        if self._ticking is not None:
            self._ticking.cancel()
        await self._supervisor.close(_LEAVE if done else 0.0)
        if self.elsewhere is not None:
            await self.elsewhere.close()
        self._body_memory.buffers.close()
        return done

    @property
    def ready(self) -> bool:
        """Whether work is accepted, and there is a worker for it."""
        return not self._draining and self._supervisor.ready > 0

    @property
    def busy(self) -> bool:
        """Whether a task runs or waits."""
        return bool(self._tickets)

    def stats(self) -> Stats:
        """Return the statistics of this moment."""
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
        """Give memory for a body, which will lie at its beginning. Raises Refusal: shutting_down."""
        if self._draining:
            raise stopping()
        return self._body_memory.allocate(nbytes, self._claims.claim(tenant))

    def allocate_tensor(self, nbytes: int) -> Allocation:
        """Give memory for a resident tensor. Raises Refusal: store_full, where the system has none."""
        return self._tensor_memory.allocate(nbytes)

    def place(self, namespace: str, name: str, resident: TensorVersion | None) -> None:
        """Set the version that tasks read from now on; None for none."""
        key = namespace, name
        before = self.residents.pop(key, None)
        if resident is not None:
            self.residents[key] = resident
        for worker in self._supervisor:
            worker.changed(key)
        if before is not None:
            self._lending.retire(before)

    def submit(self, task: Task, done: Done) -> None:
        """Take up a task; at its deadline there is a reply, whatever its worker does then."""
        ticket = self._admit(task, done)
        if ticket is not None:
            self._enqueue(ticket)

    def _admit(self, task: Task, done: Done) -> Ticket | None:
        """Admit a task and return its ticket; a task that is refused has its reply."""
        now = time.monotonic()
        account = self._accounts.enter(task.tenant, now)
        if self._draining or (self._admission.full(self._held) and not self._displace(account)):
            refusal = stopping() if self._draining else self._admission.crowded(self._held)
            self._turn_away(task, done, refusal)
            return None
        ticket = Ticket(task, account, done, now, self._abandon)
        task.may_ask = True
        task.may_divide = self._may_divide and task.accepted != PIECE_SUMS
        if task.memory is not None or len(task.body) > INLINE:
            try:
                self._place_body(ticket)
            except Refusal as refusal:
                self._turn_away(task, done, refusal)
                return None
        self._tickets[task] = ticket
        if ticket.memory is not None:
            ticket.memory.claim.holder = ticket
        account.tasks[task] = None
        self._watch.at(task.expires)
        return ticket

    def _enqueue(self, ticket: Ticket) -> None:
        """Put a task that was admitted where those like it wait."""
        kind, estimate = self._cost_model.known(ticket.task)
        if kind is None or estimate is None:
            self._lanes.put(ticket)
        else:
            self._queue(ticket, kind, estimate)

    def cancel(self, task: Task) -> None:
        """Stop the work on a task whose reply nobody waits for any more."""
        if (ticket := self._tickets.get(task)) and ticket.is_wanted:
            self._abandon(ticket)

    def drain(self) -> None:
        """Accept nothing more; what was accepted goes on."""
        self._draining = True

    def replied(self, worker: WorkerProcess, ticket: Ticket, reply: Reply, seconds: float) -> None:
        """Take the reply of a worker, and learn how long its task took."""
        if reply.recycle is not None:
            self._supervisor.dismiss(worker, reply.recycle)
        self._charge(ticket, seconds, QUICK if not reply.cached else MISJUDGED)
        if (ticket.length is _LONG and ticket.beside is None) or (seconds > MISJUDGED and reply.cached):
            self._learn(ticket, seconds, planned=not reply.cached)
        if ticket.length >= _LONG:
            self._supervisor.trim()
        self._end(ticket, reply)
        if self._lanes.waiting or self._sums.runs:
            self._pump()

    def not_done(self, ticket: Ticket, why: NotDone, seconds: float) -> None:
        """Send a task again with what a worker lacked for it, or have it wait with the long ones."""
        self._charge(ticket, seconds, QUICK)
        if not ticket.is_wanted:
            self._end(ticket)
        elif isinstance(why, TooLong):
            kind = kind_of(ticket.task)
            self._queue(ticket, kind, self._cost_model.planned(kind, why.estimate))
        elif isinstance(why, Divisible) and ticket.task.may_divide:
            self._divide(ticket, why)
        elif isinstance(why, NeedsGraph) and not ticket.graph_wanted:
            ticket.graph_wanted = True
            self._lanes.put_back(ticket)
        elif isinstance(why, WantsTensors) and ticket.task.may_ask:
            ticket.wanted, ticket.task.may_ask = why.names, False
            self._find_tensors(ticket)
        elif isinstance(why, WantsModel) and ticket.task.model is None:
            self._give_model(ticket, why.name)
        else:
            _logger.error("request %s: a worker asks again for what it was given", ticket.task.request_id)
            self._refuse(ticket, fault())
        self._pump()

    def _divide(self, ticket: Ticket, why: Divisible) -> None:
        """Have a sum done in pieces; or by one worker, where pieces would win nothing."""
        ticket.task.may_divide = ticket.task.may_ask = False
        self._lanes.hold(ticket)
        try:
            divided = self._sums.divide(ticket, why)
        except Refusal as refusal:
            self._refuse(ticket, refusal)
            return
        if not divided:
            ticket.task.may_ask = True
            self._lanes.put_first(ticket)

    @property
    def _held(self) -> int:
        """Tasks of callers that are held."""
        return len(self._tickets) - self._sums.tickets

    def _pump(self) -> None:
        """Send what waits to those that can take it, and then pieces of sums."""
        self._lanes.pump()
        if self._sums.runs:
            self._sums.fill()

    @property
    def can_help(self) -> bool:
        """Whether a worker idles, and nobody waits for one."""
        return self._lanes.has_idle

    @property
    def helpers(self) -> int:
        """Workers that a sum may be divided among."""
        return self._supervisor.long_workers

    def add_piece(self, ticket: PieceTicket) -> None:
        """Put a piece into a lane."""
        self._tickets[ticket.task] = ticket
        self._sums.tickets += 1
        self._watch.at(ticket.task.expires)
        self._lanes.put(ticket)

    def drop_piece(self, ticket: PieceTicket) -> None:
        """Stop a piece that nobody wants any more."""
        if ticket.is_wanted:
            self._abandon(ticket)

    def pin(self, ticket: Ticket, reads: Sequence[tuple[str, str]]) -> bool:
        """Have all that is done for a task read the same tensors as now; False where they are not of these etags."""
        versions = dict[str, TensorVersion]()
        for name, etag in reads:
            version = self.residents.get((ticket.task.namespace, name))
            if version is None or version.etag != etag:
                return False
            versions[name] = version
        if versions:
            for version in versions.values():
                self._lending.lend(version)
            self._read_together(ticket, versions)
        return True

    def _read_together(self, ticket: Ticket, versions: Mapping[str, TensorVersion]) -> None:
        """Have a task read these versions, which are lent, whatever else is placed meanwhile."""
        ticket.task.reads = reads = self._version_sets.enter(versions)
        self._pinned[ticket] = reads, versions

    def _unpin(self, ticket: Ticket) -> None:
        """Give back the versions that were found for a task alone."""
        if ticket in self._pinned:
            self._unread(self._version_sets.leave(*self._pinned.pop(ticket)))

    def allocate_sums(self, ticket: Ticket, nbytes: int, response_bytes: int) -> BodyAllocation:
        """Give memory for the sums, once there is memory for the answer. Raises Refusal (queue_full)."""
        self._promise(ticket, response_bytes)
        memory = self._body_memory.allocate(nbytes, self._claims.claim(ticket.task.tenant))
        memory.claim.holder = ticket
        try:
            memory.reserve(nbytes)
        except Refusal:
            memory.give_back()
            raise
        return memory

    def go_on(self, ticket: Ticket) -> None:
        """Have a task that was held done before those that wait."""
        ticket.length = max(ticket.length, _LONG)
        self._lanes.put_first(ticket)
        self._pump()

    def settle(self, ticket: Ticket, reply: Reply) -> None:
        """Answer a task that was held."""
        self._end(ticket, reply)

    def _find_tensors(self, ticket: Ticket) -> None:
        """Have a task sent again with the tensors that are wanted."""
        self._lanes.put_back(ticket)

    def _give_model(self, ticket: Ticket, name: str) -> None:
        try:
            ticket.task.give_model(name)
        except Refusal as refusal:
            self._refuse(ticket, refusal)
        else:
            self._lanes.put_back(ticket)

    def has_capacity(self) -> None:
        """Send another task to a worker that can take one."""
        self._pump()

    def skipped(self, ticket: Ticket) -> None:
        """End a task that a worker has let go of, or put it back if it is still wanted."""
        if ticket.is_wanted:
            self._lanes.put_back(ticket)
        else:
            self._end(ticket)
        self._pump()

    def lost(self, tickets: Sequence[Ticket], executing: Ticket | None) -> None:
        """Put back the tasks of a worker that has ended.

        The one that it executed is done again, once, where nothing waits behind it. The others are innocent, but are
        not sent round for ever.
        """
        for ticket in tickets:
            ticket.deaths += _BLAME if ticket is executing else 1
            if not ticket.is_wanted:
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
        """Claim the bytes of an answer."""
        return self._claims.held_anyway(tenant, nbytes)

    def expired(self, ticket: Ticket) -> None:
        """Reply to a task whose time is up, whatever becomes of the work."""
        self._abandon(ticket, late(ticket.task.timeout))

    def held_up(self, worker: WorkerProcess, ticket: Ticket) -> None:
        """Let nothing wait any more behind a task that was thought to be short and runs long."""
        relieved = worker is not self._supervisor.quick or self._supervisor.relieve()
        if not relieved and worker.sent == 1 and not self._lanes.short.count:
            return  # nobody waits for it
        ticket.length = max(ticket.length, _LONG)
        ticket.kind = kind_of(ticket.task)
        ticket.estimate = Estimate(2 * (time.monotonic() - worker.page.since), 0, 0)
        self._leave_alone(worker, ticket)
        if not relieved and not ticket.is_stopped:
            self._watch.at(ticket.stop(TaskState.RETURNING) + GRACE)
        self._pump()

    def _overtaken(self, worker: WorkerProcess, ticket: Ticket) -> None:
        """Have another worker do what would wait for this task, which has not run long enough to call its kind long."""
        ticket.length = Length.ALONE
        self._leave_alone(worker, ticket)
        self._pump()

    def _leave_alone(self, worker: WorkerProcess, ticket: Ticket) -> None:
        """Let nothing wait behind this task."""
        worker.long = ticket
        for waiting in worker.take_back((ticket, worker.executing)):
            self._lanes.put_back(waiting)

    def _displace(self, account: Account) -> bool:
        """Have a task of whoever has most give way to one of this caller's: the last one that no worker does.

        Not for one who would have as many then.
        """
        most = self._accounts.greatest()
        if len(most.tasks) <= len(account.tasks) + 1:
            return False
        for task in reversed(most.tasks):
            ticket = self._tickets[task]
            if ticket.is_wanted and ticket.begun() is None:
                self._displaced += 1
                self._abandon(ticket, self._admission.crowded(self._held))
                return True
        return False

    def _turn_away(self, task: Task, done: Done, refusal: Refusal) -> None:
        if task.memory is not None:
            task.memory.give_back()
        done(refused(refusal, task.request_id))

    def _place_body(self, ticket: Ticket) -> None:
        """Move a body into memory that a worker can see."""
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
            memory.give_back()
            raise
        memory.shrink(nbytes)
        memory.view[:] = task.body.data if isinstance(task.body, np.ndarray) else task.body
        task.body = memory.view

    def _charge(self, ticket: Ticket, seconds: float, patience: float) -> None:
        """Charge a caller for what a worker has spent on a task, and remember it if that was to be short.

        Not what takes a little longer though its plan was known: then it is the machine that has much to do.
        """
        self._lanes.charge(ticket, seconds)
        if ticket.bound is not None and seconds > patience:
            ticket.account.overran(seconds, time.monotonic())

    def _queue(self, ticket: Ticket, kind: TaskKind, estimate: Estimate) -> None:
        """Put a task with the long ones, or refuse it if it cannot be in time behind them."""
        ticket.length = max(ticket.length, _LONG)
        ticket.kind = kind
        ticket.estimate = estimate
        ahead = self._lanes.ahead(ticket)
        needed = (ahead + estimate.seconds) * self._cost_model.margin(ticket.task.tenant)
        left = ticket.task.expires - time.monotonic()
        try:
            if ahead and needed > left and not self._lanes.is_idle(ticket):
                raise self._admission.infeasible(needed, left)
            self._promise(ticket, estimate.response_bytes)
        except Refusal as refusal:
            self._refuse(ticket, refusal)
            return
        if ticket.state is not TaskState.WAITING:
            ticket.become(TaskState.WAITING)
        self._lanes.put(ticket)

    def _promise(self, ticket: Ticket, nbytes: int) -> None:
        """Keep memory for an answer. Raises Refusal (queue_full)."""
        if ticket.promised is not None:
            ticket.promised.end()
        ticket.promised = self._claims.claim(ticket.task.tenant, nbytes)
        ticket.promised.holder = ticket

    def _learn(self, ticket: Ticket, seconds: float, *, planned: bool) -> None:
        """Learn how long a task took; then refuse those that will not be in time."""
        kind = kind_of(ticket.task) if ticket.kind is None else ticket.kind
        self._cost_model.measured(kind, ticket.estimate, seconds, planned=planned)
        for waiting in self._lanes.overdue(self._cost_model):
            self._lanes.drop(waiting)
            self._too_late(waiting)

    def _too_late(self, ticket: Ticket) -> None:
        left = ticket.task.expires - time.monotonic()
        self._refuse(ticket, self._admission.infeasible(self._lanes.expected(ticket), left))

    def _abandon(self, ticket: Ticket, refusal: Refusal | None = None) -> None:
        """Answer a task with this refusal, if any, and take it out of the queue or stop it."""
        reply = None if refusal is None else refused(refusal, ticket.task.request_id)
        if ticket.state is TaskState.WAITING:
            if not self._sums.drop(ticket):
                self._lanes.drop(ticket)
            self._end(ticket, reply)
            return
        begun = ticket.begun()
        now = ticket.stop(_STOPPING)
        if begun is not None:
            self._charge(ticket, now - begun, MISJUDGED)
        self._watch.at(now + GRACE)
        if reply is not None:
            ticket.done(reply)

    def _refuse(self, ticket: Ticket, refusal: Refusal) -> None:
        self._end(ticket, refused(refusal, ticket.task.request_id))

    def _end(self, ticket: Ticket, reply: Reply | None = None) -> None:
        """Give back all that is held for a task that no worker has any more, and reply to whoever waits."""
        wanted = ticket.state < _STOPPING
        ticket.become(_ANSWERED)
        self._let_go(ticket)
        if wanted and reply is not None:
            ticket.done(reply)
        elif reply is not None:
            reply.give_back()

    def _let_go(self, ticket: Ticket) -> None:
        del self._tickets[ticket.task]
        if ticket.is_piece:
            self._sums.tickets -= 1
        else:
            del ticket.account.tasks[ticket.task]
            self._admission.replied()
        if ticket.promised is not None:
            ticket.promised.end()
        if ticket.memory is not None:
            ticket.task.body = b""
        if ticket.leave_shared is not None:
            ticket.leave_shared()
        elif ticket.memory is not None:
            ticket.memory.give_back()
        if self._pinned:
            self._unpin(ticket)
        if self._draining and not self._tickets:
            self._done.set()

    def _unread(self, keys: Sequence[TensorKey]) -> None:
        """Tell workers of versions that nobody reads any more under these keys."""
        for key in keys:
            for worker in self._supervisor:
                worker.changed(key)

    def _forget(self, number: int) -> None:
        for worker in self._supervisor:
            worker.forget(number)

    def _tick(self) -> None:
        self._ticking = self._loop.call_later(_TICK, self._tick)
        self._watch.look()
        self._looks += 1
        if self._looks % _INSPECTION == 0:
            self._admission.look(time.monotonic())
            self._accounts.look(time.monotonic())
            self._watch.inspect()
            self._body_memory.buffers.trim()


def worker_died() -> Refusal:
    """Refuse a task whose worker has ended, and another one with it."""
    detail = "the worker process that computed this request ended; send it again"
    return Refusal("worker_died", detail, retry_after=1)
