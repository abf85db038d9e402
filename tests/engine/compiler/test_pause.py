"""Garbage collection pauses while a plan is compiled, and resumes after errors and after the last of several pauses."""

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
def _collector_enabled() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


def test_collector_resumes_after_the_last_nested_pause() -> None:
    with collector_paused():
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_collector_stays_off_if_it_was_off() -> None:
    gc.disable()
    with collector_paused():
        pass
    assert not gc.isenabled()


def test_collector_resumes_after_an_error() -> None:
    with pytest.raises(KeyError), collector_paused():
        raise KeyError
    assert gc.isenabled()


def test_pause_lasts_until_the_last_thread_leaves() -> None:
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


def test_overlapping_threads_cannot_pause_forever(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_planning_pauses_the_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    inner = compiling.optimise_and_plan_bodies
    monkeypatch.setattr(
        compiling, "optimise_and_plan_bodies", lambda *args: seen.append(gc.isenabled()) or inner(*args)
    )
    Compiler(Limits()).forward(program("sin"), {0: TensorType((2,), np.dtype("float64"))})
    assert seen == [False]
    assert gc.isenabled()


def test_collector_is_on_after_a_refused_program() -> None:
    with pytest.raises(EngineError):
        Compiler(Limits()).gradients(program("cholesky"), {0: TensorType((2,), np.dtype("float64"))})
    assert gc.isenabled()
