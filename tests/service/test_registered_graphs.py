"""A call on a registered graph is the call with the graph sent: the same answers, and the same refusals."""

from __future__ import annotations

import asyncio
import base64
import copy
import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scripts.openapi.examples import failures_on_registered, without_its_graph
from service.api.calls import calls
from service.api.media import JSON, SAFETENSORS
from service.core.errors import UNREADABLE
from service.core.settings import Settings
from service.store.tables import Registered
from service.workers.pool import Done
from service.workers.task import REGISTER, NeedsGraph, Reply, Task
from service.workers.worker import Worker
from tests.conftest import Client
from tests.docs.test_wire_page import PAGE, VECTOR
from tests.service.api.calls.test_derivative_calls import ASKED
from tests.service.api.safetensors_support import SENT
from tests.service.api.safetensors_support import body as packed
from tests.service.application import create_app, open_pool
from tests.service.support import SQUARES, Json, feed, node, problem, request, tensor
from tests.service.test_generated import LEAVES, completed, mutate, nodes

SETTINGS = Settings(device="cpu", compile="off", max_bytes=1 << 20, max_flops=10**8)
WORKER = Worker(SETTINGS)
GRAPH: Json = SQUARES["graph"]
UNKNOWN = "0" * 64


def run(call: str, body: bytes, graph: Registered | None = None, sent: str = JSON, accepted: str = JSON) -> Reply:
    job = Task(call, body, "id", 60.0, time.monotonic() + 60.0, sent, accepted)
    if graph is not None:
        job.graph, job.graph_bytes = graph.key, graph.record
    return WORKER(job)


def registered(graph: Json) -> Registered | None:
    """The graph as it is registered; None where it is refused."""
    reply = run(REGISTER, orjson.dumps({"graph": graph}))
    return Registered.parse(reply.body) if reply.status == 200 else None


def timeless(reply: Reply) -> tuple[int, bytes]:
    """A reply without what differs from run to run."""
    return reply.status, re.sub(rb'\\?"(execute_ms|plan_cached)\\?":[^,]*,', b"", reply.body).replace(b" ", b"")


def agree(call: str, body: Json) -> int:
    """The status of both forms of a request, once their replies are the same."""
    graph = registered(body["graph"])
    assert graph is not None
    whole = timeless(run(call, orjson.dumps(body)))
    assert timeless(run(call, orjson.dumps(without_its_graph(body)), graph)) == whole
    return whole[0]


EXAMPLES = [
    pytest.param(name, body, id=f"{name}-{shown}")
    for name, call in calls().items()
    for shown, body in call.examples.items()
]


@pytest.mark.parametrize(("call", "body"), EXAMPLES)
@pytest.mark.parametrize("encoding", ["json", "base64"])
def test_every_example_is_answered_alike(call: str, body: Json, encoding: str) -> None:
    assert agree(call, body | {"encoding": encoding}) == 200


@pytest.mark.parametrize(("call", "body"), EXAMPLES)
def test_every_example_is_answered_alike_in_binary(call: str, body: Json) -> None:
    graph = registered(body["graph"])
    asked = packed(body, {}), packed(without_its_graph(body), {})
    whole = run(call, asked[0], None, SAFETENSORS, SAFETENSORS)
    assert whole.status == 200
    assert len(timeless(run(call, asked[1], graph, SAFETENSORS, SAFETENSORS))[1]) == len(timeless(whole)[1])
    assert run(call, asked[1], graph, SAFETENSORS, JSON).status == 200


def refused() -> Iterator[Any]:
    for name, call in calls().items():
        graph = next(iter(call.examples.values()))["graph"]
        for failure in failures_on_registered(call):
            if failure.body is not None and failure.code != "invalid_field":
                yield pytest.param(name, failure.body | {"graph": graph}, failure.code)


@pytest.mark.parametrize(("call", "body", "code"), list(refused()))
def test_every_refusal_is_the_same(call: str, body: Json, code: str) -> None:
    assert agree(call, body) >= 400
    assert f'"code":"{code}"'.encode() in run(call, orjson.dumps(body)).body


@pytest.mark.slow
@given(st.data(), st.sampled_from(sorted(calls())), st.integers(1, 5))
def test_a_random_request_is_answered_alike(data: st.DataObject, call: str, length: int) -> None:
    count = len(LEAVES)
    made = [data.draw(nodes(count + i)) for i in range(length)]
    graph = {"nodes": [*(leaf for leaf, _ in LEAVES), *made, node("sum", count + length - 1)]}
    body = completed(data, call, {"graph": graph})
    if registered(graph) is not None:
        agree(call, body)
    else:
        assert run(call, orjson.dumps(body)).status == 422


@pytest.mark.slow
@settings(max_examples=500)
@given(st.data(), st.sampled_from([REGISTER, *calls()]), st.integers(1, 3))
def test_a_mutated_request_is_an_answer_or_a_refusal(data: st.DataObject, call: str, times: int) -> None:
    """Of a graph that is to be registered, and on one that is."""
    body = {"graph": copy.deepcopy(GRAPH), "description": "x"} if call == REGISTER else copy.deepcopy(ASKED[call])
    graph = None if call == REGISTER else registered(body.pop("graph"))
    for _ in range(times):
        if body:
            body = mutate(data, body)
    reply = run(call, json.dumps(body).encode(), graph)
    assert reply.status == 200 or 400 <= reply.status < 500, reply.body
    assert UNREADABLE.encode() not in reply.body
    if call == REGISTER and reply.status == 200:
        again = Registered.parse(reply.body)
        assert registered(orjson.loads(again.record)["graph"]) is not None, "what is kept can be read"


def test_a_field_that_is_wrong_is_refused_with_those_that_there_are() -> None:
    report = orjson.loads(run("forward", b'{"graph": {"nodes": []}}', registered(GRAPH)).body)
    known = "diagnose, encoding, feeds, memory_budget, outputs, precision, store"
    assert report["code"] == "invalid_field"
    assert report["detail"] == f"the request has no field “graph” (known: {known})"


@pytest.mark.parametrize("body", [b"", b"[", b"[]", b'{"feeds": [], "feeds": []}', b"[" * 200, b"{}"])
def test_a_body_that_is_no_request_is_refused_as_ever(body: bytes) -> None:
    assert 400 <= run("gradients", body, registered(GRAPH)).status < 500


def test_constants_are_in_the_graph_and_not_beside_the_request() -> None:
    body = packed(without_its_graph(SQUARES), {"constants.1": np.zeros(2)})
    report = orjson.loads(run("gradients", body, registered(GRAPH), SAFETENSORS).body)
    assert report["detail"] == "the body has a tensor “constants.1”, but this call takes feeds.NODE, cotangents.NODE"


class TestWorker:
    """What a worker keeps of registered graphs, and asks for."""

    def ask(self, worker: Worker, graph: Registered, *, sent_along: bool, call: str = "gradients") -> Reply:
        body = without_its_graph(SQUARES)
        if call == "differentiate":
            body = {"types": [{"node": 0, "dtype": "float64", "shape": [2]}]}
        job = Task(call, orjson.dumps(body), "id", 60.0, time.monotonic() + 60.0)
        job.graph, job.graph_bytes = graph.key, graph.record if sent_along else None
        return worker(job)

    def lacks(self, worker: Worker, graph: Registered) -> bool:
        job = Task("gradients", orjson.dumps(without_its_graph(SQUARES)), "id", 60.0, time.monotonic() + 60.0)
        job.graph = graph.key
        return worker.attempt(job) == NeedsGraph()

    def test_it_asks_for_a_graph_that_it_does_not_know(self) -> None:
        worker, graph = Worker(SETTINGS), registered(GRAPH)
        assert graph is not None
        assert self.lacks(worker, graph)
        known = self.ask(worker, graph, sent_along=True)
        assert known.status == 200
        again = self.ask(worker, graph, sent_along=False)
        assert timeless(again) == timeless(known)

    def test_it_gives_the_graph_back_without_being_sent_it(self) -> None:
        worker, graph = Worker(SETTINGS), registered(GRAPH)
        assert graph is not None
        first = self.ask(worker, graph, sent_along=True, call="differentiate")
        assert first.status == 200
        assert timeless(self.ask(worker, graph, sent_along=False, call="differentiate")) == timeless(first)

    def test_it_asks_again_for_one_that_it_has_forgotten(self) -> None:
        worker = Worker(SETTINGS.model_copy(update={"plan_cache": 1}))
        one, other = registered(GRAPH), registered(request(node("parameter"), node("sum", 0))["graph"])
        assert one is not None
        assert other is not None
        for graph in (one, other):
            assert self.ask(worker, graph, sent_along=True).status == 200
        assert self.lacks(worker, one)
        assert self.ask(worker, one, sent_along=True).status == 200

    def test_names_are_those_of_the_record(self) -> None:
        """One id, and two records: each is refused with its own names."""
        named = [request(node("parameter") | {"name": name}, node("sum", 0))["graph"] for name in ("w", "theta")]
        one, other = map(registered, named)
        assert one is not None
        assert other is not None
        assert one.graph_id == other.graph_id
        details = [orjson.loads(run("gradients", b"{}", graph).body)["detail"] for graph in (one, other, one)]
        assert [("“w”" in detail, "“theta”" in detail) for detail in details] == [
            (True, False),
            (False, True),
            (True, False),
        ]


class TestRoutes:
    """Registering, listing, reading and forgetting, over HTTP."""

    @pytest.fixture(autouse=True)
    def _nothing_is_kept(self, client: Client) -> None:
        for kept in client.get("/v1/graphs").json()["graphs"]:
            assert self.delete(client, kept["graph_id"]).status_code == 200

    def delete(self, client: Client, graph_id: str) -> httpx.Response:
        return client.request("DELETE", f"/v1/graphs/{graph_id}")

    def register(self, client: Client, graph: Json = GRAPH, **more: Any) -> Json:
        answer = client.post("/v1/graphs", json={"graph": graph, **more})
        assert answer.status_code in (200, 201), answer.text
        found: Json = answer.json()
        return found

    def test_a_graph_is_kept_under_its_id(self, client: Client) -> None:
        first = client.post("/v1/graphs", json={"graph": GRAPH, "description": "sum of squares"})
        assert first.status_code == 201
        kept = first.json()
        assert first.headers["location"] == f"/v1/graphs/{kept['graph_id']}"
        assert kept["description"] == "sum of squares"
        assert kept["node_count"] == 3
        assert client.get(first.headers["location"]).content == first.content
        again = client.post("/v1/graphs", json={"graph": GRAPH})
        assert (again.status_code, again.content) == (200, first.content)
        stats = client.post("/v1/gradients", json=SQUARES).json()["stats"]
        assert stats["graph_id"] == kept["graph_id"]

    def test_the_list_and_its_end(self, client: Client) -> None:
        other = request(node("input"), node("neg", 0))["graph"]
        one, two = self.register(client), self.register(client, other, description="é")
        listed = client.get("/v1/graphs").json()["graphs"]
        assert listed == [{k: v for k, v in each.items() if k != "graph"} for each in (one, two)]
        gone = self.delete(client, one["graph_id"])
        assert (gone.status_code, gone.json()) == (200, listed[0])
        assert client.get("/v1/graphs").json()["graphs"] == listed[1:]
        problem(self.delete(client, one["graph_id"]), 404, "not_found")

    def test_a_call_over_http(self, client: Client) -> None:
        path = f"/v1/graphs/{self.register(client)['graph_id']}/gradients"
        answer = client.post(path, json=without_its_graph(SQUARES))
        assert answer.json()["gradients"] == [feed(0, [2], [2.0, 4.0])]
        problem(client.post(path + "?timeout_ms=0", json={}), 422, "invalid_field")
        assert client.post(path + "/?timeout_ms=60000", json=without_its_graph(SQUARES)).status_code == 200
        assert problem(client.get(path), 405, "method_not_allowed")["expected"] == "POST"

    @pytest.mark.parametrize("name", [UNKNOWN, "x", "..%2f..%2fetc", "é", "a" * 3000])
    @pytest.mark.parametrize("call", ["", "/gradients", "/plan"])
    def test_an_id_that_is_not_kept(self, client: Client, name: str, call: str) -> None:
        path = f"/v1/graphs/{name}{call}"
        responses = [client.post(path, json={})] if call else [client.get(path), client.request("DELETE", path)]
        for response in responses:
            assert problem(response, 404, "not_found")["got"]

    def test_a_call_that_does_not_exist(self, client: Client) -> None:
        path = f"/v1/graphs/{self.register(client)['graph_id']}/gradient"
        problem(client.post(path, json={}), 404, "not_found")

    @pytest.mark.parametrize(
        ("body", "status", "code"),
        [
            ({}, 422, "invalid_field"),
            ({"graph": {"nodes": [node("sums")]}}, 422, "unknown_op"),
            ({"graph": {"nodes": [node("add", 0, 1)]}}, 422, "bad_reference"),
            ({"graph": GRAPH, "description": 1}, 422, "invalid_field"),
            ({"graph": GRAPH, "description": "x" * 1001}, 422, "invalid_field"),
            ({"graph": GRAPH, "feeds": []}, 422, "invalid_field"),
            ({"graph": {"nodes": [node("constant", value=tensor([2], [1]))]}}, 422, "bad_tensor"),
        ],
    )
    def test_a_graph_that_is_wrong_is_not_kept(self, client: Client, body: Json, status: int, code: str) -> None:
        problem(client.post("/v1/graphs", json=body), status, code)
        assert client.get("/v1/graphs").json() == {"graphs": []}

    def test_constants_beside_the_json_are_kept_in_it(self, client: Client) -> None:
        graph = request(node("constant"), node("sum", 0))["graph"]
        value = np.array([1.5, 2.25])
        answer = client.post("/v1/graphs", content=packed({"graph": graph}, {"constants.0": value}), headers=SENT)
        assert answer.status_code == 201, answer.text
        found = client.post(f"/v1/graphs/{answer.json()['graph_id']}/forward", json={})
        assert found.json()["values"] == [feed(1, [], [3.75])]
        inside = answer.json()["graph"]
        assert self.register(client, inside)["graph_id"] == answer.json()["graph_id"]

    def test_numbers_beyond_64_bits_are_kept_as_floats(self, client: Client) -> None:
        big = tensor([1], [10**40])
        nodes = [node("constant", value=big), node("mul_scalar", 0, scalar=10**30), node("sum", 1)]
        kept = self.register(client, {"nodes": nodes})
        assert kept["graph"]["nodes"][1]["attrs"]["scalar"] == 1e30
        (value,) = client.post(f"/v1/graphs/{kept['graph_id']}/forward", json={}).json()["values"]
        assert value["tensor"]["data"] == [1e70]

    def test_whole_numbers_of_64_bits_keep_their_digits(self, client: Client) -> None:
        number = 2**53 + 1
        attrs = {"shape": [1], "fill": number, "dtype": "int64"}
        nodes = [
            node("full", **attrs),
            node("pad", 0, pad_width=[1, 0], fill=-number),
            node("clamp", 1, min=2 - number),
        ]
        kept = self.register(client, {"nodes": nodes})
        assert [n["attrs"] for n in kept["graph"]["nodes"]] == [n["attrs"] for n in nodes]
        of_kept = client.post(f"/v1/graphs/{kept['graph_id']}/forward", json={}).json()
        for answer in (client.post("/v1/forward", json={"graph": {"nodes": nodes}}).json(), of_kept):
            assert answer["stats"]["graph_id"] == kept["graph_id"]
            data = base64.b64decode(answer["values"][0]["tensor"]["data_b64"])
            assert np.frombuffer(data, "<i8").tolist() == [2 - number, number]

    def test_the_answer_is_json(self, client: Client) -> None:
        problem(
            client.post("/v1/graphs", json={"graph": GRAPH}, headers={"Accept": SAFETENSORS}), 406, "not_acceptable"
        )

    @pytest.mark.parametrize("limit", [{"max_graphs": 1}, {"max_graph_bytes": "1500"}])
    def test_there_is_room_for_so_much(self, make_client: Callable[..., Client], limit: dict[str, Any]) -> None:
        client = make_client(**limit)
        kept = self.register(client)
        other = {"graph": request(node("input"), node("neg", 0))["graph"]}
        problem(client.post("/v1/graphs", json=other), 507, "store_full")
        assert client.get("/v1/graphs").json()["graphs"][0]["graph_id"] == kept["graph_id"]
        self.delete(client, kept["graph_id"])
        assert client.post("/v1/graphs", json=other).status_code == 201

    def test_the_ids_of_the_contract(self, client: Client) -> None:
        """The test vectors of docs/wire.md: a graph, its canonical text, and its id."""
        vectors = VECTOR.findall(PAGE)
        assert len(vectors) == 3
        for graph, _, graph_id in vectors:
            assert self.register(client, json.loads(graph))["graph_id"] == graph_id


def test_what_was_accepted_before_its_graph_was_deleted_is_answered() -> None:
    """The pool holds the job back until the graph is gone."""
    settings = Settings(device="cpu", workers=1)
    pool = open_pool(settings)
    go_on = pool.submit
    client = Client(create_app(settings, pool))
    graph_id = client.post("/v1/graphs", json={"graph": GRAPH}).json()["graph_id"]

    async def asked_and_deleted() -> httpx.Response:
        held: asyncio.Future[tuple[Task, Done]] = asyncio.get_running_loop().create_future()
        pool.submit = lambda job, done: held.set_result((job, done))  # type: ignore[method-assign]
        asked = asyncio.ensure_future(
            client._http.post(f"/v1/graphs/{graph_id}/gradients", json=without_its_graph(SQUARES))
        )
        submitted = await held
        assert (await client._http.delete(f"/v1/graphs/{graph_id}")).status_code == 200
        go_on(*submitted)
        return await asked

    answer = client._runner.run(asked_and_deleted())
    assert answer.json()["gradients"] == [feed(0, [2], [2.0, 4.0])]
    problem(client.post(f"/v1/graphs/{graph_id}/gradients", json={}), 404, "not_found")
    client.close()
