"""Proxies in front of a server. They return its responses unchanged, or extended as a future server's may be."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from clients.conformance.rewriting import grown_body

#: headers of a single connection, which a proxy does not forward
_HOP: Final = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "host", "upgrade"})


class Response(NamedTuple):
    """A server's response."""

    status: int
    headers: Message
    content: bytes


class ForwardingHandler(BaseHTTPRequestHandler):
    """Request handler that forwards requests to the server at `origin`, host and port, and returns its responses."""

    origin: str
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Forward a request, and return the response."""
        self.send(self.ask())

    do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 - names that http.server requires

    def ask(self) -> Response:
        """Send the request to the server, and return its response."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
        connection = HTTPConnection(self.origin, timeout=60)
        try:
            connection.request(self.command, self.path, body, headers)
            response = connection.getresponse()
            return Response(response.status, response.headers, response.read())
        finally:
            connection.close()

    def send(self, response: Response) -> None:
        """Send a response to the client."""
        self.send_response(response.status)
        for name, value in response.headers.items():
            if name.lower() not in _HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(response.content)))
        self.end_headers()
        self.wfile.write(response.content)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class _Growing(ForwardingHandler):
    def send(self, response: Response) -> None:
        media_type = response.headers.get("Content-Type", "")
        super().send(response._replace(content=grown_body(media_type, response.content)))


@contextmanager
def served_by(handler: type[ForwardingHandler]) -> Iterator[str]:
    """Serve requests with `handler` for the duration of the block, and yield the server's address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        http.daemon_threads = True
        serving = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        try:
            yield f"http://127.0.0.1:{http.server_address[1]}"
        finally:
            http.shutdown()
            serving.join()


@contextmanager
def growing_proxy(url: str) -> Iterator[str]:
    """Run a proxy for `url` that extends responses as a future server might. Yield its address."""
    with served_by(type("_Handler", (_Growing,), {"origin": urlsplit(url).netloc})) as address:
        yield address
