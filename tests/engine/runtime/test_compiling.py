"""Compiling in the background: each key once, failures said once, and an end that waits for what is in the compiler."""

from __future__ import annotations

import gc
import logging
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

from engine.codegen.native.machine_code import KernelUnavailable
from engine.ir.fairness import charge_to, current_owner
from engine.runtime import tiers as compiling
from engine.runtime.tiers import BackgroundCompiler

ROOT = Path(__file__).parents[3]
PATIENCE = 60.0  # seconds; a test that waits as long has failed


@pytest.fixture
def make() -> Iterator[Callable[..., BackgroundCompiler]]:
    """Makes compilers that are closed at the end."""
    made: list[BackgroundCompiler] = []

    def one(*arguments: int) -> BackgroundCompiler:
        made.append(BackgroundCompiler(*arguments))
        return made[-1]

    yield one
    for compiler in made:
        assert compiler.close(PATIENCE)


class Held:
    """A job that says when it has begun, and goes on when it is told to."""

    def __init__(self) -> None:
        self.begun, self.told = Event(), Event()

    def __call__(self) -> None:
        self.begun.set()
        assert self.told.wait(PATIENCE)


def holding(compiler: BackgroundCompiler) -> Held:
    """Keep the thread in a job, so that others wait."""
    job = Held()
    assert compiler.submit("held", job)
    assert job.begun.wait(PATIENCE)
    return job


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "gradserve.kernels" and r.levelno >= logging.WARNING]


def fails() -> None:
    raise KernelUnavailable("the system refuses executable memory")


Make = Callable[..., BackgroundCompiler]


# ---------------------------------------------------------------- what is run


def test_jobs_run_in_their_order_in_another_thread(make: Make) -> None:
    ran: list[tuple[int, Thread]] = []
    compiler = make()
    for i in range(20):
        assert compiler.submit(i, lambda i=i: ran.append((i, threading.current_thread())))
    assert compiler.settle(PATIENCE)
    assert [i for i, _ in ran] == list(range(20))
    (thread,) = {thread for _, thread in ran}
    assert thread is not threading.current_thread()


def test_the_thread_begins_with_the_first_job(make: Make) -> None:
    before = threading.active_count()
    compiler = make()
    assert compiler.settle()
    assert threading.active_count() == before
    compiler.submit("a", lambda: None)
    assert compiler.settle(PATIENCE)
    assert threading.active_count() == before + 1


def test_a_key_that_waits_or_runs_is_not_taken_again(make: Make) -> None:
    compiler, ran = make(), []
    job = holding(compiler)
    assert not compiler.submit("held", job)
    assert compiler.submit("a", lambda: ran.append(1))
    assert not compiler.submit("a", lambda: ran.append(2))
    assert not compiler.settle(0), "a job runs"
    job.told.set()
    assert compiler.settle(PATIENCE)
    assert ran == [1]


def test_a_key_whose_job_succeeded_is_taken_again(make: Make) -> None:
    """What it made may have been dropped with the plan that had it."""
    compiler, ran = make(), []
    for _ in range(2):
        assert compiler.submit("a", lambda: ran.append(1))
        assert compiler.settle(PATIENCE)
    assert ran == [1, 1]


def test_the_queue_is_bounded_and_nothing_that_was_taken_is_lost(make: Make) -> None:
    compiler, ran = make(2), []
    job = holding(compiler)
    assert [compiler.submit(i, lambda i=i: ran.append(i)) for i in range(3)] == [True, True, False]
    job.told.set()
    assert compiler.settle(PATIENCE)
    assert ran == [0, 1]
    assert compiler.submit(2, lambda: ran.append(2))
    assert compiler.settle(PATIENCE)
    assert ran == [0, 1, 2]


def test_owners_take_turns(make: Make) -> None:
    """One whose jobs are many, and are there first, keeps nobody waiting for more than the one that runs."""
    compiler, ran = make(), []
    job = holding(compiler)
    try:
        for owner, count in (("greedy", 100), ("modest", 3)):
            charge_to(owner)
            for i in range(count):
                assert compiler.submit((owner, i), lambda owner=owner: ran.append(owner))
    finally:
        charge_to(None)
    job.told.set()
    assert compiler.settle(PATIENCE)
    assert len(ran) == 103
    assert ran[:99].count("modest") == 3


def test_what_a_job_hands_in_is_its_owners(make: Make) -> None:
    compiler, owners = make(), []

    def job(left: int) -> None:
        owners.append(current_owner())
        if left:
            assert compiler.submit((current_owner(), left), lambda: job(left - 1))

    held = holding(compiler)
    try:
        for owner in ("a", "b"):
            charge_to(owner)
            assert compiler.submit(owner, lambda: job(2))
    finally:
        charge_to(None)
    held.told.set()
    assert compiler.settle(PATIENCE)
    assert sorted(owners) == ["a"] * 3 + ["b"] * 3
    assert owners[:2] == ["a", "b"]


def test_who_has_most_in_a_full_queue_gives_way(make: Make) -> None:
    compiler, ran, dropped = make(4), [], []
    job = holding(compiler)
    try:
        charge_to("greedy")
        taken = [compiler.submit(i, lambda i=i: ran.append(i), lambda i=i: dropped.append(i)) for i in range(6)]
        charge_to("modest")
        taken += [compiler.submit(key, lambda key=key: ran.append(key)) for key in "abc"]
    finally:
        charge_to(None)
    assert taken == [True] * 4 + [False] * 2 + [True, True, False]
    assert dropped == [3, 2]
    job.told.set()
    assert compiler.settle(PATIENCE)
    assert set(ran) == {0, 1, "a", "b"}
    assert compiler.submit(3, lambda: ran.append(3)), "it may be handed in again"
    assert compiler.settle(PATIENCE)


def test_a_job_may_hand_in_another(make: Make) -> None:
    compiler, ran = make(), []
    assert compiler.submit("a", lambda: compiler.submit("b", lambda: ran.append("b")))
    assert compiler.settle(PATIENCE)
    assert ran == ["b"]


def test_many_who_hand_in_at_once(make: Make) -> None:
    compiler, ran = make(), []
    barrier = threading.Barrier(8)

    def hand_in() -> None:
        barrier.wait(PATIENCE)
        for key in range(50):
            compiler.submit(key, lambda key=key: ran.append(key))

    job = holding(compiler)
    threads = [Thread(target=hand_in) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    job.told.set()
    assert compiler.settle(PATIENCE)
    assert sorted(ran) == list(range(50))


def test_what_a_job_held_is_let_go(make: Make) -> None:
    """A thread that waits for work must not keep a plan alive that the cache has dropped."""
    compiler, job = make(), Held()
    job.told.set()
    lost = weakref.ref(job)
    assert compiler.submit("a", job)
    assert compiler.settle(PATIENCE)
    gone = Event()
    weakref.finalize(job, gone.set)
    del job
    assert gone.wait(PATIENCE)
    assert lost() is None


# ---------------------------------------------------------------- failures


def test_a_failure_is_said_once_and_never_tried_again(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    compiler = make()
    assert compiler.submit("a", fails)
    assert compiler.settle(PATIENCE)
    assert not compiler.submit("a", fails)
    assert warnings(caplog) == [
        "a kernel was not compiled, and NumPy computes it: the system refuses executable memory"
    ]


def test_a_fault_is_said_with_its_kind_and_traced_for_those_who_debug(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "gradserve.kernels")
    compiler = make()
    assert compiler.submit("a", lambda: 1 // 0)
    assert compiler.settle(PATIENCE)
    (said,) = warnings(caplog)
    assert said.endswith(": ZeroDivisionError: integer division or modulo by zero")
    assert [r.exc_info is not None for r in caplog.records] == [True, False]


def test_a_reason_is_said_once(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    """Where no kernel can be had, a line for each of them would say nothing more."""
    compiler = make()
    for key in range(5):
        assert compiler.submit(key, fails)
    assert compiler.submit("other", lambda: 1 // 0)
    assert compiler.settle(PATIENCE)
    assert len(warnings(caplog)) == 2


def test_jobs_go_on_after_a_failure(make: Make) -> None:
    compiler, ran = make(), []
    assert compiler.submit("a", fails)
    assert compiler.submit("b", lambda: ran.append("b"))
    assert compiler.settle(PATIENCE)
    assert ran == ["b"]


def test_the_failures_that_are_remembered_are_bounded(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "MOST_FAILED", 2)
    compiler = make()
    for key in range(3):
        assert compiler.submit(key, fails)
    assert compiler.settle(PATIENCE)
    assert [compiler.submit(key, fails) for key in (2, 1, 0)] == [False, False, True]
    assert compiler.settle(PATIENCE)


def test_a_thread_that_cannot_be_had(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Thread) -> None:
        raise RuntimeError("can't start new thread")

    compiler = make()
    with monkeypatch.context() as without:
        without.setattr(Thread, "start", refuse)
        assert not compiler.submit("a", fails)
        assert compiler.settle()
    assert compiler.submit("a", lambda: None)


# ---------------------------------------------------------------- the end


def test_close_in_the_middle_of_a_job(make: Make) -> None:
    compiler, ran = make(), []
    job = holding(compiler)
    assert compiler.submit("a", lambda: ran.append("a"))
    assert not compiler.closing
    assert not compiler.close(0), "the job runs"
    assert compiler.closing
    assert not compiler.submit("b", lambda: ran.append("b"))
    job.told.set()
    assert compiler.close(PATIENCE)
    assert compiler.settle(PATIENCE)
    assert ran == []


def test_close_without_a_job() -> None:
    compiler = BackgroundCompiler()
    assert compiler.close()
    assert compiler.close()
    assert not compiler.submit("a", lambda: None)


@pytest.mark.slow
@pytest.mark.usefixtures("own_garbage")
def test_a_compiler_that_is_lost_takes_its_thread_along() -> None:
    before = set(threading.enumerate())
    compiler = BackgroundCompiler()
    compiler.submit("a", lambda: None)
    (thread,) = set(threading.enumerate()) - before
    del compiler
    gc.collect()
    assert not thread.is_alive()


def test_a_job_that_holds_the_last_reference() -> None:
    """The thread ends itself, and does not wait for itself."""
    before = set(threading.enumerate())
    job = Held()
    compiler = BackgroundCompiler()
    holder = [compiler]
    compiler.submit("a", lambda: (job(), holder.clear()))
    (thread,) = set(threading.enumerate()) - before
    del compiler
    job.told.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()


#: the end of a process while a job is inside a compiler: it has left the interpreter, and comes back
PROGRAM = """
import ctypes, os, signal, sys
from engine.runtime.tiers import BackgroundCompiler
compiler = BackgroundCompiler()
reading, writing = os.pipe()
libc = ctypes.CDLL(None)
buffer = ctypes.create_string_buffer(1)
def job():
    print("compiling", flush=True)
    libc.read(reading, buffer, 1)
    while not compiler.closing:
        os.sched_yield()
    sum(range(3_000_000))
    print("compiled", flush=True)
compiler.submit("a", job)
compiler.submit("b", lambda: print("never", flush=True))
sys.stdin.readline()
"""


def started(ending: str) -> subprocess.Popen[str]:
    """A process that has begun to compile."""
    command = [sys.executable, "-c", PROGRAM + ending]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "compiling\n"
    return process


def test_a_process_that_ends_waits_for_the_job_that_runs() -> None:
    """The job sees that the end has come, and has much to do yet."""
    process = started("os.write(writing, b'!')")
    assert process.communicate("\n", PATIENCE)[0] == "compiled\n"
    assert process.returncode == 0


def test_a_process_that_is_terminated_ends_at_once() -> None:
    process = started("")
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=PATIENCE)[0] == ""
    assert process.returncode == -signal.SIGTERM


def test_a_process_that_handles_the_signal_may_leave_the_job_where_it_is() -> None:
    """As the server does: the job never returns here, and the process ends all the same."""
    handler = """
signal.signal(signal.SIGTERM, lambda *_: os._exit(0 if not compiler.close(0) else 1))
print("ready", flush=True)
signal.pause()
"""
    process = started(handler)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=PATIENCE)[0] == ""
    assert process.returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_that_was_forked_has_a_thread_of_its_own() -> None:
    program = """
import os
from engine.runtime.tiers import BackgroundCompiler
compiler = BackgroundCompiler()
compiler.submit("a", lambda: None)
assert compiler.settle(60)
if child := os.fork():
    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
ran = []
assert compiler.submit("b", lambda: ran.append("b"))
assert compiler.settle(60) and ran == ["b"]
"""
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
