"""moto's S3 server with a lock around each request, so that conditional writes have one winner."""

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
    """Create a server that listens but does not serve yet; port 0 picks a free port."""
    moto = one_at_a_time(DomainDispatcherApplication(create_backend_app))
    return make_server(host, port, moto, threaded=True, request_handler=_Quiet)


def one_at_a_time(application: Any) -> Callable[[dict[str, Any], Any], list[bytes]]:
    """Wrap an application so that it handles one request at a time.

    moto checks whether an object exists and creates it a moment later: one race in a few dozen has two winners.
    """
    lock = Lock()

    def locked(environ: dict[str, Any], start: Any) -> list[bytes]:
        if length := int(environ.get("CONTENT_LENGTH") or 0):  # do not hold the lock for a slow client
            environ["wsgi.input"] = BytesIO(environ["wsgi.input"].read(length))
        with lock:
            return list(application(environ, start))

    return locked
