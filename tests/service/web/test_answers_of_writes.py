"""An answer to a write tells what was there at the moment of the write, however long the write has waited."""

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
from tests.service.web.test_keeping_doors import Kept, Loop, keeping, until
from tests.simulation.checker import SOMETHING, Operation, is_linearizable

pytestmark = on_each_loop

GRAPH = b'{"graph_id":"%b","nodes":1,"graph":{}}'


class Writers(FakePool):
    """Does what workers do of writes: each version of a tensor or a model has an etag of its own."""

    def __init__(self) -> None:
        super().__init__(self.made)
        self.numbers = count(1)

    def made(self, job: Task) -> Reply:
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


async def held_up(opened: Kept, *requests: tuple[str, str, bytes]) -> list[tuple[int, Any]]:
    """Send these while the journal writes something else, in this order, and return their answers once it goes on."""
    first = asyncio.create_task(ask(await opened.connect(), "PUT", "tensors/other", b"{}"))
    opened.journal.may.clear()
    await until(opened.journal.begun.is_set)
    asked = []
    for waiting, (method, path, body) in enumerate(requests, 1):
        asked.append(asyncio.create_task(ask(await opened.connect(), method, path, body)))
        await until(lambda waiting=waiting: len(opened.store.commits._waiting) >= waiting)
    opened.journal.may.set()
    await first
    return list(await asyncio.gather(*asked))


PATHS = pytest.mark.parametrize(
    ("path", "method", "where"),
    [("tensors/w", "PUT", "tensors/w"), ("models/m", "PUT", "models/m"), ("graphs/g", "POST", "graphs")],
    ids=["tensor", "model", "graph"],
)


async def with_graph(opened: Kept, path: str) -> None:
    if path.startswith("models"):
        assert (await ask(await opened.connect(), "POST", "graphs", b"g"))[0] == 201


@PATHS
@pytest.mark.parametrize("key", [False, True], ids=["plain", "with a key"])
def test_only_the_first_of_two_writes_has_created_something(
    loop: Loop, path: str, method: str, where: str, key: bool
) -> None:
    async def scenario() -> None:
        async with keeping(Writers(), at_once=True) as opened:
            await with_graph(opened, path)
            opened.journal.may.clear()
            opened.journal.begun.clear()
            answers = await held_up(opened, (method, where, b"g"), (method, where, b"g"), (method, where, b"g"))
            assert [status for status, _ in answers] == [201, 200, 200]
            if key:
                header = "Idempotency-Key: one"
                for _ in range(2):
                    assert (await ask(await opened.connect(), method, where, b"g", header))[0] == 200

    run(scenario, loop)


@pytest.mark.parametrize("path", ["tensors/w", "models/m"])
def test_deletion_tells_of_the_version_that_it_deletes(loop: Loop, path: str) -> None:
    async def scenario() -> None:
        async with keeping(Writers(), at_once=True) as opened:
            await with_graph(opened, path)
            await ask(await opened.connect(), "PUT", path, b"{}")
            opened.journal.may.clear()
            opened.journal.begun.clear()
            put, gone, again = await held_up(opened, ("PUT", path, b"{}"), ("DELETE", path, b""), ("DELETE", path, b""))
            assert (put[0], gone[0], again[0]) == (200, 200, 404)
            assert gone[1]["etag"] == put[1]["etag"]

    run(scenario, loop)


def test_recorded_answer_is_that_of_the_write(loop: Loop) -> None:
    """A call that comes again with its key is told what the first was told, and that was filled in late."""

    async def scenario() -> None:
        async with keeping(Writers(), at_once=True) as opened:
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
    """Some order of all calls explains every status and every etag that was told, of a journal that takes its time."""

    async def scenario() -> None:
        chance, operations = random.Random(seed), list[Operation]()
        async with keeping(Writers(), at_once=True) as opened:

            async def caller() -> None:
                client = await opened.connect()
                for _ in range(8):
                    for _ in range(chance.randrange(12)):
                        await asyncio.sleep(0)
                    operations.append(await operation(client, chance))

            def toggle() -> None:
                """Hold the journal up, and let it go on."""
                (opened.journal.may.clear if chance.random() < 0.5 else opened.journal.may.set)()
                nonlocal toggling
                toggling = asyncio.get_running_loop().call_later(0.001, toggle)

            toggling = asyncio.get_running_loop().call_soon(toggle)
            await asyncio.gather(*(caller() for _ in range(6)))
            toggling.cancel()
            opened.journal.may.set()
        assert is_linearizable(operations), [(each.kind, each.answer, each.replaced) for each in operations]
        assert {each.kind for each in operations} == {"read", "write", "delete"}

    run(scenario, loop)


async def operation(client: Client, chance: random.Random) -> Operation:
    """Write, delete or list, and note all that the answer tells."""
    clock, kind = asyncio.get_running_loop().time, chance.choice(["write", "write", "delete", "read"])
    called = clock()
    if kind == "read":
        _, listed = await ask(client, "GET", "tensors")
        etags = [int(each["etag"], 16) for each in listed["tensors"]]
        return Operation("read", called, ("x",), returned=clock(), answer=(etags[0] if etags else None,))
    if kind == "write":
        durable = chance.choice(["", "?durable=false"])
        status, told = await ask(client, "PUT", f"tensors/x{durable}", b"{}")
        replaced = None if status == 201 else SOMETHING
        return Operation("write", called, (), {"x": int(told["etag"], 16)}, {}, True, clock(), "ok", replaced)
    status, told = await ask(client, "DELETE", "tensors/x")
    if status == 404:
        return Operation("delete", called, (), {"x": None}, returned=clock(), answer="404")
    replaced = int(told["etag"], 16)
    return Operation("delete", called, (), {"x": None}, {}, True, clock(), "ok", replaced)
