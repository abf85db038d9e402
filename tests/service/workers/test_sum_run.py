"""Dividing a sum into pieces, and sending pieces to other servers."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from service.workers import sums as sum_run
from service.workers.admission import Account
from service.workers.sums import SumRun, piece_size
from service.workers.task import Divisible, Task
from service.workers.ticket import Ticket


@pytest.mark.parametrize(
    ("blocks", "seconds", "reading", "nbytes", "workers", "expected"),
    [
        (32, 3.2, 0.0, 1000, 2, 4),  # eight pieces for two
        (32, 3.2, 0.0, 1000, 4, 2),
        (33, 3.3, 0.0, 1000, 4, 4),  # at most sixteen pieces, so nine of four blocks, the last one of one
        (32, 0.032, 0.0, 1000, 4, 32),  # too short to be cut at all
        (32, 0.32, 0.0, 1000, 4, 2),  # 20 ms each
        (32, 3.2, 0.1, 1000, 4, 4),  # four times what it takes to read the request
        (32, 3.2, 0.0, 16 << 20, 4, 8),  # 64 MiB of sums
        (2, 1.0, 0.0, 1000, 2, 1),
    ],
)
def test_blocks_per_piece(
    blocks: int, seconds: float, reading: float, nbytes: int, workers: int, expected: int
) -> None:
    divisible = Divisible(blocks, seconds, reading, nbytes, 1000, ())
    assert piece_size(divisible, workers) == expected


class Clock:
    """A clock that a test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(sum_run, "time", SimpleNamespace(monotonic=lambda: self.now))


def run_of(pieces: int) -> SumRun:
    ticket = Ticket(Task("batch", b"{}", "id", 60.0, 1e9), Account(""), lambda reply: None, time.monotonic())
    return SumRun(ticket, Divisible(pieces, 1.0, 0.0, 8, 100, ()), 1, SimpleNamespace())  # type: ignore[arg-type]


def send_remote(run: SumRun) -> sum_run.PieceWork:
    piece = run.waiting[0]
    run.begin(piece)
    run.mark_remote(piece)
    return piece


def test_remote_limit_grows_while_others_are_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch)
    run = run_of(64)
    run.seconds = [1.0, 1.0, 1.0]
    assert (send_remote(run), send_remote(run), run.may_send_remote) == (run.pieces[0], run.pieces[1], False)
    run.returned(run.pieces[0], 1.5)
    assert (run.remote_limit, run.remote_count, run.may_send_remote) == (3, 1, True)
    run.returned(run.pieces[1], 2.5)
    assert (run.remote_limit, run.remote_count) == (2, 0)
    for _ in range(40):
        run.returned(send_remote(run), 0.5)
    assert run.remote_limit == 16


def test_declined_pieces_lower_the_limit_and_back_off(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, run = Clock(monkeypatch), run_of(8)
    piece = send_remote(run)
    assert run.declined(piece) == 0.05
    run.put_back(piece)
    assert (run.waiting[0], run.remote_count, run.remote_limit, run.may_send_remote) == (piece, 0, 1, False)
    clock.now += 0.06
    assert run.may_send_remote
    assert [run.declined(piece) for _ in range(7)] == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    run.returned(piece, 0.1)
    assert run.declined(piece) == 0.05


def test_restarted_piece_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch)
    run = run_of(4)
    piece = send_remote(run)
    run.declined(piece)
    run.put_back(piece)
    run.begin(piece)
    assert (run.repeated, len(run.waiting), run.in_flight) == (1, 3, {piece})
    run.end(piece)
    run.end(piece)
    assert (run.remote_count, run.in_flight) == (0, set())
