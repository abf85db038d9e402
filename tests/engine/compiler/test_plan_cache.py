"""The plan cache: bounded by count and bytes, and each plan is compiled once for concurrent requests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import engine.compiler.compiler as compiling
from engine import Compiler, Deadline, DeadlineExceeded, EngineError, Limits, Program, Statement, TensorType, registry
from engine.compiler.compiler import Cache
from engine.ir.fairness import charge_to

TYPES = {0: TensorType((4,), np.dtype("float64"))}
PATIENCE = 60.0  # seconds; a test that waits this long has failed


def texts(capacity: int = 10, bytes: int = 100) -> Cache[str]:
    """A cache of texts, whose size is their length."""
    return Cache(capacity, bytes, len)


def never() -> str:
    raise AssertionError("this is known")


# ---------------------------------------------------------------- bounds


def test_cached_value_is_not_built_again() -> None:
    cache = texts()
    assert cache.get("a", lambda: "one") == ("one", False)
    assert cache.get("a", never) == ("one", True)


def test_least_recently_used_is_evicted_first() -> None:
    cache = texts(capacity=2)
    for key in ("a", "b", "a", "c"):
        cache.get(key, lambda: "text")
    assert cache.get("a", never)[1]
    assert not cache.get("b", lambda: "text")[1]


def test_bytes_are_bounded() -> None:
    cache = texts(bytes=10)
    for key in ("a", "b", "c"):
        cache.get(key, lambda: "four")
    assert cache.get("b", never)[1]
    assert cache.get("c", never)[1]
    assert not cache.get("a", lambda: "four")[1]


def test_oversized_value_is_not_cached_and_evicts_no_other() -> None:
    cache = texts(bytes=10)
    cache.get("a", lambda: "four")
    assert cache.get("large", lambda: "of eleven..") == ("of eleven..", False)
    assert cache.get("a", never)[1]
    assert not cache.get("large", lambda: "of eleven..")[1]
    assert cache.get("full", lambda: "of ten....")[0] == cache.get("full", never)[0]


def test_failures_are_not_cached() -> None:
    cache = texts()

    def fail() -> str:
        raise KeyError("a")

    for _ in range(2):
        with pytest.raises(KeyError):
            cache.get("a", fail)
    assert cache.get("a", lambda: "one") == ("one", False)


def chain(length: int, name: str | None = None) -> Program:
    sines = (Statement(registry().ops["sin"], (i,), {}, name) for i in range(length))
    return Program(registry(), [Statement(registry().ops["parameter"]), *sines])


def test_oversized_plan_does_not_evict_others() -> None:
    small, large = chain(3), chain(300)
    compiler = Compiler(Limits(), bytes=20_000)
    compiler.forward(small, TYPES)
    compiler.forward(large, TYPES)
    assert compiler.forward(small, TYPES).cached
    assert not compiler.forward(large, TYPES).cached


@pytest.mark.slow
def test_two_gradient_plans_of_46_000_nodes_fit_in_the_cache() -> None:
    program, calls = chain(2000), 46_000 / 2000
    plan = Compiler(Limits()).gradients(program, {0: TensorType((), np.dtype("float64"))})
    assert 2 * calls * plan.nbytes < compiling.PLAN_BYTES


# ---------------------------------------------------------------- several at a time


class Gate:
    """A job that signals when it has begun, and waits until it is released."""

    def __init__(self, job: Callable[[], Any]) -> None:
        self.job, self.count = job, 0
        self.begun, self.open = threading.Event(), threading.Event()

    def __call__(self, *_: Any) -> Any:
        self.count += 1
        self.begun.set()
        assert self.open.wait(PATIENCE)
        return self.job()


class Joining(Deadline):
    """A deadline that signals when a thread waits within it."""

    def __init__(self) -> None:
        self.waiting = threading.Event()
        super().__init__(PATIENCE)

    @property
    def time(self) -> float:  # type: ignore[override]
        self.waiting.set()
        return self._time

    @time.setter
    def time(self, moment: float) -> None:
        self._time = moment


def request_concurrently(cache: Cache[str], first: Gate, second: Callable[[], str]) -> tuple[Future[Any], Future[Any]]:
    """Request a key twice: the second time once the first has begun, which ends once the second waits."""
    joining = Joining()
    with ThreadPoolExecutor(2) as threads:
        leader = threads.submit(cache.get, "a", first)
        assert first.begun.wait(PATIENCE)
        follower = threads.submit(cache.get, "a", second, joining)
        assert joining.waiting.wait(PATIENCE)
        first.open.set()
    return leader, follower


def test_concurrent_requests_share_one_result() -> None:
    cache = texts()
    leader, follower = request_concurrently(cache, Gate(lambda: "one"), never)
    assert leader.result() == ("one", False)
    assert follower.result() == ("one", True)


def test_oversized_value_is_shared_with_waiting_requests() -> None:
    cache = texts(bytes=1)
    leader, follower = request_concurrently(cache, Gate(lambda: "large"), never)
    assert (leader.result()[0], follower.result()) == ("large", ("large", True))


def test_waiter_retries_after_the_leader_fails() -> None:
    """The error is about the deadline of the leader, and may quote its node names."""

    def late() -> str:
        raise DeadlineExceeded("the request did not finish within its timeout of 1 s")

    cache = texts()
    leader, follower = request_concurrently(cache, Gate(late), lambda: "one")
    assert isinstance(leader.exception(), DeadlineExceeded)
    assert follower.result() == ("one", False)
    assert cache.get("a", never) == ("one", True)


def test_waiter_has_its_own_deadline() -> None:
    cache, first = texts(), Gate(lambda: "one")
    with ThreadPoolExecutor(1) as threads:
        leader = threads.submit(cache.get, "a", first)
        assert first.begun.wait(PATIENCE)
        with pytest.raises(DeadlineExceeded, match="within its timeout of 0 s"):
            cache.get("a", never, Deadline(0))
        assert cache.get("b", lambda: "other") == ("other", False), "only those who need it wait"
        first.open.set()
    assert leader.result() == ("one", False)


def test_one_of_many_threads_builds_the_value() -> None:
    cache, builds = texts(), []

    def build() -> str:
        builds.append(1)
        return "one"

    with ThreadPoolExecutor(16) as threads:
        results = [f.result() for f in [threads.submit(cache.get, "a", build) for _ in range(64)]]
    assert {value for value, _ in results} == {"one"}
    assert len(builds) == 1
    assert not cache._pending


def test_concurrent_requests_compile_a_plan_once(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(lambda: None)
    real, counted = compiling.compile_call, []

    def counting(*args: Any, **more: Any) -> Any:
        counted.append(1)
        gate()
        return real(*args, **more)

    monkeypatch.setattr(compiling, "compile_call", counting)
    compiler, joining = Compiler(Limits()), Joining()
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(compiler.gradients, chain(5), TYPES | {}, of=0, wrt=[0], cotangent=TYPES[0])
        assert gate.begun.wait(PATIENCE)
        second = threads.submit(
            compiler.gradients, chain(5), TYPES, of=0, wrt=[0], cotangent=TYPES[0], deadline=joining
        )
        assert joining.waiting.wait(PATIENCE)
        gate.open.set()
    assert (first.result().cached, second.result().cached) == (False, True)
    assert len(counted) == 1


def test_error_uses_the_node_name_of_its_own_request() -> None:
    """Names are not part of the cache key."""
    compiler, messages = Compiler(Limits(flops=10)), []
    for name in ("mine", "yours"):
        statements = [
            Statement(registry().ops["parameter"]),
            Statement(registry().ops["matmul"], (0, 0), {}, name),
        ]
        with pytest.raises(EngineError) as caught:
            compiler.forward(Program(registry(), statements), {0: TensorType((2, 3), np.dtype("float64"))})
        messages.append(str(caught.value))
    assert "mine" in messages[0]
    assert "yours" in messages[1]


# ---------------------------------------------------------------- owners


@pytest.fixture
def anybody() -> Iterator[None]:
    """Reset the current owner afterwards."""
    yield
    charge_to(None)


@pytest.mark.usefixtures("anybody")
def test_one_owner_cannot_evict_values_of_another() -> None:
    cache = texts(capacity=16, bytes=1000)
    for number in range(1000):
        charge_to("greedy")
        cache.get(number, lambda: "text")
        charge_to("modest")
        assert cache.get(f"own {number % 6}", lambda: "text")[1] is (number >= 6)
    assert cache.find(999) == "text", "what is left is the other's"


@pytest.mark.usefixtures("anybody")
def test_large_values_do_not_evict_small_ones_of_another_owner() -> None:
    cache = texts(capacity=100, bytes=100)
    charge_to("modest")
    for number in range(5):
        cache.get(f"own {number}", lambda: "four")
    charge_to("greedy")
    for number in range(50):
        cache.get(number, lambda: "of thirty bytes " + "." * 14)
    charge_to("modest")
    assert all(cache.get(f"own {number}", never)[1] for number in range(5))


@pytest.mark.usefixtures("anybody")
def test_shared_value_is_stored_once_and_stays_for_each_owner() -> None:
    cache = texts(capacity=4)
    charge_to("modest")
    cache.get("shared", lambda: "text")
    charge_to("greedy")
    assert cache.get("shared", never)[1]
    for number in range(10):
        cache.get(number, lambda: "text")
    assert cache.find("shared") == "text"
