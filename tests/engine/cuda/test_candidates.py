"""The quickest of candidates: which it is, that it is kept, and that nothing fails where it cannot be found out."""

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
    """A clock by which each candidate takes what its code says; at the timings `disturbed`, a run begins meanwhile."""

    def __init__(self, disturbed: Callable[[int], bool] = lambda _: False) -> None:
        self.disturbed, self.timed = disturbed, list[str]()
        self.sessions, self.is_full, self.is_busy = 0, False, False

    @contextmanager
    def memory(self, sizes: Sequence[int]) -> Iterator[Sequence[int] | None]:
        """Always at the same place."""
        assert sizes == (8, 16)
        if self.is_full:
            raise MemoryError
        self.sessions += 1
        yield None if self.is_busy else ADDRESSES

    def seconds(self, launch: StreamLaunch) -> float | None:
        """Of what it was told by the launch."""
        code = str(launch(7))
        self.timed.append(code)
        return None if self.disturbed(len(self.timed)) else float(code)


def contest_of(*codes: str, refuses: str = "", binds: bool = True) -> Callable[[], Contest]:
    """Candidates by the seconds that they take, one of which is refused when it is bound, or launched."""

    def bind(code: str, addresses: Sequence[int]) -> StreamLaunch:
        assert addresses == ADDRESSES

        def launch(stream: int) -> str:
            assert stream == 7
            return refuse(code) if code == refuses else code

        return refuse(code) if code == refuses and not binds else launch

    def refuse(code: str) -> StreamLaunch:
        raise RuntimeError(f"{code} is refused")

    made = [Candidate(code.encode(), lambda addresses, code=code: bind(code, addresses)) for code in codes]
    return lambda: Contest(made, (8, 16))


def chosen(clock: Clock, *codes: str, store: KernelStore | None = None, refuses: str = "", binds: bool = True) -> str:
    """What a new plan has; "" for the first of the heuristics."""
    choices = Choices(KernelStore() if store is None else store, clock)
    found = choices.find(KEY, contest_of(*codes, refuses=refuses, binds=binds))
    assert choices.find(KEY, contest_of("never asked")) == found
    return (found or b"").decode()


@pytest.mark.parametrize("codes", [("3", "2", "1", "4"), ("1", "2", "3"), ("2", "1"), ("5", "4", "3", "1")])
def test_the_quickest_is_chosen(codes: tuple[str, ...]) -> None:
    clock = Clock()
    assert chosen(clock, *codes) == "1"
    # Each in its turn, once more than counts.
    assert clock.timed == [*codes] * (1 + candidates._TIMINGS)
    assert clock.sessions == 1


def test_no_more_are_timed_than_four() -> None:
    clock = Clock()
    assert MAX_CANDIDATES == 4
    assert chosen(clock, "5", "4", "3", "2", "1") == "2"
    assert "1" not in clock.timed


def test_the_launch_that_loads_a_candidate_does_not_count_and_of_the_others_the_least_does() -> None:
    class Uneven(Clock):
        def seconds(self, launch: StreamLaunch) -> float | None:
            code = str(launch(7))
            self.timed.append(code)
            times = {"a": [0, 5, 5, 2, 5, 5], "b": [9, 3, 3, 3, 3, 3]}[code]
            return float(times[self.timed.count(code) - 1])

    assert chosen(Uneven(), "a", "b") == "a"


@pytest.mark.parametrize(("codes", "found"), [(("1.0", "0.98"), "1.0"), (("1.0", "0.96"), "0.96")])
def test_the_first_stays_unless_another_saves_more_than_chance(codes: tuple[str, ...], found: str) -> None:
    assert chosen(Clock(), *codes) == found


def test_one_alone_is_kept_without_timing() -> None:
    clock, store = Clock(), KernelStore()
    assert chosen(clock, "1", store=store) == "1"
    assert not clock.sessions
    assert store.get(KEY) == b"1"


def test_another_process_reads_what_this_one_has_found(tmp_path: Path) -> None:
    chosen(Clock(), "2", "1", store=KernelStore(tmp_path))
    clock = Clock()
    assert chosen(clock, "2", "3", store=KernelStore(tmp_path)) == "1"
    assert not clock.sessions


def test_what_is_closed_has_what_it_had_and_nothing_else() -> None:
    store, other = KernelStore(), "7" * 64
    choices = Choices(store, Clock())
    choices.find(KEY, contest_of("2", "1"))
    choices.close()
    store.put(other, b"1")
    assert choices.find(KEY, contest_of("never asked")) == b"1"
    assert choices.find(other, contest_of("never asked")) is None


def test_without_a_clock_nothing_is_chosen_though_it_was_kept() -> None:
    store = KernelStore()
    store.put(KEY, b"1")
    assert Choices(store).find(KEY, contest_of("2", "1")) is None
    assert NO_CHOICES.find(KEY, contest_of("2", "1")) is None


# ------------------------------------------------------------ runs beside


def test_a_timing_beside_a_run_is_thrown_away_and_made_again() -> None:
    """The fourth one, and nothing of those before it."""
    clock = Clock(disturbed=lambda count: count == 4)
    assert chosen(clock, "2", "1") == "1"
    assert clock.sessions == 2  # its memory was given back for the run
    assert clock.timed == ["2", "1", "2", "1", *["1", "2"] * 4, "1"]


def test_where_runs_never_end_the_first_is_used_and_it_is_tried_again_later() -> None:
    store, always = KernelStore(), Clock(disturbed=lambda _: True)
    assert chosen(always, "2", "1", store=store) == ""
    assert always.sessions == len(always.timed) == candidates._MAX_INTERRUPTED
    assert store.get(KEY) is None
    assert chosen(Clock(), "2", "1", store=store) == "1"


def test_who_finds_a_run_under_way_tries_as_often() -> None:
    clock = Clock()
    clock.is_busy = True
    assert chosen(clock, "2", "1") == ""
    assert (clock.sessions, clock.timed) == (candidates._MAX_INTERRUPTED, [])


def test_a_plan_loses_so_many_timings_and_no_more_for_another_shape() -> None:
    clock = Clock(disturbed=lambda _: True)
    choices = Choices(KernelStore(), clock)
    for key in (KEY, "7" * 64):
        assert choices.find(key, contest_of("2", "1")) is None
    assert len(clock.timed) == candidates._MAX_INTERRUPTED


def test_nothing_more_is_timed_once_it_is_to_stop() -> None:
    clock = Clock(disturbed=lambda _: True)
    choices = Choices(KernelStore(), clock, stop=lambda: len(clock.timed) >= 3)
    assert choices.find(KEY, contest_of("2", "1")) is None
    assert len(clock.timed) == 3


# ------------------------------------------------------------ refusals


@pytest.mark.parametrize("binds", [True, False])
@pytest.mark.parametrize(("refused", "found"), [("1", "2"), ("3", "1")])
def test_what_is_refused_is_left_out(refused: str, found: str, binds: bool) -> None:
    assert chosen(Clock(), "3", "2", "1", refuses=refused, binds=binds) == found


def test_where_all_are_refused_nothing_is_chosen_or_kept() -> None:
    store = KernelStore()
    assert chosen(Clock(), "1", "1", store=store, refuses="1") == ""
    assert store.get(KEY) is None


def test_without_memory_nothing_is_chosen_or_kept() -> None:
    clock, store = Clock(), KernelStore()
    clock.is_full = True
    assert chosen(clock, "2", "1", store=store) == ""
    assert store.get(KEY) is None


def test_a_library_that_proposes_nothing_is_no_error() -> None:
    def fails() -> Contest:
        raise RuntimeError

    assert chosen(Clock()) == ""
    for nothing in (fails, lambda: None):
        assert Choices(KernelStore(), Clock()).find(KEY, nothing) is None
