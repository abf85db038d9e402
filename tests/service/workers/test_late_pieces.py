"""Scheduling of pieces on workers that a test controls: late pieces run twice, one at a time while others wait."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from service.api.media import PIECE_SUMS
from service.workers import sums
from service.workers import sums as sum_run
from service.workers.admission import Account
from service.workers.sums import PieceTicket, Sums
from service.workers.task import Divisible, Reply, Task, Total
from service.workers.ticket import Ticket
from tests.service.workers.pools import running

WHY = Divisible(32, 3.2, 0.0, 8, 100, ())


class Host:
    """A pool that a test controls."""

    def __init__(self) -> None:
        self.idle, self.helpers = 2, 2
        self.begun: list[PieceTicket] = []
        self.dropped: list[PieceTicket] = []
        self.resumed: list[Ticket] = []
        self.settled: list[Reply] = []
        self.memory = bytearray(1 << 10)
        self.sums = Sums(self, lambda *_: None)

    @property
    def can_help(self) -> bool:
        return self.idle > 0

    def add_piece(self, ticket: PieceTicket) -> None:
        self.begun.append(ticket)
        self.idle -= 1

    def drop_piece(self, ticket: PieceTicket) -> None:
        self.dropped.append(ticket)

    def pin(self, ticket: Ticket, reads: Any) -> bool:
        return True

    def allocate_sums(self, ticket: Ticket, nbytes: int, response_bytes: int) -> Any:
        view, buffer = memoryview(self.memory)[:nbytes], SimpleNamespace(number=5)
        return SimpleNamespace(view=view, buffer=buffer, release=lambda: None)

    def go_on(self, ticket: Ticket) -> None:
        self.resumed.append(ticket)

    def settle(self, ticket: Ticket, reply: Reply) -> None:
        self.settled.append(reply)

    def start_sum(self) -> Ticket:
        """A sum of eight pieces."""
        job = Task("batch", b"{}", "id", 60.0, time.monotonic() + 60)
        ticket = Ticket(job, Account(""), lambda reply: None, time.monotonic())
        assert self.sums.divide(ticket, WHY)
        self.sums.fill()
        return ticket


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock of the sums; it stands still until a test moves `now`."""
    clock = SimpleNamespace(now=100.0)
    for module in (sums, sum_run):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def reply(ticket: PieceTicket, host: Host, data: bytes = b"12345678") -> None:
    host.idle += 1
    ticket.done(Reply(200, PIECE_SUMS, [data], (("Gradserve-Run", "compiled float32 0.5"),)))
    host.sums.fill()


@running
async def test_idle_workers_get_pieces_and_sums_stay_in_order(clock: SimpleNamespace) -> None:
    host = Host()
    whole = host.start_sum()
    assert [ticket.task.part for ticket in host.begun] == [(0, 4), (4, 8)]
    for k in (1, 0, 2, 4, 3, 6, 5, 7):  # in some order, and none late
        clock.now += 1.0
        reply(host.begun[k], host, b"%08d" % host.begun[k].task.part[0])
    assert host.resumed == [whole]
    assert whole.task.part == Total(8, 0, 4.0, "compiled", "float32", 5, 64)
    assert bytes(host.memory[:64]) == b"".join(b"%08d" % start for start in range(0, 32, 4))


@running
async def test_one_piece_at_a_time_while_others_wait() -> None:
    host = Host()
    host.idle = 0
    host.start_sum()
    assert len(host.begun) == 1
    reply(host.begun[0], host)
    host.idle = 0
    assert len(host.begun) >= 2
    for _ in range(3):
        host.sums.fill()
    assert len(host.begun) == 2


@running
async def test_late_piece_runs_twice_and_the_first_reply_counts(clock: SimpleNamespace) -> None:
    host = Host()
    whole = host.start_sum()
    stuck = host.begun[0]
    for _ in range(7):
        clock.now += 1.0
        reply(host.begun[-1], host)
    run = host.sums.runs[whole]
    assert (len(host.begun), host.idle) == (9, 0), "seven seconds are twice the median"
    assert host.begun[8].task.part == stuck.task.part
    assert run.repeated == 1
    for _ in range(100):
        host.sums.fill()
    assert len(host.begun) == 9, "once is enough"
    reply(host.begun[8], host)
    assert host.resumed == [whole]
    assert stuck in host.dropped
    assert isinstance(whole.task.part, Total)
    assert (whole.task.part.pieces, whole.task.part.repeated) == (8, 1)


@running
async def test_piece_is_not_repeated_before_it_is_late(clock: SimpleNamespace) -> None:
    host = Host()
    host.start_sum()
    for k in range(7):
        clock.now += 1.0
        reply(host.begun[k], host)
    assert (len(host.begun), host.idle) == (8, 1)
    clock.now += 1.0
    host.sums.fill()
    assert (len(host.begun), host.idle) == (8, 1)
    clock.now += 2.0
    host.sums.fill()
    assert len(host.begun) == 9


@running
async def test_refused_piece_is_the_reply_and_others_are_dropped() -> None:
    host = Host()
    host.start_sum()
    refused = Reply(422, "application/problem+json", [b"{}"])
    host.begun[1].done(refused)
    assert host.settled == [refused]
    assert host.dropped == [host.begun[0]]
    assert not host.sums.runs


@running
async def test_sums_of_another_length_are_an_internal_error() -> None:
    host = Host()
    host.start_sum()
    reply(host.begun[0], host, b"1234")
    assert [each.status for each in host.settled] == [500]
