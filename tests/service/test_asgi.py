"""The whole service by uvicorn: it answers what our own connections answer, keeps what they keep, and asks for keys."""

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
from tests.service.asgi_support import Started, Starter
from tests.service.core.keys.cases import bearer, bodies, operations, placed, record, sent, unsound, write
from tests.service.support import SQUARES, exchange, node, problem
from tests.service.web.test_doors import REQUESTS, VARYING

pytestmark = pytest.mark.slow

APP = "service.asgi:app"
LIMITS = {"compile": "off", "max_nodes": "1000", "max_body_bytes": "100000", "max_chunks": "50"}
#: what uvicorn itself answers or lets pass, and why
OF_UVICORN = {
    "chunks that are none": "uvicorn's parser answers, in its own words",
    "too many chunks": "uvicorn puts chunks together, so that they are not counted",
}
ADMIN, READER, OTHER = new_key(), new_key(), new_key()


@pytest.fixture(scope="module")
def start() -> Iterator[Starter]:
    started: list[Started] = []

    def one(target: str = APP, *options: str, **environment: str) -> Started:
        started.append(Started(target, *options, **environment))
        return started[-1]

    yield one
    for each in started:
        each.close()


def stated(settings: dict[str, str]) -> dict[str, str]:
    """Settings as variables."""
    return {f"GRADSERVE_{name.upper()}": value for name, value in settings.items()}


@pytest.fixture(scope="module")
def uvicorn(start: Starter) -> Started:
    """One without keys."""
    found = start(**stated(LIMITS))
    assert found.url, found.said
    return found


@pytest.fixture(scope="module")
def own(start_server: Callable[..., RunningServer]) -> RunningServer:
    """Our own connections, with the same settings."""
    options = [part for name, value in LIMITS.items() for part in (f"--{name.replace('_', '-')}", value)]
    return start_server("--workers", "1", *options)


@pytest.fixture(scope="module")
def address_pair(uvicorn: Started, own: RunningServer) -> list[tuple[str, int]]:
    """Both, with the graph that requests name."""
    found = [uvicorn.address, own.address]
    for address in found:
        registered = sent("POST", "/v1/graphs", json.dumps({"graph": SQUARES["graph"]}).encode())
        assert b" 201 " in exchange(address, registered)
    return found


#: what the head of an answer has that is not of the connection alone
_TOLD = re.compile(rb"(?mi)^((?:content-type|location|etag|retry-after|allow|www-authenticate|vary): .*)\r$")


def told(response: bytes) -> tuple[bytes, list[bytes], bytes]:
    """Status, headers and body of an answer, without what differs between two."""
    head, _, content = response.partition(b"\r\n\r\n")
    lines = [line.lower() for line in _TOLD.findall(head + b"\r\n")]
    return head[9:12], sorted(lines), VARYING.sub(b"", content)


#: how fields begin that are of one answer
_OF_ONE = ("http/1.1 ", "date", "x-request-id")


def _fields(response: bytes) -> set[str]:
    head = response.partition(b"\r\n\r\n")[0].decode("latin-1")
    return {f"{name.lower()}: {value}" for name, _, value in (line.partition(": ") for line in head.split("\r\n"))}


class TestAnswers:
    @pytest.mark.smoke
    def test_are_those_of_our_own_connections(self, address_pair: list[tuple[str, int]]) -> None:
        for name in REQUESTS.keys() - OF_UVICORN.keys():
            by_uvicorn, by_us = (told(exchange(address, REQUESTS[name])) for address in address_pair)
            assert by_uvicorn == by_us, name
            assert by_us[0].isdigit(), name

    def test_where_uvicorn_answers_itself_are_no_faults(self, uvicorn: Started) -> None:
        for name in OF_UVICORN:
            assert exchange(uvicorn.address, REQUESTS[name])[9:10] == b"4", name
            assert exchange(uvicorn.address, sent("GET", "/health/live", b""))[9:12] == b"200"

    def test_of_reading_calls(self, address_pair: list[tuple[str, int]], uvicorn: Started) -> None:
        document = httpx.get(f"{uvicorn.url}/openapi.json").json()
        paths = [placed(path, operation) for method, path, operation in operations(document) if method == "GET"]
        assert len(paths) > 5
        for path in [*paths, "/nowhere"]:
            by_uvicorn, by_us = (told(exchange(address, sent("GET", path, b""))) for address in address_pair)
            assert by_uvicorn == by_us, path

    def test_of_pages(self, address_pair: list[tuple[str, int]]) -> None:
        for path in ("/", "/docs", "/docs/errors/bad_tensor", *(f"/{name}" for name in DOCUMENT_NAMES)):
            by_uvicorn, by_us = (exchange(address, sent("GET", path, b"")) for address in address_pair)
            assert by_uvicorn.partition(b"\r\n\r\n")[2] == by_us.partition(b"\r\n\r\n")[2], path
            missing = _fields(by_us) - _fields(by_uvicorn)
            assert not [field for field in missing if not field.startswith(_OF_ONE)], path

    def test_are_counted_and_measured(self, uvicorn: Started) -> None:
        with uvicorn.client() as client:
            before = _counted(client)
            assert client.post("/v1/hessian", json=SQUARES).status_code == 200
            assert client.post("/v1/hessian", content=b"{").status_code == 400
            assert client.post("/v1/hessian", content=b"{", headers={"Content-Type": "a/b"}).status_code == 415
            after = _counted(client)
        wanted = {("hessian", 200): 1.0, ("hessian", 400): 1.0, ("other", 415): 1.0}
        assert {key: after[key] - before.get(key, 0.0) for key in wanted} == wanted


def _counted(client: httpx.Client) -> dict[tuple[str, int], float]:
    """Requests by call and status."""
    line = re.compile(r'gradserve_requests_total\{call="(\w+)",facade="",status="(\d+)"\} (\S+)')
    text = client.get("/metrics").text
    return {(found[1], int(found[2])): float(found[3]) for found in line.finditer(text)}


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where it is kept."""
    return tmp_path_factory.mktemp("keyed") / "state"


@pytest.fixture(scope="module")
def kept(state: Path) -> dict[str, str]:
    """Variables that say where state and keys are."""
    keys = [
        record("admin", ADMIN), record("reader", READER, [KeyScope.READ]), record("other", OTHER),
    ]  # fmt: skip
    return {"GRADSERVE_KEYS_FILE": str(write(state.with_name("keys.json"), keys)), "GRADSERVE_STATE": str(state)}


@pytest.fixture(scope="module")
def keyed(start: Starter, kept: dict[str, str]) -> Started:
    """One with keys and a state, within an application of another's."""
    found = start("mounted:app", "--app-dir", "deploy", **kept)
    assert found.url, found.said
    return found


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
    def test_nobody_gets_in_without_a_sound_one(self, keyed: Started, method: str, path: str, content: bytes) -> None:
        for kind, headers in unsound(ADMIN, OTHER).items():
            response = exchange(keyed.address, sent(method, PREFIX + path, content, *headers))
            assert response[9:12] == b"401", (kind, response)
            assert b"www-authenticate: bearer" in response.lower(), kind

    def test_are_asked_for_by_every_operation(self, keyed: Started) -> None:
        document = httpx.get(f"{keyed.url}{PREFIX}/openapi.json").json()
        for method, path, operation in operations(document):
            found = PREFIX + placed(path, operation)
            content = bodies(operation)[0]
            open_to_all = operation.get("security") == []
            assert (exchange(keyed.address, sent(method, found, content))[9:12] == b"401") != open_to_all, path
            with_key = exchange(keyed.address, sent(method, found, content, bearer(ADMIN)))
            assert with_key[9:12] not in (b"401", b"403", b"500"), (path, with_key)

    def test_open_what_they_are_for(self, keyed: Started) -> None:
        with keyed.client(Authorization=f"Bearer {READER}") as reader:
            assert reader.get(f"{PREFIX}/v1/tensors").status_code == 200
            problem(reader.post(f"{PREFIX}/v1/forward", json=SQUARES), 403, "forbidden")
            problem(reader.get(f"{PREFIX}/metrics"), 403, "forbidden")

    def test_see_their_own_namespace(self, keyed: Started) -> None:
        with (
            keyed.client(Authorization=f"Bearer {ADMIN}") as admin,
            keyed.client(Authorization=f"Bearer {OTHER}") as other,
        ):
            put = admin.put(
                f"{PREFIX}/v1/tensors/mine", content=body(None, {"x": np.ones(3)}), headers={"Content-Type": KIND}
            )
            assert put.status_code == 201, put.text
            problem(other.get(f"{PREFIX}/v1/tensors/mine"), 404, "not_found")


def test_a_removed_setting_is_warned_about_and_the_server_starts(start: Starter) -> None:
    found = start(GRADSERVE_COALESCE="on", GRADSERVE_LOG_LEVEL="warning")
    assert found.url, found.said
    assert "WARNING gradserve: GRADSERVE_COALESCE has no effect: coalescing was removed\n" in found.said


def test_what_else_the_application_does(keyed: Started) -> None:
    with keyed.client() as anybody:
        assert anybody.get("/hello").json() == "hello"
        assert anybody.get(f"{PREFIX}/health/ready").status_code == 200


@pytest.mark.smoke
def test_a_worker_that_is_killed_is_replaced(keyed: Started) -> None:
    """Whoever asks meanwhile is answered, by the next one."""
    with keyed.client(Authorization=f"Bearer {ADMIN}") as client:
        for _ in range(2):
            for worker in _children(keyed.process.pid):
                os.kill(worker, signal.SIGKILL)
            answer = client.post(f"{PREFIX}/v1/gradients", json=SQUARES)
            while answer.status_code == 503:  # the one that had it was among those killed
                assert answer.json()["code"] in ("worker_died", "not_ready")
                answer = client.post(f"{PREFIX}/v1/gradients", json=SQUARES)
            assert answer.status_code == 200, answer.text


def _children(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in found.stdout.split()]


class TestState:
    """The last ones: they end the server that they are about."""

    def test_of_a_server_that_runs_is_refused_in_a_sentence(self, keyed: Started, start: Starter, state: Path) -> None:
        second = start(GRADSERVE_STATE=str(state))
        assert second.wait() == 3
        assert f"ERROR:    gradserve: the state folder {state} is in use by another server" in second.said
        assert "Traceback" not in second.said

    @pytest.mark.smoke
    def test_is_there_after_a_restart(self, keyed: Started, start: Starter, kept: dict[str, str]) -> None:
        weights, nodes = np.arange(4.0), [node("parameter"), node("neg", 0)]
        key, fed = {"Authorization": f"Bearer {ADMIN}"}, [{"node": 0, "tensor_id": "w"}]
        with keyed.client(**key) as client:
            graph = client.post(f"{PREFIX}/v1/graphs", json={"graph": {"nodes": nodes}})
            sent_as, content = {"Content-Type": KIND}, body(None, {"x": weights})
            assert client.put(f"{PREFIX}/v1/tensors/w", content=content, headers=sent_as).status_code == 201
            path, step = f"{graph.headers['location']}/forward", {"store": [{"node": 1, "tensor_id": "w"}]}
            assert client.post(path, json={"feeds": fed, **step}).status_code == 200
        assert keyed.end() in (0, -signal.SIGTERM), "uvicorn passes on the signal that has ended it"
        with start(**kept).client(**key) as client:
            response = client.post(path.removeprefix(PREFIX), content=body({}, {"feeds.0": weights}), headers=BINARY)
            assert np.array_equal(answered(response)[1]["values.1"], -weights)
            assert client.get("/v1/tensors/w").json()["tensor"]["data"] == [-0.0, -1.0, -2.0, -3.0]
