"""A server in front of another that passes everything on, and answers as that one will when it has grown."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import urlsplit

from clients.conformance.rewriting import grown_body

#: of one connection, and no other
_HOP: Final = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "host", "upgrade"})


@contextmanager
def growing_proxy(url: str) -> Iterator[str]:
    """The address of a server of tomorrow, for as long as the block lasts; `url` is today's."""
    handler = type("_Handler", (_Handler,), {"origin": urlsplit(url).netloc})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        http.daemon_threads = True
        serving = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        try:
            yield f"http://127.0.0.1:{http.server_address[1]}"
        finally:
            http.shutdown()
            serving.join()


class _Handler(BaseHTTPRequestHandler):
    origin: str
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Pass the request on, and the answer back."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
        connection = HTTPConnection(self.origin, timeout=60)
        try:
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            content, media_type = answer.read(), answer.headers.get("Content-Type", "")
        finally:
            connection.close()
        content = grown_body(media_type, content)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            if name.lower() not in _HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 - as the library asks for them

    def log_message(self, *_: object) -> None:
        """Nothing."""
