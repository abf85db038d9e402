"""Servers of which one cannot reach the store, has another's address or another's secret, or was paused."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer
from urllib.parse import urlsplit

import pytest

from tests.service.cluster.ingress.support import wait_until
from tests.service.cluster.serving import PASSING, SECRET, Node, free_port
from tests.service.command_support import called

pytestmark = pytest.mark.slow


class Way(ThreadingTCPServer):
    """Way of one server to the store, which can be cut: packets get lost, or connections are refused."""

    daemon_threads = allow_reuse_address = True

    def __init__(self, store: str) -> None:
        address = urlsplit(store)
        self.store = (address.hostname, address.port)
        #: how the way is cut: not at all, or `hang` or `refuse`
        self.cut = ""
        self.open: set[socket.socket] = set()
        self.released = threading.Event()
        super().__init__(("127.0.0.1", 0), _Connection)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def set_cut(self, cut: str) -> None:
        self.cut = cut
        if cut == "refuse":
            for each in [*self.open]:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)


class _Connection(BaseRequestHandler):
    server: Way

    def handle(self) -> None:
        if self.server.cut == "refuse":
            return
        with socket.create_connection(self.server.store) as store:
            self.server.open |= {self.request, store}
            back = threading.Thread(target=self._relay, args=(store, self.request), daemon=True)
            back.start()
            self._relay(self.request, store)
            back.join()
            self.server.open -= {self.request, store}

    def _relay(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if self.server.cut == "hang":
                    self.server.released.wait()
                    break
                target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def way(s3_server: str) -> Iterator[Way]:
    """The way of a test's first server to the store."""
    with Way(s3_server) as way:
        yield way
        way.released.set()
        way.shutdown()


@pytest.fixture
def place(shared_place: str, request: pytest.FixtureRequest) -> str:
    """An empty place for each test."""
    return f"{shared_place}/{request.node.name.translate(str.maketrans('[]', '--'))}"


@pytest.fixture
def started() -> Iterator[list[Node]]:
    """Servers of a test, which are ended after it."""
    nodes: list[Node] = []
    yield nodes
    for node in nodes:
        node.end()


def start(place: str, nodes: list[Node], *options: str, **variables: str) -> Node:
    nodes.append(Node(place, free_port(), "--lease-ms", "500", *options, **variables))
    return nodes[-1].await_start()


def ready(node: Node) -> tuple[int, str]:
    answer = node.client.get("/health/ready")
    return answer.status_code, answer.json().get("detail", "")


@pytest.mark.parametrize("cut", ["hang", "refuse"])
def test_blind_owner_is_not_ready_and_replaced(place: str, way: Way, started: list[Node], cut: str) -> None:
    """It answers others that it cannot reach the store, so they need no silence to take over."""
    owner = start(place, started, AWS_ENDPOINT_URL=way.url)
    other = start(place, started)
    assert owner.put("w", 1).status_code == 201
    way.set_cut(cut)
    for value in range(100):
        answer = other.client.put("/v1/tensors/w", json={"dtype": "float64", "shape": [], "data": [value]})
        if answer.status_code == 200 and other.figure("gradserve_shards"):
            break
        assert answer.status_code == 200 or answer.json()["code"] in PASSING
    assert other.figure('gradserve_shard_moves_total{reason="without_store"}') == 1
    wait_until(lambda: ready(owner)[0] == 503)
    assert "storage of the server's state does not respond" in ready(owner)[1]
    assert owner.figure("gradserve_shards_without_store") == 1
    way.set_cut("")
    way.released.set()
    wait_until(lambda: ready(owner)[0] == 200)
    assert owner.value("w") == value
    assert owner.figure("gradserve_shards") == 0


def test_survivor_keeps_in_memory_what_fits(place: str, started: list[Node]) -> None:
    """It owns more than its limit: everything can be read and replaced, and new names are refused."""
    owner = start(place, started)
    survivor = start(place, started, "--max-tensor-bytes", "20000")
    for number in range(10):
        body = {"dtype": "float64", "shape": [500], "data": [float(number)] * 500}
        assert owner.client.put(f"/v1/tensors/w{number}", json=body).status_code == 201
    owner.end()
    wait_until(lambda: survivor.get("w0").status_code == 200)
    for number in range(10):
        tensor = survivor.get(f"w{number}").json()["tensor"]
        assert tensor["data"] == [float(number)] * 500
        assert survivor.figure("gradserve_tensor_memory_bytes") <= 20_000
    assert survivor.figure("gradserve_tensors") == 10
    leaves = [{"op": "input"} for _ in range(10)]
    sums = [{"op": "add", "operands": [number, number + 8]} for number in range(2, 10)]
    graph = {"nodes": [*leaves, {"op": "add", "operands": [0, 1]}, *sums]}
    feeds = [{"node": number, "tensor_id": f"w{number}"} for number in range(10)]
    answer = survivor.client.post("/v1/forward", json={"graph": graph, "feeds": feeds, "outputs": [18]})
    assert answer.json()["values"][0]["tensor"]["data"] == [45.0] * 500, answer.text
    assert survivor.put("new", 1).status_code == 507
    assert survivor.put("w0", 1).status_code == 200
    assert survivor.figure("gradserve_tensor_memory_bytes") <= 20_000


def test_head_reaches_the_new_owner(place: str, started: list[Node]) -> None:
    """The server that knew the paused owner is sent on by it, though the answer to a HEAD has no body."""
    owner, asker, third = (start(place, started) for _ in range(3))
    assert owner.put("w", 1).status_code == 201
    assert asker.asked("HEAD", "/v1/tensors/w").status_code == 200
    owner.send_signal(signal.SIGSTOP)
    assert third.put("w", 2).status_code == 200
    owner.send_signal(signal.SIGCONT)
    for method in ("HEAD", "GET", "HEAD"):
        answer = asker.asked(method, "/v1/tensors/w")
        assert answer.status_code == 200
        assert answer.headers["etag"] == third.get("w").headers["etag"]


def test_second_server_with_an_address_is_refused(place: str, started: list[Node]) -> None:
    first = start(place, started)
    settings = {
        "GRADSERVE_CLUSTER": "on",
        "GRADSERVE_CLUSTER_SECRET": SECRET,
        "GRADSERVE_CLUSTER_ADDRESS": first.url,
        "GRADSERVE_STATE": place,
    }
    ended = called("serve", "--port", "0", **settings)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert f"another server answers at {first.url}; give each server of a cluster its own --cluster" in ended.stderr
    assert ready(first) == (200, "")


def test_server_whose_address_was_taken_meanwhile_is_not_ready(place: str, started: list[Node]) -> None:
    """The server at the address started second; the one with the copied configuration takes no part any more."""
    address = free_port()
    wrong = start(place, started, "--cluster-address", f"http://127.0.0.1:{address}")
    assert wrong.put("w", 1).status_code == 201
    started.append(Node(place, address, "--lease-ms", "500"))
    right = started[-1].await_start()
    wait_until(lambda: ready(wrong)[0] == 503)
    assert "another server answers at" in ready(wrong)[1]
    assert wrong.figure("gradserve_address_conflict") == 1
    assert wrong.client.get("/v1/tensors/w").json()["code"] == "not_ready"
    assert right.value("w") == 1
    assert ready(right) == (200, "")
    right.end()
    wait_until(lambda: ready(wrong)[0] == 200)
    assert wrong.value("w") == 1
    started.remove(right)


def test_server_with_another_secret_is_not_ready(place: str, started: list[Node]) -> None:
    first = start(place, started)
    assert first.put("w", 1).status_code == 201
    stranger = start(place, started, GRADSERVE_CLUSTER_SECRET=SECRET[::-1])
    assert ready(stranger) == (200, "")
    assert stranger.client.get("/v1/tensors/w").status_code == 503
    status, detail = ready(stranger)
    assert status == 503
    assert f"{first.url} does not accept the cluster secret of this server" in detail
    assert ready(first) == (200, "")


def test_server_waits_for_a_store_that_it_cannot_reach(place: str, way: Way, started: list[Node]) -> None:
    way.set_cut("refuse")
    node = start(place, started, AWS_ENDPOINT_URL=way.url)
    assert ready(node) == (503, "the server has not reached the storage of its state yet, and waits for it")
    assert node.client.get("/v1/tensors/w").json()["code"] == "not_ready"
    assert node.client.get("/health/live").status_code == 200
    way.set_cut("")
    wait_until(lambda: ready(node)[0] == 200)
    assert node.put("w", 1).status_code == 201
