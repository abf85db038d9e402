"""Autotuning: the fastest candidate is chosen and stored, and failures fall back to the default."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.codegen.native.machine_code import KernelStore
from engine.cuda import autotuning as candidates
from engine.cuda.autotuning import MAX_CANDIDATES, NO_CHOICES, Candidate, Choices, Contest, StreamLaunch

KEY = "6" * 64
ADDRESSES = (512, 1024)


class Clock:
    """A clock that reads a candidate's time from its code; a run interrupts the timings for which `disturbed` holds."""

    def __init__(self, disturbed: Callable[[int], bool] = lambda _: False) -> None:
        self.disturbed, self.timed = disturbed, list[str]()
        self.sessions, self.is_full, self.is_busy = 0, False, False

    @contextmanager
    def memory(self, sizes: Sequence[int]) -> Iterator[Sequence[int] | None]:
        """Yield the same addresses every time."""
        assert sizes == (8, 16)
        if self.is_full:
            raise MemoryError
        self.sessions += 1
        yield None if self.is_busy else ADDRESSES

    def seconds(self, launch: StreamLaunch) -> float | None:
        """Return the number that the launch returned."""
        code = str(launch(7))
        self.timed.append(code)
        return None if self.disturbed(len(self.timed)) else float(code)


def contest_of(*codes: str, refuses: str = "", binds: bool = True) -> Callable[[], Contest]:
    """Build a contest of candidates named by their seconds; `refuses` fails when it is bound or launched."""

    def bind(code: str, addresses: Sequence[int]) -> StreamLaunch:
        assert addresses == ADDRESSES

        def launch(stream: int) -> str:
            assert stream == 7
            return refuse(code) if code == refuses else code

        return refuse(code) if code == refuses and not binds else launch

    def refuse(code: str) -> StreamLaunch:
        raise RuntimeError(f"{code} is refused")

    entrants = [Candidate(code.encode(), lambda addresses, code=code: bind(code, addresses)) for code in codes]
    return lambda: Contest(entrants, (8, 16))


def chosen(clock: Clock, *codes: str, store: KernelStore | None = None, refuses: str = "", binds: bool = True) -> str:
    """The choice of a new plan; "" for the heuristic's default."""
    choices = Choices(KernelStore() if store is None else store, clock)
    choice = choices.find(KEY, contest_of(*codes, refuses=refuses, binds=binds))
    assert choices.find(KEY, contest_of("never asked")) == choice
    return (choice or b"").decode()


@pytest.mark.parametrize("codes", [("3", "2", "1", "4"), ("1", "2", "3"), ("2", "1"), ("5", "4", "3", "1")])
def test_fastest_candidate_is_chosen(codes: tuple[str, ...]) -> None:
    clock = Clock()
    assert chosen(clock, *codes) == "1"
    # The candidates take turns, with one warm-up round.
    assert clock.timed == [*codes] * (1 + candidates._TIMINGS)
    assert clock.sessions == 1


def test_at_most_four_candidates_are_timed() -> None:
    clock = Clock()
    assert MAX_CANDIDATES == 4
    assert chosen(clock, "5", "4", "3", "2", "1") == "2"
    assert "1" not in clock.timed


def test_first_launch_is_warmup_and_the_minimum_counts() -> None:
    class Uneven(Clock):
        def seconds(self, launch: StreamLaunch) -> float | None:
            code = str(launch(7))
            self.timed.append(code)
            times = {"a": [0, 5, 5, 2, 5, 5], "b": [9, 3, 3, 3, 3, 3]}[code]
            return float(times[self.timed.count(code) - 1])

    assert chosen(Uneven(), "a", "b") == "a"


@pytest.mark.parametrize(("codes", "found"), [(("1.0", "0.98"), "1.0"), (("1.0", "0.96"), "0.96")])
def test_default_is_replaced_only_by_a_clear_improvement(codes: tuple[str, ...], found: str) -> None:
    assert chosen(Clock(), *codes) == found


def test_single_candidate_is_stored_without_timing() -> None:
    clock, store = Clock(), KernelStore()
    assert chosen(clock, "1", store=store) == "1"
    assert not clock.sessions
    assert store.get(KEY) == b"1"


def test_choice_is_shared_between_processes(tmp_path: Path) -> None:
    chosen(Clock(), "2", "1", store=KernelStore(tmp_path))
    clock = Clock()
    assert chosen(clock, "2", "3", store=KernelStore(tmp_path)) == "1"
    assert not clock.sessions


def test_closed_choices_return_only_cached_entries() -> None:
    store, other = KernelStore(), "7" * 64
    choices = Choices(store, Clock())
    choices.find(KEY, contest_of("2", "1"))
    choices.close()
    store.put(other, b"1")
    assert choices.find(KEY, contest_of("never asked")) == b"1"
    assert choices.find(other, contest_of("never asked")) is None


def test_without_a_clock_stored_choices_are_ignored() -> None:
    store = KernelStore()
    store.put(KEY, b"1")
    assert Choices(store).find(KEY, contest_of("2", "1")) is None
    assert NO_CHOICES.find(KEY, contest_of("2", "1")) is None


# ------------------------------------------------------------ concurrent runs


def test_interrupted_timing_is_discarded_and_repeated() -> None:
    """The fourth timing is repeated, and none of those before it."""
    clock = Clock(disturbed=lambda count: count == 4)
    assert chosen(clock, "2", "1") == "1"
    assert clock.sessions == 2  # its memory was released for the run
    assert clock.timed == ["2", "1", "2", "1", *["1", "2"] * 4, "1"]


def test_constant_runs_fall_back_to_the_default_and_retry_later() -> None:
    store, always = KernelStore(), Clock(disturbed=lambda _: True)
    assert chosen(always, "2", "1", store=store) == ""
    assert always.sessions == len(always.timed) == candidates._MAX_INTERRUPTED
    assert store.get(KEY) is None
    assert chosen(Clock(), "2", "1", store=store) == "1"


def test_busy_card_is_retried_a_limited_number_of_times() -> None:
    clock = Clock()
    clock.is_busy = True
    assert chosen(clock, "2", "1") == ""
    assert (clock.sessions, clock.timed) == (candidates._MAX_INTERRUPTED, [])


def test_interruption_limit_is_shared_by_the_shapes_of_a_plan() -> None:
    clock = Clock(disturbed=lambda _: True)
    choices = Choices(KernelStore(), clock)
    for key in (KEY, "7" * 64):
        assert choices.find(key, contest_of("2", "1")) is None
    assert len(clock.timed) == candidates._MAX_INTERRUPTED


def test_timing_ends_when_stop_is_requested() -> None:
    clock = Clock(disturbed=lambda _: True)
    choices = Choices(KernelStore(), clock, stop=lambda: len(clock.timed) >= 3)
    assert choices.find(KEY, contest_of("2", "1")) is None
    assert len(clock.timed) == 3


# ------------------------------------------------------------ refusals


@pytest.mark.parametrize("binds", [True, False])
@pytest.mark.parametrize(("refused", "found"), [("1", "2"), ("3", "1")])
def test_refused_candidate_is_skipped(refused: str, found: str, binds: bool) -> None:
    assert chosen(Clock(), "3", "2", "1", refuses=refused, binds=binds) == found


def test_all_refused_candidates_store_no_choice() -> None:
    store = KernelStore()
    assert chosen(Clock(), "1", "1", store=store, refuses="1") == ""
    assert store.get(KEY) is None


def test_out_of_memory_stores_no_choice() -> None:
    clock, store = Clock(), KernelStore()
    clock.is_full = True
    assert chosen(clock, "2", "1", store=store) == ""
    assert store.get(KEY) is None


def test_library_without_candidates_is_not_an_error() -> None:
    def fails() -> Contest:
        raise RuntimeError

    assert chosen(Clock()) == ""
    for nothing in (fails, lambda: None):
        assert Choices(KernelStore(), Clock()).find(KEY, nothing) is None
