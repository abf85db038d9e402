"""A local S3 server (moto), started when the first test needs it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from threading import Thread

import pytest

_NUMBERS = itertools.count()
_REGION = "us-east-1"


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The address of the server."""
    from tests.service.store.moto_server import moto_server

    server = moto_server()
    serving = Thread(target=server.serve_forever)
    serving.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    serving.join()
    server.server_close()


@pytest.fixture
def s3_place(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a folder in an empty bucket; the environment has the address of the server."""
    import boto3

    access = {"AWS_ACCESS_KEY_ID": "anyone", "AWS_SECRET_ACCESS_KEY": "anything", "AWS_REGION": _REGION}
    for name, value in {**access, "AWS_ENDPOINT_URL": s3_server}.items():
        monkeypatch.setenv(name, value)
    bucket = f"state-{next(_NUMBERS)}"
    boto3.client("s3", endpoint_url=s3_server, region_name=_REGION).create_bucket(Bucket=bucket)
    return f"s3://{bucket}/of/gradserve"
