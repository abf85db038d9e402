"""An S3 server of this machine, moto's, started when the first test asks for it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from io import BytesIO
from threading import Lock, Thread
from typing import Any

import pytest

_NUMBERS = itertools.count()
_REGION = "us-east-1"


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The address of the server."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log_request(self, *_: object) -> None:
            pass

    moto = one_at_a_time(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, moto, threaded=True, request_handler=Quiet)
    serving = Thread(target=server.serve_forever)
    serving.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    serving.join()
    server.server_close()


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


@pytest.fixture
def s3_place(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a folder in a bucket with nothing in it; the environment says where the server is."""
    import boto3

    access = {"AWS_ACCESS_KEY_ID": "anyone", "AWS_SECRET_ACCESS_KEY": "anything", "AWS_REGION": _REGION}
    for name, value in {**access, "AWS_ENDPOINT_URL": s3_server}.items():
        monkeypatch.setenv(name, value)
    bucket = f"state-{next(_NUMBERS)}"
    boto3.client("s3", endpoint_url=s3_server, region_name=_REGION).create_bucket(Bucket=bucket)
    return f"s3://{bucket}/of/gradserve"
