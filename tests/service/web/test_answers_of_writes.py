"""Answers to writes report the state at the moment of the write, no matter how long the write has waited."""

from __future__ import annotations

import asyncio
import json
import random
from itertools import count
from typing import Any

import pytest

from service.api.media import JSON
from service.store.writes import Stored
from service.workers.task import Reply, Task
from tests.service.web.harness import Client, FakePool, on_each_loop, run
from tests.service.web.test_keeping_doors import Loop, StoringHouse, storing_server, wait_until
from tests.simulation.checker import SOMETHING, Operation, is_linearizable

pytestmark = on_each_loop

GRAPH = b'{"graph_id":"%b","nodes":1,"graph":{}}'


class Writers(FakePool):
    """Pool that answers writes as workers do: each version of a tensor or a model has its own etag."""

    def __init__(self) -> None:
        super().__init__(self.answer_write)
        self.numbers = count(1)

    def answer_write(self, job: Task) -> Reply:
        etag = f"{next(self.numbers):016x}"
        if job.call == "putTensor":
            stored = Stored(job.subject or "", etag, "uint8", (1,))
            return Reply(200, JSON, [b""], stored=[stored], stored_data=[b"\0"])
        if job.call == "registerGraph":
            return Reply(200, JSON, [GRAPH % bytes(job.body)])
        record = json.dumps({"name": job.subject, "etag": etag, "graph_id": "g", "inputs": []}, separators=(",", ":"))
        return Reply(200, JSON, [record.encode()])


async def ask(client: Client, method: str, path: str, body: bytes = b"", *headers: str) -> tuple[int, Any]:
    """Send a request, and return status and body of its answer."""
    lines = [f"{method} /v1/{path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *headers]
    if body:
        lines.append("Content-Type: application/json")
    await client.send("\r\n".join([*lines, "", ""]).encode() + body)
    head, answer = await client.response()
    return int(head[9:12]), json.loads(answer) if answer else None


async def send_while_blocked(opened: StoringHouse, *requests: tuple[str, str, bytes]) -> list[tuple[int, Any]]:
    """Send requests in order while another write blocks the journal; unblock it and return the answers."""
    first = asyncio.create_task(ask(await opened.connect(), "PUT", "tensors/other", b"{}"))
    opened.journal.unblocked.clear()
    await wait_until(opened.journal.begun.is_set)
    asked = []
    for waiting, (method, path, body) in enumerate(requests, 1):
        asked.append(asyncio.create_task(ask(await opened.connect(), method, path, body)))
        await wait_until(lambda waiting=waiting: len(opened.store.commits._waiting) >= waiting)
    opened.journal.unblocked.set()
    await first
    return list(await asyncio.gather(*asked))


PATHS = pytest.mark.parametrize(
    ("path", "method", "where"),
    [("tensors/w", "PUT", "tensors/w"), ("models/m", "PUT", "models/m"), ("graphs/g", "POST", "graphs")],
    ids=["tensor", "model", "graph"],
)


async def with_graph(opened: StoringHouse, path: str) -> None:
    if path.startswith("models"):
        assert (await ask(await opened.connect(), "POST", "graphs", b"g"))[0] == 201


@PATHS
@pytest.mark.parametrize("key", [False, True], ids=["plain", "with a key"])
def test_only_the_first_of_several_writes_creates(loop: Loop, path: str, method: str, where: str, key: bool) -> None:
    async def scenario() -> None:
        async with storing_server(Writers(), at_once=True) as opened:
            await with_graph(opened, path)
            opened.journal.unblocked.clear()
            opened.journal.begun.clear()
            answers = await send_while_blocked(
                opened, (method, where, b"g"), (method, where, b"g"), (method, where, b"g")
            )
            assert [status for status, _ in answers] == [201, 200, 200]
            if key:
                header = "Idempotency-Key: one"
                for _ in range(2):
                    assert (await ask(await opened.connect(), method, where, b"g", header))[0] == 200

    run(scenario, loop)


@pytest.mark.parametrize("path", ["tensors/w", "models/m"])
def test_delete_reports_the_deleted_version(loop: Loop, path: str) -> None:
    async def scenario() -> None:
        async with storing_server(Writers(), at_once=True) as opened:
            await with_graph(opened, path)
            await ask(await opened.connect(), "PUT", path, b"{}")
            opened.journal.unblocked.clear()
            opened.journal.begun.clear()
            put, gone, again = await send_while_blocked(
                opened, ("PUT", path, b"{}"), ("DELETE", path, b""), ("DELETE", path, b"")
            )
            assert (put[0], gone[0], again[0]) == (200, 200, 404)
            assert gone[1]["etag"] == put[1]["etag"]

    run(scenario, loop)


def test_recorded_answer_is_the_answer_of_the_write(loop: Loop) -> None:
    """A repeated call gets the answer of the first one, although that was completed late."""

    async def scenario() -> None:
        async with storing_server(Writers(), at_once=True) as opened:
            _, before = await ask(await opened.connect(), "PUT", "tensors/w", b"{}")
            answers = [
                await ask(await opened.connect(), "DELETE", "tensors/w", b"", "Idempotency-Key: gone") for _ in "12"
            ]
            assert answers[0] == answers[1]
            assert answers[0][1]["etag"] == before["etag"]
            created = [
                await ask(await opened.connect(), "PUT", "tensors/w", b"{}", "Idempotency-Key: new") for _ in "12"
            ]
            assert created[0] == created[1]
            assert created[0][0] == 201

    run(scenario, loop)


@pytest.mark.parametrize("seed", range(12))
def test_answers_of_concurrent_callers_are_linearizable(loop: Loop, seed: int) -> None:
    """With a slow journal, some order of all calls explains every status and etag that was reported."""

    async def scenario() -> None:
        chance, operations = random.Random(seed), list[Operation]()
        async with storing_server(Writers(), at_once=True) as opened:

            async def caller() -> None:
                client = await opened.connect()
                for _ in range(8):
                    for _ in range(chance.randrange(12)):
                        await asyncio.sleep(0)
                    operations.append(await operation(client, chance))

            def toggle() -> None:
                """Block the journal or unblock it."""
                (opened.journal.unblocked.clear if chance.random() < 0.5 else opened.journal.unblocked.set)()
                nonlocal toggling
                toggling = asyncio.get_running_loop().call_later(0.001, toggle)

            toggling = asyncio.get_running_loop().call_soon(toggle)
            await asyncio.gather(*(caller() for _ in range(6)))
            toggling.cancel()
            opened.journal.unblocked.set()
        assert is_linearizable(operations), [(each.kind, each.answer, each.replaced) for each in operations]
        assert {each.kind for each in operations} == {"read", "write", "delete"}

    run(scenario, loop)


async def operation(client: Client, chance: random.Random) -> Operation:
    """Write, delete or list, and record everything that the answer reports."""
    clock, kind = asyncio.get_running_loop().time, chance.choice(["write", "write", "delete", "read"])
    called = clock()
    if kind == "read":
        _, listed = await ask(client, "GET", "tensors")
        etags = [int(each["etag"], 16) for each in listed["tensors"]]
        return Operation("read", called, ("x",), returned=clock(), answer=(etags[0] if etags else None,))
    if kind == "write":
        durable = chance.choice(["", "?durable=false"])
        status, answer = await ask(client, "PUT", f"tensors/x{durable}", b"{}")
        replaced = None if status == 201 else SOMETHING
        return Operation("write", called, (), {"x": int(answer["etag"], 16)}, {}, True, clock(), "ok", replaced)
    status, answer = await ask(client, "DELETE", "tensors/x")
    if status == 404:
        return Operation("delete", called, (), {"x": None}, returned=clock(), answer="404")
    replaced = int(answer["etag"], 16)
    return Operation("delete", called, (), {"x": None}, {}, True, clock(), "ok", replaced)
