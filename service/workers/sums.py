"""Sums over examples on several workers: cut into pieces, run wherever a worker idles, and put together.

A piece is a subtree of the sum, so its result depends neither on the number of pieces nor on which worker runs which.
It keeps nothing, and so is run again if its worker ends, and twice if it is late. For example:

    Divisible(blocks=32, …)   a worker has read a request, and hands it back as one that may be cut
    divide                    8 pieces of 4 blocks: long enough to be worth it, enough for all workers
    fill                      pieces go to workers that idle, and to other servers if there are any
    Total(pieces=8, …)        a worker adds up the sums, which lie in one buffer, and writes the answer

Other servers have few pieces at first, more if they are fast, and half as many if one turns a piece away. A piece is
late once it takes twice the median of those that are done, and no other waits; the first of its replies counts.
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
from service.core.errors import fault
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
    least,
    read_run,
    refused,
)
from service.workers.ticket import Length, Ticket

#: pieces for each worker, at most: so that none has nothing to do for long while another one has its last
_PIECES_EACH: Final = 4
#: seconds that a piece takes at the least, and how much more than to read its request
_LEAST_SECONDS: Final = 0.02
_TIMES_THE_READING: Final = 4
#: bytes of the sums of all pieces, at most
_MOST_BYTES: Final = 64 << 20
#: how often the median of those that are done a piece may take, once none waits to be begun, or else it is late
_LATE: Final = 2.0
#: pieces that other servers have at a time: at first, and at most
_FIRST_AWAY, _MOST_AWAY = 2, 16
#: seconds until others are asked again of whom one had no memory, doubled each time, and at most
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
#: where pieces are done
DONE_HERE, DONE_ELSEWHERE = "here", "elsewhere"
#: servers that others are taken to be as many as, of as many workers: pieces are small enough for these
_SERVERS: Final = 4

_logger = logging.getLogger("gradserve.pool")


def blocks_of_a_piece(why: Divisible, workers: int) -> int:
    """Choose the number of blocks of a piece: a power of two; all of them or more, where a sum is better not cut."""
    size, seconds = 1, why.seconds / why.blocks
    least = max(_LEAST_SECONDS, _TIMES_THE_READING * why.reading)

    def is_small(size: int) -> bool:
        pieces = -(-why.blocks // size)
        return pieces > _PIECES_EACH * workers or size * seconds < least or pieces * why.nbytes > _MOST_BYTES

    while size < why.blocks and is_small(size):
        size *= 2
    return size


class PieceTicket(Ticket):
    """Ticket of a piece, while a worker has it or is to have it."""

    __slots__ = ("run", "work")

    is_piece = True

    def __init__(self, task: Task, account: Account, done: Done, abandon: Callable[..., None], run: SumRun) -> None:
        super().__init__(task, account, done, time.monotonic(), abandon)
        self.run = run
        self.length = Length.LONG
        self.leave_shared = run.leave

    def died(self) -> None:
        """Count that the piece is done again."""
        self.run.repeated += 1


@dataclass(eq=False, slots=True)
class PieceWork:
    """A piece: how often it was begun, when, for the last time, and by whom it is run at the moment."""

    index: int
    part: Piece
    starts: int = 0
    began: float = 0.0
    is_done: bool = False
    #: whether another server has it, and whether none can do it
    is_away: bool = False
    is_for_here: bool = False
    tickets: set[PieceTicket] = field(default_factory=set)
    #: another server that is asked for it
    asking: asyncio.Task[Any] | None = None


class SumRun:
    """One sum while its pieces are run. Its body and its sums are held until the last ticket has let go of them."""

    def __init__(self, ticket: Ticket, why: Divisible, size: int, sums: BodyAllocation) -> None:
        """`size` is the number of blocks of a piece."""
        starts = range(0, why.blocks, size)
        self.ticket = ticket
        self.why = why
        self.sums = sums
        self.pieces = [PieceWork(i, Piece(at, min(at + size, why.blocks))) for i, at in enumerate(starts)]
        self.kind = TaskKind(ticket.task.tenant, ("piece", kind_of(ticket.task).about))
        self.estimate = Estimate(why.seconds * size / why.blocks, 0, 0)
        self.repeated = 0
        #: of those that are done, from the beginning to the reply; and what all of them took to be executed
        self.seconds: list[float] = []
        self.executed = 0.0
        self.reports: list[RunReport] = []
        self.looking: asyncio.TimerHandle | None = None
        self.waiting = deque(self.pieces)
        #: pieces that were begun and are not done
        self.in_flight: set[PieceWork] = set()
        #: how many of them other servers have, and may have; and when these are asked again
        self.away = 0
        self.most_away = _FIRST_AWAY
        self.asked_from = 0.0
        self._pause = _FIRST_PAUSE
        self._readers = 1  # the whole
        self._body = ticket.memory

    @property
    def all_done(self) -> bool:
        """Whether the sums of all pieces are there."""
        return len(self.reports) == len(self.pieces)

    @property
    def may_ask(self) -> bool:
        """Whether another server may be asked for one more piece now."""
        return self.away < self.most_away and time.monotonic() >= self.asked_from

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
        """Put a piece that was not done before all that wait."""
        self.in_flight.discard(piece)
        self.waiting.appendleft(piece)

    def end(self, piece: PieceWork) -> None:
        """Take out a piece that is done, or not wanted any more."""
        piece.is_done = True
        self.in_flight.discard(piece)
        self._return(piece)

    def done(self, report: RunReport, seconds: float, executed: float) -> None:
        """Note how a piece was run, so many seconds after it was begun."""
        self.reports.append(report)
        self.seconds.append(seconds)
        self.executed += executed

    def send(self, piece: PieceWork) -> None:
        """Note that another server has a piece from now on."""
        piece.is_away = True
        self.away += 1

    def _return(self, piece: PieceWork) -> None:
        if piece.is_away:
            piece.is_away = False
            self.away -= 1

    def came_back(self, piece: PieceWork, seconds: float) -> None:
        """Let other servers have more pieces where one took no longer than twice the median, or else fewer."""
        self._return(piece)
        usual = median(self.seconds) if self.seconds else seconds
        self.most_away = min(_MOST_AWAY, self.most_away + 1) if seconds <= _LATE * usual else max(1, self.most_away - 1)
        self._pause = _FIRST_PAUSE

    def turned_away(self, piece: PieceWork) -> float:
        """Let other servers have half as many pieces; returns the seconds until one is asked again."""
        self._return(piece)
        self.most_away = max(1, self.most_away // 2)
        pause, self._pause = self._pause, min(_LONGEST_PAUSE, 2 * self._pause)
        self.asked_from = time.monotonic() + pause
        return pause

    def late_at(self) -> tuple[float, PieceWork] | None:
        """Find the piece that is late first, and when; None as long as nobody can say so."""
        begun_once = [piece for piece in self.in_flight if piece.starts == 1]
        if self.waiting or not begun_once or not self.seconds:
            return None
        first = min(begun_once, key=lambda piece: piece.began)
        return first.began + _LATE * median(self.seconds), first

    def place(self, piece: PieceWork) -> memoryview:
        """Memory for the sums of a piece."""
        nbytes = self.why.nbytes
        return self.sums.view[piece.index * nbytes : (piece.index + 1) * nbytes]

    def total(self) -> Total:
        """Describe the sums of all pieces, for the worker that adds them up."""
        assert self.sums.buffer is not None, "it is held"
        report, nbytes = least(self.reports), len(self.pieces) * self.why.nbytes
        return Total(len(self.pieces), self.repeated, self.executed, *report, self.sums.buffer.number, nbytes)

    def enter(self) -> None:
        """Count a ticket that looks at the body."""
        self._readers += 1

    def leave(self) -> None:
        """Count a ticket that does no more. With the last, everything is given back."""
        self._readers -= 1
        if not self._readers:
            self.sums.give_back()
            if self._body is not None:
                self._body.give_back()


class NotElsewhere(Exception):
    """No other server has done a piece; one may `later`, as after it had no memory."""

    def __init__(self, why: str, *, later: bool) -> None:
        super().__init__(why)
        self.later = later


class Elsewhere(Protocol):
    """Other servers, which do pieces."""

    async def sums(self, task: Task, request: Reply, nbytes: int) -> Reply:
        """Ask another server for the sums of a piece of a task, which take so many bytes.

        Raises NotElsewhere.
        """

    async def close(self) -> None:
        """Ask nothing more."""


class SumsHost(Protocol):
    """The pool that the pieces are tasks of."""

    @property
    def can_help(self) -> bool:
        """Whether a worker idles, and nobody waits for one."""

    @property
    def helpers(self) -> int:
        """Workers that a sum may be divided among."""

    def add_piece(self, ticket: PieceTicket) -> None:
        """A piece for the next worker whose turn it is."""

    def drop_piece(self, ticket: PieceTicket) -> None:
        """A piece that nobody wants any more."""

    def pin(self, ticket: Ticket, reads: Sequence[tuple[str, str]]) -> bool:
        """Have all that is done for a task read the same tensors as now; whether they are still of these etags."""

    def allocate_sums(self, ticket: Ticket, nbytes: int, response_bytes: int) -> BodyAllocation:
        """Memory for the sums, once there is memory for the answer. Raises Refusal (queue_full)."""

    def go_on(self, ticket: Ticket) -> None:
        """A task that was held is to be done, before those that wait."""

    def settle(self, ticket: Ticket, reply: Reply) -> None:
        """The reply to a task that was held."""


class Sums:
    """The sums that are run in pieces at the moment."""

    def __init__(self, host: SumsHost, abandon: Callable[..., None], elsewhere: Elsewhere | None = None) -> None:
        """`abandon` is what a ticket is told with that what is held for it is taken back."""
        self._host = host
        self._abandon = abandon
        self._elsewhere = elsewhere
        self._loop = asyncio.get_running_loop()
        self._filling = False
        #: by their tickets
        self.runs: dict[Ticket, SumRun] = {}
        self._asking: set[asyncio.Task[None]] = set()
        self._done: Counter[str] = Counter()
        #: tickets of pieces that are held
        self.tickets = 0
        #: pieces that had to be begun again, since the start
        self.repeated = 0

    @property
    def done(self) -> Mapping[str, int]:
        """Pieces that were done since the start, here and elsewhere."""
        return {where: self._done[where] for where in (DONE_HERE, DONE_ELSEWHERE)}

    @property
    def may_divide(self) -> bool:
        """Whether there is anybody to share a sum with."""
        return self._elsewhere is not None or self._host.helpers > 1

    def divide(self, ticket: Ticket, why: Divisible) -> bool:
        """Have a task that no worker has done in pieces; returns whether it is. Raises Refusal (queue_full)."""
        helpers = self._host.helpers * (1 if self._elsewhere is None else _SERVERS)
        size = blocks_of_a_piece(why, helpers)
        if size >= why.blocks or not self._host.pin(ticket, why.reads):
            return False
        count = -(-why.blocks // size)
        sums = self._host.allocate_sums(ticket, count * why.nbytes, why.response_bytes)
        ticket.wanted = [name for name, _ in why.reads]
        self.runs[ticket] = run = SumRun(ticket, why, size, sums)
        ticket.leave_shared = run.leave
        return True

    def fill(self) -> None:
        """Give pieces to workers that idle, and to other servers.

        One piece of each sum is always on its way, also while others wait.
        """
        if self._filling:
            return
        self._filling = True
        try:
            for run in tuple(self.runs.values()):
                if not run.in_flight and run.waiting:
                    self._begin(run, run.waiting[0])
            while self._host.can_help and (found := self._next()) is not None:
                self._begin(*found)
            if self._elsewhere is not None:
                for run in tuple(self.runs.values()):
                    while run.may_ask and (piece := _for_others(run)) is not None:
                        self._send_away(run, piece)
        finally:
            self._filling = False

    def drop(self, ticket: Ticket) -> bool:
        """End a sum that nobody waits for any more; returns whether it was being run in pieces."""
        run = self.runs.pop(ticket, None)
        if run is None:
            return False
        self._stop(run)
        return True

    def _next(self) -> tuple[SumRun, PieceWork] | None:
        """Choose the next piece: of the sum that has the fewest on their way, or else one that is late."""
        waiting = [run for run in self.runs.values() if run.waiting]
        if waiting:
            run = min(waiting, key=lambda run: len(run.in_flight))
            return run, run.waiting[0]
        late = ((run, piece) for run in self.runs.values() if (piece := _late(run)) is not None)
        return next(late, None)

    def _begin(self, run: SumRun, piece: PieceWork) -> None:
        """Have a worker of ours do a piece."""
        run.begin(piece)
        self._host.add_piece(self._ticket(run, piece, piece.part, self._take_sums))

    def _send_away(self, run: SumRun, piece: PieceWork) -> None:
        """Have another server do a piece: a worker of ours writes the request."""
        run.begin(piece)
        run.send(piece)
        ticket = self._ticket(run, piece, PieceRequest(*piece.part), self._send_request)
        if run.why.reading < QUICK:
            ticket.length = Length.SHORT
        self._host.add_piece(ticket)

    def _ticket(
        self, run: SumRun, piece: PieceWork, part: SumPart, go_on: Callable[[SumRun, PieceWork, Reply], None]
    ) -> PieceTicket:
        """Make the ticket of a part; `go_on` gets its reply, if that is wanted then and is no refusal."""

        def came(reply: Reply) -> None:
            piece.tickets.discard(ticket)
            if self._is_over(run, piece):
                reply.give_back()
            elif reply.status != 200:  # as any task would be answered
                self._fail(run, reply)
            else:
                go_on(run, piece, reply)

        whole = run.ticket
        task = replace(whole.task, part=part, may_ask=False, may_divide=False, memory=None)
        ticket = PieceTicket(task, whole.account, came, self._abandon, run)
        ticket.memory, ticket.wanted, ticket.graph_wanted = whole.memory, whole.wanted, whole.graph_wanted
        ticket.kind, ticket.estimate = run.kind, run.estimate
        piece.tickets.add(ticket)
        run.enter()
        return ticket

    def _send_request(self, run: SumRun, piece: PieceWork, request: Reply) -> None:
        """Send the request of a piece, which a worker has written, to another server."""
        run.enter()
        piece.asking = asking = self._loop.create_task(self._ask(run, piece, request))
        self._asking.add(asking)

        def asked(_: object) -> None:
            self._asking.discard(asking)
            request.give_back()
            run.leave()

        asking.add_done_callback(asked)

    async def _ask(self, run: SumRun, piece: PieceWork, request: Reply) -> None:
        assert self._elsewhere is not None, "pieces were sent there"
        began = time.monotonic()
        try:
            reply = await self._elsewhere.sums(run.ticket.task, request, run.why.nbytes)
            read_run(reply.headers)
        except (NotElsewhere, ValueError) as error:
            if not self._is_over(run, piece):
                self._turned_away(run, piece, error)
        else:
            if not self._is_over(run, piece):
                run.came_back(piece, time.monotonic() - began)
                self._take_sums(run, piece, reply, DONE_ELSEWHERE)

    def _turned_away(self, run: SumRun, piece: PieceWork, why: NotElsewhere | ValueError) -> None:
        """Begin a piece again that another server has not done: here, where no other one can do it."""
        _logger.info("request %s: a piece was not done elsewhere: %s", run.ticket.task.request_id, why)
        pause = run.turned_away(piece)
        piece.is_for_here = piece.is_for_here or not (isinstance(why, NotElsewhere) and why.later)
        if not piece.tickets:
            run.put_back(piece)
        self._loop.call_later(pause, self.fill)
        self.fill()

    def _is_over(self, run: SumRun, piece: PieceWork) -> bool:
        return self.runs.get(run.ticket) is not run or piece.is_done

    def _take_sums(self, run: SumRun, piece: PieceWork, reply: Reply, where: str = DONE_HERE) -> None:
        """Copy the sums of a piece to their place among all sums."""
        data, (report, executed) = reply.parts, read_run(reply.headers)
        if sum(map(len, data)) != run.why.nbytes:
            _logger.error("request %s: the sums of a piece are of another length", run.ticket.task.request_id)
            reply.give_back()
            self._fail(run, refused(fault(), run.ticket.task.request_id))
            return
        self._end_piece(run, piece)
        seconds = time.monotonic() - piece.began
        into = run.place(piece)
        run.enter()

        def copy() -> None:
            at = 0
            for part in data:
                into[at : at + len(part)] = part
                at += len(part)

        def copied(_: object = None) -> None:
            reply.give_back()
            run.done(report, seconds, executed)
            self._done[where] += 1
            self._look_again(run)
            run.leave()

        copying = offload(self._loop, run.why.nbytes, copy)
        if copying is None:
            copied()
        else:
            copying.add_done_callback(copied)

    def _look_again(self, run: SumRun) -> None:
        """Go on with the whole once its last piece is done; or see when another one will be late."""
        if self.runs.get(run.ticket) is not run:
            return
        if run.all_done:
            del self.runs[run.ticket]
            self._stop(run)
            run.ticket.task.part = run.total()
            run.ticket.beside = run.sums
            self._host.go_on(run.ticket)
            return
        if (late := run.late_at()) is not None and run.looking is None:
            run.looking = self._loop.call_at(self._loop.time() + max(0.0, late[0] - time.monotonic()), self._late, run)
        if self._elsewhere is not None:
            self.fill()  # no worker of ours may have been at it

    def _late(self, run: SumRun) -> None:
        run.looking = None
        self.fill()
        if (late := run.late_at()) is not None and late[0] > time.monotonic():
            self._look_again(run)

    def _fail(self, run: SumRun, reply: Reply) -> None:
        """Answer the whole with the reply to a piece that cannot be done."""
        del self.runs[run.ticket]
        self._stop(run)
        self._host.settle(run.ticket, reply)

    def _stop(self, run: SumRun) -> None:
        """Stop all pieces of a sum."""
        self.repeated += run.repeated
        if run.looking is not None:
            run.looking.cancel()
        for piece in run.pieces:
            self._end_piece(run, piece)

    def _end_piece(self, run: SumRun, piece: PieceWork) -> None:
        run.end(piece)
        for ticket in tuple(piece.tickets):
            piece.tickets.discard(ticket)
            self._host.drop_piece(ticket)
        if piece.asking is not None and piece.asking is not asyncio.current_task():
            piece.asking.cancel()


def _late(run: SumRun) -> PieceWork | None:
    late = run.late_at()
    return late[1] if late is not None and late[0] <= time.monotonic() else None


def _for_others(run: SumRun) -> PieceWork | None:
    """Return the next piece that another server may do; a late one, where none waits."""
    if run.waiting:
        return next((piece for piece in run.waiting if not piece.is_for_here), None)
    late = _late(run)
    return None if late is None or late.is_for_here or late.is_away else late
