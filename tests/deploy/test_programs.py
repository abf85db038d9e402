"""The program that the image contains, run as the Dockerfile runs it; and what `make container-check` runs."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.deploy.images import ROOT, WHY


def run(program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """One of deploy's programs, with these variables and no others."""
    command = [sys.executable, str(ROOT / "deploy" / program), *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@contextmanager
def server(status: int) -> Iterator[int]:
    """A server that gives this status for /health/ready and 404 for all else; its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/health/ready" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield listening.server_port
        finally:
            listening.shutdown()
            thread.join()


@pytest.mark.smoke
@pytest.mark.slow
@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1), (404, 1)])
def test_health_is_what_the_server_says(status: int, code: int) -> None:
    with server(status) as port:
        assert run("health.py", GRADSERVE_PORT=str(port)).returncode == code


@pytest.mark.slow
def test_a_server_that_is_not_there_is_not_healthy() -> None:
    with server(200) as port:
        pass
    done = run("health.py", GRADSERVE_PORT=str(port))
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.slow
def test_health_asks_no_proxy() -> None:
    with server(200) as port:
        assert run("health.py", GRADSERVE_PORT=str(port), http_proxy="http://127.0.0.1:1").returncode == 0


def test_a_machine_without_the_tools_is_told_what_to_install() -> None:
    image = pytest.importorskip("deploy.check.image", reason=WHY)
    tools = {"python3": "python3", "no-such-tool": "one", "no-such-other": "two", "no-such-third": "one"}
    with pytest.raises(SystemExit, match=r"^container-check needs no-such-tool and no-such-other and no-such-third, "):
        image.require(tools)
    with pytest.raises(SystemExit, match=r"; on Debian: apt-get install one two$"):
        image.require(tools)
    image.require({"python3": "python3"})


def test_every_program_that_a_container_needs_is_looked_for() -> None:
    check = pytest.importorskip("deploy.check.__main__", reason=WHY)
    text = (ROOT / "deploy/check/container.py").read_text(encoding="utf-8")
    called = set(re.findall(r'program\("([a-z]+)"\)', text)) | {"mount", "ip", "debootstrap"}
    assert called == set(check.PROGRAMS)
