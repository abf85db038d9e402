"""Sums over examples on several workers: divide a sum into pieces, run them on idle workers, and combine them.

The engine computes a sum over examples block by block, and adds up neighbours in pairs, as a binary tree. A piece is a
whole subtree: a power of two of consecutive blocks. So the result has the same bits whatever the number of pieces,
and wherever they are computed. For example, a sum over 32 blocks on two workers:

    Divisible(blocks=32, …)   a worker has read the request, and hands it back instead of running it
    divide                    8 pieces of 4 blocks: each is long enough to be worth it, and 4 of them per worker
    fill                      pieces go to idle workers; at least one of each sum is always in flight
    Piece(0, 4) …             a worker reads the request again, and replies with its sums: bytes, no answer
    Total(pieces=8, …)        a worker adds up the sums, which lie one after the other in a buffer, and answers

A piece keeps no state. So it runs again if its worker ends, and a second time if it is late: if no piece waits any
more, and it has taken twice the median of those that are done. The first reply counts, the other copy is stopped.
Without that, one slow worker would hold up the whole sum.

If there are peers, they get pieces as well. A worker writes the request of a piece (`PieceRequest`), and the front
sends it. At first, few of these pieces may be in flight; one more after each that was quick, one less after each
that was slow, and half as many if a peer turns one down. Then the piece runs here or is sent again later.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Final, Protocol

from engine.ir.run_report import RunReport
from service.core.errors import internal_error
from service.workers.admission import QUICK, Account, TaskKind, kind_of
from service.workers.memory import BodyAllocation, offload
from service.workers.pool import Done
from service.workers.task import (
    Divisible,
    Estimate,
    Piece,
    PieceRequest,
    Reply,
    SumPart,
    Task,
    Total,
    combine_reports,
    read_run,
    refused,
)
from service.workers.ticket import Length, Ticket

#: most pieces per worker: with several, a worker that is done early finds another one
_PIECES_PER_WORKER: Final = 4
#: least seconds that a piece takes, also as a multiple of the time to read its request
_LEAST_SECONDS: Final = 0.02
_READING_FACTOR: Final = 4
#: most bytes of the sums of all pieces
_MOST_BYTES: Final = 64 << 20
#: multiple of the median time of completed pieces after which a piece is late, once no other waits
_LATE_FACTOR: Final = 2.0
#: pieces that peers have at a time: at first, and at most
_FIRST_REMOTE, _MOST_REMOTE = 2, 16
#: seconds until peers are asked again after one had no memory, doubled each time; and the longest
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
#: where pieces are computed, as in the metrics
DONE_HERE, DONE_ELSEWHERE = "here", "elsewhere"
#: number of servers that is assumed if there are any peers, each with as many workers: it decides the size of pieces
_SERVERS: Final = 4

_logger = logging.getLogger("gradserve.pool")


def piece_size(divisible: Divisible, workers: int) -> int:
    """Return the number of blocks of a piece: a power of two. It is `blocks` or more if dividing does not pay."""
    size, seconds = 1, divisible.seconds / divisible.blocks
    least = max(_LEAST_SECONDS, _READING_FACTOR * divisible.reading)

    def is_small(size: int) -> bool:
        pieces = -(-divisible.blocks // size)
        return (
            pieces > _PIECES_PER_WORKER * workers or size * seconds < least or pieces * divisible.nbytes > _MOST_BYTES
        )

    while size < divisible.blocks and is_small(size):
        size *= 2
    return size


class PieceTicket(Ticket):
    """Ticket of one attempt at a piece."""

    __slots__ = ("run", "work")

    is_piece = True

    def __init__(self, task: Task, account: Account, done: Done, abandon: Callable[..., None], run: SumRun) -> None:
        super().__init__(task, account, done, time.monotonic(), abandon)
        self.run = run
        self.length = Length.LONG
        self.release_shared = run.leave

    def died(self) -> None:
        """Count the piece as repeated."""
        self.run.repeated += 1


@dataclass(eq=False, slots=True)
class PieceWork:
    """State of a piece: number of attempts, start of the latest, and who computes it now."""

    index: int
    part: Piece
    starts: int = 0
    began: float = 0.0
    is_done: bool = False
    #: whether a peer has it, and whether no peer can compute it
    is_remote: bool = False
    is_local_only: bool = False
    tickets: set[PieceTicket] = field(default_factory=set)
    #: request to a peer that is in progress
    remote_request: asyncio.Task[Any] | None = None


class SumRun:
    """One sum while its pieces are computed. Its body and its sums are held until its last ticket has ended."""

    def __init__(self, ticket: Ticket, divisible: Divisible, size: int, sums: BodyAllocation) -> None:
        """Divide the task of `ticket` into pieces of `size` blocks, whose sums go to the memory `sums`."""
        starts = range(0, divisible.blocks, size)
        self.ticket = ticket
        self.divisible = divisible
        self.sums = sums
        self.pieces = [
            PieceWork(i, Piece(first, min(first + size, divisible.blocks))) for i, first in enumerate(starts)
        ]
        self.kind = TaskKind(ticket.task.tenant, ("piece", kind_of(ticket.task).about))
        self.estimate = Estimate(divisible.seconds * size / divisible.blocks, 0, 0)
        # The pieces of one kind of task have a kind of their own: they take less time than the whole.
        self.repeated = 0
        #: of completed pieces: seconds from start to reply, and in `executed` the total of their execution times
        self.seconds: list[float] = []
        self.executed = 0.0
        self.reports: list[RunReport] = []
        self.late_timer: asyncio.TimerHandle | None = None
        self.waiting = deque(self.pieces)
        #: pieces that were begun and are not done
        self.in_flight: set[PieceWork] = set()
        #: number of pieces that peers have, its limit, and the time at which a peer may be asked again
        self.remote_count = 0
        self.remote_limit = _FIRST_REMOTE
        self.retry_at = 0.0
        self._pause = _FIRST_PAUSE
        self._readers = 1  # the ticket of the whole sum
        self._body = ticket.memory

    @property
    def all_done(self) -> bool:
        """Whether the sums of all pieces have arrived."""
        return len(self.reports) == len(self.pieces)

    @property
    def may_send_remote(self) -> bool:
        """Whether a peer may be asked for one more piece now."""
        return self.remote_count < self.remote_limit and time.monotonic() >= self.retry_at

    def begin(self, piece: PieceWork) -> None:
        """Begin a piece, for the first time or again."""
        if piece.starts:
            self.repeated += 1
        piece.starts += 1
        piece.began = time.monotonic()
        if piece in self.waiting:
            self.waiting.remove(piece)
        self.in_flight.add(piece)

    def put_back(self, piece: PieceWork) -> None:
        """Put a piece that was not computed before all that wait."""
        self.in_flight.discard(piece)
        self.waiting.appendleft(piece)

    def end(self, piece: PieceWork) -> None:
        """Remove a piece that is done or not needed."""
        piece.is_done = True
        self.in_flight.discard(piece)
        self._count_back(piece)

    def done(self, report: RunReport, seconds: float, executed: float) -> None:
        """Record how a piece was run, and the seconds since it was begun."""
        self.reports.append(report)
        self.seconds.append(seconds)
        self.executed += executed

    def mark_remote(self, piece: PieceWork) -> None:
        """Note that a peer has a piece."""
        piece.is_remote = True
        self.remote_count += 1

    def _count_back(self, piece: PieceWork) -> None:
        if piece.is_remote:
            piece.is_remote = False
            self.remote_count -= 1

    def returned(self, piece: PieceWork, seconds: float) -> None:
        """Raise the limit of pieces at peers if one took at most twice the median, else lower it."""
        self._count_back(piece)
        usual = median(self.seconds) if self.seconds else seconds
        self.remote_limit = (
            min(_MOST_REMOTE, self.remote_limit + 1)
            if seconds <= _LATE_FACTOR * usual
            else max(1, self.remote_limit - 1)
        )
        self._pause = _FIRST_PAUSE

    def declined(self, piece: PieceWork) -> float:
        """Halve the limit of pieces at peers; return the seconds until one is asked again."""
        self._count_back(piece)
        self.remote_limit = max(1, self.remote_limit // 2)
        pause, self._pause = self._pause, min(_LONGEST_PAUSE, 2 * self._pause)
        self.retry_at = time.monotonic() + pause
        return pause

    def late_at(self) -> tuple[float, PieceWork] | None:
        """Return when a piece will be late, and the piece that will be first; None while that is unknown."""
        # Two attempts at a time are enough: a piece is not repeated because its repetition is late.
        begun_once = [piece for piece in self.in_flight if piece.starts == 1]
        if self.waiting or not begun_once or not self.seconds:
            return None
        first = min(begun_once, key=lambda piece: piece.began)
        return first.began + _LATE_FACTOR * median(self.seconds), first

    def place(self, piece: PieceWork) -> memoryview:
        """Return the memory for the sums of a piece."""
        nbytes = self.divisible.nbytes
        return self.sums.view[piece.index * nbytes : (piece.index + 1) * nbytes]

    def total(self) -> Total:
        """Describe the sums of all pieces, for the worker that adds them up."""
        assert self.sums.buffer is not None, "it is held"
        report, nbytes = combine_reports(self.reports), len(self.pieces) * self.divisible.nbytes
        return Total(len(self.pieces), self.repeated, self.executed, *report, self.sums.buffer.number, nbytes)

    def enter(self) -> None:
        """Count a ticket that reads the body."""
        self._readers += 1

    def leave(self) -> None:
        """Count a ticket less. After the last, release body and sums."""
        self._readers -= 1
        if not self._readers:
            self.sums.release()
            if self._body is not None:
                self._body.release()


class PieceDeclined(Exception):
    """Failure of all peers to compute a piece; `may_retry` tells whether to try again, as after a lack of memory."""

    def __init__(self, why: str, *, may_retry: bool) -> None:
        super().__init__(why)
        self.may_retry = may_retry


class PeerServers(Protocol):
    """Peers: other servers that compute pieces."""

    async def sums(self, task: Task, request: Reply, nbytes: int) -> Reply:
        """Ask a peer for the sums of a piece of a task, `nbytes` in size.

        Raises PieceDeclined.
        """

    async def close(self) -> None:
        """Cancel what is in progress, and ask no more."""


class SumsHost(Protocol):
    """Pool that runs the pieces as tasks."""

    @property
    def can_help(self) -> bool:
        """Whether a worker is idle, and no task waits for one."""

    @property
    def helpers(self) -> int:
        """Number of workers among which a sum may be divided."""

    def add_piece(self, ticket: PieceTicket) -> None:
        """Put a piece into a lane."""

    def drop_piece(self, ticket: PieceTicket) -> None:
        """Stop a piece that is not needed any more."""

    def pin(self, ticket: Ticket, reads: Sequence[tuple[str, str]]) -> bool:
        """Pin the current versions of tensors for a task and its pieces; return False if their etags are not these."""

    def allocate_sums(self, ticket: Ticket, nbytes: int, response_bytes: int) -> BodyAllocation:
        """Allocate memory for the sums, after reserving memory for the answer. Raises Refusal (queue_full)."""

    def go_on(self, ticket: Ticket) -> None:
        """Put a task that was held at the head of its lane."""

    def settle(self, ticket: Ticket, reply: Reply) -> None:
        """Answer a task that was held."""


class Sums:
    """The sums that are being computed in pieces."""

    def __init__(self, host: SumsHost, abandon: Callable[..., None], peers: PeerServers | None = None) -> None:
        """Set up without any sums; `abandon` refuses a ticket whose memory is revoked."""
        self._host = host
        self._abandon = abandon
        self._peers = peers
        self._loop = asyncio.get_running_loop()
        self._filling = False
        #: by the ticket of the whole sum
        self.runs: dict[Ticket, SumRun] = {}
        self._remote_requests: set[asyncio.Task[None]] = set()
        self._done: Counter[str] = Counter()
        #: number of tickets of pieces in the pool
        self.tickets = 0
        #: pieces that were begun again, since the start
        self.repeated = 0

    @property
    def done(self) -> Mapping[str, int]:
        """Number of completed pieces since the start, by where they were computed."""
        return {where: self._done[where] for where in (DONE_HERE, DONE_ELSEWHERE)}

    @property
    def may_divide(self) -> bool:
        """Whether there is more than one worker, or a peer, to divide a sum among."""
        return self._peers is not None or self._host.helpers > 1

    def divide(self, ticket: Ticket, divisible: Divisible) -> bool:
        """Divide a task that no worker has; return False if that does not pay. Raises Refusal (queue_full)."""
        helpers = self._host.helpers * (1 if self._peers is None else _SERVERS)
        size = piece_size(divisible, helpers)
        if size >= divisible.blocks or not self._host.pin(ticket, divisible.reads):
            return False
        count = -(-divisible.blocks // size)
        sums = self._host.allocate_sums(ticket, count * divisible.nbytes, divisible.response_bytes)
        ticket.tensor_names = [name for name, _ in divisible.reads]
        self.runs[ticket] = run = SumRun(ticket, divisible, size, sums)
        ticket.release_shared = run.leave
        return True

    def fill(self) -> None:
        """Give pieces to idle workers, and to peers.

        One piece of each sum is always in flight, even if other tasks wait: in a busy pool it would never be done.
        """
        if self._filling:
            return
        # A piece that is added is sent at once, which may call `fill` again.
        self._filling = True
        try:
            for run in tuple(self.runs.values()):
                if not run.in_flight and run.waiting:
                    self._begin(run, run.waiting[0])
            while self._host.can_help and (candidate := self._next()) is not None:
                self._begin(*candidate)
            if self._peers is not None:
                for run in tuple(self.runs.values()):
                    while run.may_send_remote and (piece := _next_remote(run)) is not None:
                        self._begin_remote(run, piece)
        finally:
            self._filling = False

    def drop(self, ticket: Ticket) -> bool:
        """Stop a sum without waiters; return False if it was not divided."""
        run = self.runs.pop(ticket, None)
        if run is None:
            return False
        self._stop(run)
        return True

    def _next(self) -> tuple[SumRun, PieceWork] | None:
        """Choose the next piece: from the sum with the fewest in flight, or else a late one."""
        waiting = [run for run in self.runs.values() if run.waiting]
        if waiting:
            run = min(waiting, key=lambda run: len(run.in_flight))
            return run, run.waiting[0]
        late = ((run, piece) for run in self.runs.values() if (piece := _late(run)) is not None)
        return next(late, None)

    def _begin(self, run: SumRun, piece: PieceWork) -> None:
        """Have one of our workers compute a piece."""
        run.begin(piece)
        self._host.add_piece(self._ticket(run, piece, piece.part, self._take_sums))

    def _begin_remote(self, run: SumRun, piece: PieceWork) -> None:
        """Have a peer compute a piece: one of our workers writes the request."""
        run.begin(piece)
        run.mark_remote(piece)
        ticket = self._ticket(run, piece, PieceRequest(*piece.part), self._send_request)
        # Writing the request takes as long as reading it, so it may be a short task.
        if run.divisible.reading < QUICK:
            ticket.length = Length.SHORT
        self._host.add_piece(ticket)

    def _ticket(
        self, run: SumRun, piece: PieceWork, part: SumPart, go_on: Callable[[SumRun, PieceWork, Reply], None]
    ) -> PieceTicket:
        """Make the ticket of a part; `go_on` gets its reply, if it is still needed and no refusal."""

        def handle_reply(reply: Reply) -> None:
            piece.tickets.discard(ticket)
            if self._is_over(run, piece):
                reply.release()
            elif reply.status != 200:  # an error of a piece is the answer to the whole task
                self._fail(run, reply)
            else:
                go_on(run, piece, reply)

        whole = run.ticket
        task = replace(whole.task, part=part, may_ask=False, may_divide=False, memory=None)
        ticket = PieceTicket(task, whole.account, handle_reply, self._abandon, run)
        ticket.memory, ticket.tensor_names, ticket.needs_graph = whole.memory, whole.tensor_names, whole.needs_graph
        ticket.kind, ticket.estimate = run.kind, run.estimate
        piece.tickets.add(ticket)
        run.enter()
        return ticket

    def _send_request(self, run: SumRun, piece: PieceWork, request: Reply) -> None:
        """Send the request of a piece, as a worker has written it, to a peer."""
        run.enter()
        piece.remote_request = request_task = self._loop.create_task(self._ask(run, piece, request))
        self._remote_requests.add(request_task)

        def request_ended(_: object) -> None:
            self._remote_requests.discard(request_task)
            request.release()
            run.leave()

        request_task.add_done_callback(request_ended)

    async def _ask(self, run: SumRun, piece: PieceWork, request: Reply) -> None:
        assert self._peers is not None, "pieces were sent there"
        began = time.monotonic()
        try:
            reply = await self._peers.sums(run.ticket.task, request, run.divisible.nbytes)
            read_run(reply.headers)
        except (PieceDeclined, ValueError) as error:
            if not self._is_over(run, piece):
                self._declined(run, piece, error)
        else:
            if not self._is_over(run, piece):
                run.returned(piece, time.monotonic() - began)
                self._take_sums(run, piece, reply, DONE_ELSEWHERE)

    def _declined(self, run: SumRun, piece: PieceWork, why: PieceDeclined | ValueError) -> None:
        """Begin a piece again that no peer has computed: here, unless a peer may do it later."""
        _logger.info("request %s: another server did not compute a piece: %s", run.ticket.task.request_id, why)
        pause = run.declined(piece)
        piece.is_local_only = piece.is_local_only or not (isinstance(why, PieceDeclined) and why.may_retry)
        # An attempt of a worker of ours may still be running; only otherwise does the piece wait again.
        if not piece.tickets:
            run.put_back(piece)
        self._loop.call_later(pause, self.fill)
        self.fill()

    def _is_over(self, run: SumRun, piece: PieceWork) -> bool:
        return self.runs.get(run.ticket) is not run or piece.is_done

    def _take_sums(self, run: SumRun, piece: PieceWork, reply: Reply, where: str = DONE_HERE) -> None:
        """Copy the sums of a piece to their place among all sums."""
        data, (report, executed) = reply.parts, read_run(reply.headers)
        if sum(map(len, data)) != run.divisible.nbytes:
            _logger.error("request %s: the sums of a piece have the wrong length", run.ticket.task.request_id)
            reply.release()
            self._fail(run, refused(internal_error(), run.ticket.task.request_id))
            return
        self._end_piece(run, piece)
        seconds = time.monotonic() - piece.began
        place = run.place(piece)
        run.enter()

        def copy() -> None:
            start = 0
            for part in data:
                place[start : start + len(part)] = part
                start += len(part)

        def copied(_: object = None) -> None:
            reply.release()
            run.done(report, seconds, executed)
            self._done[where] += 1
            self._advance(run)
            run.leave()

        copying = offload(self._loop, run.divisible.nbytes, copy)
        if copying is None:
            copied()
        else:
            copying.add_done_callback(copied)

    def _advance(self, run: SumRun) -> None:
        """Continue with the total after the last piece; until then, set a timer for when a piece will be late."""
        if self.runs.get(run.ticket) is not run:
            return
        if run.all_done:
            del self.runs[run.ticket]
            self._stop(run)
            run.ticket.task.part = run.total()
            run.ticket.sums = run.sums
            self._host.go_on(run.ticket)
            return
        if (late := run.late_at()) is not None and run.late_timer is None:
            run.late_timer = self._loop.call_at(
                self._loop.time() + max(0.0, late[0] - time.monotonic()), self._late, run
            )
        if self._peers is not None:
            self.fill()  # a peer computed the piece, so no worker that becomes idle triggers this

    def _late(self, run: SumRun) -> None:
        run.late_timer = None
        self.fill()
        if (late := run.late_at()) is not None and late[0] > time.monotonic():
            self._advance(run)

    def _fail(self, run: SumRun, reply: Reply) -> None:
        """Answer the whole task with the reply to a piece that failed."""
        del self.runs[run.ticket]
        self._stop(run)
        self._host.settle(run.ticket, reply)

    def _stop(self, run: SumRun) -> None:
        """Stop all pieces of a sum."""
        self.repeated += run.repeated
        if run.late_timer is not None:
            run.late_timer.cancel()
        for piece in run.pieces:
            self._end_piece(run, piece)

    def _end_piece(self, run: SumRun, piece: PieceWork) -> None:
        run.end(piece)
        for ticket in tuple(piece.tickets):
            piece.tickets.discard(ticket)
            self._host.drop_piece(ticket)
        # The request that has just brought the sums runs this, and must not cancel itself.
        if piece.remote_request is not None and piece.remote_request is not asyncio.current_task():
            piece.remote_request.cancel()


def _late(run: SumRun) -> PieceWork | None:
    late = run.late_at()
    return late[1] if late is not None and late[0] <= time.monotonic() else None


def _next_remote(run: SumRun) -> PieceWork | None:
    """Return the next piece that a peer may compute; a late one, if none waits."""
    if run.waiting:
        return next((piece for piece in run.waiting if not piece.is_local_only), None)
    late = _late(run)
    return None if late is None or late.is_local_only or late.is_remote else late
