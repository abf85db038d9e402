"""The metrics listener of a server process: its paths and hosts, its limits, and its shutdown."""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from service.app import create_monitor
from service.core.keys.caller import new_key
from service.core.settings import Settings
from service.web.listening import MONITOR_CONNECTIONS, monitor_settings
from tests.conftest import Client, RunningServer
from tests.service.application import create_routes
from tests.service.core.keys.cases import record, write
from tests.service.support import SQUARES, exchange, problem
from tests.service.web.harness import FakePool

pytestmark = pytest.mark.slow

KEY = new_key()
HEALTH_PATHS = ("/health/live", "/health/ready")
#: every way of writing /metrics that some server might take for it
SPELLINGS = ("/metrics", "/metrics/", "//metrics", "/./metrics", "/%6detrics", "/metrics?x=1", "/METRICS")


def monitor_of(server: RunningServer) -> RunningServer:
    """Find the metrics listener from the second line that a server prints."""
    assert server.process.stdout is not None
    line = server.process.stdout.readline()
    assert line.startswith("gradserve metrics at http://127.0.0.1:"), line
    return RunningServer(server.process, line.rpartition(" ")[2].strip().removesuffix("/metrics"))


@pytest.fixture(scope="module")
def pair(
    start_server: Callable[..., RunningServer], tmp_path_factory: pytest.TempPathFactory
) -> tuple[RunningServer, RunningServer]:
    """A server that requires keys, and its metrics listener."""
    keys = tmp_path_factory.mktemp("keys") / "keys.json"
    write(keys, [record("alice", KEY)])
    server = start_server("--metrics-port", "0", "--keys-file", str(keys), "--header-timeout", "0.5")
    return server, monitor_of(server)


def test_metrics_and_health_need_no_key(pair: tuple[RunningServer, RunningServer]) -> None:
    answer = httpx.get(pair[1].url + "/metrics", trust_env=False)
    assert answer.status_code == 200
    assert "gradserve_requests_total" in answer.text
    for path in HEALTH_PATHS:
        assert httpx.get(pair[1].url + path, trust_env=False).status_code == 200


@pytest.mark.parametrize("path", SPELLINGS)
def test_main_port_has_no_metrics(pair: tuple[RunningServer, RunningServer], path: str) -> None:
    template = b"GET %b HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%b\r\n"
    keyed = b"Authorization: Bearer %b\r\n" % KEY.encode()
    assert exchange(pair[0].address, template % (path.encode(), keyed)).startswith(b"HTTP/1.1 404 ")
    assert exchange(pair[0].address, template % (path.encode(), b"")).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("path", HEALTH_PATHS)
def test_main_port_has_health(pair: tuple[RunningServer, RunningServer], path: str) -> None:
    assert httpx.get(pair[0].url + path, trust_env=False).status_code == 200


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"), ("GET", "/docs"), ("GET", "/openapi.json"), ("GET", "/v1/ops"), ("GET", "/v1/tensors/a"),
        ("POST", "/v1/gradients"), ("POST", "/v1/graphs/a/gradients"), ("GET", "/cluster/alive"), ("GET", "/health"),
        ("GET", "//metrics"),
    ],
)  # fmt: skip
def test_listener_has_no_other_paths(pair: tuple[RunningServer, RunningServer], method: str, path: str) -> None:
    body = SQUARES if method == "POST" else None
    answer = httpx.request(method, pair[1].url + path, json=body, trust_env=False)
    problem(answer, 404, "not_found")


def test_incomplete_head_times_out(pair: tuple[RunningServer, RunningServer]) -> None:
    assert exchange(pair[1].address, b"GET /metrics HTTP/1.1\r\nHost:").startswith(b"HTTP/1.1 408 ")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the loopback has one address")
def test_silent_connections_do_not_block_other_clients(pair: tuple[RunningServer, RunningServer]) -> None:
    with ExitStack() as stack:
        for _ in range(2 * MONITOR_CONNECTIONS):
            stack.enter_context(socket.create_connection(pair[1].address, source_address=("127.9.9.9", 0)))
        assert httpx.get(pair[1].url + "/metrics", trust_env=False).status_code == 200


def test_listener_stops_with_the_server_despite_connections(start_server: Callable[..., RunningServer]) -> None:
    server = start_server("--metrics-port", "0")
    monitor = monitor_of(server)
    with httpx.Client(base_url=monitor.url, trust_env=False) as client:
        assert client.get("/metrics").status_code == 200
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
        with pytest.raises(httpx.TransportError):
            client.get("/metrics")


@pytest.fixture(scope="module")
def ask() -> Iterator[Callable[[str, str], int]]:
    """Function from a listening address and a Host header to the status of an unknown path."""
    clients = []

    def status(metrics_host: str, name: str) -> int:
        settings = Settings(device="cpu", metrics_port=0, metrics_host=metrics_host, allowed_hosts="mine.example")
        clients.append(Client(create_monitor(create_routes(settings, FakePool()), settings)))
        return clients[-1].get("/elsewhere", headers={"Host": name}).status_code

    yield status
    for client in clients:
        client.close()


@pytest.mark.parametrize("name", ["localhost:8001", "127.0.0.1", "[::1]:8001", "mine.example"])
@pytest.mark.parametrize("metrics_host", ["127.0.0.1", "::1", "localhost"])
def test_loopback_listener_accepts_local_names(ask: Callable[[str, str], int], metrics_host: str, name: str) -> None:
    assert ask(metrics_host, name) == 404


@pytest.mark.parametrize("metrics_host", ["127.0.0.1", "::1", "localhost"])
def test_loopback_listener_refuses_other_names(ask: Callable[[str, str], int], metrics_host: str) -> None:
    assert ask(metrics_host, "rebound.example") == 421


@pytest.mark.parametrize("name", ["10.0.0.7:8001", "[fd00::7]:8001", "node.example:8001"])
@pytest.mark.parametrize("metrics_host", ["0.0.0.0", "10.0.0.7", "::", "node.example"])
def test_public_listener_accepts_any_name(ask: Callable[[str, str], int], metrics_host: str, name: str) -> None:
    assert ask(metrics_host, name) == 404


def test_listener_has_no_keys_and_no_tls(tmp_path: Path) -> None:
    settings = monitor_settings(Settings(device="cpu", keys_file=tmp_path, tls_cert=tmp_path, tls_key=tmp_path))
    assert not settings.requires_keys
    assert settings.tls_cert is settings.tls_key is None
