"""A call on a registered graph gives the same answers and errors as a call that sends the graph."""

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


def register_graph(graph: Json) -> Registered | None:
    """Register the graph; None if it is refused."""
    reply = run(REGISTER, orjson.dumps({"graph": graph}))
    return Registered.parse(reply.body) if reply.status == 200 else None


def timeless(reply: Reply) -> tuple[int, bytes]:
    """Return a reply without the parts that differ from run to run."""
    return reply.status, without_times(reply.body)


def without_times(text: bytes) -> bytes:
    return re.sub(rb'\\?"(execute_ms|plan_cached)\\?":[^,]*,', b"", text).replace(b" ", b"")


def parts(reply: Reply) -> tuple[bytes, bytes]:
    """Return the header without times, and the data, of a safetensors body. The header's length depends on times."""
    length = int.from_bytes(reply.body[:8], "little")
    return without_times(reply.body[8 : 8 + length]), reply.body[8 + length :]


def check_agreement(call: str, body: Json) -> int:
    """Check that both forms of a request get the same reply; return its status."""
    graph = register_graph(body["graph"])
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
def test_examples_are_answered_alike(call: str, body: Json, encoding: str) -> None:
    assert check_agreement(call, body | {"encoding": encoding}) == 200


@pytest.mark.parametrize(("call", "body"), EXAMPLES)
def test_examples_are_answered_alike_in_safetensors(call: str, body: Json) -> None:
    graph = register_graph(body["graph"])
    bodies = packed(body, {}), packed(without_its_graph(body), {})
    whole = run(call, bodies[0], None, SAFETENSORS, SAFETENSORS)
    assert whole.status == 200
    assert parts(run(call, bodies[1], graph, SAFETENSORS, SAFETENSORS)) == parts(whole)
    assert run(call, bodies[1], graph, SAFETENSORS, JSON).status == 200


def refusals() -> Iterator[Any]:
    for name, call in calls().items():
        graph = next(iter(call.examples.values()))["graph"]
        for failure in failures_on_registered(call):
            if failure.body is not None and failure.code != "invalid_field":
                yield pytest.param(name, failure.body | {"graph": graph}, failure.code)


@pytest.mark.parametrize(("call", "body", "code"), list(refusals()))
def test_refusals_are_the_same(call: str, body: Json, code: str) -> None:
    assert check_agreement(call, body) >= 400
    assert f'"code":"{code}"'.encode() in run(call, orjson.dumps(body)).body


@pytest.mark.slow
@given(st.data(), st.sampled_from(sorted(calls())), st.integers(1, 5))
def test_random_requests_are_answered_alike(data: st.DataObject, call: str, length: int) -> None:
    count = len(LEAVES)
    drawn = [data.draw(nodes(count + i)) for i in range(length)]
    graph = {"nodes": [*(leaf for leaf, _ in LEAVES), *drawn, node("sum", count + length - 1)]}
    body = completed(data, call, {"graph": graph})
    if register_graph(graph) is not None:
        check_agreement(call, body)
    else:
        assert run(call, orjson.dumps(body)).status == 422


@pytest.mark.slow
@settings(max_examples=500)
@given(st.data(), st.sampled_from([REGISTER, *calls()]), st.integers(1, 3))
def test_mutated_requests_cause_no_server_error(data: st.DataObject, call: str, times: int) -> None:
    """Mutate registrations as well as calls on a registered graph."""
    body = {"graph": copy.deepcopy(GRAPH), "description": "x"} if call == REGISTER else copy.deepcopy(ASKED[call])
    graph = None if call == REGISTER else register_graph(body.pop("graph"))
    for _ in range(times):
        if body:
            body = mutate(data, body)
    reply = run(call, json.dumps(body).encode(), graph)
    assert reply.status == 200 or 400 <= reply.status < 500, reply.body
    assert UNREADABLE.encode() not in reply.body
    if call == REGISTER and reply.status == 200:
        again = Registered.parse(reply.body)
        assert register_graph(orjson.loads(again.record)["graph"]) is not None, "what is kept can be read"


def test_unknown_field_is_refused_with_the_valid_ones() -> None:
    report = orjson.loads(run("forward", b'{"graph": {"nodes": []}}', register_graph(GRAPH)).body)
    fields = "diagnose, encoding, feeds, memory_budget, outputs, precision, store"
    assert report["code"] == "invalid_field"
    assert report["detail"] == f"the request has no field “graph” (known: {fields})"


@pytest.mark.parametrize("body", [b"", b"[", b"[]", b'{"feeds": [], "feeds": []}', b"[" * 200, b"{}"])
def test_malformed_body_is_refused(body: bytes) -> None:
    assert 400 <= run("gradients", body, register_graph(GRAPH)).status < 500


def test_constants_beside_the_request_are_refused() -> None:
    body = packed(without_its_graph(SQUARES), {"constants.1": np.zeros(2)})
    report = orjson.loads(run("gradients", body, register_graph(GRAPH), SAFETENSORS).body)
    assert report["detail"] == "the body has a tensor “constants.1”, but this call takes feeds.NODE, cotangents.NODE"


class TestWorker:
    """Registered graphs that a worker caches and asks for."""

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

    def test_worker_asks_for_an_unknown_graph(self) -> None:
        worker, graph = Worker(SETTINGS), register_graph(GRAPH)
        assert graph is not None
        assert self.lacks(worker, graph)
        first = self.ask(worker, graph, sent_along=True)
        assert first.status == 200
        again = self.ask(worker, graph, sent_along=False)
        assert timeless(again) == timeless(first)

    def test_worker_answers_with_a_cached_graph(self) -> None:
        worker, graph = Worker(SETTINGS), register_graph(GRAPH)
        assert graph is not None
        first = self.ask(worker, graph, sent_along=True, call="differentiate")
        assert first.status == 200
        assert timeless(self.ask(worker, graph, sent_along=False, call="differentiate")) == timeless(first)

    def test_worker_asks_again_for_an_evicted_graph(self) -> None:
        worker = Worker(SETTINGS.model_copy(update={"plan_cache": 1}))
        one, other = register_graph(GRAPH), register_graph(request(node("parameter"), node("sum", 0))["graph"])
        assert one is not None
        assert other is not None
        for graph in (one, other):
            assert self.ask(worker, graph, sent_along=True).status == 200
        assert self.lacks(worker, one)
        assert self.ask(worker, one, sent_along=True).status == 200

    def test_errors_use_the_names_of_the_record(self) -> None:
        """Two records share an id, and errors use the names of each."""
        named = [request(node("parameter") | {"name": name}, node("sum", 0))["graph"] for name in ("w", "theta")]
        one, other = map(register_graph, named)
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
    """Registering, listing, reading and deleting graphs over HTTP."""

    @pytest.fixture(autouse=True)
    def _delete_all_graphs(self, client: Client) -> None:
        for record in client.get("/v1/graphs").json()["graphs"]:
            assert self.delete(client, record["graph_id"]).status_code == 200

    def delete(self, client: Client, graph_id: str) -> httpx.Response:
        return client.request("DELETE", f"/v1/graphs/{graph_id}")

    def register(self, client: Client, graph: Json = GRAPH, **more: Any) -> Json:
        answer = client.post("/v1/graphs", json={"graph": graph, **more})
        assert answer.status_code in (200, 201), answer.text
        record: Json = answer.json()
        return record

    def test_graph_is_stored_under_its_id(self, client: Client) -> None:
        first = client.post("/v1/graphs", json={"graph": GRAPH, "description": "sum of squares"})
        assert first.status_code == 201
        record = first.json()
        assert first.headers["location"] == f"/v1/graphs/{record['graph_id']}"
        assert record["description"] == "sum of squares"
        assert record["node_count"] == 3
        assert client.get(first.headers["location"]).content == first.content
        again = client.post("/v1/graphs", json={"graph": GRAPH})
        assert (again.status_code, again.content) == (200, first.content)
        stats = client.post("/v1/gradients", json=SQUARES).json()["stats"]
        assert stats["graph_id"] == record["graph_id"]

    def test_list_and_delete(self, client: Client) -> None:
        other = request(node("input"), node("neg", 0))["graph"]
        one, two = self.register(client), self.register(client, other, description="é")
        listed = client.get("/v1/graphs").json()["graphs"]
        assert listed == [{k: v for k, v in each.items() if k != "graph"} for each in (one, two)]
        deleted = self.delete(client, one["graph_id"])
        assert (deleted.status_code, deleted.json()) == (200, listed[0])
        assert client.get("/v1/graphs").json()["graphs"] == listed[1:]
        problem(self.delete(client, one["graph_id"]), 404, "not_found")

    def test_call_over_http(self, client: Client) -> None:
        path = f"/v1/graphs/{self.register(client)['graph_id']}/gradients"
        answer = client.post(path, json=without_its_graph(SQUARES))
        assert answer.json()["gradients"] == [feed(0, [2], [2.0, 4.0])]
        problem(client.post(path + "?timeout_ms=0", json={}), 422, "invalid_field")
        assert client.post(path + "/?timeout_ms=60000", json=without_its_graph(SQUARES)).status_code == 200
        assert problem(client.get(path), 405, "method_not_allowed")["expected"] == "POST"

    @pytest.mark.parametrize("name", [UNKNOWN, "x", "..%2f..%2fetc", "é", "a" * 3000])
    @pytest.mark.parametrize("call", ["", "/gradients", "/plan"])
    def test_unknown_id_is_not_found(self, client: Client, name: str, call: str) -> None:
        path = f"/v1/graphs/{name}{call}"
        responses = [client.post(path, json={})] if call else [client.get(path), client.request("DELETE", path)]
        for response in responses:
            assert problem(response, 404, "not_found")["got"]

    def test_unknown_call_is_not_found(self, client: Client) -> None:
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
    def test_invalid_graph_is_not_stored(self, client: Client, body: Json, status: int, code: str) -> None:
        problem(client.post("/v1/graphs", json=body), status, code)
        assert client.get("/v1/graphs").json() == {"graphs": []}

    def test_safetensors_constants_are_stored_in_the_graph(self, client: Client) -> None:
        graph = request(node("constant"), node("sum", 0))["graph"]
        value = np.array([1.5, 2.25])
        answer = client.post("/v1/graphs", content=packed({"graph": graph}, {"constants.0": value}), headers=SENT)
        assert answer.status_code == 201, answer.text
        forward = client.post(f"/v1/graphs/{answer.json()['graph_id']}/forward", json={})
        assert forward.json()["values"] == [feed(1, [], [3.75])]
        stored_graph = answer.json()["graph"]
        assert self.register(client, stored_graph)["graph_id"] == answer.json()["graph_id"]

    def test_integers_beyond_64_bits_are_stored_as_floats(self, client: Client) -> None:
        big = tensor([1], [10**40])
        nodes = [node("constant", value=big), node("mul_scalar", 0, scalar=10**30), node("sum", 1)]
        record = self.register(client, {"nodes": nodes})
        assert record["graph"]["nodes"][1]["attrs"]["scalar"] == 1e30
        (value,) = client.post(f"/v1/graphs/{record['graph_id']}/forward", json={}).json()["values"]
        assert value["tensor"]["data"] == [1e70]

    def test_64_bit_integers_stay_exact(self, client: Client) -> None:
        number = 2**53 + 1
        attrs = {"shape": [1], "fill": number, "dtype": "int64"}
        nodes = [
            node("full", **attrs),
            node("pad", 0, pad_width=[1, 0], fill=-number),
            node("clamp", 1, min=2 - number),
        ]
        record = self.register(client, {"nodes": nodes})
        assert [n["attrs"] for n in record["graph"]["nodes"]] == [n["attrs"] for n in nodes]
        on_registered = client.post(f"/v1/graphs/{record['graph_id']}/forward", json={}).json()
        for answer in (client.post("/v1/forward", json={"graph": {"nodes": nodes}}).json(), on_registered):
            assert answer["stats"]["graph_id"] == record["graph_id"]
            data = base64.b64decode(answer["values"][0]["tensor"]["data_b64"])
            assert np.frombuffer(data, "<i8").tolist() == [2 - number, number]

    def test_registration_answers_json_only(self, client: Client) -> None:
        problem(
            client.post("/v1/graphs", json={"graph": GRAPH}, headers={"Accept": SAFETENSORS}), 406, "not_acceptable"
        )

    @pytest.mark.parametrize("limit", [{"max_graphs": 1}, {"max_graph_bytes": "1500"}])
    def test_full_store_refuses_another_graph(self, make_client: Callable[..., Client], limit: dict[str, Any]) -> None:
        client = make_client(**limit)
        record = self.register(client)
        other = {"graph": request(node("input"), node("neg", 0))["graph"]}
        problem(client.post("/v1/graphs", json=other), 507, "store_full")
        assert client.get("/v1/graphs").json()["graphs"][0]["graph_id"] == record["graph_id"]
        self.delete(client, record["graph_id"])
        assert client.post("/v1/graphs", json=other).status_code == 201

    def test_graph_ids_match_the_wire_contract(self, client: Client) -> None:
        """The test vectors of docs/wire.md: a graph, its canonical text, and its id."""
        vectors = VECTOR.findall(PAGE)
        assert len(vectors) == 3
        for graph, _, graph_id in vectors:
            assert self.register(client, json.loads(graph))["graph_id"] == graph_id


def test_accepted_call_survives_deletion_of_its_graph() -> None:
    """The pool holds the job back until the graph is deleted."""
    settings = Settings(device="cpu", workers=1)
    pool = open_pool(settings)
    submit = pool.submit
    client = Client(create_app(settings, pool))
    graph_id = client.post("/v1/graphs", json={"graph": GRAPH}).json()["graph_id"]

    async def call_and_delete() -> httpx.Response:
        submission: asyncio.Future[tuple[Task, Done]] = asyncio.get_running_loop().create_future()
        pool.submit = lambda job, done: submission.set_result((job, done))  # type: ignore[method-assign]
        call = asyncio.ensure_future(
            client._http.post(f"/v1/graphs/{graph_id}/gradients", json=without_its_graph(SQUARES))
        )
        submitted = await submission
        assert (await client._http.delete(f"/v1/graphs/{graph_id}")).status_code == 200
        submit(*submitted)
        return await call

    answer = client._runner.run(call_and_delete())
    assert answer.json()["gradients"] == [feed(0, [2], [2.0, 4.0])]
    problem(client.post(f"/v1/graphs/{graph_id}/gradients", json={}), 404, "not_found")
    client.close()
