"""The OpenAPI document that clients are generated from: it is accurate, and its examples run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema_rs
import pytest

from service.api.calls import calls
from service.api.calls.description import MEAN
from service.web.graph_routes import OF_GRAPH
from tests.conftest import Client
from tests.service.described import operations, refusals
from tests.service.support import problem

CALLS = list(calls())
#: both paths of each call: its own, and the one on a registered graph
PATHS = [f"/v1/{prefix}{call}" for call in CALLS for prefix in ("", "graphs/{graph_id}/")]

METHODS = {
    "getOp": "/v1/ops/add", "listOps": "/v1/ops", "live": "/health/live", "ready": "/health/ready",
    "listGraphs": "/v1/graphs", "getGraph": "/v1/graphs/{graph_id}", "listTensors": "/v1/tensors",
    "getTensor": "/v1/tensors/w", "listModels": "/v1/models", "getModel": "/v1/models/mean_of_squares",
}  # fmt: skip
#: codes that no single request of a size fit for a document produces; other files test them
WITHOUT_EXAMPLE = {
    "bad_request_framing", "request_timeout", "body_too_large", "too_many_nodes", "queue_full", "shutting_down",
    "worker_died", "not_ready", "unconfirmed", "deadline_exceeded", "store_full", "unauthenticated", "forbidden",
    "rate_limited", "conflict", "in_use",
}  # fmt: skip


@pytest.fixture(scope="module")
def graph_id(client: Client) -> str:
    """Register the graph that all examples share, and return its id."""
    registered = client.post("/v1/graphs", json={"graph": MEAN["graph"]})
    assert registered.status_code in (200, 201)
    identifier: str = registered.json()["graph_id"]
    return identifier


@pytest.fixture(scope="module")
def document(client: Client) -> dict[str, Any]:
    return client.get("/openapi.json").json()


def problem_examples(document: dict[str, Any]) -> Iterator[tuple[str, str, str, str, dict[str, Any]]]:
    for path, method, operation in operations(document):
        for status, code, example in refusals(document, operation):
            yield path, method, status, code, example


def validator(document: dict[str, Any], schema: dict[str, Any]) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for({**schema, "components": document["components"]})


def test_operation_ids(document: dict[str, Any]) -> None:
    ids = {operation["operationId"] for _, _, operation in operations(document)}
    graphs = {"registerGraph", "listGraphs", "getGraph", "deleteGraph"}
    on_graphs = {f"{call}{OF_GRAPH}" for call in CALLS}
    tensors = {"putTensor", "getTensor", "deleteTensor", "listTensors"}
    models = {"putModel", "getModel", "deleteModel", "listModels"}
    assert ids == {*CALLS, *on_graphs, *graphs, *tensors, *models, "listOps", "getOp", "live", "ready"}


def test_graph_id_example_is_the_id_of_the_shared_graph(document: dict[str, Any], graph_id: str) -> None:
    shown = {
        parameter["example"]
        for _, _, operation in operations(document)
        for parameter in operation.get("parameters", ())
        if parameter["name"] == "graph_id"
    }
    assert shown == {graph_id}


def test_every_tag_is_described(document: dict[str, Any]) -> None:
    described = {tag["name"] for tag in document["tags"] if tag["description"]}
    assert {tag for _, _, operation in operations(document) for tag in operation["tags"]} == described


@pytest.mark.slow
def test_every_problem_example_runs(client: Client, document: dict[str, Any], graph_id: str) -> None:
    ran = 0
    for path, method, status, code, example in problem_examples(document):
        if asked := example.get("x-request"):
            content = asked.get("raw") or json.dumps(asked.get("body", {}))
            response = client.request(
                method.upper(),
                asked.get("path", path).replace("{name}", "add").replace("{graph_id}", graph_id),
                content=content if method in ("post", "put") else None,
                headers=asked.get("headers"),
            )
            report = problem(response, int(status), code)
            assert report | {"request_id": ""} == example["value"] | {"request_id": ""}
            ran += 1
        else:
            assert code in WITHOUT_EXAMPLE
            assert example["value"]["code"] == code
    assert ran > 40


@pytest.mark.parametrize("path", [*PATHS, "/v1/graphs"])
def test_every_request_example_runs(client: Client, document: dict[str, Any], path: str, graph_id: str) -> None:
    operation = document["paths"][path]["post"]
    shown = operation["requestBody"]["content"]["application/json"]
    assert shown["examples"]
    answered = operation["responses"]["200"]["content"]["application/json"]
    assert set(answered["examples"]) == set(shown["examples"])
    for name, example in shown["examples"].items():
        answer = client.post(path.replace("{graph_id}", graph_id), json=example["value"])
        assert answer.status_code == 200, answer.text
        varying = {"stats": 0, "description": "", "limits": {}}  # these depend on the first graph and on this server
        assert answer.json() | varying == answered["examples"][name]["value"] | varying
        validator(document, answered["schema"]).validate(answered["examples"][name]["value"])
        validator(document, answered["schema"]).validate(answer.json())
        validator(document, shown["schema"]).validate(example["value"])


def test_putting_and_deleting_a_tensor_matches_the_document(client: Client, document: dict[str, Any]) -> None:
    described = document["paths"]["/v1/tensors/{name}"]
    shown = described["put"]["requestBody"]["content"]["application/json"]["examples"]["vector"]["value"]
    answers = described["put"]["responses"]
    for method, status in (("PUT", "201"), ("PUT", "200"), ("DELETE", "200")):
        answer = client.request(method, "/v1/tensors/described", json=shown if method == "PUT" else None)
        assert answer.status_code == int(status), answer.text
        validator(document, answers[status]["content"]["application/json"]["schema"]).validate(answer.json())
        example = answers["201"]["content"]["application/json"]["examples"]["vector"]["value"]
        varying = {"etag": "", "tensor_id": ""}
        assert answer.json() | varying == example | varying
    assert "content" not in described["get"]["responses"]["304"]


def test_putting_and_deleting_a_model_matches_the_document(
    client: Client, document: dict[str, Any], graph_id: str
) -> None:
    described = document["paths"]["/v1/models/{name}"]
    ((name, shown),) = described["put"]["requestBody"]["content"]["application/json"]["examples"].items()
    assert shown["value"]["graph_id"] == graph_id
    answers = described["put"]["responses"]
    for method, status in (("PUT", "201"), ("PUT", "200"), ("DELETE", "200")):
        answer = client.request(method, "/v1/models/described", json=shown["value"] if method == "PUT" else None)
        assert answer.status_code == int(status), answer.text
        validator(document, answers[status]["content"]["application/json"]["schema"]).validate(answer.json())
        example = answers["201"]["content"]["application/json"]["examples"][name]["value"]
        varying = {"etag": "", "name": ""}
        assert answer.json() | varying == example | varying
    assert "content" not in described["get"]["responses"]["304"]


def test_problem_examples_match_the_problem_schema(document: dict[str, Any]) -> None:
    check = validator(document, {"$ref": "#/components/schemas/Problem"})
    for *_, example in problem_examples(document):
        check.validate(example["value"])


@pytest.mark.parametrize(("operation", "path"), METHODS.items())
def test_get_answers_match_their_schemas(
    client: Client, document: dict[str, Any], operation: str, path: str, graph_id: str
) -> None:
    described = next(o for _, _, o in operations(document) if o["operationId"] == operation)
    schema = described["responses"]["200"]["content"]["application/json"]["schema"]
    client.request("PUT", "/v1/tensors/w", json=MEAN["feeds"][0]["tensor"])
    put = document["paths"]["/v1/models/{name}"]["put"]["requestBody"]["content"]["application/json"]["examples"]
    client.request("PUT", METHODS["getModel"], json=next(iter(put.values()))["value"])
    validator(document, schema).validate(client.get(path.replace("{graph_id}", graph_id)).json())
    client.request("DELETE", METHODS["getModel"])  # others delete the graphs of this server


def test_request_schemas_are_closed_and_answer_schemas_open(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    closed = {name for name, schema in schemas.items() if schema.get("additionalProperties") is False}
    requests = {name for name in schemas if name.endswith("Request")}
    assert len(requests) == 2 * len(CALLS) + 2  # a graph, and a model
    parts = {"Feed", "NodeType", "StoreEntry", "NamedOutput", "BoundLeaf"}
    assert closed == parts | requests


def test_graph_schema_describes_the_ops(document: dict[str, Any]) -> None:
    check = validator(document, {"$ref": "#/components/schemas/Graph"})
    assert check.is_valid({"nodes": [{"op": "sum", "operands": [0], "attrs": {"axes": [0]}}]})
    assert not check.is_valid({"nodes": [{"op": "sum", "operands": [0], "attrs": {"axes": 0}}]})
    assert check.is_valid({"nodes": [{"op": "additon"}]}), "what is unknown, the server refuses"


def test_document_is_the_same_at_every_start(make_client: Callable[..., Client], client: Client) -> None:
    assert make_client().get("/openapi.json").content == client.get("/openapi.json").content
