"""Two keys that try each other's names on every path of the document: neither notices the other.

Bob sends every possible request with the names that Alice uses, to a server on which she stores graphs and tensors and
to one that she has never used. He must get the same answers, and her data must be unchanged afterwards.
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
#: ids, timings and random etags
VARYING = re.compile(
    rb'(?<="request_id":")[^"]*|\b[0-9a-f]{16}\b|[a-z_]*_ms":[0-9.e-]+|"plan_cached":[a-z]+|"tier":"[a-z_]*"'
)
#: the name of a tensor that both use, in addition to those of the document's examples
SECRET = "secret"
ORDER = ("GET", "HEAD", "POST", "PUT", "DELETE")
#: a graph whose leaf is fed from a stored tensor, and whose sum is stored
SUM = {"nodes": [{"op": "input"}, {"op": "sum", "operands": [0]}]}

RequestParts = tuple[str, str, bytes]
Start = Callable[..., RunningServer]


class User:
    """User of one server with a key."""

    def __init__(self, url: str, key: str, numbers: list[float]) -> None:
        self.client = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=60)
        self.document: Mapping[str, Any] = self.client.get("/openapi.json").json()
        self.tensor = {"dtype": "float64", "shape": [2], "data": numbers}

    def everything(self, methods: tuple[str, ...]) -> Iterator[RequestParts]:
        """Yield requests of each kind, sorted by method and with those that have a name first."""
        described = [(m, p, o) for m, p, o in operations(self.document) if m in methods]
        for method, path, operation in sorted(described, key=lambda each: (ORDER.index(each[0]), "{" not in each[1])):
            for name in (None, SECRET) if "{name}" in path and "/ops/" not in path else (None,):
                stated = {} if name is None else {"name": name}
                puts_tensor = method == "PUT" and "/tensors/" in path
                for body in self.own_bodies(bodies(operation)) if puts_tensor else bodies(operation):
                    yield method, placed(path, operation, **stated), body
        if "POST" in methods:
            yield from self.by_name()

    def own_bodies(self, shown: list[bytes]) -> list[bytes]:
        """Replace the shown tensor by this user's tensor."""
        return [json.dumps(self.tensor).encode()] if shown else []

    def by_name(self) -> Iterator[RequestParts]:
        """Yield calls that read and write tensors named in the body."""
        read = {"graph": SUM, "feeds": [{"node": 0, "tensor_id": SECRET}]}
        yield "POST", "/v1/forward", json.dumps(read).encode()
        for condition in ({}, {"if_match": "*"}, {"if_match": ""}):
            storing = {"store": [{"node": 1, "tensor_id": f"{SECRET}-sum", **condition}]}
            own = {"graph": SUM, "feeds": [{"node": 0, "tensor": self.tensor}]}
            yield "POST", "/v1/forward", json.dumps(own | storing).encode()

    def ask(self, asked: RequestParts, number: int | None = None) -> tuple[int, bytes]:
        """Send a request and return status and normalized body. With a number, send an Idempotency-Key."""
        method, path, body = asked
        headers = {"Content-Type": "application/json"} if body else {}
        if number is not None and method not in ("GET", "HEAD"):
            headers["Idempotency-Key"] = f"call-{number}"
        response = self.client.request(method, path, content=body or None, headers=headers)
        return response.status_code, VARYING.sub(b"", response.content)

    def do(self, *methods: str, numbered: bool = False) -> list[tuple[RequestParts, int, bytes]]:
        """Send all requests with these methods, and return them with their answers."""
        everything = enumerate(self.everything(methods or ORDER))
        return [(asked, *self.ask(asked, number if numbered else None)) for number, asked in everything]

    def try_all(self) -> Iterator[tuple[RequestParts, int, bytes]]:
        """Send requests before, while and after the user has data, on the fast path and through the application."""
        yield from self.do("GET", "DELETE")
        yield from self.do("POST")  # a call without an Idempotency-Key goes from the connection to the pool
        yield from self.do(numbered=True)
        for method in ("PUT", "GET", "POST", "DELETE", "GET"):
            yield from self.do(method)


@pytest.fixture
def urls(start_server: Start, tmp_path: Path) -> tuple[str, str]:
    """Start two servers with the same keys and return their URLs."""
    keys = [record("alice", ALICE), record("bob", BOB), record("team", TOGETHER, namespace="alice")]
    options = ("--keys-file", str(write(tmp_path / "keys.json", keys)), "--workers", "1")
    first, second = start_server(*options), start_server(*options)
    return first.url, second.url


@pytest.fixture
def make_user() -> Iterator[Callable[..., User]]:
    """Factory of users, whose clients are closed at the end."""
    users: list[User] = []

    def make(*stated: Any) -> User:
        users.append(User(*stated))
        return users[-1]

    yield make
    for each in users:
        each.client.close()


def test_namespaces_do_not_affect_each_other(urls: tuple[str, str], make_user: Callable[..., User]) -> None:
    alice = make_user(urls[0], ALICE, [1.25, 2.5])
    stored = [(asked, status) for asked, status, _ in alice.do("POST", "PUT", numbered=True)]
    assert not [asked for asked, status in stored if asked[0] == "PUT" and status not in (200, 201)]
    assert ("POST", "/v1/graphs", 201) in [(*asked[:2], status) for asked, status in stored]
    before = read_everything(alice)
    assert {status for status, _ in before} == {200}, "all that she asks for is there"

    answers = []
    for url in urls:
        bob = make_user(url, BOB, [-7.0, 11.0])
        answers.append(list(bob.try_all()))
        assert b"1.25" not in b"".join(body for _, _, body in answers[-1])
    for beside_alice, alone in zip(*answers, strict=True):
        assert beside_alice == alone, "a server on which she keeps something answers him differently"
    assert [asked for asked, status, _ in answers[0] if status == 404], "names that are hers are none to him"

    assert read_everything(alice) == before, "what he did changed something of hers"
    assert read_everything(make_user(urls[0], TOGETHER, [])) == before, "keys of one namespace see the same"


def test_compute_only_key_cannot_store(start_server: Start, tmp_path: Path) -> None:
    """The missing scope is found after the computation; the result is neither stored nor returned."""
    computing, reading = new_key(), new_key()
    keys = [
        record("a", computing, ["compute"], namespace="n"),
        record("b", reading, ["read", "compute"], namespace="n"),
    ]
    server = start_server("--keys-file", str(write(tmp_path / "keys.json", keys)), "--workers", "1")
    body = {"graph": {"nodes": [{"op": "full", "attrs": {"shape": [2], "fill": 1.5}}]}}
    with httpx.Client(base_url=server.url, timeout=60) as client:
        for headers in ({}, {"Idempotency-Key": "one"}):
            refused = client.post(
                "/v1/forward",
                json=body | {"store": [{"node": 0, "tensor_id": "w"}]},
                headers={"Authorization": f"Bearer {computing}", **headers},
            )
            assert (refused.status_code, refused.json()["code"], refused.json()["expected"]) == (
                403,
                "forbidden",
                "write",
            )
            assert "1.5" not in refused.text
        assert (
            client.post("/v1/forward", json=body, headers={"Authorization": f"Bearer {computing}"}).status_code == 200
        )
        listed = client.get("/v1/tensors", headers={"Authorization": f"Bearer {reading}"})
        assert listed.json() == {"tensors": []}


def read_everything(user: User) -> list[tuple[int, bytes]]:
    """Read everything that the user can read."""
    read = next(user.by_name())
    return [user.ask(asked) for asked in (*user.everything(("GET",)), read)]
