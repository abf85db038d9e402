"""Runner: every item of every step runs once, in the order of the steps, on any thread; deadlines stop it."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine
from engine import Deadline, DeadlineExceeded
from engine.codegen.native import native_call as runners
from engine.codegen.native.machine_code import (
    KernelStore,
    KernelUnavailable,
    kernel_key,
    load_function,
    machine_code,
    target,
)
from engine.codegen.native.native_call import (
    IS_SUPPORTED,
    SIGNATURE,
    NativeCall,
    NativeGuard,
    Runner,
    runner_text,
    shared_runner,
)
from engine.ir.run_context import NO_DEADLINE
from engine.runtime.prepared_plan import PART_NANOSECONDS, NativeStep, Region, RegionWatch

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.skipif(not IS_SUPPORTED, reason="there is no runner for this system")

Array = np.ndarray[Any, Any]
ROOT = Path(engine.__file__).parents[1]
#: expects `number` at every item's place and adds one; adds 2^32 if it finds another number, and 2^40 if another thread
#: writes to the thread's own memory meanwhile
STEP = """
define void @kernel(i64 %first, i64 %past, ptr %table) {
entry:
  %memory = load ptr, ptr %table
  %number.in = getelementptr i64, ptr %table, i64 1
  %number = load i64, ptr %number.in
  %length.in = getelementptr i64, ptr %table, i64 2
  %length = load i64, ptr %length.in
  %own.in = getelementptr i64, ptr %table, i64 3
  %own = load ptr, ptr %own.in
  br label %loop
loop:
  %i = phi i64 [ %first, %entry ], [ %i.next, %end ]
  %more = icmp slt i64 %i, %past
  br i1 %more, label %each, label %all
each:
  %at = getelementptr i64, ptr %memory, i64 %i
  %old = load i64, ptr %at
  %times.more = mul i64 %i, %length
  store volatile i64 %i, ptr %own
  br label %work
work:
  %k = phi i64 [ 0, %each ], [ %k.next, %work ]
  %same = load volatile i64, ptr %own
  %k.next = add i64 %k, 1
  %again = icmp slt i64 %k.next, %times.more
  br i1 %again, label %work, label %end
end:
  %expected = icmp eq i64 %old, %number
  %step = select i1 %expected, i64 1, i64 4294967296
  %foreign = icmp ne i64 %same, %i
  %alien = select i1 %foreign, i64 1099511627776, i64 0
  %grown = add i64 %old, %step
  %new = add i64 %grown, %alien
  store i64 %new, ptr %at
  %i.next = add i64 %i, 1
  br label %loop
all:
  ret void
}
"""
_code = load_function(machine_code(STEP)) if IS_SUPPORTED else None


def the_runner() -> Runner:
    runner = shared_runner(KernelStore())
    assert runner is not None
    return runner


def counting(memory: Array, number: int, items: int, threads: int, length: int = 0) -> NativeCall:
    """Build a step that expects `number` at each item's place and adds one; item i takes i · length iterations."""
    assert _code is not None
    own = np.zeros((threads, 8), np.int64)
    entries = np.zeros((threads, 4), np.int64)
    entries[:, 0], entries[:, 1], entries[:, 2] = memory.ctypes.data, number, length
    entries[:, 3] = own.ctypes.data + own.strides[0] * np.arange(threads)
    return NativeCall(SIGNATURE(_code.address), _code.address, items, entries, (memory, own, _code))


def region(
    calls: Sequence[NativeCall | NativeGuard], watch: RegionWatch | None = None, nanoseconds: int = 1000
) -> Region:
    return Region(the_runner(), watch or RegionWatch(), [NativeStep(call, nanoseconds) for call in calls])


def called(function: Callable[[int, int], object], items: int, threads: int = 1) -> NativeCall:
    """Build a step that calls a Python function, with the GIL."""
    callback = SIGNATURE(lambda first, past, table: function(first, past))
    address = ctypes.cast(callback, ctypes.c_void_p).value
    assert address
    return NativeCall(callback, address, items, np.zeros((threads, 1), np.int64), callback)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("length", [0, 30])
def test_every_item_of_every_step_runs_once_in_order(threads: int, length: int) -> None:
    memory = np.zeros(100, np.int64)
    whole = region([counting(memory, k, 100, threads if k % 4 else 1, length) for k in range(40)])
    for _ in range(25):
        memory[:] = 0
        whole()
        assert (memory == 40).all()


def test_alternating_steps_of_few_and_many_parts() -> None:
    """A late helper finds no work, and never a part of a step that is still being written."""
    memory = np.zeros(60, np.int64)
    steps = [NativeStep(counting(memory, k, 60, 2), PART_NANOSECONDS * (60 if k % 2 else 1)) for k in range(100)]
    whole = Region(the_runner(), RegionWatch(), steps)
    for _ in range(2000):
        memory[:] = 0
        whole()
        assert (memory == 100).all()


def test_fewer_items_than_threads_and_no_items() -> None:
    memory = np.zeros(3, np.int64)
    region([counting(memory, 0, items, 8) for items in (3, 0)] + [counting(memory, 1, 1, 8)])()
    assert memory.tolist() == [2, 1, 1]


def test_concurrent_regions() -> None:
    """One region has the helpers, and no region runs parts of another."""

    def work(seed: int) -> bool:
        rng = np.random.default_rng(seed)
        memory = np.zeros(64, np.int64)
        calls = [counting(memory, k, 64, int(rng.integers(1, 5)), int(rng.choice([0, 1, 300]))) for k in range(12)]
        whole = region(calls)
        for _ in range(40):
            memory[:] = 0
            whole()
            if (memory != 12).any():
                return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(work, range(6)))


def test_helpers_run_parts() -> None:
    """Parts that wait for one another, each in a thread of its own."""
    meeting = threading.Barrier(3)
    thread_ids: list[int] = []

    def meet(first: int, past: int) -> None:
        for _ in range(first, past):
            meeting.wait(60)
            thread_ids.append(threading.get_ident())

    region([called(meet, 3, threads=3)])()
    assert len(set(thread_ids)) == 3


def test_region_does_not_wait_for_helpers_of_another_region() -> None:
    """All helpers run parts of another region until this region has ended."""
    entered, over = threading.Barrier(3), threading.Event()

    def hold(*_: int) -> None:
        entered.wait(60)
        over.wait(60)

    holder = threading.Thread(target=region([called(hold, 2, threads=2)]))
    holder.start()
    entered.wait(60)
    memory = np.zeros(50, np.int64)
    region([counting(memory, k, 50, 2) for k in range(5)])()
    over.set()
    holder.join()
    assert (memory == 5).all()


def test_guard_is_called_if_its_word_is_not_zero() -> None:
    memory, word = np.zeros(4, np.int64), np.zeros(1, np.int64)
    snapshots: list[list[int]] = []
    guard = NativeGuard(word, (lambda: snapshots.append(memory.tolist()), ()))
    whole = region([counting(memory, 0, 4, 1), guard, counting(memory, 1, 4, 1), guard])
    whole()
    assert (snapshots, memory.tolist()) == ([], [2] * 4)
    memory[:], word[0] = 0, 1 << 40
    whole()
    assert (snapshots, memory.tolist()) == ([[1] * 4, [2] * 4], [2] * 4)


# ---------------------------------------------------------------- deadlines


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("at", [0, 1, 17, 39])
def test_stop_byte_ends_a_step_between_parts(threads: int, at: int) -> None:
    stop, memory = bytearray(1), np.zeros(10, np.int64)
    done, before = list[int](), list[int]()

    def stopping(first: int, past: int) -> None:
        done.extend(range(first, past))
        if at in range(first, past):
            stop[0] = 1
            before.append(len(done))

    watch = RegionWatch()
    watch.begin(Deadline(3600.0, stop=memoryview(stop)))
    whole = region([called(stopping, 40, threads), counting(memory, 0, 10, 1)], watch, 40 * PART_NANOSECONDS)
    with pytest.raises(DeadlineExceeded, match="no longer waits"):
        whole()
    assert len(set(done)) == len(done)
    assert at in done
    # parts that other threads had claimed are finished, at most one each
    assert len(done) <= before[0] + threads
    assert not memory.any()
    stop[0] = 0
    watch.end()
    done.clear()
    memory[:] = 0
    whole()
    assert (sorted(done), memory.tolist()) == ([*range(40)], [1] * 10)


def test_stop_byte_ends_a_region_of_undivided_steps() -> None:
    stop, done = bytearray(1), list[int]()
    calls = [called(lambda first, past, k=k: (done.append(k), stop.__setitem__(0, k == 5)), 1) for k in range(9)]  # type: ignore[misc]
    watch = RegionWatch()
    watch.begin(Deadline(stop=stop))
    with pytest.raises(DeadlineExceeded, match="no longer waits"):
        region(calls, watch, 10_000_000)()
    assert done == [0, 1, 2, 3, 4, 5]


def test_passed_deadline() -> None:
    memory, watch = np.zeros(1, np.int64), RegionWatch()
    whole = region([counting(memory, 0, 1, 1)], watch, 10_000_000)
    watch.begin(Deadline(1.0, start=0.0))
    with pytest.raises(DeadlineExceeded, match="within its timeout of 1 s"):
        whole()
    assert not memory.any()
    watch.begin(Deadline(1e9))
    whole()
    watch.begin(Deadline(float("inf")))
    memory[:] = 0
    whole()
    assert memory.tolist() == [1]


@pytest.mark.parametrize("stop", [b"\1", [1]])
def test_stop_without_a_buffer_is_checked_between_regions_only(stop: Sequence[int]) -> None:
    watch = RegionWatch()
    watch.begin(Deadline(stop=stop))
    memory = np.zeros(1, np.int64)
    region([counting(memory, 0, 1, 1)], watch, 10_000_000)()
    assert memory.tolist() == [1]


def test_stop_byte_that_was_set_briefly_ends_the_run() -> None:
    stop = bytearray(1)
    watch = RegionWatch()
    watch.begin(Deadline(stop=stop))
    assert "no longer waits" in str(watch.ended())
    assert watch.ended().code == "deadline_exceeded"
    watch.end()
    stop.append(0)  # its buffer is no longer exported
    watch.begin(NO_DEADLINE)


# ---------------------------------------------------------------- processes


def test_forked_process_has_its_own_helpers() -> None:
    memory = np.zeros(40, np.int64)
    whole = region([counting(memory, k, 40, 3) for k in range(10)])
    whole()
    child = os.fork()
    if not child:
        memory[:] = 0
        whole()
        os._exit(0 if (memory == 10).all() and the_runner().helpers == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
    memory[:] = 0
    whole()
    assert (memory == 10).all()


EXIT = """
import threading
import numpy as np
from tests.engine.codegen.native.test_runner import called, counting, region, the_runner
memory = np.zeros(64, np.int64)
whole = region([counting(memory, k, 64, 4, 100) for k in range(30)])
whole()
ready = threading.Event()
def forever():
    while True:
        memory[:] = 0
        whole()
        ready.set()
if {busy}:
    threading.Thread(target=forever, daemon=True).start()
    ready.wait(60)
print(the_runner().helpers, [thread.name for thread in threading.enumerate() if not thread.daemon])
"""


@pytest.mark.slow
@pytest.mark.parametrize("busy", [False, True])
def test_interpreter_exits_with_idle_or_busy_helpers(busy: bool) -> None:
    command = [sys.executable, "-c", EXIT.format(busy=busy)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3 ['MainThread']\n", "")


def test_closed_runner_runs_without_helpers() -> None:
    runner = Runner(machine_code(runner_text()))
    memory = np.zeros(40, np.int64)
    whole = Region(runner, RegionWatch(), [NativeStep(counting(memory, k, 40, 3), 1000) for k in range(10)])
    whole()
    threads = [thread for thread in threading.enumerate() if thread in runner._threads]
    assert len(threads) == runner.helpers == 2
    runner.close()
    assert not any(thread.is_alive() for thread in threads)
    memory[:] = 0
    whole()
    assert (memory == 10).all()


def test_region_runs_on_one_thread_if_none_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none_left)
    runner = Runner(machine_code(runner_text()))
    memory = np.zeros(40, np.int64)
    Region(runner, RegionWatch(), [NativeStep(counting(memory, 0, 40, 3), 1000)])()
    assert runner.helpers == 0
    assert (memory == 1).all()


# ---------------------------------------------------------------- loading


@pytest.fixture
def untried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runners, "_shared", runners._Shared())


@pytest.mark.usefixtures("untried")
def test_code_is_cached_and_recompiled_if_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    store, texts, key = KernelStore(), list[str](), kernel_key(runner_text(), **target())
    monkeypatch.setattr(runners, "machine_code", lambda text: texts.append(text) or machine_code(text))  # type: ignore[func-returns-value]
    store.put(key, b"no object file")
    assert shared_runner(store) is not None
    assert shared_runner(store) is shared_runner(KernelStore())
    assert texts == [runner_text()]
    monkeypatch.setattr(runners, "_shared", runners._Shared())
    assert shared_runner(store) is not None
    assert len(texts) == 1


@pytest.mark.usefixtures("untried")
def test_unavailable_runner_is_tried_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(_: str) -> bytes:
        raise KernelUnavailable("there is no compiler")

    monkeypatch.setattr(runners, "machine_code", refuse)
    assert [shared_runner(KernelStore()) for _ in range(3)] == [None] * 3
    assert [record.getMessage() for record in caplog.records] == [
        "kernels are called one by one from Python, not from machine code: there is no compiler"
    ]
