"""The collector is paused while a plan is made, and left as it was found: after errors, and by the last of several."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from threading import Thread

import numpy as np
import pytest

from engine import Compiler, EngineError, Limits, Program, Statement, TensorType, registry
from engine.compiler import compiler as compiling
from engine.compiler import compiler as pause
from engine.compiler.compiler import Pause, collector_paused


@pytest.fixture(autouse=True)
def _on() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


def test_it_is_on_again_after_the_last_of_several() -> None:
    with collector_paused():
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_stays_off_where_it_was_off() -> None:
    gc.disable()
    with collector_paused():
        pass
    assert not gc.isenabled()


def test_it_is_on_again_after_an_error() -> None:
    with pytest.raises(KeyError), collector_paused():
        raise KeyError
    assert gc.isenabled()


def test_a_thread_that_leaves_first_does_not_end_it_for_the_others() -> None:
    def pass_through() -> None:
        with collector_paused():
            assert not gc.isenabled()

    with collector_paused():
        threads = [Thread(target=pass_through) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_threads_that_follow_one_another_cannot_put_it_off_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    shared = Pause()
    assert shared.enter()
    now[0] += pause.JOIN_SECONDS / 2
    assert shared.enter()
    now[0] += pause.JOIN_SECONDS
    assert not shared.enter(), "too late to join"
    shared.leave()
    assert not gc.isenabled()
    shared.leave()
    assert gc.isenabled()
    assert shared.enter(), "the next pause"
    shared.leave()


def program(op: str) -> Program:
    ops = registry().ops
    return Program(registry(), [Statement(ops["parameter"]), Statement(ops[op], (0,))])


def test_planning_pauses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    inner = compiling.optimise_and_plan_bodies
    monkeypatch.setattr(
        compiling, "optimise_and_plan_bodies", lambda *args: seen.append(gc.isenabled()) or inner(*args)
    )
    Compiler(Limits()).forward(program("sin"), {0: TensorType((2,), np.dtype("float64"))})
    assert seen == [False]
    assert gc.isenabled()


def test_a_program_that_is_refused_leaves_it_on() -> None:
    with pytest.raises(EngineError):
        Compiler(Limits()).gradients(program("cholesky"), {0: TensorType((2,), np.dtype("float64"))})
    assert gc.isenabled()
