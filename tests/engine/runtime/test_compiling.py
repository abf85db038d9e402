"""Background compilation: each key once, one log line per failure, and shutdown that waits for the running job."""

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
TIMEOUT = 60.0  # seconds; a test that waits this long has failed


@pytest.fixture
def make() -> Iterator[Callable[..., BackgroundCompiler]]:
    """Create compilers that are closed at the end."""
    created: list[BackgroundCompiler] = []

    def create(*arguments: int) -> BackgroundCompiler:
        created.append(BackgroundCompiler(*arguments))
        return created[-1]

    yield create
    for compiler in created:
        assert compiler.close(TIMEOUT)


class BlockingJob:
    """A job that reports its start, and blocks until released."""

    def __init__(self) -> None:
        self.started, self.released = Event(), Event()

    def __call__(self) -> None:
        self.started.set()
        assert self.released.wait(TIMEOUT)


def block_compiler(compiler: BackgroundCompiler) -> BlockingJob:
    """Block the thread in a job, so that other jobs wait."""
    job = BlockingJob()
    assert compiler.submit("held", job)
    assert job.started.wait(TIMEOUT)
    return job


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "gradserve.kernels" and r.levelno >= logging.WARNING]


def failing_job() -> None:
    raise KernelUnavailable("the system refuses executable memory")


Make = Callable[..., BackgroundCompiler]


# ---------------------------------------------------------------- jobs


def test_jobs_run_in_order_in_another_thread(make: Make) -> None:
    ran: list[tuple[int, Thread]] = []
    compiler = make()
    for i in range(20):
        assert compiler.submit(i, lambda i=i: ran.append((i, threading.current_thread())))
    assert compiler.settle(TIMEOUT)
    assert [i for i, _ in ran] == list(range(20))
    (thread,) = {thread for _, thread in ran}
    assert thread is not threading.current_thread()


def test_thread_starts_with_the_first_job(make: Make) -> None:
    before = threading.active_count()
    compiler = make()
    assert compiler.settle()
    assert threading.active_count() == before
    compiler.submit("a", lambda: None)
    assert compiler.settle(TIMEOUT)
    assert threading.active_count() == before + 1


def test_waiting_or_running_key_is_not_accepted_again(make: Make) -> None:
    compiler, ran = make(), []
    job = block_compiler(compiler)
    assert not compiler.submit("held", job)
    assert compiler.submit("a", lambda: ran.append(1))
    assert not compiler.submit("a", lambda: ran.append(2))
    assert not compiler.settle(0), "a job runs"
    job.released.set()
    assert compiler.settle(TIMEOUT)
    assert ran == [1]


def test_finished_key_is_accepted_again(make: Make) -> None:
    """Its kernel may have been dropped together with its plan."""
    compiler, ran = make(), []
    for _ in range(2):
        assert compiler.submit("a", lambda: ran.append(1))
        assert compiler.settle(TIMEOUT)
    assert ran == [1, 1]


def test_queue_is_bounded_and_accepted_jobs_run(make: Make) -> None:
    compiler, ran = make(2), []
    job = block_compiler(compiler)
    assert [compiler.submit(i, lambda i=i: ran.append(i)) for i in range(3)] == [True, True, False]
    job.released.set()
    assert compiler.settle(TIMEOUT)
    assert ran == [0, 1]
    assert compiler.submit(2, lambda: ran.append(2))
    assert compiler.settle(TIMEOUT)
    assert ran == [0, 1, 2]


def test_owners_take_turns(make: Make) -> None:
    """An owner with many queued jobs delays others by at most the running job."""
    compiler, ran = make(), []
    job = block_compiler(compiler)
    try:
        for owner, count in (("greedy", 100), ("modest", 3)):
            charge_to(owner)
            for i in range(count):
                assert compiler.submit((owner, i), lambda owner=owner: ran.append(owner))
    finally:
        charge_to(None)
    job.released.set()
    assert compiler.settle(TIMEOUT)
    assert len(ran) == 103
    assert ran[:99].count("modest") == 3


def test_job_submitted_by_a_job_has_the_same_owner(make: Make) -> None:
    compiler, owners = make(), []

    def job(remaining: int) -> None:
        owners.append(current_owner())
        if remaining:
            assert compiler.submit((current_owner(), remaining), lambda: job(remaining - 1))

    blocker = block_compiler(compiler)
    try:
        for owner in ("a", "b"):
            charge_to(owner)
            assert compiler.submit(owner, lambda: job(2))
    finally:
        charge_to(None)
    blocker.released.set()
    assert compiler.settle(TIMEOUT)
    assert sorted(owners) == ["a"] * 3 + ["b"] * 3
    assert owners[:2] == ["a", "b"]


def test_full_queue_drops_jobs_of_the_largest_owner(make: Make) -> None:
    compiler, ran, dropped = make(4), [], []
    job = block_compiler(compiler)
    try:
        charge_to("greedy")
        accepted = [compiler.submit(i, lambda i=i: ran.append(i), lambda i=i: dropped.append(i)) for i in range(6)]
        charge_to("modest")
        accepted += [compiler.submit(key, lambda key=key: ran.append(key)) for key in "abc"]
    finally:
        charge_to(None)
    assert accepted == [True] * 4 + [False] * 2 + [True, True, False]
    assert dropped == [3, 2]
    job.released.set()
    assert compiler.settle(TIMEOUT)
    assert set(ran) == {0, 1, "a", "b"}
    assert compiler.submit(3, lambda: ran.append(3)), "it may be handed in again"
    assert compiler.settle(TIMEOUT)


def test_job_can_submit_another(make: Make) -> None:
    compiler, ran = make(), []
    assert compiler.submit("a", lambda: compiler.submit("b", lambda: ran.append("b")))
    assert compiler.settle(TIMEOUT)
    assert ran == ["b"]


def test_concurrent_submissions(make: Make) -> None:
    compiler, ran = make(), []
    barrier = threading.Barrier(8)

    def submit_all() -> None:
        barrier.wait(TIMEOUT)
        for key in range(50):
            compiler.submit(key, lambda key=key: ran.append(key))

    job = block_compiler(compiler)
    threads = [Thread(target=submit_all) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    job.released.set()
    assert compiler.settle(TIMEOUT)
    assert sorted(ran) == list(range(50))


def test_finished_job_is_released(make: Make) -> None:
    """A thread that waits for work must not keep a plan alive that the cache has evicted."""
    compiler, job = make(), BlockingJob()
    job.released.set()
    reference = weakref.ref(job)
    assert compiler.submit("a", job)
    assert compiler.settle(TIMEOUT)
    finalized = Event()
    weakref.finalize(job, finalized.set)
    del job
    assert finalized.wait(TIMEOUT)
    assert reference() is None


# ---------------------------------------------------------------- failures


def test_failure_is_logged_once_and_not_retried(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    compiler = make()
    assert compiler.submit("a", failing_job)
    assert compiler.settle(TIMEOUT)
    assert not compiler.submit("a", failing_job)
    assert warnings(caplog) == [
        "a kernel was not compiled, and NumPy computes it: the system refuses executable memory"
    ]


def test_unexpected_error_is_logged_with_a_debug_traceback(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "gradserve.kernels")
    compiler = make()
    assert compiler.submit("a", lambda: 1 // 0)
    assert compiler.settle(TIMEOUT)
    (warning,) = warnings(caplog)
    assert warning.endswith(": ZeroDivisionError: integer division or modulo by zero")
    assert [r.exc_info is not None for r in caplog.records] == [True, False]


def test_each_failure_reason_is_logged_once(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    """If no kernel can be compiled, one line per kernel would add nothing."""
    compiler = make()
    for key in range(5):
        assert compiler.submit(key, failing_job)
    assert compiler.submit("other", lambda: 1 // 0)
    assert compiler.settle(TIMEOUT)
    assert len(warnings(caplog)) == 2


def test_jobs_continue_after_a_failure(make: Make) -> None:
    compiler, ran = make(), []
    assert compiler.submit("a", failing_job)
    assert compiler.submit("b", lambda: ran.append("b"))
    assert compiler.settle(TIMEOUT)
    assert ran == ["b"]


def test_recorded_failures_are_bounded(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "MOST_FAILED", 2)
    compiler = make()
    for key in range(3):
        assert compiler.submit(key, failing_job)
    assert compiler.settle(TIMEOUT)
    assert [compiler.submit(key, failing_job) for key in (2, 1, 0)] == [False, False, True]
    assert compiler.settle(TIMEOUT)


def test_thread_that_fails_to_start(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Thread) -> None:
        raise RuntimeError("can't start new thread")

    compiler = make()
    with monkeypatch.context() as patch:
        patch.setattr(Thread, "start", refuse)
        assert not compiler.submit("a", failing_job)
        assert compiler.settle()
    assert compiler.submit("a", lambda: None)


# ---------------------------------------------------------------- shutdown


def test_close_during_a_job(make: Make) -> None:
    compiler, ran = make(), []
    job = block_compiler(compiler)
    assert compiler.submit("a", lambda: ran.append("a"))
    assert not compiler.closing
    assert not compiler.close(0), "the job runs"
    assert compiler.closing
    assert not compiler.submit("b", lambda: ran.append("b"))
    job.released.set()
    assert compiler.close(TIMEOUT)
    assert compiler.settle(TIMEOUT)
    assert ran == []


def test_close_without_a_job() -> None:
    compiler = BackgroundCompiler()
    assert compiler.close()
    assert compiler.close()
    assert not compiler.submit("a", lambda: None)


@pytest.mark.slow
@pytest.mark.usefixtures("own_garbage")
def test_thread_ends_with_its_compiler() -> None:
    before = set(threading.enumerate())
    compiler = BackgroundCompiler()
    compiler.submit("a", lambda: None)
    (thread,) = set(threading.enumerate()) - before
    del compiler
    gc.collect()
    assert not thread.is_alive()


def test_job_with_the_last_reference_to_its_compiler() -> None:
    """The thread ends itself, and does not wait for itself."""
    before = set(threading.enumerate())
    job = BlockingJob()
    compiler = BackgroundCompiler()
    holder = [compiler]
    compiler.submit("a", lambda: (job(), holder.clear()))
    (thread,) = set(threading.enumerate()) - before
    del compiler
    job.released.set()
    thread.join(TIMEOUT)
    assert not thread.is_alive()


#: process exit while a job is inside a compiler: it has left the interpreter, and comes back
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


def start_process(ending: str) -> subprocess.Popen[str]:
    """Start a process that has begun to compile."""
    command = [sys.executable, "-c", PROGRAM + ending]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "compiling\n"
    return process


def test_process_exit_waits_for_the_running_job() -> None:
    """The job sees that the compiler is closing, and still has much to do."""
    process = start_process("os.write(writing, b'!')")
    assert process.communicate("\n", TIMEOUT)[0] == "compiled\n"
    assert process.returncode == 0


def test_sigterm_ends_the_process_at_once() -> None:
    process = start_process("")
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=TIMEOUT)[0] == ""
    assert process.returncode == -signal.SIGTERM


def test_signal_handler_can_exit_during_a_job() -> None:
    """Like in the server, the job never returns, and the process still ends."""
    handler = """
signal.signal(signal.SIGTERM, lambda *_: os._exit(0 if not compiler.close(0) else 1))
print("ready", flush=True)
signal.pause()
"""
    process = start_process(handler)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=TIMEOUT)[0] == ""
    assert process.returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_process_has_its_own_thread() -> None:
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
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
