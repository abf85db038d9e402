"""The whole service under uvicorn: the same responses, state and keys as with our own HTTP server."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from service.core.keys.caller import KeyScope, new_key
from service.web.pages.openapi import DOCUMENT_NAMES
from tests.conftest import RunningServer
from tests.service.api.safetensors_support import BINARY, KIND, answered, body
from tests.service.asgi_support import Starter, UvicornProcess
from tests.service.core.keys.cases import bearer, bodies, operations, placed, record, sent, unsound, write
from tests.service.support import SQUARES, exchange, node, problem
from tests.service.web.test_doors import REQUESTS, VARYING

pytestmark = pytest.mark.slow

APP = "service.asgi:app"
LIMITS = {"compile": "off", "max_nodes": "1000", "max_body_bytes": "100000", "max_chunks": "50"}
#: requests that uvicorn itself answers or lets pass, and why
UVICORN_DIFFERENCES = {
    "chunks that are none": "uvicorn's parser answers, in its own words",
    "too many chunks": "uvicorn puts chunks together, so that they are not counted",
}
ADMIN, READER, OTHER = new_key(), new_key(), new_key()


@pytest.fixture(scope="module")
def start() -> Iterator[Starter]:
    started: list[UvicornProcess] = []

    def start_one(target: str = APP, *options: str, **environment: str) -> UvicornProcess:
        started.append(UvicornProcess(target, *options, **environment))
        return started[-1]

    yield start_one
    for process in started:
        process.close()


def as_variables(settings: dict[str, str]) -> dict[str, str]:
    """Convert settings to environment variables."""
    return {f"GRADSERVE_{name.upper()}": value for name, value in settings.items()}


@pytest.fixture(scope="module")
def uvicorn(start: Starter) -> UvicornProcess:
    """A server under uvicorn, without keys."""
    server = start(**as_variables(LIMITS))
    assert server.url, server.output
    return server


@pytest.fixture(scope="module")
def own_server(start_server: Callable[..., RunningServer]) -> RunningServer:
    """Our own HTTP server, with the same settings."""
    options = [part for name, value in LIMITS.items() for part in (f"--{name.replace('_', '-')}", value)]
    return start_server("--workers", "1", *options)


@pytest.fixture(scope="module")
def address_pair(uvicorn: UvicornProcess, own_server: RunningServer) -> list[tuple[str, int]]:
    """Addresses of both servers, once the graph that requests name is registered."""
    addresses = [uvicorn.address, own_server.address]
    for address in addresses:
        registered = sent("POST", "/v1/graphs", json.dumps({"graph": SQUARES["graph"]}).encode())
        assert b" 201 " in exchange(address, registered)
    return addresses


#: response headers that do not depend on the connection
_COMPARED_HEADERS = re.compile(
    rb"(?mi)^((?:content-type|location|etag|retry-after|allow|www-authenticate|vary): .*)\r$"
)


def comparable(response: bytes) -> tuple[bytes, list[bytes], bytes]:
    """Status, headers and body of a response, without the parts that always differ."""
    head, _, content = response.partition(b"\r\n\r\n")
    lines = [line.lower() for line in _COMPARED_HEADERS.findall(head + b"\r\n")]
    return head[9:12], sorted(lines), VARYING.sub(b"", content)


#: prefixes of the header fields that differ between any two responses
_PER_RESPONSE = ("http/1.1 ", "date", "x-request-id")


def _fields(response: bytes) -> set[str]:
    head = response.partition(b"\r\n\r\n")[0].decode("latin-1")
    return {f"{name.lower()}: {value}" for name, _, value in (line.partition(": ") for line in head.split("\r\n"))}


class TestResponses:
    def test_responses_match_our_own_server(self, address_pair: list[tuple[str, int]]) -> None:
        for name in REQUESTS.keys() - UVICORN_DIFFERENCES.keys():
            by_uvicorn, by_own = (comparable(exchange(address, REQUESTS[name])) for address in address_pair)
            assert by_uvicorn == by_own, name
            assert by_own[0].isdigit(), name

    def test_requests_refused_by_uvicorn_get_4xx(self, uvicorn: UvicornProcess) -> None:
        for name in UVICORN_DIFFERENCES:
            assert exchange(uvicorn.address, REQUESTS[name])[9:10] == b"4", name
            assert exchange(uvicorn.address, sent("GET", "/health/live", b""))[9:12] == b"200"

    def test_get_responses_match_our_own_server(
        self, address_pair: list[tuple[str, int]], uvicorn: UvicornProcess
    ) -> None:
        document = httpx.get(f"{uvicorn.url}/openapi.json").json()
        paths = [placed(path, operation) for method, path, operation in operations(document) if method == "GET"]
        assert len(paths) > 5
        for path in [*paths, "/nowhere"]:
            by_uvicorn, by_own = (comparable(exchange(address, sent("GET", path, b""))) for address in address_pair)
            assert by_uvicorn == by_own, path

    def test_pages_match_our_own_server(self, address_pair: list[tuple[str, int]]) -> None:
        for path in ("/", "/docs", "/docs/errors/bad_tensor", *(f"/{name}" for name in DOCUMENT_NAMES)):
            by_uvicorn, by_own = (exchange(address, sent("GET", path, b"")) for address in address_pair)
            assert by_uvicorn.partition(b"\r\n\r\n")[2] == by_own.partition(b"\r\n\r\n")[2], path
            missing = _fields(by_own) - _fields(by_uvicorn)
            assert not [field for field in missing if not field.startswith(_PER_RESPONSE)], path

    def test_requests_are_counted_by_call_and_status(self, uvicorn: UvicornProcess) -> None:
        with uvicorn.client() as client:
            before = _request_counts(client)
            assert client.post("/v1/hessian", json=SQUARES).status_code == 200
            assert client.post("/v1/hessian", content=b"{").status_code == 400
            assert client.post("/v1/hessian", content=b"{", headers={"Content-Type": "a/b"}).status_code == 415
            after = _request_counts(client)
        expected = {("hessian", 200): 1.0, ("hessian", 400): 1.0, ("other", 415): 1.0}
        assert {key: after[key] - before.get(key, 0.0) for key in expected} == expected


def _request_counts(client: httpx.Client) -> dict[tuple[str, int], float]:
    """Number of requests by call and status."""
    line = re.compile(r'gradserve_requests_total\{call="(\w+)",facade="",status="(\d+)"\} (\S+)')
    text = client.get("/metrics").text
    return {(match[1], int(match[2])): float(match[3]) for match in line.finditer(text)}


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state folder."""
    return tmp_path_factory.mktemp("keyed") / "state"


@pytest.fixture(scope="module")
def state_variables(state: Path) -> dict[str, str]:
    """Environment variables for the state folder and the keys file."""
    keys = [
        record("admin", ADMIN), record("reader", READER, [KeyScope.READ]), record("other", OTHER),
    ]  # fmt: skip
    return {"GRADSERVE_KEYS_FILE": str(write(state.with_name("keys.json"), keys)), "GRADSERVE_STATE": str(state)}


@pytest.fixture(scope="module")
def keyed(start: Starter, state_variables: dict[str, str]) -> UvicornProcess:
    """A server with keys and a state, mounted in another application."""
    server = start("mounted:app", "--app-dir", "deploy", **state_variables)
    assert server.url, server.output
    return server


PREFIX = "/grad"


class TestKeys:
    @pytest.mark.parametrize(
        ("method", "path", "content"),
        [
            ("POST", "/v1/gradients", json.dumps(SQUARES).encode()),
            ("GET", "/v1/tensors", b""),
            ("GET", "/metrics", b""),
        ],
    )
    def test_invalid_keys_are_refused(self, keyed: UvicornProcess, method: str, path: str, content: bytes) -> None:
        for kind, headers in unsound(ADMIN, OTHER).items():
            response = exchange(keyed.address, sent(method, PREFIX + path, content, *headers))
            assert response[9:12] == b"401", (kind, response)
            assert b"www-authenticate: bearer" in response.lower(), kind

    def test_every_operation_requires_a_key(self, keyed: UvicornProcess) -> None:
        document = httpx.get(f"{keyed.url}{PREFIX}/openapi.json").json()
        for method, path, operation in operations(document):
            target = PREFIX + placed(path, operation)
            content = bodies(operation)[0]
            open_to_all = operation.get("security") == []
            assert (exchange(keyed.address, sent(method, target, content))[9:12] == b"401") != open_to_all, path
            with_key = exchange(keyed.address, sent(method, target, content, bearer(ADMIN)))
            assert with_key[9:12] not in (b"401", b"403", b"500"), (path, with_key)

    def test_scopes_limit_access(self, keyed: UvicornProcess) -> None:
        with keyed.client(Authorization=f"Bearer {READER}") as reader:
            assert reader.get(f"{PREFIX}/v1/tensors").status_code == 200
            problem(reader.post(f"{PREFIX}/v1/forward", json=SQUARES), 403, "forbidden")
            problem(reader.get(f"{PREFIX}/metrics"), 403, "forbidden")

    def test_keys_have_separate_namespaces(self, keyed: UvicornProcess) -> None:
        with (
            keyed.client(Authorization=f"Bearer {ADMIN}") as admin,
            keyed.client(Authorization=f"Bearer {OTHER}") as other,
        ):
            put = admin.put(
                f"{PREFIX}/v1/tensors/mine", content=body(None, {"x": np.ones(3)}), headers={"Content-Type": KIND}
            )
            assert put.status_code == 201, put.text
            problem(other.get(f"{PREFIX}/v1/tensors/mine"), 404, "not_found")


def test_removed_setting_only_warns(start: Starter) -> None:
    server = start(GRADSERVE_COALESCE="on", GRADSERVE_LOG_LEVEL="warning")
    assert server.url, server.output
    assert "WARNING gradserve: GRADSERVE_COALESCE has no effect: coalescing was removed\n" in server.output


def test_host_application_serves_its_own_routes(keyed: UvicornProcess) -> None:
    with keyed.client() as client:
        assert client.get("/hello").json() == "hello"
        assert client.get(f"{PREFIX}/health/ready").status_code == 200


def test_killed_worker_is_replaced(keyed: UvicornProcess) -> None:
    """Requests in the meantime are answered by its replacement."""
    with keyed.client(Authorization=f"Bearer {ADMIN}") as client:
        for _ in range(2):
            for worker in _children(keyed.process.pid):
                os.kill(worker, signal.SIGKILL)
            answer = client.post(f"{PREFIX}/v1/gradients", json=SQUARES)
            while answer.status_code == 503:  # its worker was among those killed
                assert answer.json()["code"] in ("worker_died", "not_ready")
                answer = client.post(f"{PREFIX}/v1/gradients", json=SQUARES)
            assert answer.status_code == 200, answer.text


def _children(pid: int) -> list[int]:
    result = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in result.stdout.split()]


class TestState:
    """The last tests of this module: they stop the server."""

    def test_state_in_use_is_refused(self, keyed: UvicornProcess, start: Starter, state: Path) -> None:
        second = start(GRADSERVE_STATE=str(state))
        assert second.wait() == 3
        assert f"ERROR:    gradserve: the state folder {state} is in use by another server" in second.output
        assert "Traceback" not in second.output

    @pytest.mark.smoke
    def test_state_survives_a_restart(
        self, keyed: UvicornProcess, start: Starter, state_variables: dict[str, str]
    ) -> None:
        weights, nodes = np.arange(4.0), [node("parameter"), node("neg", 0)]
        key, feeds = {"Authorization": f"Bearer {ADMIN}"}, [{"node": 0, "tensor_id": "w"}]
        with keyed.client(**key) as client:
            graph = client.post(f"{PREFIX}/v1/graphs", json={"graph": {"nodes": nodes}})
            headers, content = {"Content-Type": KIND}, body(None, {"x": weights})
            assert client.put(f"{PREFIX}/v1/tensors/w", content=content, headers=headers).status_code == 201
            path, step = f"{graph.headers['location']}/forward", {"store": [{"node": 1, "tensor_id": "w"}]}
            assert client.post(path, json={"feeds": feeds, **step}).status_code == 200
        assert keyed.end() in (0, -signal.SIGTERM), "uvicorn passes on the signal that has ended it"
        with start(**state_variables).client(**key) as client:
            response = client.post(path.removeprefix(PREFIX), content=body({}, {"feeds.0": weights}), headers=BINARY)
            assert np.array_equal(answered(response)[1]["values.1"], -weights)
            assert client.get("/v1/tensors/w").json()["tensor"]["data"] == [-0.0, -1.0, -2.0, -3.0]
