"""Serve moto's S3, one request at a time, and misbehave on request: `python -m tests.cluster_chaos.store ADDRESS PORT`.

`PUT /_chaos` with a JSON object sets what happens from then on to the requests of clients at some addresses:
`forbidden` gets 403 for everything; the writes of `late` get 500 at once, and happen some seconds later; those of
`doubled` happen at once, and again some seconds later.
"""

from __future__ import annotations

import json
import random
import sys
import threading
from collections.abc import Callable, Iterable
from io import BytesIO
from typing import Any

from tests.service.store.moto_server import moto_server

PATH = "/_chaos"
#: seconds by which writes are late
_LATE = (3.0, 8.0)
_FORBIDDEN = b"<Error><Code>AccessDenied</Code><Message>not for you</Message></Error>"
_FAILED = b"<Error><Code>InternalError</Code><Message>try again</Message></Error>"

Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


class Misbehaving:
    """WSGI application in front of the store."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._addresses: dict[str, list[str]] = {}
        self._chance = random.Random(0)

    def __call__(self, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        """Answer one request."""
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = BytesIO(body)
        if environ["PATH_INFO"] == PATH:
            self._addresses = json.loads(body)
            return self._answer(start, "204 No Content", b"")
        if self._hits("forbidden", environ):
            return self._answer(start, "403 Forbidden", _FORBIDDEN)
        if environ["REQUEST_METHOD"] == "PUT" and (self._hits("late", environ) or self._hits("doubled", environ)):
            again = {**environ, "wsgi.input": BytesIO(body)}
            threading.Timer(self._chance.uniform(*_LATE), self._repeat, (again,)).start()
            if self._hits("late", environ):
                return self._answer(start, "500 Internal Server Error", _FAILED)
        return self._application(environ, start)

    def _hits(self, what: str, environ: dict[str, Any]) -> bool:
        return environ["REMOTE_ADDR"] in self._addresses.get(what, ())

    def _repeat(self, environ: dict[str, Any]) -> None:
        for _ in self._application(environ, lambda *_: None):
            pass

    @staticmethod
    def _answer(start: Any, status: str, body: bytes) -> Iterable[bytes]:
        start(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
        return [body]


def main() -> None:
    """Serve until killed."""
    server = moto_server(sys.argv[1], int(sys.argv[2]))
    server.app = Misbehaving(server.app)
    print("listening", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
