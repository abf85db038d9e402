"""Two keys that try each other's names, on every path of the document: neither notices that the other is there.

Bob does all that can be done, by the names that Alice uses, on a server where she keeps graphs and tensors and on one
where she never was. He must be answered the same; and she must find afterwards what she had.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.core.keys.caller import new_key
from tests.conftest import RunningServer
from tests.service.core.keys.cases import bodies, operations, placed, record, write

pytestmark = pytest.mark.slow

ALICE, BOB, TOGETHER = new_key(), new_key(), new_key()
#: ids, timings, and what a new version is called, which is left to chance
VARYING = re.compile(
    rb'(?<="request_id":")[^"]*|\b[0-9a-f]{16}\b|[a-z_]*_ms":[0-9.e-]+|"plan_cached":[a-z]+|"tier":"[a-z_]*"'
)
#: the names of tensors that both use; the last one is that of the document's examples, whatever that is
SECRET = "secret"
ORDER = ("GET", "HEAD", "POST", "PUT", "DELETE")
#: a call takes the value of the leaf 0 from a tensor that is kept, and keeps another one
SUM = {"nodes": [{"op": "input"}, {"op": "sum", "operands": [0]}]}

Asked = tuple[str, str, bytes]
Start = Callable[..., RunningServer]


class Person:
    """Somebody with a key, at one server."""

    def __init__(self, url: str, key: str, numbers: list[float]) -> None:
        self.client = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=60)
        self.document: Mapping[str, Any] = self.client.get("/openapi.json").json()
        self.tensor = {"dtype": "float64", "shape": [2], "data": numbers}

    def everything(self, methods: tuple[str, ...]) -> Iterator[Asked]:
        """A request of each kind: those that change something last, and before that those by a name."""
        described = [(m, p, o) for m, p, o in operations(self.document) if m in methods]
        for method, path, operation in sorted(described, key=lambda each: (ORDER.index(each[0]), "{" not in each[1])):
            for name in (None, SECRET) if "{name}" in path and "/ops/" not in path else (None,):
                stated = {} if name is None else {"name": name}
                of_tensor = method == "PUT" and "/tensors/" in path
                for body in self.of_mine(bodies(operation)) if of_tensor else bodies(operation):
                    yield method, placed(path, operation, **stated), body
        if "POST" in methods:
            yield from self.by_name()

    def of_mine(self, shown: list[bytes]) -> list[bytes]:
        """What is put: each has numbers of their own."""
        return [json.dumps(self.tensor).encode()] if shown else []

    def by_name(self) -> Iterator[Asked]:
        """Calls that read and write a tensor by its name, which stands in no path."""
        read = {"graph": SUM, "feeds": [{"node": 0, "tensor_id": SECRET}]}
        yield "POST", "/v1/forward", json.dumps(read).encode()
        for condition in ({}, {"if_match": "*"}, {"if_match": ""}):
            kept = {"store": [{"node": 1, "tensor_id": f"{SECRET}-sum", **condition}]}
            own = {"graph": SUM, "feeds": [{"node": 0, "tensor": self.tensor}]}
            yield "POST", "/v1/forward", json.dumps(own | kept).encode()

    def ask(self, asked: Asked, number: int | None = None) -> tuple[int, bytes]:
        """The status and the body, without what is left to chance. With a number, as a call that may come again."""
        method, path, body = asked
        headers = {"Content-Type": "application/json"} if body else {}
        if number is not None and method not in ("GET", "HEAD"):
            headers["Idempotency-Key"] = f"call-{number}"
        response = self.client.request(method, path, content=body or None, headers=headers)
        return response.status_code, VARYING.sub(b"", response.content)

    def do(self, *methods: str, numbered: bool = False) -> list[tuple[Asked, int, bytes]]:
        """All of it, and what came back."""
        everything = enumerate(self.everything(methods or ORDER))
        return [(asked, *self.ask(asked, number if numbered else None)) for number, asked in everything]

    def try_all(self) -> Iterator[tuple[Asked, int, bytes]]:
        """Before there is anything of theirs, while there is, and afterwards; through both doors."""
        yield from self.do("GET", "DELETE")
        yield from self.do("POST")  # a call without an Idempotency-Key goes from the connection to the pool
        yield from self.do(numbered=True)
        for method in ("PUT", "GET", "POST", "DELETE", "GET"):
            yield from self.do(method)


@pytest.fixture
def places(start_server: Start, tmp_path: Path) -> tuple[str, str]:
    """Two servers with the same keys."""
    keys = [record("alice", ALICE), record("bob", BOB), record("team", TOGETHER, namespace="alice")]
    options = ("--keys-file", str(write(tmp_path / "keys.json", keys)), "--workers", "1")
    first, second = start_server(*options), start_server(*options)
    return first.url, second.url


@pytest.fixture
def person() -> Iterator[Callable[..., Person]]:
    """Makes people, and has them leave."""
    made: list[Person] = []

    def make(*stated: Any) -> Person:
        made.append(Person(*stated))
        return made[-1]

    yield make
    for each in made:
        each.client.close()


def test_nobody_notices_who_else_is_there(places: tuple[str, str], person: Callable[..., Person]) -> None:
    alice = person(places[0], ALICE, [1.25, 2.5])
    kept = [(asked, status) for asked, status, _ in alice.do("POST", "PUT", numbered=True)]
    assert not [asked for asked, status in kept if asked[0] == "PUT" and status not in (200, 201)]
    assert ("POST", "/v1/graphs", 201) in [(*asked[:2], status) for asked, status in kept]
    before = seen(alice)
    assert {status for status, _ in before} == {200}, "all that she asks for is there"

    found = []
    for url in places:
        bob = person(url, BOB, [-7.0, 11.0])
        found.append(list(bob.try_all()))
        assert b"1.25" not in b"".join(body for _, _, body in found[-1])
    for there, alone in zip(*found, strict=True):
        assert there == alone, "a server on which she keeps something answers him differently"
    assert [asked for asked, status, _ in found[0] if status == 404], "names that are hers are none to him"

    assert seen(alice) == before, "what he did changed something of hers"
    assert seen(person(places[0], TOGETHER, [])) == before, "keys of one namespace see the same"


def test_a_key_that_may_only_compute_keeps_nothing(start_server: Start, tmp_path: Path) -> None:
    """That a call keeps something is known when it has been computed; nothing is kept then, and that is told."""
    computing, reading = new_key(), new_key()
    keys = [
        record("a", computing, ["compute"], namespace="n"),
        record("b", reading, ["read", "compute"], namespace="n"),
    ]
    server = start_server("--keys-file", str(write(tmp_path / "keys.json", keys)), "--workers", "1")
    body = {"graph": {"nodes": [{"op": "full", "attrs": {"shape": [2], "fill": 1.5}}]}}
    with httpx.Client(base_url=server.url, timeout=60) as client:
        for headers in ({}, {"Idempotency-Key": "one"}):
            told = client.post(
                "/v1/forward",
                json=body | {"store": [{"node": 0, "tensor_id": "w"}]},
                headers={"Authorization": f"Bearer {computing}", **headers},
            )
            assert (told.status_code, told.json()["code"], told.json()["expected"]) == (403, "forbidden", "write")
            assert "1.5" not in told.text
        assert (
            client.post("/v1/forward", json=body, headers={"Authorization": f"Bearer {computing}"}).status_code == 200
        )
        listed = client.get("/v1/tensors", headers={"Authorization": f"Bearer {reading}"})
        assert listed.json() == {"tensors": []}


def seen(person: Person) -> list[tuple[int, bytes]]:
    """All that can be read, in paths and by name."""
    read = next(person.by_name())
    return [person.ask(asked) for asked in (*person.everything(("GET",)), read)]
