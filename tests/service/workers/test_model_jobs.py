"""The two jobs of a model: reading the request, then checking it on its graph, which a worker may have to request."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import orjson
import pytest

from service.api.residents import Version
from service.core.settings import Settings
from service.store.tables import Registered
from service.workers.task import PUT_MODEL, READ_MODEL, REGISTER, NeedsGraph, NeedsTensors, Reply, Task, TooLong
from service.workers.worker import Worker
from tests.service.support import Json, node

GRAPH: Json = {"nodes": [node("input"), node("parameter"), node("mul", 0, 1)]}


@pytest.fixture
def worker() -> Worker:
    return Worker(Settings(device="cpu", compile="off"))


@pytest.fixture
def graph() -> Registered:
    job = Task(REGISTER, orjson.dumps({"graph": GRAPH}), "id", 60.0, time.monotonic() + 60.0)
    return Registered.parse(Worker(Settings(device="cpu", compile="off"))(job).body)


def model_body(graph: Registered, **changed: Any) -> Json:
    leaf = {"name": "x", "node": 0, "dtype": "float64", "shape": [-1]}
    bound = [{"node": 1, "tensor_id": "w"}]
    outputs = [{"name": "y", "node": 2}]
    return {"graph_id": graph.graph_id, "inputs": [leaf], "outputs": outputs, "bound": bound} | changed


def job(call: str, body: Json, graph: Registered | None = None, *, record: bool = True, **more: Any) -> Task:
    versions = {"w": Version("tag", np.ones(()))}
    task = Task(
        call, orjson.dumps(body), "id", 60.0, time.monotonic() + 60.0, subject="m", resident=versions.get, **more
    )
    if graph is not None:
        task.graph, task.graph_bytes = graph.key, graph.record if record else None
    return task


def test_graph_id_is_written_before_all_lists(worker: Worker, graph: Registered) -> None:
    reply = worker(job(READ_MODEL, dict(reversed(model_body(graph, description="d").items()))))
    assert reply.status == 200
    assert reply.body.startswith(b'{"graph_id":"%b","description":"d","inputs":[' % graph.graph_id.encode())


def test_read_model_passes_the_check(worker: Worker, graph: Registered) -> None:
    read = orjson.loads(worker(job(READ_MODEL, model_body(graph))).body)
    reply = worker(job(PUT_MODEL, read, graph))
    record = orjson.loads(reply.body)
    assert (record["name"], record["outputs"][0]["shape"]) == ("m", [-1])
    assert reply.headers == (("ETag", f'"{record["etag"]}"'),)
    assert reply.consulted, "it is an answer about the tensor, too"


def test_each_version_has_its_own_etag(worker: Worker, graph: Registered) -> None:
    etags = {orjson.loads(worker(job(PUT_MODEL, model_body(graph), graph)).body)["etag"] for _ in range(2)}
    assert len(etags) == 2


def test_missing_graph_is_requested(worker: Worker, graph: Registered) -> None:
    assert worker.attempt(job(PUT_MODEL, model_body(graph), graph, record=False)) == NeedsGraph()
    assert isinstance(worker.attempt(job(PUT_MODEL, model_body(graph), graph)), Reply)
    assert isinstance(worker.attempt(job(PUT_MODEL, model_body(graph), graph, record=False)), Reply), "and kept"


def test_missing_tensors_are_requested(worker: Worker, graph: Registered) -> None:
    lacking = job(PUT_MODEL, model_body(graph, bound=[{"node": 1, "tensor_id": "v"}]), graph, may_ask=True)
    assert worker.attempt(lacking) == NeedsTensors(["v"])


def test_long_check_is_left_to_other_workers(worker: Worker) -> None:
    nodes = [node("input"), node("parameter"), *(node("mul", i, 1) for i in range(20_000))]
    registering = Task(REGISTER, orjson.dumps({"graph": {"nodes": nodes}}), "id", 60.0, time.monotonic() + 60.0)
    large = Registered.parse(worker(registering).body)
    assert isinstance(worker.attempt(job(PUT_MODEL, model_body(large), large), 0.002), TooLong)
