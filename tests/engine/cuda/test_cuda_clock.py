"""The card's clock: timing on a stream of its own, in pool memory, with priority for runs."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from engine.cuda import autotuning as cuda_clock
from engine.cuda.autotuning import CardRuns, CudaClock
from tests.engine.cuda.card_memory import CARD
from tests.engine.cuda.cupy_stand_in import cupy_stand_in

pytestmark = pytest.mark.usefixtures("stand_in")


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Do not wait for runs that never end."""
    monkeypatch.setattr(cuda_clock, "_PATIENCE_SECONDS", 0)
    CARD.pool.free_all_blocks()
    yield
    CARD.pool.set_limit(0)


def clock_of(runs: CardRuns) -> CudaClock:
    return CudaClock(cupy_stand_in()["cupy"], runs)


def launch_taking(milliseconds: float, stream: int) -> None:
    """Launch work that takes this many milliseconds."""

    def work() -> None:
        CARD.milliseconds += milliseconds

    CARD.by_pointer[stream].launch(work)


def test_launch_is_timed_between_events_on_its_own_stream() -> None:
    clock, streams = clock_of(CardRuns()), set[int]()
    with clock.memory([8]):
        for milliseconds in (3.0, 0.5):

            def launch(stream: int, milliseconds: float = milliseconds) -> None:
                streams.add(stream)
                assert stream == CARD.stream.ptr
                launch_taking(milliseconds, stream)

            assert clock.seconds(launch) == pytest.approx(milliseconds / 1000)
    with clock.memory([8]):
        assert clock.seconds(streams.add) == 0
    assert len(streams) == 1
    assert CARD.null.ptr not in streams
    assert CARD.stream is CARD.null


def test_memory_comes_from_the_pool_and_is_released() -> None:
    CARD.pool.set_limit(1 << 20)
    before = CARD.pool.total_bytes()
    with clock_of(CardRuns()).memory([3000, 0, 8000]) as addresses:
        assert addresses is not None
        assert CARD.pool.total_bytes() - before >= 11000
        first, _, last = addresses
        assert abs(first - last) >= 3000
        assert (first % 512, last % 512) == (0, 0)
        floats = np.ctypeslib.as_array((ctypes.c_float * 750).from_address(first))
        assert np.isfinite(floats).all()
        assert floats.all()
    assert CARD.pool.total_bytes() == before


def test_memory_is_released_after_an_exception() -> None:
    CARD.pool.set_limit(1 << 20)
    before = CARD.pool.total_bytes()
    with pytest.raises(KeyError), clock_of(CardRuns()).memory([3000]):
        raise KeyError
    assert CARD.pool.total_bytes() == before
    assert CARD.stream is CARD.null
    # The second of two pieces fails: rounding up is not counted beforehand.
    CARD.pool.set_limit(before + 1600)
    with pytest.raises(MemoryError, match="out of memory"), clock_of(CardRuns()).memory([1, 513, 1]):
        pytest.fail("there is memory")
    assert CARD.pool.total_bytes() == before


@pytest.mark.parametrize(("nbytes", "has_room"), [(1 << 19, True), ((1 << 19) + 512, False)])
def test_half_of_the_free_memory_is_left_to_runs(nbytes: int, has_room: bool) -> None:
    before = CARD.pool.total_bytes()
    CARD.pool.set_limit(before + (1 << 20))
    clock = clock_of(CardRuns())
    if has_room:
        with clock.memory([nbytes]) as addresses:
            assert addresses
        return
    with pytest.raises(MemoryError, match="no room"), clock.memory([nbytes]):
        pytest.fail("there is memory")


def test_no_memory_during_a_run() -> None:
    runs = CardRuns()
    with runs, clock_of(runs).memory([8]) as addresses:
        assert addresses is None


@pytest.mark.parametrize("still_under_way", [True, False])
def test_new_run_invalidates_the_timings(still_under_way: bool) -> None:
    runs = CardRuns()
    clock = clock_of(runs)

    def interrupt(_: int) -> None:
        runs.__enter__()
        if not still_under_way:
            runs.__exit__(None, None, None)

    launched: list[int] = []
    with clock.memory([8]):
        assert clock.seconds(launched.append) == 0
        assert clock.seconds(interrupt) is None
        assert clock.seconds(launched.append) is None
    assert len(launched) == 1  # the run has the card
    with clock.memory([8]) as addresses:
        assert (addresses is None) is still_under_way


def test_clock_waits_for_launched_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits on the stream of runs, before it times anything."""
    waited: list[float | None] = []
    event = cupy_stand_in()["cupy"].cuda.Event
    monkeypatch.setattr(event, "synchronize", lambda self: waited.append(self.at))
    launch_taking(5.0, CARD.null.ptr)
    with clock_of(CardRuns()).memory([8]):
        assert waited == [CARD.milliseconds]


def test_await_memory_blocks_until_release() -> None:
    runs, order = CardRuns(), list[str]()
    clock, is_held, may_end = clock_of(runs), threading.Event(), threading.Event()

    def hold() -> None:
        with clock.memory([8]):
            is_held.set()
            may_end.wait(60)
            order.append("given back")

    def want() -> None:
        clock.await_memory()
        order.append("had")

    threads = [threading.Thread(target=each) for each in (hold, want)]
    threads[0].start()
    assert is_held.wait(60)
    threads[1].start()
    may_end.set()
    for thread in threads:
        thread.join(60)
    assert order == ["given back", "had"]
