"""The two programs that the image contains or is made with, run as the Dockerfile runs them."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.deploy.images import ROOT, project


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


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1), (404, 1)])
def test_health_is_what_the_server_says(status: int, code: int) -> None:
    with server(status) as port:
        assert run("health.py", GRADSERVE_PORT=str(port)).returncode == code


def test_a_server_that_is_not_there_is_not_healthy() -> None:
    with server(200) as port:
        pass
    done = run("health.py", GRADSERVE_PORT=str(port))
    assert (done.returncode, done.stderr) == (1, "")


def test_health_asks_no_proxy() -> None:
    with server(200) as port:
        assert run("health.py", GRADSERVE_PORT=str(port), http_proxy="http://127.0.0.1:1").returncode == 0


def test_dependencies_are_the_projects() -> None:
    assert run("dependencies.py").stdout.splitlines() == project()["dependencies"]


@pytest.mark.parametrize("extra", ["cuda12", "cuda13"])
def test_an_extra_is_what_it_adds(extra: str) -> None:
    assert run("dependencies.py", extra).stdout.splitlines() == project()["optional-dependencies"][extra]


def test_an_unknown_extra_stops_the_build() -> None:
    done = run("dependencies.py", "cuda11")
    assert done.returncode == 1
    assert "cuda11" in done.stderr
