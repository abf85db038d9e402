"""What a worker lets go of is free at once: it leaves nothing to the collector, which comes seldom."""

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

#: of each of so many graphs that nobody has sent before, all but the last two are let go
GRAPHS = 40
#: objects in circles that one of them may leave behind
FEW = 8


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def asked(number: int) -> bytes:
    """A gradient of a chain with a number of its own in each attribute."""
    nodes = [node("parameter"), node("mul_scalar", 0, scalar=number + 0.5), node("add_scalar", 1, scalar=number / 3)]
    nodes += [node("tanh", 2), node("mul", 3, 1), node("exp", 4), node("softmax", 5), node("sum", 6)]
    return orjson.dumps(request(*nodes, feeds=[feed(0, [number % 7 + 1], [0.25] * (number % 7 + 1))]))


@pytest.mark.slow
@pytest.mark.usefixtures("without_collector")
@pytest.mark.parametrize("call", ["gradients", "forward", "hessian"])
def test_graphs_that_are_forgotten_leave_nothing(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.ops.elementwise.base._kernels._capacity", 2)
    worker = Worker(Settings(device="cpu", compile="off", plan_cache=2))
    for number in range(GRAPHS):
        body = asked(number) if call != "hessian" else asked(number).replace(b'"softmax"', b'"sin"')
        reply = worker(Task(call, body, "id", 60.0, time.monotonic() + 60.0))
        assert reply.status == 200, b"".join(map(bytes, reply.parts))
        if number == 2:
            gc.collect()  # what is made once
    assert gc.collect() <= FEW * GRAPHS
