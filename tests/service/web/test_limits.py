"""Limits on nodes, bytes, FLOPs, answers, the queue and time; and reports of internal errors."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from engine import Deadline
from service.api.media import JSON
from service.core.settings import Settings
from service.workers.task import Reply, Task
from service.workers.worker import Worker
from tests.conftest import Client
from tests.service.application import create_routes, wrap
from tests.service.support import SQUARES, feed, node, problem, request
from tests.service.thread_pool import ThreadPool

SETTINGS = Settings(device="cpu")


def test_too_many_nodes_are_refused(make_client: Callable[..., Client]) -> None:
    client = make_client(max_nodes=20)
    problem(client.post("/v1/forward", json=request(*[node("full")] * 21)), 413, "too_many_nodes")
    assert client.post("/v1/forward", json=request(*[node("full")] * 20)).status_code == 200


def test_gradient_nodes_count_towards_the_limit(make_client: Callable[..., Client]) -> None:
    client = make_client(max_expanded_nodes=20)
    chain = [node("parameter"), *(node("tanh", i) for i in range(10)), node("sum", 10)]
    fed = [feed(0, [1], [1])]
    assert client.post("/v1/forward", json=request(*chain, feeds=fed)).status_code == 200
    problem(client.post("/v1/gradients", json=request(*chain, feeds=fed)), 413, "too_many_nodes")


@pytest.mark.slow
@pytest.mark.parametrize(("levels", "most", "status"), [(8, 50, 200), (11, 50, 413), (11, 10_000, 200)])
def test_expansion_of_nested_gradients_is_limited(
    make_client: Callable[..., Client], levels: int, most: int, status: int
) -> None:
    """Each level triples the number of nodes; the other limit would allow a million of them."""
    nodes = [node("parameter"), node("tanh", 0), *(node("grad", i + 1, 0) for i in range(levels))]
    client = make_client(max_expansion=most)
    response = client.post("/v1/forward", json=request(*nodes, feeds=[feed(0, [], [0.3])]))
    assert response.status_code == status
    if status == 413:
        assert problem(response, 413, "too_many_nodes")["expected"] == f"at most {30_000 + 50 * len(nodes)} nodes"


@pytest.mark.parametrize(
    ("setting", "body"),
    [
        ({"max_bytes": 1000}, request(node("full", shape=[126]))),
        (
            {"max_bytes": 1000},
            request(node("input"), node("tanh", 0), outputs=[0, 1], feeds=[feed(0, [100], [1] * 100)]),
        ),
        ({"max_flops": 99}, request(node("input"), node("tanh", 0), feeds=[feed(0, [100], [1] * 100)])),
        ({"max_rank": 3}, request(node("full", shape=[1, 1, 1, 1]))),
        ({"max_response_bytes": 2000}, request(node("full", shape=[100]))),
        ({"max_response_bytes": 2000}, request(*[node("full")] * 100, outputs=list(range(100)))),
    ],
    ids=["bytes of a tensor", "bytes of an execution", "FLOPs", "axes", "bytes of an answer", "tensors of an answer"],
)
def test_request_over_a_limit_is_refused(
    make_client: Callable[..., Client], setting: dict[str, int], body: dict[str, object]
) -> None:
    problem(make_client(**setting).post("/v1/forward", json=body), 413, "over_budget")


@pytest.mark.slow
def test_base64_answer_fits_a_smaller_limit(make_client: Callable[..., Client]) -> None:
    client = make_client(max_response_bytes=2000)
    body = request(node("full", shape=[100]), encoding="base64")
    assert client.post("/v1/forward", json=body).status_code == 200


def test_oversized_answer_is_refused_before_execution(
    make_client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*_: object) -> None:
        raise AssertionError("executed")

    client = make_client(max_response_bytes=2000)
    monkeypatch.setattr("engine.runtime.numpy_backend.NumPyExecutor.run", forbidden)
    problem(client.post("/v1/forward", json=request(node("full", shape=[100]))), 413, "over_budget")


class Gate:
    """Work that blocks until the test opens the gate."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.open = threading.Event()

    def __call__(self, job: Task) -> Reply:
        self.begun.release()
        assert self.open.wait(60)
        return Reply(200, JSON, [b'{"done": true}'])

    async def has_begun(self) -> None:
        assert await asyncio.to_thread(self.begun.acquire, timeout=60)


@asynccontextmanager
async def serving(work: Callable[[Task], Reply], pool: ThreadPool | None = None) -> AsyncIterator[httpx.AsyncClient]:
    pool = pool or ThreadPool(work, "cpu", workers=1, queue=1)
    transport = httpx.ASGITransport(wrap(create_routes(SETTINGS, pool), SETTINGS))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client:
        yield client


def test_slow_call_does_not_block_other_requests() -> None:
    async def scenario() -> None:
        gate = Gate()
        async with serving(gate) as client:
            slow = asyncio.create_task(client.post("/v1/gradients", json=SQUARES))
            await gate.has_begun()
            assert (await client.get("/health/live")).status_code == 200
            assert (await client.get("/v1/ops")).status_code == 200
            assert not slow.done()
            gate.open.set()
            assert (await slow).json() == {"done": True}

    asyncio.run(scenario())


def test_full_queue_refuses_new_calls() -> None:
    async def scenario() -> None:
        gate = Gate()
        async with serving(gate) as client:
            running = asyncio.create_task(client.post("/v1/forward", json=SQUARES))
            await gate.has_begun()
            others = [asyncio.create_task(client.post("/v1/forward", json=SQUARES)) for _ in range(2)]
            (refused,), (waiting,) = await asyncio.wait(others, return_when=asyncio.FIRST_COMPLETED)
            surplus = await refused
            problem(surplus, 503, "queue_full")
            assert surplus.headers["retry-after"] == "1"
            gate.open.set()
            assert [(await task).status_code for task in (running, waiting)] == [200, 200]
            assert (await client.post("/v1/forward", json=SQUARES)).status_code == 200

    asyncio.run(scenario())


def test_worker_is_free_again_after_late_work_ends() -> None:
    async def scenario() -> None:
        gate = Gate()
        pool = ThreadPool(gate, "cpu", workers=1, queue=1)
        async with serving(gate, pool) as client:
            begun = False
            while not begun:  # a stalled machine may cancel a job before its thread takes it up
                late = await client.post("/v1/forward?timeout_ms=20", json=SQUARES)
                problem(late, 504, "deadline_exceeded")
                begun = gate.begun.acquire(blocking=False)
            assert pool.busy, "the thread is still at it"
            gate.open.set()
            assert (await client.post("/v1/forward", json=SQUARES)).status_code == 200

    asyncio.run(scenario())


def test_stopping_server_finishes_running_calls_only() -> None:
    async def scenario() -> None:
        gate = Gate()
        pool = ThreadPool(gate, "cpu", workers=1, queue=1)
        async with serving(gate, pool) as client:
            running = asyncio.create_task(client.post("/v1/forward", json=SQUARES))
            await gate.has_begun()
            pool.drain()
            refused = await client.post("/v1/forward", json=SQUARES)
            problem(refused, 503, "shutting_down")
            assert "retry-after" in refused.headers
            problem(await client.get("/health/ready"), 503, "shutting_down")
            assert (await client.get("/health/live")).status_code == 200
            gate.open.set()
            assert (await running).status_code == 200

    asyncio.run(scenario())


def job(body: bytes = b"{}", call: str = "forward", seconds: float = 60) -> Task:
    return Task(call, body, "id", seconds, time.monotonic() + seconds)


def test_worker_checks_the_deadline_before_it_starts() -> None:
    """The time counts from the arrival of the request, not from the start of the work."""
    reply = Worker(SETTINGS)(Task("forward", b"{}", "id", 60, time.monotonic() - 1))
    assert (reply.status, b'"deadline_exceeded"' in reply.body) == (504, True)


def test_deadline_is_checked_during_execution(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last check follows the last step: a late result is not sent."""
    from engine import DeadlineExceeded

    executed: list[int] = []
    original = Deadline.check

    def check(self: Deadline) -> None:
        executed.append(1)
        if len(executed) == 8:
            raise DeadlineExceeded("the request did not finish within its timeout of 1 s")
        original(self)

    monkeypatch.setattr(Deadline, "check", check)
    chain = [node("full"), *(node("square", i) for i in range(20))]
    import orjson

    assert Worker(SETTINGS)(job(orjson.dumps(request(*chain)))).status == 504


@pytest.mark.parametrize(
    ("raised", "status", "code"),
    [(MemoryError(), 413, "over_budget"), (RuntimeError("secret"), 500, "internal_error")],
)
def test_worker_error_is_reported_without_its_message(
    make_client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, raised: Exception, status: int, code: str
) -> None:
    def broken(*_: object) -> None:
        raise raised

    client = make_client()
    monkeypatch.setattr("service.workers.executions.computing.Computing.run_call", broken)
    report = problem(client.post("/v1/forward", json=request(node("full"))), status, code)
    assert "secret" not in report["detail"]
    monkeypatch.undo()
    assert client.post("/v1/forward", json=request(node("full"))).status_code == 200


def test_front_error_is_reported_without_its_message(
    make_client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret")

    client = make_client()
    monkeypatch.setattr("service.web.routes.parameters_of", broken)
    assert "secret" not in problem(client.post("/v1/forward", json={}), 500, "internal_error")["detail"]
    monkeypatch.setattr("service.web.middleware.check_head", broken)
    assert "secret" not in problem(client.get("/health/live"), 500, "internal_error")["detail"]


@pytest.mark.slow
def test_plan_larger_than_the_cache_evicts_no_other(make_client: Callable[..., Client]) -> None:
    client = make_client(plan_cache_bytes="64KiB")
    large = request(node("parameter"), *[node("sin", i) for i in range(500)], feeds=[feed(0, [], [1.0])])

    def cached(body: Any) -> bool:
        return bool(client.post("/v1/gradients", json=body).json()["stats"]["plan_cached"])

    assert [cached(SQUARES), cached(SQUARES)] == [False, True]
    assert [cached(large), cached(large)] == [False, False]
    assert cached(SQUARES)
