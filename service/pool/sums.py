"""Sums over examples that several workers do: cut into pieces, each run where a worker idles, and put together.

A piece is a subtree of the sum, so what comes of it depends neither on how many there are, nor on who has run which. It
keeps nothing, and so is run again where its worker has ended, and twice where it is late.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median
from typing import Final, Protocol

from engine.graph.run_report import RunReport
from service.calls.estimate import Estimate
from service.errors import fault
from service.pool.accounts import Account
from service.pool.cost_model import JobKind, kind_of
from service.pool.pool import Done
from service.pool.ticket import Length, Ticket
from service.transport.body_memory import BodyAllocation
from service.transport.job import Job, Reply, refused
from service.transport.job_result import Divisible
from service.transport.offload import offload
from service.transport.sum_parts import Piece, Total, least, read_run

#: pieces for each worker, at most: so that none has nothing to do for long while another one has its last
_PIECES_EACH: Final = 4
#: seconds that a piece takes at the least, and how much more than to read its request
_LEAST_SECONDS: Final = 0.02
_TIMES_THE_READING: Final = 4
#: bytes of the sums of all pieces, at most
_MOST_BYTES: Final = 64 << 20
#: what of the pieces is done before one of the others can be late, and how often the median of these it may take
_MOSTLY_DONE: Final = 0.9
_LATE: Final = 2.0

_logger = logging.getLogger("gradserve.pool")


def blocks_of_a_piece(why: Divisible, workers: int) -> int:
    """A power of two; as many as all of them or more, where the sum is better not cut."""
    size, seconds = 1, why.seconds / why.blocks
    least = max(_LEAST_SECONDS, _TIMES_THE_READING * why.reading)

    def is_small(size: int) -> bool:
        pieces = -(-why.blocks // size)
        return pieces > _PIECES_EACH * workers or size * seconds < least or pieces * why.nbytes > _MOST_BYTES

    while size < why.blocks and is_small(size):
        size *= 2
    return size


class SumsHost(Protocol):
    """The pool that the pieces are jobs of."""

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
        """Have all that is done for a job read the same tensors as now; whether they are still of these etags."""

    def room_for(self, ticket: Ticket, nbytes: int, response_bytes: int) -> BodyAllocation:
        """Memory for the sums, once there is room for the answer. Raises Refusal (queue_full)."""

    def go_on(self, ticket: Ticket) -> None:
        """A job that was held is to be done, before those that wait."""

    def settle(self, ticket: Ticket, reply: Reply) -> None:
        """The reply to a job that was held."""


class PieceTicket(Ticket):
    """Ticket of a piece, while a worker has it or is to have it."""

    __slots__ = ("run", "work")

    def __init__(self, job: Job, account: Account, done: Done, abandon: Callable[..., None], run: SumRun) -> None:
        super().__init__(job, account, done, time.monotonic(), abandon)
        self.run = run
        self.length = Length.LONG
        self.shared = run

    @property
    def is_piece(self) -> bool:
        """It is one."""
        return True

    def died(self) -> None:
        """Its worker has ended with it, and another one has it next."""
        self.run.repeated += 1


class PieceWork:
    """A piece: how often it was begun, when, for the last time, and by whom it is run at the moment."""

    __slots__ = ("began", "index", "is_done", "part", "starts", "tickets")

    def __init__(self, index: int, part: Piece) -> None:
        self.index = index
        self.part = part
        self.starts = 0
        self.began = 0.0
        self.is_done = False
        self.tickets: set[PieceTicket] = set()


class SumRun:
    """One sum while its pieces are run. Its body and its sums are held until the last ticket has let go of them."""

    def __init__(self, ticket: Ticket, why: Divisible, size: int, sums: BodyAllocation) -> None:
        """`size` is the number of blocks of a piece."""
        starts = range(0, why.blocks, size)
        self.ticket = ticket
        self.why = why
        self.sums = sums
        self.pieces = [PieceWork(i, Piece(at, min(at + size, why.blocks))) for i, at in enumerate(starts)]
        self.kind = JobKind(ticket.job.tenant, ("piece", kind_of(ticket.job).about))
        self.estimate = Estimate(why.seconds * size / why.blocks, 0, 0)
        self.repeated = 0
        #: of those that are done, from the beginning to the reply; and what all of them took to be executed
        self.seconds: list[float] = []
        self.executed = 0.0
        self.reports: list[RunReport] = []
        self.looking: asyncio.TimerHandle | None = None
        self._next = 0
        self._readers = 1  # the whole
        self._body = ticket.memory

    @property
    def unbegun(self) -> PieceWork | None:
        """The next piece that nobody has begun."""
        return self.pieces[self._next] if self._next < len(self.pieces) else None

    @property
    def in_flight(self) -> list[PieceWork]:
        """Pieces that were begun and are not done."""
        return [piece for piece in self.pieces[: self._next] if not piece.is_done]

    @property
    def all_done(self) -> bool:
        """Whether the sums of all pieces are there."""
        return len(self.reports) == len(self.pieces)

    def begin(self, piece: PieceWork) -> None:
        """A piece is begun, for the first time or again."""
        if piece.starts:
            self.repeated += 1
        piece.starts += 1
        piece.began = time.monotonic()
        self._next = max(self._next, piece.index + 1)

    def late_at(self) -> tuple[float, PieceWork] | None:
        """When which piece is the first that is late; None as long as nobody can say so."""
        begun_once = [piece for piece in self.in_flight if piece.starts == 1]
        if self.unbegun or not begun_once or len(self.seconds) < _MOSTLY_DONE * (len(self.pieces) - 1):
            return None
        first = min(begun_once, key=lambda piece: piece.began)
        return first.began + _LATE * median(self.seconds), first

    def place(self, piece: PieceWork) -> memoryview:
        """Where the sums of a piece go."""
        nbytes = self.why.nbytes
        return self.sums.view[piece.index * nbytes : (piece.index + 1) * nbytes]

    def total(self) -> Total:
        """The end of it."""
        assert self.sums.buffer is not None, "it is held"
        report, nbytes = least(self.reports), len(self.pieces) * self.why.nbytes
        return Total(len(self.pieces), self.repeated, self.executed, *report, self.sums.buffer.number, nbytes)

    def enter(self) -> None:
        """A ticket of a piece looks at the body."""
        self._readers += 1

    def leave(self) -> None:
        """A ticket does no more. With the last, everything is given back."""
        self._readers -= 1
        if not self._readers:
            self.sums.give_back()
            if self._body is not None:
                self._body.give_back()


class Sums:
    """The sums that are run in pieces at the moment."""

    def __init__(self, host: SumsHost, abandon: Callable[..., None]) -> None:
        """`abandon` is what a ticket is told with that what is held for it is taken back."""
        self._host = host
        self._abandon = abandon
        self._loop = asyncio.get_running_loop()
        self._filling = False
        self._runs: dict[Ticket, SumRun] = {}
        #: tickets of pieces that are held
        self.tickets = 0
        #: pieces that were done since the start, and those of them that had to be begun again
        self.done = 0
        self.repeated = 0

    @property
    def runs(self) -> int:
        """How many there are."""
        return len(self._runs)

    def divide(self, ticket: Ticket, why: Divisible) -> bool:
        """Have a job, which no worker has now, done in pieces; whether it is. Raises Refusal (queue_full)."""
        size = blocks_of_a_piece(why, self._host.helpers)
        if size >= why.blocks or not self._host.pin(ticket, why.reads):
            return False
        count = -(-why.blocks // size)
        sums = self._host.room_for(ticket, count * why.nbytes, why.response_bytes)
        ticket.wanted = [name for name, _ in why.reads]
        ticket.shared = self._runs[ticket] = SumRun(ticket, why, size, sums)
        return True

    def fill(self) -> None:
        """Give pieces to workers that idle. One piece of each sum is always on its way, also while others wait."""
        if self._filling:
            return
        self._filling = True
        try:
            for run in tuple(self._runs.values()):
                if not run.in_flight and run.unbegun is not None:
                    self._begin(run, run.unbegun)
            while self._host.can_help and (found := self._next()) is not None:
                self._begin(*found)
        finally:
            self._filling = False

    def drop(self, ticket: Ticket) -> bool:
        """Nobody waits for a sum any more; whether it was being run in pieces."""
        run = self._runs.pop(ticket, None)
        if run is None:
            return False
        self._stop(run)
        return True

    def _next(self) -> tuple[SumRun, PieceWork] | None:
        """The piece that is begun next: of the sum that has the fewest on their way, or else one that is late."""
        waiting = [run for run in self._runs.values() if run.unbegun is not None]
        if waiting:
            run = min(waiting, key=lambda run: len(run.in_flight))
            assert run.unbegun is not None, "it was asked"
            return run, run.unbegun
        now = time.monotonic()
        for run in self._runs.values():
            if (late := run.late_at()) is not None and late[0] <= now:
                return run, late[1]
        return None

    def _begin(self, run: SumRun, piece: PieceWork) -> None:
        run.begin(piece)
        whole = run.ticket
        job = replace(whole.job, part=piece.part, may_ask=False, may_divide=False, memory=None)
        ticket = PieceTicket(
            job, whole.account, lambda reply: self._came(run, piece, ticket, reply), self._abandon, run
        )
        ticket.memory, ticket.wanted, ticket.graph_wanted = whole.memory, whole.wanted, whole.graph_wanted
        ticket.kind, ticket.estimate = run.kind, run.estimate
        piece.tickets.add(ticket)
        run.enter()
        self._host.add_piece(ticket)

    def _came(self, run: SumRun, piece: PieceWork, ticket: PieceTicket, reply: Reply) -> None:
        """A worker's reply to a piece."""
        piece.tickets.discard(ticket)
        if self._runs.get(run.ticket) is not run or piece.is_done:
            reply.give_back()
        elif reply.status != 200:
            self._fail(run, reply)
        else:
            self._write(run, piece, reply)

    def _write(self, run: SumRun, piece: PieceWork, reply: Reply) -> None:
        """Take over the sums of a piece."""
        data, (report, executed) = reply.pieces, read_run(reply.headers)
        if sum(map(len, data)) != run.why.nbytes:
            _logger.error("request %s: the sums of a piece are of another length", run.ticket.job.request_id)
            reply.give_back()
            self._fail(run, refused(fault(), run.ticket.job.request_id))
            return
        self._end_piece(piece)
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
            run.leave()
            run.seconds.append(seconds)
            run.executed += executed
            run.reports.append(report)
            self.done += 1
            self._look_again(run)

        copying = offload(self._loop, run.why.nbytes, copy)
        if copying is None:
            copied()
        else:
            copying.add_done_callback(copied)

    def _look_again(self, run: SumRun) -> None:
        """Another piece is done: go on with the whole, once it was the last; or see when another one will be late."""
        if self._runs.get(run.ticket) is not run:
            return
        if run.all_done:
            del self._runs[run.ticket]
            self._stop(run)
            run.ticket.job.part = run.total()
            run.ticket.beside = run.sums
            self._host.go_on(run.ticket)
        elif (late := run.late_at()) is not None and run.looking is None:
            run.looking = self._loop.call_at(self._loop.time() + max(0.0, late[0] - time.monotonic()), self._late, run)

    def _late(self, run: SumRun) -> None:
        run.looking = None
        self.fill()
        if (late := run.late_at()) is not None and late[0] > time.monotonic():
            self._look_again(run)

    def _fail(self, run: SumRun, reply: Reply) -> None:
        """A piece cannot be done: that is the reply to the whole."""
        del self._runs[run.ticket]
        self._stop(run)
        self._host.settle(run.ticket, reply)

    def _stop(self, run: SumRun) -> None:
        """No piece of it is wanted any more."""
        self.repeated += run.repeated
        if run.looking is not None:
            run.looking.cancel()
        for piece in run.pieces:
            self._end_piece(piece)

    def _end_piece(self, piece: PieceWork) -> None:
        piece.is_done = True
        for ticket in tuple(piece.tickets):
            piece.tickets.discard(ticket)
            self._host.drop_piece(ticket)
