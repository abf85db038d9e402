"""Objects that a worker evicts are freed at once, without the garbage collector, which runs seldom."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator

import orjson
import pytest

from service.core.settings import Settings
from service.workers.task import Task
from service.workers.worker import Worker
from tests.service.support import feed, node, request

#: number of distinct graphs; all but the last two are evicted
GRAPHS = 40
#: objects in reference cycles that each of them may leave behind
GARBAGE_PER_GRAPH = 8


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def request_body(number: int) -> bytes:
    """A gradient request for a chain with attribute values of its own."""
    nodes = [node("parameter"), node("mul_scalar", 0, scalar=number + 0.5), node("add_scalar", 1, scalar=number / 3)]
    nodes += [node("tanh", 2), node("mul", 3, 1), node("exp", 4), node("softmax", 5), node("sum", 6)]
    return orjson.dumps(request(*nodes, feeds=[feed(0, [number % 7 + 1], [0.25] * (number % 7 + 1))]))


@pytest.mark.slow
@pytest.mark.usefixtures("without_collector")
@pytest.mark.parametrize("call", ["gradients", "forward", "hessian"])
def test_evicted_graphs_leave_no_garbage(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.ops.elementwise.base._kernels._capacity", 2)
    worker = Worker(Settings(device="cpu", compile="off", plan_cache=2))
    for number in range(GRAPHS):
        body = request_body(number) if call != "hessian" else request_body(number).replace(b'"softmax"', b'"sin"')
        reply = worker(Task(call, body, "id", 60.0, time.monotonic() + 60.0))
        assert reply.status == 200, b"".join(map(bytes, reply.parts))
        if number == 2:
            gc.collect()  # objects that are created once
    assert gc.collect() <= GARBAGE_PER_GRAPH * GRAPHS
