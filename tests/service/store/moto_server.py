"""moto's S3 as a server, each request behind a lock: its conditional writes are to have one winner."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from threading import Lock
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

REGION = "us-east-1"


class _Quiet(WSGIRequestHandler):
    def log_request(self, *_: object) -> None:
        pass


def moto_server(host: str = "127.0.0.1", port: int = 0) -> BaseWSGIServer:
    """A server that listens there, and is yet to serve; at port 0, on one that nobody has."""
    moto = one_at_a_time(DomainDispatcherApplication(create_backend_app))
    return make_server(host, port, moto, threaded=True, request_handler=_Quiet)


def one_at_a_time(application: Any) -> Callable[[dict[str, Any], Any], list[bytes]]:
    """The same, each request behind a lock.

    moto looks whether an object is there, and makes it a moment later: of some dozens of races, one has two winners.
    """
    lock = Lock()

    def locked(environ: dict[str, Any], start: Any) -> list[bytes]:
        if length := int(environ.get("CONTENT_LENGTH") or 0):  # nobody waits for a slow client
            environ["wsgi.input"] = BytesIO(environ["wsgi.input"].read(length))
        with lock:
            return list(application(environ, start))

    return locked
