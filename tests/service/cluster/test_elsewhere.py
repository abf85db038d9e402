"""Pieces of sums on other servers: bit-identical to one server, even if others refuse, die or are slow."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from typing import Any

import httpx
import numpy as np
import orjson
import pytest
from safetensors.numpy import load, save

from service.api.media import SAFETENSORS
from tests.conftest import RunningServer
from tests.service.cluster.ingress.support import Node, ingress, needs_haproxy, wait_until
from tests.service.cluster.serving import free_port
from tests.service.support import Json, node

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(13)
N, D, BLOCK = 24_000, 256, 128
X, W = RNG.standard_normal((N, D)), RNG.standard_normal((D, D)) / D
NODES = [node("parameter"), node("input"), node("matmul", 1, 0), node("tanh", 2), node("square", 3), node("sum", 4)]
ASKED: Json = {"graph": {"nodes": NODES}, "mapped": [1], "reduce": "sum", "block": BLOCK}
SENT = save({"feeds.0": W, "feeds.1": X}, metadata={"request": orjson.dumps(ASKED).decode()})
OPTIONS = ("--workers", "1", "--compile", "off", "--determinism", "bitwise")
BOTH = {"Content-Type": SAFETENSORS, "Accept": SAFETENSORS}


def ask(url: str, sent: bytes = SENT, **headers: str) -> httpx.Response:
    return httpx.post(f"{url}/v1/batch", content=sent, headers=BOTH | headers, timeout=120)


def tensors(answer: httpx.Response) -> dict[str, bytes]:
    assert answer.status_code == 200, answer.text[:500]
    return {name: array.tobytes() for name, array in load(answer.content).items()}


def stats(answer: httpx.Response) -> Json:
    length = int.from_bytes(answer.content[:8], "little")
    header = orjson.loads(answer.content[8 : 8 + length])
    parsed: Json = orjson.loads(header["__metadata__"]["response"])["stats"]
    return parsed


def pieces(url: str, where: str = "elsewhere", **headers: str) -> float:
    lines = httpx.get(f"{url}/metrics", headers=headers).text.splitlines()
    series = f'gradserve_pieces_total{{where="{where}"}} '
    return next(float(line.removeprefix(series)) for line in lines if line.startswith(series))


@pytest.fixture(scope="module")
def whole(start_server: Callable[..., RunningServer]) -> dict[str, bytes]:
    """The answer of a single server."""
    alone = start_server(*OPTIONS)
    answer = ask(alone.url)
    assert stats(answer)["pieces"] == 1
    assert "server" not in stats(answer)
    return tensors(answer)


@pytest.fixture
def fake() -> Iterator[Node]:
    """An ingress that the test controls."""
    fake_ingress = Node("ingress")
    yield fake_ingress
    fake_ingress.stop()


def answering(status: int, body: bytes = b"{}", **headers: str) -> Callable[[BaseHTTPRequestHandler, bytes], None]:
    """Build the handler of a server that computes no pieces."""

    def answer(handler: BaseHTTPRequestHandler, _: bytes) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


@pytest.mark.parametrize(
    "answer",
    [
        answering(503, Retry_After="1"),
        answering(429),
        answering(412),
        answering(404),
        answering(200, b"12"),
        lambda *_: None,
    ],
    ids=["503", "429", "412", "404", "another answer", "lost"],
)
def test_pieces_refused_by_others_are_computed_locally(
    start_server: Callable[..., RunningServer], fake: Node, whole: dict[str, bytes], answer: Any
) -> None:
    fake.answer = answer
    server = start_server(*OPTIONS, "--ingress", f"http://{fake.place}")
    answered = ask(server.url)
    assert tensors(answered) == whole
    assert len(fake.requests) >= 1
    assert stats(answered)["repeated"] >= 1
    assert pieces(server.url) == 0
    assert {path.partition("?")[0] for _, path, _ in fake.requests} == {"/v1/batch"}


def test_unreachable_ingress_is_not_needed(start_server: Callable[..., RunningServer], whole: dict[str, bytes]) -> None:
    server = start_server(*OPTIONS, "--ingress", f"http://127.0.0.1:{free_port()}")
    assert tensors(ask(server.url)) == whole


def test_late_pieces_are_computed_locally(
    start_server: Callable[..., RunningServer], fake: Node, whole: dict[str, bytes]
) -> None:
    """The other server never answers: its first two pieces are computed locally once they are late."""
    leave = threading.Event()

    def hang(*_: Any) -> None:
        leave.wait(60)

    fake.answer = hang
    server = start_server(*OPTIONS, "--ingress", f"http://{fake.place}")
    try:
        answered = ask(server.url)
    finally:
        leave.set()
    assert tensors(answered) == whole
    assert stats(answered)["repeated"] == 2


class TestThroughHaproxy:
    pytestmark = needs_haproxy

    @pytest.fixture
    def three(
        self, start_server: Callable[..., RunningServer], monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[list[RunningServer]]:
        """A server that uses an ingress, and two servers behind the ingress, with the same key."""
        monkeypatch.setenv("GRADSERVE_API_KEY", "k" * 32)
        behind = [start_server(*OPTIONS) for _ in range(2)]
        with ingress(nodes=tuple("{}:{}".format(*server.address) for server in behind)) as running:
            running.settle("gs1", "gs2")
            before = start_server(*OPTIONS, "--ingress", f"http://127.0.0.1:{running.port}")
            yield [before, *behind]

    def test_result_is_bit_identical_even_if_a_server_is_killed(
        self, three: list[RunningServer], whole: dict[str, bytes]
    ) -> None:
        key = {"Authorization": f"Bearer {'k' * 32}"}
        before, first, second = three
        answered = ask(before.url, **key)
        assert tensors(answered) == whole
        assert stats(answered)["server"]
        assert pieces(before.url, **key) > 0
        assert [pieces(server.url, **key) for server in (first, second)] == [0, 0], "no piece makes pieces"
        with ThreadPoolExecutor(1) as threads:
            begun = pieces(before.url, **key)
            asking = threads.submit(ask, before.url, **key)
            wait_until(lambda: pieces(before.url, **key) > begun)
            os.kill(second.process.pid, signal.SIGKILL)
            assert tensors(asking.result()) == whole
