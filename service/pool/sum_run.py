from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from statistics import median
from typing import Any, Final

from engine.graph.run_report import RunReport
from service.calls.estimate import Estimate
from service.pool.accounts import Account
from service.pool.cost_model import TaskKind, kind_of
from service.pool.pool import Done
from service.pool.ticket import Length, Ticket
from service.transport.body_memory import BodyAllocation
from service.transport.job import Job
from service.transport.job_result import Divisible
from service.transport.sum_parts import Piece, Total, least

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


class PieceTicket(Ticket):
    """Ticket of a piece, while a worker has it or is to have it."""

    __slots__ = ("run", "work")

    is_piece = True

    def __init__(self, job: Job, account: Account, done: Done, abandon: Callable[..., None], run: SumRun) -> None:
        super().__init__(job, account, done, time.monotonic(), abandon)
        self.run = run
        self.length = Length.LONG
        self.shared = run

    def died(self) -> None:
        """Its worker has ended with it, and another one has it next."""
        self.run.repeated += 1


class PieceWork:
    """A piece: how often it was begun, when, for the last time, and by whom it is run at the moment."""

    __slots__ = ("asking", "began", "index", "is_away", "is_done", "is_for_here", "part", "starts", "tickets")

    def __init__(self, index: int, part: Piece) -> None:
        self.index = index
        self.part = part
        self.starts = 0
        self.began = 0.0
        self.is_done = False
        #: whether another server has it, and whether none can do it
        self.is_away = False
        self.is_for_here = False
        self.tickets: set[PieceTicket] = set()
        #: another server that is asked for it
        self.asking: asyncio.Task[Any] | None = None


class SumRun:
    """One sum while its pieces are run. Its body and its sums are held until the last ticket has let go of them."""

    def __init__(self, ticket: Ticket, why: Divisible, size: int, sums: BodyAllocation) -> None:
        """`size` is the number of blocks of a piece."""
        starts = range(0, why.blocks, size)
        self.ticket = ticket
        self.why = why
        self.sums = sums
        self.pieces = [PieceWork(i, Piece(at, min(at + size, why.blocks))) for i, at in enumerate(starts)]
        self.kind = TaskKind(ticket.job.tenant, ("piece", kind_of(ticket.job).about))
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
        """A piece is begun, for the first time or again."""
        if piece.starts:
            self.repeated += 1
        piece.starts += 1
        piece.began = time.monotonic()
        if piece in self.waiting:
            self.waiting.remove(piece)
        self.in_flight.add(piece)

    def put_back(self, piece: PieceWork) -> None:
        """A piece was not done: it is the next one to be begun."""
        self.in_flight.discard(piece)
        self.waiting.appendleft(piece)

    def end(self, piece: PieceWork) -> None:
        """A piece is done, or not wanted any more."""
        piece.is_done = True
        self.in_flight.discard(piece)
        self._return(piece)

    def done(self, report: RunReport, seconds: float, executed: float) -> None:
        """The sums of a piece are there, so many seconds after it was begun."""
        self.reports.append(report)
        self.seconds.append(seconds)
        self.executed += executed

    def send(self, piece: PieceWork) -> None:
        """Another server has a piece from now on."""
        piece.is_away = True
        self.away += 1

    def _return(self, piece: PieceWork) -> None:
        if piece.is_away:
            piece.is_away = False
            self.away -= 1

    def came_back(self, piece: PieceWork, seconds: float) -> None:
        """Another server has done a piece: it may have more, where that took no longer than twice the median."""
        self._return(piece)
        usual = median(self.seconds) if self.seconds else seconds
        self.most_away = min(_MOST_AWAY, self.most_away + 1) if seconds <= _LATE * usual else max(1, self.most_away - 1)
        self._pause = _FIRST_PAUSE

    def turned_away(self, piece: PieceWork) -> float:
        """Another server has not done a piece: seconds until one is asked again."""
        self._return(piece)
        self.most_away = max(1, self.most_away // 2)
        pause, self._pause = self._pause, min(_LONGEST_PAUSE, 2 * self._pause)
        self.asked_from = time.monotonic() + pause
        return pause

    def late_at(self) -> tuple[float, PieceWork] | None:
        """When which piece is the first that is late; None as long as nobody can say so."""
        begun_once = [piece for piece in self.in_flight if piece.starts == 1]
        if self.waiting or not begun_once or not self.seconds:
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
