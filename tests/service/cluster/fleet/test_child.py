"""A server as a child: started, asked, and ended with who started it."""

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
        made = ServerChild("127.0.0.1", SETTINGS)
    yield made
    made.end(30.0)
    assert made.status() == 0


def test_it_is_a_whole_server(child: ServerChild) -> None:
    host, port = child.address
    assert httpx.get(f"http://{host}:{port}/v1/ops", trust_env=False).status_code == 200
    child.check()


def test_it_says_what_it_has_to_do(child: ServerChild) -> None:
    """Two workers are ready from the start, the quick one and the general one; the spare follows."""
    work = child.work()
    assert work.pop("workers") in {2.0, 3.0}
    assert work == {"running": 0.0, "queued": 0.0}


def test_its_metrics_are_not_where_callers_are(child: ServerChild) -> None:
    host, port = child.address
    assert httpx.get(f"http://{host}:{port}/metrics", trust_env=False).status_code == 404


def test_its_metrics_have_the_port_that_is_stated_once_it_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server of the replica before it may still be ending."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with socket.create_server(("0.0.0.0", 0)) as before:
        port = before.getsockname()[1]
        monkeypatch.setattr(
            listening, "time", SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: before.close())
        )
        made = ServerChild("127.0.0.1", {**SETTINGS, "metrics_host": "0.0.0.0", "metrics_port": port})
    try:
        assert httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).status_code == 200
        assert made.work()["workers"] in {2.0, 3.0}
    finally:
        made.end(30.0)


def test_a_port_that_stays_taken_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_module, "_HANDOVER_SECONDS", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="Address already in use"):
        ServerChild("127.0.0.1", {**SETTINGS, "metrics_port": taken.getsockname()[1]})


def test_one_that_shares_its_state_says_where_it_is(s3_place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("GRADSERVE_CLUSTER_SECRET", SECRET)
    made = ServerChild("127.0.0.1", SETTINGS | {"state": s3_place, "cluster": "on"})
    try:
        host, port = made.address
        said = {SECRET_HEADER: SECRET, PROTOCOL_HEADER: str(PROTOCOL)}
        alive = httpx.get(f"http://{host}:{port}/cluster/alive", headers=said, trust_env=False)
        assert alive.status_code == 200
        body = {"graph": {"nodes": [{"op": "input"}]}, "feeds": [{"node": 0, "tensor": ONE}]}
        stats = httpx.post(f"http://{host}:{port}/v1/forward", json=body, trust_env=False).json()["stats"]
        assert stats["server"] == f"http://{host}:{port}"
    finally:
        made.end(30.0)


def test_what_means_the_replica_is_not_handed_down() -> None:
    given = {"OMP_NUM_THREADS": "1", "RAY_AUTH_TOKEN": "t", "CUDA_VISIBLE_DEVICES": "3", "PATH": "/bin"}
    assert environment(given) == {"CUDA_VISIBLE_DEVICES": "3", "PATH": "/bin"}


def test_one_that_has_ended_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    made = ServerChild("127.0.0.1", SETTINGS)
    os.kill(made.pid, signal.SIGKILL)
    wait_until(lambda: made.status() is not None)
    with pytest.raises(RuntimeError, match=r"^the server ended with status -9$"):
        made.check()


def test_one_that_cannot_start_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with pytest.raises(RuntimeError, match=r"^the server does not start; the log of the replica has what it said$"):
        ServerChild("127.0.0.1", {**SETTINGS, "device": "abacus"})


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process is told of its parent's end")
def test_it_does_not_outlive_what_started_it() -> None:
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
