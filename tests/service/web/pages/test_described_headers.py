"""Headers of answers: those that the document declares are sent, and those that are sent it declares."""

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

#: headers of HTTP itself or of the body, and one that every answer has: no document declares them
UNDECLARED = {"content-type", "content-length", "x-content-type-options"}
SETTINGS = Settings(device="cpu", compile="off")


@pytest.fixture(scope="module")
def document(client: Client) -> Json:
    return client.get("/openapi.json").json()


@pytest.fixture(scope="module")
def graph_id(client: Client) -> str:
    return str(client.post("/v1/graphs", json={"graph": MEAN["graph"]}).json()["graph_id"])


def declared(document: Json, operation: Json, status: int) -> dict[str, bool]:
    """The headers of a response, and whether each is always there."""
    described = dict(answers(document, operation))[str(status)]
    headers = {name.lower(): resolved(document, header) for name, header in described["headers"].items()}
    return {name: header["required"] for name, header in headers.items()}


def check(document: Json, operation: Json, answer: httpx.Response) -> set[str]:
    """The headers that an answer has, each of which is declared; and none is missing."""
    stated = declared(document, operation, answer.status_code)
    assert answer.headers["x-content-type-options"] == "nosniff"
    sent = set(answer.headers) - UNDECLARED
    assert {name for name, always in stated.items() if always} <= sent <= set(stated), operation["operationId"]
    return sent


def well_asked(document: Json, graph_id: str) -> Iterator[tuple[Json, str, str, bytes]]:
    """A request of each operation that it answers: what it is, the method, the path, the body."""
    order = ["post", "put", "get"]
    asked = sorted(operations(document), key=lambda each: each[0])
    ending = [each for each in reversed(asked) if each[1] == "delete"]  # models before their graphs
    keeping_all = sorted((each for each in asked if each[1] != "delete"), key=lambda each: order.index(each[1]))
    for path, method, operation in (*keeping_all, *ending):
        at = placed(path, operation, name="add" if "/ops/" in path else "w", graph_id=graph_id)
        yield operation, method.upper(), at, bodies(operation)[0]


def test_of_answers(make_client: Callable[..., Client], document: Json, graph_id: str) -> None:
    client, seen = make_client(), set()
    client.post("/v1/graphs", json={"graph": MEAN["graph"]})
    for operation, method, path, body in well_asked(document, graph_id):
        answer = client.request(method, path, content=body)
        assert answer.is_success, answer.text
        seen |= check(document, operation, answer)
        if "etag" in answer.headers and method == "GET":
            known = client.get(path, headers={"If-None-Match": answer.headers["etag"]})
            assert known.status_code == 304
            check(document, operation, known)
    assert seen == {"etag", "location", "x-request-id"}


def test_of_answers_that_come_again(make_client: Callable[..., Client], document: Json, graph_id: str) -> None:
    """Whatever takes a key, and keeps something, is answered so; nothing else is."""
    client, replayed = make_client(), set()
    for number, (operation, method, path, body) in enumerate(well_asked(document, graph_id)):
        content = keeping(document, operation, body)
        for _ in range(2):
            answer = client.request(method, path, content=content, headers={"Idempotency-Key": str(number)})
            sent = check(document, operation, answer)
        if "idempotency-replayed" in sent:
            replayed.add(operation["operationId"])
    assert len(replayed) >= 20
    assert replayed == {operation["operationId"] for *_, operation in operations(document) if takes_key(operation)}


def takes_key(operation: Json) -> bool:
    return "Idempotency-Key" in {parameter["name"] for parameter in operation.get("parameters", ())}


def keeping(document: Json, operation: Json, body: bytes) -> bytes:
    """The same request, such that a value is kept, where it can say so."""
    if "requestBody" not in operation:
        return body
    message = resolved(document, operation["requestBody"]["content"]["application/json"]["schema"])
    if "store" not in message["properties"]:
        return body
    return json.dumps(json.loads(body) | {"store": [{"node": 0, "tensor_id": "w"}]}).encode()


@pytest.mark.slow
def test_of_refusals(client: Client, document: Json, graph_id: str) -> None:
    ran = 0
    for path, method, operation in operations(document):
        for status, code, example in refusals(document, operation):
            if asked := example.get("x-request"):
                at = asked.get("path", path).replace("{name}", "add").replace("{graph_id}", graph_id)
                content = asked.get("raw") or json.dumps(asked.get("body", {}))
                answer = client.request(method.upper(), at, content=content, headers=asked.get("headers"))
                problem(answer, int(status), code)
                check(document, operation, answer)
                ran += 1
    assert ran > 400


def test_of_refusals_without_a_key(make_client: Callable[..., Client], document: Json, graph_id: str) -> None:
    client = make_client(api_key="a-key-that-is-long-enough-for-a-server")
    for operation, method, path, body in well_asked(document, graph_id):
        if operation.get("security") != []:
            answer = client.request(method, path, content=body)
            problem(answer, 401, "unauthenticated")
            assert check(document, operation, answer) == {"www-authenticate", "x-request-id"}


def test_of_refusals_while_the_server_stops(document: Json, graph_id: str) -> None:
    pool, stopped = open_pool(SETTINGS), set()
    pool.drain()
    with closing(Client(create_app(SETTINGS, pool))) as client:
        for operation, method, path, body in well_asked(document, graph_id):
            answer = client.request(method, path, content=body)
            if answer.status_code == 503:
                assert check(document, operation, answer) == {"retry-after", "x-request-id"}
                stopped.add(operation["operationId"])
    assert {"gradients", "putTensor", "registerGraph", "ready"} <= stopped


def test_of_what_is_under_way(document: Json) -> None:
    """409 states a time: then the first answer may be there."""
    worker, held = Worker(SETTINGS), Event()

    def work(job: Task) -> Reply:
        held.wait(60)
        return worker(job)

    async def second(http: httpx.AsyncClient) -> httpx.Response:
        """The answer to the second of two, which comes before that to the first."""
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
    assert check(document, operation, answer) == {"retry-after", "x-request-id"}
