"""The HAProxy process: started with a valid configuration, and stopped with its parent."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from service.cluster.ingress.configuration import IngressLayout
from service.cluster.ingress.process import haproxy
from service.web.listening import bind_socket
from tests.service.cluster.ingress.support import PROGRAM, ingress, needs_haproxy, nodes, wait_until

pytestmark = [needs_haproxy, pytest.mark.slow]

ROOT = Path(__file__).parents[4]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_socket_is_private_to_this_user() -> None:
    with ingress() as running:
        runtime = running.process.table._runtime
        assert stat.S_IMODE(runtime.stat().st_mode) == 0o600
        assert stat.S_IMODE(runtime.parent.stat().st_mode) == 0o700
        assert {stat.S_IMODE(file.stat().st_mode) for file in runtime.parent.iterdir()} == {0o600}
    assert not runtime.parent.exists()


def test_refused_configuration_is_reported() -> None:
    assert PROGRAM is not None
    with (
        pytest.raises(RuntimeError, match=r"^HAProxy rejects its configuration: .*unknown keyword 'and'"),
        haproxy(PROGRAM, IngressLayout(listen="127.0.0.1:1", nodes=("nodes and nothing",))),
    ):
        pass


def test_address_in_use_is_reported() -> None:
    """The metrics address: HAProxy notices only when it starts."""
    assert PROGRAM is not None
    with socket.create_server(("127.0.0.1", 0)) as listener, bind_socket("127.0.0.1", 0) as listening:
        place = f"127.0.0.1:{listener.getsockname()[1]}"
        with (
            pytest.raises(RuntimeError, match=r"^HAProxy does not start: it exited with status 1$"),
            haproxy(PROGRAM, IngressLayout(listen="", metrics=place), listening),
        ):
            pass


def test_requests_in_progress_are_answered_before_it_stops() -> None:
    begun, leave, answers = threading.Event(), threading.Event(), []

    def answer(_: BaseHTTPRequestHandler, __: bytes) -> bytes:
        begun.set()
        leave.wait(30)
        return b"done"

    with nodes(1) as (node,), ingress(nodes=(node.place,)) as running:
        running.settle("gs1")
        node.answer = answer
        asking = threading.Thread(target=lambda: answers.append(running.ask("GET", "/v1/ops").body))
        asking.start()
        assert begun.wait(30)
        running.process.drain()
        wait_until(lambda: refused(running.port))
        assert not running.process.ended
        leave.set()
        running.process.wait()
        asking.join(30)
    assert answers == [b"done"]


def refused(port: int) -> bool:
    with socket.socket() as trying:
        return trying.connect_ex(("127.0.0.1", port)) != 0


def test_death_of_haproxy_is_reported() -> None:
    with ingress() as running:
        os.kill(running.process.pid, signal.SIGKILL)
        with pytest.raises(RuntimeError, match=r"^HAProxy exited on SIGKILL; its messages are above$"):
            running.process.wait()
        assert running.process.ended


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process is told of its parent's end")
def test_process_does_not_outlive_its_parent() -> None:
    program = (
        "from tests.service.cluster.ingress.support import ingress\n"
        "with ingress() as running:\n    print(running.process.pid, flush=True)\n    input()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert alive(pid)
        parent.kill()
    wait_until(lambda: not alive(pid))
