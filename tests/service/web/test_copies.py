"""Copies of tensors: a body is held in memory once, and an answer is sent from where it was computed.

In this process, tracemalloc counts every array: a second copy of 16 MB cannot hide in 1 MB of slack. For a server
process, the kernel reports its peak memory.
"""

from __future__ import annotations

import asyncio
import json
import pickle
import re
import socket
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from engine import DTYPES, Label, Limits, TensorType, registry
from service.api.binary import read_request, write_response
from service.api.graphs import Programs, Translator
from service.api.json_reader import JsonReader
from service.api.tensors import NodePlace, encoded_bytes
from service.core.settings import Settings
from service.workers.task import Reply, Task
from service.workers.worker import Worker
from tests.conftest import Client, RunningServer
from tests.service.api.safetensors_support import BINARY, KIND, Array, answered, body, same_bits, unpacked
from tests.service.application import create_app
from tests.service.support import Json, node, problem

pytestmark = pytest.mark.slow

MB = 1 << 20
SIZE = 16 * MB
SLACK = MB
SETTINGS = Settings(device="cpu")
X = np.arange(SIZE // 8, dtype=np.float64)
SUM: Json = {"graph": {"nodes": [node("input"), node("sum", 0)]}}
ECHO: Json = {"graph": {"nodes": [node("input")]}}
SQUARE: Json = {"graph": {"nodes": [node("input"), node("square", 0)]}}


def buffer(content: bytes) -> Array:
    """A body as a server receives it."""
    return np.frombuffer(content, np.uint8).copy()


def read_tensors(content: Array) -> dict[tuple[str, int], Array]:
    """The tensors of a body."""
    limits = Limits()
    reader = JsonReader(Programs(Translator(registry(), limits), 1, 0, 99), 100, 1000)
    return dict(read_request(content, 1 << 20, reader, limits).tensors)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_are_views_of_the_body(dtype: str) -> None:
    for shape in ((), (3,), (2, 5), (1, 1, 1)):
        content = buffer(body(ECHO, {"feeds.0": np.ones(shape, dtype)}))
        (array,) = read_tensors(content).values()
        assert np.shares_memory(array, content)
        assert not array.flags.writeable
        assert array.flags.aligned


def test_tensors_sorted_by_item_size_are_all_views() -> None:
    arrays = {
        f"feeds.{i}": np.ones(3, dtype) for i, dtype in enumerate(sorted(DTYPES, key=lambda d: -np.dtype(d).itemsize))
    }
    content = buffer(body(ECHO, arrays))
    assert all(np.shares_memory(array, content) for array in read_tensors(content).values())


def test_unaligned_tensor_is_copied() -> None:
    content = buffer(body(ECHO, {"feeds.0": np.ones(1, np.int8), "feeds.1": np.arange(3.0)}))
    tensors = read_tensors(content)
    assert np.shares_memory(tensors["feeds", NodePlace(0)], content)
    assert not np.shares_memory(tensors["feeds", NodePlace(1)], content)
    assert tensors["feeds", NodePlace(1)].flags.aligned
    assert tensors["feeds", NodePlace(1)].tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_answer_consists_of_views_of_the_results(dtype: str) -> None:
    arrays = [np.ones(shape, dtype) for shape in ((), (3,), (2, 5))]
    head, *parts = write_response({"stats": {}}, [(Label("values", (i,)), array) for i, array in enumerate(arrays)])
    assert len(head) % 8 == 0
    for array, piece in zip(arrays, parts, strict=True):
        assert np.shares_memory(np.frombuffer(piece, np.uint8), array)
        assert len(piece) == array.nbytes


def test_empty_result_has_no_part() -> None:
    arrays = [(Label("values", (0,)), np.empty((0, 3))), (Label("values", (1,)), np.ones(2))]
    parts = write_response({}, arrays)
    assert len(parts) == 2
    assert unpacked(b"".join(parts))[1]["values.0"].shape == (0, 3)


@pytest.fixture
def peak() -> Iterator[Callable[[], int]]:
    """Peak number of allocated bytes since the test began."""
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()


def run(worker: Worker, content: Any, call: str = "forward") -> Reply:
    """The reply to a binary job."""
    return worker(Task(call, content, "id", 60.0, time.monotonic() + 60, KIND, KIND))


@pytest.mark.parametrize(("rest", "allocated"), [(ECHO, 0), (SQUARE, SIZE)], ids=["echo", "square"])
def test_worker_allocates_only_the_results(rest: Json, allocated: int, peak: Callable[[], int]) -> None:
    """Only the results: nothing else as large as the body."""
    worker = Worker(SETTINGS)
    run(worker, buffer(body(rest, {"feeds.0": X[:8]})))  # imports, and the plan's tables
    content = buffer(body(rest, {"feeds.0": X}))
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    reply = run(worker, content)
    assert reply.status == 200
    assert sum(map(len, reply.parts)) > SIZE
    assert peak() - before < allocated + SLACK


async def ask(app: Any, content: memoryview, piece: int, *, announced: bool) -> int:
    """Post the body in pieces, as an ASGI server does, and return the length of the answer."""
    sent, received = 0, 0
    length = [(b"content-length", str(len(content)).encode())] if announced else [(b"transfer-encoding", b"chunked")]
    kinds = [(b"content-type", KIND.encode()), (b"accept", KIND.encode()), (b"host", b"localhost")]
    scope = {
        "type": "http", "method": "POST", "path": "/v1/forward", "raw_path": b"/v1/forward", "query_string": b"",
        "headers": length + kinds, "http_version": "1.1", "scheme": "http", "root_path": "",
    }  # fmt: skip

    async def receive() -> Json:
        nonlocal sent
        part = bytes(content[sent : sent + piece])
        sent += len(part)
        return {"type": "http.request", "body": part, "more_body": sent < len(content)}

    async def send(event: Any) -> None:
        nonlocal received
        received += len(event.get("body", b""))

    await app(scope, receive, send)
    return received


@pytest.mark.parametrize(
    ("rest", "announced", "allocated"),
    [(ECHO, True, SIZE), (SQUARE, True, 2 * SIZE), (ECHO, False, 2 * SIZE)],
    ids=["echo", "square", "chunked"],
)
def test_request_allocates_one_body_and_the_results(
    rest: Json, announced: bool, allocated: int, peak: Callable[[], int]
) -> None:
    """The body and the results once each. Without a Content-Length, the largest body is reserved."""
    app = create_app(Settings(device="cpu", max_binary_bytes=2 * SIZE))
    asyncio.run(ask(app, memoryview(body(rest, {"feeds.0": X[:8]})), 100, announced=announced))
    content = memoryview(body(rest, {"feeds.0": X}))
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    assert asyncio.run(ask(app, content, 1 << 16, announced=announced)) > SIZE
    assert peak() - before < allocated + SLACK


def test_task_can_be_pickled() -> None:
    job = Task("forward", buffer(body(ECHO, {"feeds.0": X[:8]})), "id", 60.0, time.monotonic() + 60, KIND, KIND)
    reply = Worker(SETTINGS)(pickle.loads(pickle.dumps(job)))
    assert isinstance(reply.parts[1], memoryview)
    assert same_bits(unpacked(reply.body)[1]["values.0"], X[:8])


def test_failed_allocation_of_a_body_is_over_budget(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("service.workers.memory.np.empty", exhausted)
    problem(client.post("/v1/forward", content=body(ECHO, {"feeds.0": X}), headers=BINARY), 413, "over_budget")


@pytest.mark.parametrize("limit", ["json", "base64", "binary"])
def test_response_limit_applies_to_the_encoded_size(make_client: Callable[..., Client], limit: str) -> None:
    """10,000 doubles: up to 260,000 bytes as numbers, 106,668 in base64, 80,000 in binary."""
    limit_bytes = {"json": 262_000, "base64": 108_000, "binary": 82_000}[limit]
    client = make_client(max_response_bytes=limit_bytes)
    graph = {"graph": {"nodes": [node("full", shape=[10_000])]}}
    answers = {
        "json": client.post("/v1/forward", json=graph),
        "base64": client.post("/v1/forward", json={**graph, "encoding": "base64"}),
        "binary": client.post("/v1/forward", json={**graph, "encoding": "base64"}, headers={"Accept": KIND}),
    }
    fits = list(answers)[list(answers).index(limit) :]
    assert [name for name, answer in answers.items() if answer.status_code == 200] == fits
    refused = make_client(max_response_bytes=80_000).post("/v1/forward", json=graph, headers={"Accept": KIND})
    assert "base64" not in problem(refused, 413, "over_budget")["detail"]


def test_plan_uses_the_accepted_encoding(make_client: Callable[..., Client]) -> None:
    client = make_client(max_response_bytes=82_000)
    graph = {"graph": {"nodes": [node("full", shape=[10_000])]}}
    numbers = client.post("/v1/plan", json=graph).json()
    packed = unpacked(client.post("/v1/plan", json=graph, headers={"Accept": KIND}).content)[0]
    assert (numbers["admitted"], packed["admitted"]) == (False, True)
    assert numbers["response_bytes"] > 260_000
    assert 80_000 < packed["response_bytes"] < 82_000


def test_length_of_an_answer_is_never_underestimated(client: Client) -> None:
    """Scalars with long names: most of the answer is not tensor data."""
    first, count = 10_000, 6
    leaves = [node("parameter") for _ in range(count)]
    adds = [node("add", first + count + i - 1 if i else first, first + i + 1) for i in range(count - 1)]
    nodes = [*[node("full")] * first, *leaves, *adds, node("sum", first + 2 * count - 2)]
    feeds = {f"feeds.{first + i}": np.ones(()) for i in range(count)}
    response = client.post("/v1/hessian", content=body({"graph": {"nodes": nodes}}, feeds), headers=BINARY)
    answer, tensors = answered(response)
    same = {name: answer[name] for name in ("disconnected", "stats")} | {"values": [], "gradients": [], "hessian": []}
    fixed = len(body({}, {}, response=json.dumps(same)))
    assert len(tensors) == count**2 + count + 1
    assert len(response.content) <= encoded_bytes([TensorType.of(t) for t in tensors.values()], "binary") + fixed


BIG = 64 * MB


@pytest.fixture(scope="module")
def big() -> bytes:
    """A body of 64 MB, whose memory returns to the system when it is freed."""
    return body(ECHO, {"feeds.0": np.arange(BIG // 8, dtype=np.float64)})


def memory(server: RunningServer, field: str) -> int:
    """Current or peak memory of the server: VmRSS or VmHWM."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    match = re.search(rf"{field}:\s+(\d+) kB", status)
    assert match
    return 1024 * int(match[1])


def shrinks_below(server: RunningServer, limit: int) -> bool:
    """Return whether the server's memory falls below `limit` within a thousand requests."""
    return any(
        httpx.get(server.url + "/health/live").status_code == 200 and memory(server, "VmRSS") < limit
        for _ in range(1000)
    )


linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the kernel's own account, on Linux")


@pytest.fixture
def warm(start_server: Callable[..., RunningServer]) -> RunningServer:
    """A server that has answered one request."""
    server = start_server()
    assert httpx.post(server.url + "/v1/forward", content=body(ECHO, {"feeds.0": X[:8]}), headers=BINARY).is_success
    return server


@linux
def test_server_holds_a_body_once_and_frees_it(warm: RunningServer, big: bytes) -> None:
    """The answer is small: a large one might be allocated while the body is being freed."""
    before = memory(warm, "VmHWM")
    summed = body(SUM, {"feeds.0": np.frombuffer(big[-BIG:])})
    assert httpx.post(warm.url + "/v1/forward", content=summed, headers=BINARY, timeout=60).is_success
    assert BIG - MB < memory(warm, "VmHWM") - before < BIG + 8 * MB
    assert shrinks_below(warm, before + 8 * MB)


@linux
def test_large_answer_is_sent_without_a_copy(warm: RunningServer, big: bytes) -> None:
    before = memory(warm, "VmHWM")
    response = httpx.post(warm.url + "/v1/forward", content=big, headers=BINARY, timeout=60)
    assert response.content[-BIG:] == big[-BIG:], "as views in pieces, of which the transport keeps none"
    assert memory(warm, "VmHWM") - before < 2 * BIG + 8 * MB
    assert shrinks_below(warm, before + 8 * MB)


def head(length: int, *more: str) -> bytes:
    """The head of a binary POST of this length."""
    lines = (
        "POST /v1/forward HTTP/1.1", "Host: localhost", f"Content-Type: {KIND}", f"Accept: {KIND}",
        f"Content-Length: {length}", *more,
    )  # fmt: skip
    return "\r\n".join((*lines, "", "")).encode()


def reserved(server: RunningServer) -> int:
    """Bytes that the server has reserved for requests."""
    match = re.search(r"^gradserve_reserved_bytes (\S+)$", httpx.get(server.url + "/metrics").text, re.MULTILINE)
    assert match
    return int(float(match[1]))


@linux
def test_answer_is_freed_when_the_client_hangs_up(warm: RunningServer, big: bytes) -> None:
    before = memory(warm, "VmRSS")
    with socket.create_connection(warm.address, timeout=60) as connection:
        connection.sendall(head(len(big)))
        connection.sendall(big)
        assert connection.recv(12) == b"HTTP/1.1 200"
        assert reserved(warm) >= BIG, "most of the answer is still to be read"
    end = time.monotonic() + 60
    while reserved(warm):
        assert time.monotonic() < end
    assert shrinks_below(warm, before + 8 * MB)


@linux
def test_announced_body_takes_no_memory_until_it_arrives(warm: RunningServer) -> None:
    before = memory(warm, "VmRSS")
    connections = [socket.create_connection(warm.address, timeout=60) for _ in range(8)]
    for connection in connections:
        connection.sendall(head(32 * MB, "Expect: 100-continue"))
        assert connection.recv(12) == b"HTTP/1.1 100"  # the server waits for it
        connection.sendall(b"12345678")
    assert httpx.get(warm.url + "/health/live").is_success
    assert memory(warm, "VmRSS") < before + 8 * MB
    for connection in connections:
        connection.close()
