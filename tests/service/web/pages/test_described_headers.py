"""Response headers: the server sends the declared headers, and the document declares the sent ones."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from threading import Event

import httpx
import pytest

from service.api.calls.description import MEAN
from service.core.settings import Settings
from service.workers.task import Reply, Task
from service.workers.worker import Worker
from tests.conftest import Client
from tests.service.application import create_app, open_pool
from tests.service.core.keys.cases import bodies, placed
from tests.service.described import Json, answers, operations, refusals, resolved
from tests.service.support import problem
from tests.service.thread_pool import ThreadPool

#: headers that no document declares: those of HTTP itself, of the body, and one that every answer has
UNDECLARED = {"content-type", "content-length", "x-content-type-options"}
SETTINGS = Settings(device="cpu", compile="off")


@pytest.fixture(scope="module")
def document(client: Client) -> Json:
    return client.get("/openapi.json").json()


@pytest.fixture(scope="module")
def graph_id(client: Client) -> str:
    return str(client.post("/v1/graphs", json={"graph": MEAN["graph"]}).json()["graph_id"])


def declared(document: Json, operation: Json, status: int) -> dict[str, bool]:
    """Map the declared headers of a response to whether each is required."""
    described = dict(answers(document, operation))[str(status)]
    headers = {name.lower(): resolved(document, header) for name, header in described["headers"].items()}
    return {name: header["required"] for name, header in headers.items()}


def check_headers(document: Json, operation: Json, answer: httpx.Response) -> set[str]:
    """Check that an answer has all required headers and only declared ones, and return them."""
    stated = declared(document, operation, answer.status_code)
    assert answer.headers["x-content-type-options"] == "nosniff"
    sent = set(answer.headers) - UNDECLARED
    assert {name for name, always in stated.items() if always} <= sent <= set(stated), operation["operationId"]
    return sent


def valid_requests(document: Json, graph_id: str) -> Iterator[tuple[Json, str, str, bytes]]:
    """Yield a valid request for each operation: the operation, the method, the path and the body."""
    order = ["post", "put", "get"]
    asked = sorted(operations(document), key=lambda each: each[0])
    deleting = [each for each in reversed(asked) if each[1] == "delete"]  # models before their graphs
    creating = sorted((each for each in asked if each[1] != "delete"), key=lambda each: order.index(each[1]))
    for path, method, operation in (*creating, *deleting):
        target = placed(path, operation, name="add" if "/ops/" in path else "w", graph_id=graph_id)
        yield operation, method.upper(), target, bodies(operation)[0]


def test_headers_of_answers(make_client: Callable[..., Client], document: Json, graph_id: str) -> None:
    client, seen = make_client(), set()
    client.post("/v1/graphs", json={"graph": MEAN["graph"]})
    for operation, method, path, body in valid_requests(document, graph_id):
        answer = client.request(method, path, content=body)
        assert answer.is_success, answer.text
        seen |= check_headers(document, operation, answer)
        if "etag" in answer.headers and method == "GET":
            unchanged = client.get(path, headers={"If-None-Match": answer.headers["etag"]})
            assert unchanged.status_code == 304
            check_headers(document, operation, unchanged)
    assert seen == {"etag", "location", "x-request-id"}


def test_headers_of_replayed_answers(make_client: Callable[..., Client], document: Json, graph_id: str) -> None:
    """Operations that accept a key and store something replay their answer; no others do."""
    client, replayed = make_client(), set()
    for number, (operation, method, path, body) in enumerate(valid_requests(document, graph_id)):
        content = storing(document, operation, body)
        for _ in range(2):
            answer = client.request(method, path, content=content, headers={"Idempotency-Key": str(number)})
            sent = check_headers(document, operation, answer)
        if "idempotency-replayed" in sent:
            replayed.add(operation["operationId"])
    assert len(replayed) >= 20
    assert replayed == {operation["operationId"] for *_, operation in operations(document) if accepts_key(operation)}


def accepts_key(operation: Json) -> bool:
    return "Idempotency-Key" in {parameter["name"] for parameter in operation.get("parameters", ())}


def storing(document: Json, operation: Json, body: bytes) -> bytes:
    """Change the request to store a value, if its operation can."""
    if "requestBody" not in operation:
        return body
    message = resolved(document, operation["requestBody"]["content"]["application/json"]["schema"])
    if "store" not in message["properties"]:
        return body
    return json.dumps(json.loads(body) | {"store": [{"node": 0, "tensor_id": "w"}]}).encode()


@pytest.mark.slow
def test_headers_of_refusals(client: Client, document: Json, graph_id: str) -> None:
    ran = 0
    for path, method, operation in operations(document):
        for status, code, example in refusals(document, operation):
            if asked := example.get("x-request"):
                target = asked.get("path", path).replace("{name}", "add").replace("{graph_id}", graph_id)
                content = asked.get("raw") or json.dumps(asked.get("body", {}))
                answer = client.request(method.upper(), target, content=content, headers=asked.get("headers"))
                problem(answer, int(status), code)
                check_headers(document, operation, answer)
                ran += 1
    assert ran > 400


def test_headers_of_refusals_without_a_key(make_client: Callable[..., Client], document: Json, graph_id: str) -> None:
    client = make_client(api_key="a-key-that-is-long-enough-for-a-server")
    for operation, method, path, body in valid_requests(document, graph_id):
        if operation.get("security") != []:
            answer = client.request(method, path, content=body)
            problem(answer, 401, "unauthenticated")
            assert check_headers(document, operation, answer) == {"www-authenticate", "x-request-id"}


def test_headers_of_refusals_while_the_server_stops(document: Json, graph_id: str) -> None:
    pool, stopped = open_pool(SETTINGS), set()
    pool.drain()
    with closing(Client(create_app(SETTINGS, pool))) as client:
        for operation, method, path, body in valid_requests(document, graph_id):
            answer = client.request(method, path, content=body)
            if answer.status_code == 503:
                assert check_headers(document, operation, answer) == {"retry-after", "x-request-id"}
                stopped.add(operation["operationId"])
    assert {"gradients", "putTensor", "registerGraph", "ready"} <= stopped


def test_headers_of_a_conflict_with_a_running_call(document: Json) -> None:
    """The 409 has a Retry-After: the first answer may exist by then."""
    worker, held = Worker(SETTINGS), Event()

    def work(job: Task) -> Reply:
        held.wait(60)
        return worker(job)

    async def second(http: httpx.AsyncClient) -> httpx.Response:
        """Return the answer to the second of two requests, which arrives before the first answer."""
        stated = {"json": MEAN["feeds"][0]["tensor"], "headers": {"Idempotency-Key": "a"}}
        both = [asyncio.ensure_future(http.put("/v1/tensors/w", **stated)) for _ in range(2)]
        (answered,), _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        held.set()
        await asyncio.wait(both)
        return answered.result()

    with closing(Client(create_app(SETTINGS, ThreadPool(work, worker.device, 1, 1)))) as client:
        answer = client._runner.run(second(client._http))
    problem(answer, 409, "conflict")
    operation = document["paths"]["/v1/tensors/{name}"]["put"]
    assert check_headers(document, operation, answer) == {"retry-after", "x-request-id"}
