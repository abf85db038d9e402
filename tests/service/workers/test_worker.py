"""Results of a worker beside the answer: timings, estimates, and reasons to be replaced."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import orjson
import pytest

from service.api.calls import calls
from service.core.errors import UNREADABLE
from service.core.settings import Settings
from service.workers.executions import executions
from service.workers.task import Reply, Task, TooLong
from service.workers.worker import Worker
from tests.service.support import SQUARES, feed, node, request

#: longer than any job of these tests takes
HOURS = 10_000.0


@pytest.fixture(scope="module")
def worker() -> Worker:
    return Worker(Settings(device="cpu", compile="off"))


def job(body: dict[str, Any], call: str = "gradients", **more: Any) -> Task:
    return Task(call, orjson.dumps(body), "id", 60.0, time.monotonic() + 60.0, **more)


def fresh(scale: float, call: str = "gradients") -> Task:
    """A job that no other test has planned."""
    scaled = request(
        node("parameter"), node("mul_scalar", 0, scalar=scale), node("sum", 1), feeds=[feed(0, [2], [1, 2])]
    )
    return job(scaled, call)


def test_phases_of_a_job_add_up_to_its_time(worker: Worker) -> None:
    started = time.perf_counter()
    reply = worker(fresh(2.5))
    elapsed = time.perf_counter() - started
    assert reply.timings.waited == 0.0
    assert all(part > 0 for part in reply.timings[1:])
    assert reply.timings.backward < reply.timings.execute
    assert sum(reply.timings) - reply.timings.backward <= elapsed


@pytest.mark.parametrize("call", ["plan", "differentiate"])
def test_call_without_a_run_has_phases(worker: Worker, call: str) -> None:
    reply = worker(job(next(iter(calls()[call].examples.values())), call))
    assert reply.status == 200
    assert reply.timings.decode > 0
    assert reply.timings.execute > 0


def test_plan_is_cached_from_the_second_job_on(worker: Worker) -> None:
    assert [worker(fresh(3.5)).cached for _ in range(3)] == [False, True, True]


def must_not_run(*_: Any) -> Any:
    raise AssertionError("it was run")


@pytest.mark.parametrize("name", list(calls()))
def test_job_over_its_limit_is_not_run(worker: Worker, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(executions()[name]), "run_call", must_not_run)
    result = worker.attempt(job(next(iter(calls()[name].examples.values())), name), 0.0)
    assert isinstance(result, TooLong)
    assert 0 < result.estimate.seconds < 1


@pytest.mark.parametrize("name", list(calls()))
def test_job_within_its_limit_is_answered(worker: Worker, name: str) -> None:
    result = worker.attempt(job(next(iter(calls()[name].examples.values())), name), HOURS)
    assert isinstance(result, Reply)
    assert result.status == 200


def test_estimate_matches_the_forecast_of_plan(worker: Worker) -> None:
    body = request(node("parameter"), node("square", 0), node("sum", 1), feeds=[feed(0, [500], [1.5] * 500)])
    result = worker.attempt(job(body), 0.0)
    types = [{"node": 0, "dtype": "float64", "shape": [500]}]
    forecast = orjson.loads(worker(job({"graph": body["graph"], "types": types}, "plan")).body)
    assert isinstance(result, TooLong)
    assert result.estimate.peak_bytes == forecast["peak_bytes"]
    assert result.estimate.response_bytes == forecast["response_bytes"]


def test_job_with_expensive_planning_is_not_planned(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = [node("parameter"), *[node("neg", i) for i in range(600)], node("sum", 600)]
    monkeypatch.setattr(type(executions()["gradients"]), "prepare", must_not_run)
    result = worker.attempt(job(request(*chain, feeds=[feed(0, [1], [1])])), 0.002)
    assert isinstance(result, TooLong)
    assert result.estimate.seconds > 0.05


def test_refusal_comes_before_the_estimate(worker: Worker) -> None:
    result = worker.attempt(job(SQUARES | {"of": 1}), 0.0)
    assert isinstance(result, Reply)
    assert result.status == 422


@pytest.mark.parametrize(("error", "reason"), [(MemoryError(), "memory"), (RuntimeError("a fault"), "fault")])
def test_failed_worker_asks_to_be_recycled(
    worker: Worker, error: Exception, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> Reply:
        raise error

    assert worker(job(SQUARES)).recycle is None
    monkeypatch.setattr(type(worker._executor), "run", fails)
    assert worker(job(SQUARES)).recycle == reason, "what comes again"
    assert worker(fresh(4.5)).recycle == reason


UNREAD = [ValueError("array is too big"), OverflowError(), TypeError(), RecursionError(), KeyError("data")]


@pytest.mark.parametrize("error", UNREAD, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(
    "reader",
    [
        "service.workers.worker.JsonReader.read_request",
        "service.api.request.validate",
        "service.api.request.read_array",
        "service.workers.executions.computing.Computing.read_call",
    ],
)
def test_exception_while_reading_a_request_costs_no_worker(
    worker: Worker, reader: str, error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The client learns that its request could not be read, and the log has the exception with its traceback."""

    def fails(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(reader, fails)
    for reply in (worker(fresh(5.5)), worker.attempt(fresh(5.5), HOURS)):
        assert isinstance(reply, Reply)
        assert (reply.status, reply.recycle) == (422, None)
        report = orjson.loads(reply.body)
        assert (report["code"], report["detail"], report["pointer"]) == ("invalid_field", UNREADABLE, "")
    assert {record.exc_info[0] for record in caplog.records if record.exc_info} == {type(error)}


@pytest.mark.parametrize("name", ["putTensor", "readModel", "putModel"])
def test_exception_while_reading_a_resource_costs_no_worker(
    worker: Worker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> Any:
        raise ValueError("a fault")

    monkeypatch.setattr("service.workers.store_tasks.validate", fails)
    monkeypatch.setattr("service.workers.store_tasks.validate", fails)
    reply = worker(job({}, name, subject="a"))
    assert (reply.status, reply.recycle) == (422, None)


def test_refused_job_does_not_recycle_its_worker(worker: Worker) -> None:
    assert worker(job(SQUARES | {"feeds": []})).recycle is None


def test_estimates_grow_with_the_tensors(worker: Worker) -> None:
    def seconds(n: int) -> float:
        ones = np.ones((n, n)).ravel().tolist()
        product = request(node("parameter"), node("matmul", 0, 0), node("sum", 1), feeds=[feed(0, [n, n], ones)])
        result = worker.attempt(job(product), 0.0)
        assert isinstance(result, TooLong)
        return result.estimate.seconds

    assert seconds(4) < seconds(64) < seconds(256)
