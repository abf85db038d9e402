"""A server as a child process: start, requests, and end together with its parent."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from service.cluster.fleet import child as child_module
from service.cluster.fleet.child import ServerChild, environment
from service.cluster.protocol import PROTOCOL, PROTOCOL_HEADER, SECRET_HEADER
from service.web import listening
from tests.service.cluster.ingress.support import wait_until
from tests.service.cluster.serving import ONE, SECRET
from tests.service.store.conftest import s3_place, s3_server

__all__ = ["s3_place", "s3_server"]

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[4]
SETTINGS = {"workers": 1, "device": "cpu", "state": "memory", "log_level": "error", "cache_dir": "none"}


@pytest.fixture(scope="module")
def child() -> Iterator[ServerChild]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        started = ServerChild("127.0.0.1", SETTINGS)
    yield started
    started.end(30.0)
    assert started.status() == 0


def test_child_is_a_complete_server(child: ServerChild) -> None:
    host, port = child.address
    assert httpx.get(f"http://{host}:{port}/v1/ops", trust_env=False).status_code == 200
    child.check()


def test_child_reports_its_work(child: ServerChild) -> None:
    """Two workers, the quick one and the general one, are ready from the start; the spare follows."""
    work = child.work()
    assert work.pop("workers") in {2.0, 3.0}
    assert work == {"running": 0.0, "queued": 0.0}


def test_child_has_no_metrics_on_its_main_port(child: ServerChild) -> None:
    host, port = child.address
    assert httpx.get(f"http://{host}:{port}/metrics", trust_env=False).status_code == 404


def test_child_waits_for_its_metrics_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server of the previous replica may still be stopping."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with socket.create_server(("0.0.0.0", 0)) as before:
        port = before.getsockname()[1]
        monkeypatch.setattr(
            listening, "time", SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: before.close())
        )
        started = ServerChild("127.0.0.1", {**SETTINGS, "metrics_host": "0.0.0.0", "metrics_port": port})
    try:
        assert httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).status_code == 200
        assert started.work()["workers"] in {2.0, 3.0}
    finally:
        started.end(30.0)


def test_metrics_port_in_use_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_module, "_HANDOVER_SECONDS", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(OSError, match="Address already in use"):
        ServerChild("127.0.0.1", {**SETTINGS, "metrics_port": listener.getsockname()[1]})


def test_child_with_shared_state_has_a_cluster_address(s3_place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("GRADSERVE_CLUSTER_SECRET", SECRET)
    started = ServerChild("127.0.0.1", SETTINGS | {"state": s3_place, "cluster": "on"})
    try:
        host, port = started.address
        headers = {SECRET_HEADER: SECRET, PROTOCOL_HEADER: str(PROTOCOL)}
        alive = httpx.get(f"http://{host}:{port}/cluster/alive", headers=headers, trust_env=False)
        assert alive.status_code == 200
        body = {"graph": {"nodes": [{"op": "input"}]}, "feeds": [{"node": 0, "tensor": ONE}]}
        stats = httpx.post(f"http://{host}:{port}/v1/forward", json=body, trust_env=False).json()["stats"]
        assert stats["server"] == f"http://{host}:{port}"
    finally:
        started.end(30.0)


def test_variables_of_the_replica_are_not_inherited() -> None:
    variables = {"OMP_NUM_THREADS": "1", "RAY_AUTH_TOKEN": "t", "CUDA_VISIBLE_DEVICES": "3", "PATH": "/bin"}
    assert environment(variables) == {"CUDA_VISIBLE_DEVICES": "3", "PATH": "/bin"}


def test_ended_child_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    started = ServerChild("127.0.0.1", SETTINGS)
    os.kill(started.pid, signal.SIGKILL)
    wait_until(lambda: started.status() is not None)
    with pytest.raises(RuntimeError, match=r"^the server exited with status -9$"):
        started.check()


def test_child_that_cannot_start_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with pytest.raises(RuntimeError, match=r"^the server does not start; see the log of the replica$"):
        ServerChild("127.0.0.1", {**SETTINGS, "device": "abacus"})


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process is told of its parent's end")
def test_child_does_not_outlive_its_parent() -> None:
    program = (
        "from service.cluster.fleet.child import ServerChild\n"
        f"print(ServerChild('127.0.0.1', {SETTINGS!r}).pid, flush=True)\ninput()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as parent:  # fmt: skip
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    wait_until(lambda: not Path(f"/proc/{pid}").exists())
