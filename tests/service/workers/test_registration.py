"""Registering a graph: a worker checks it, derives its id from its content, and writes its record."""

from __future__ import annotations

import time
from typing import Any

import orjson
import pytest

from service.core.settings import Settings
from service.workers.task import REGISTER, Reply, Task
from service.workers.worker import Worker
from tests.service.support import Json, node, tensor

GRAPH: Json = {
    "nodes": [
        node("parameter"),
        {"op": "constant", "attrs": {"value": tensor([2], [1.5, -2.0])}},
        node("mul", 0, 1),
        node("sum", 2),
    ]
}


@pytest.fixture(scope="module")
def worker() -> Worker:
    return Worker(Settings(device="cpu", compile="off"))


def register(worker: Worker, graph: Json, **more: Any) -> Reply:
    body = orjson.dumps({"graph": graph, **more})
    return worker(Task(REGISTER, body, "id", 60.0, time.monotonic() + 60.0))


def record(worker: Worker, graph: Json, **more: Any) -> Json:
    reply = register(worker, graph, **more)
    assert reply.status == 200, reply.body
    content: Json = orjson.loads(reply.body)
    return content


def test_record_has_the_graph_with_its_tensors(worker: Worker) -> None:
    graph_record = record(worker, GRAPH)
    assert graph_record["node_count"] == 4
    assert [each["op"] for each in graph_record["graph"]["nodes"]] == ["parameter", "constant", "mul", "sum"]
    assert graph_record["graph"]["nodes"][1]["attrs"]["value"] == tensor([2], [1.5, -2.0])


def test_record_round_trip(worker: Worker) -> None:
    first = record(worker, GRAPH)
    again = record(worker, first["graph"])
    assert again == first


def test_graph_id_depends_on_the_content(worker: Worker) -> None:
    other = {"nodes": [*GRAPH["nodes"][:3], node("mean", 2)]}
    ids = [record(worker, graph)["graph_id"] for graph in (GRAPH, GRAPH, other)]
    assert ids[0] == ids[1] != ids[2]


def test_description_does_not_affect_the_graph_id(worker: Worker) -> None:
    plain, described = record(worker, GRAPH), record(worker, GRAPH, description="a dot product")
    assert "description" not in plain
    assert described.pop("description") == "a dot product"
    assert described == plain


@pytest.mark.parametrize(
    ("graph", "code"),
    [
        ({"nodes": [node("parameter"), node("no_such_op", 0)]}, "unknown_op"),
        ({"nodes": [node("parameter"), node("exp", 7)]}, "bad_reference"),
        ({"nodes": [node("parameter"), node("softmax", 0, axs=1)]}, "bad_attribute"),
    ],
)
def test_invalid_graph_is_refused(worker: Worker, graph: Json, code: str) -> None:
    reply = register(worker, graph)
    assert (reply.status, orjson.loads(reply.body)["code"]) == (422, code)
