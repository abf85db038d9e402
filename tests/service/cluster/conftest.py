"""Fixtures of an S3 server and of servers that share a state on it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from unittest.mock import patch

import pytest

from tests.service.cluster.serving import Node, free_port
from tests.service.store.conftest import s3_place, s3_server

__all__ = ["s3_place", "s3_server"]

_NUMBERS = itertools.count()
_REGION = "us-east-1"


@pytest.fixture(scope="module")
def shared_place(s3_server: str) -> Iterator[str]:
    """The URL of a folder in an empty bucket, one per module; the environment has the address of the server."""
    import boto3

    access = {"AWS_ACCESS_KEY_ID": "anyone", "AWS_SECRET_ACCESS_KEY": "anything", "AWS_REGION": _REGION}
    with patch.dict(os.environ, {**access, "AWS_ENDPOINT_URL": s3_server}):
        bucket = f"shared-{next(_NUMBERS)}"
        boto3.client("s3", endpoint_url=s3_server, region_name=_REGION).create_bucket(Bucket=bucket)
        yield f"s3://{bucket}/of/gradserve"


@pytest.fixture(scope="module")
def nodes(shared_place: str) -> Iterator[list[Node]]:
    """Two servers, which a test may stop and replace in the list."""
    started = [Node(shared_place, free_port(), "--lease-ms", "500") for _ in range(2)]
    try:
        for node in started:
            node.await_start()
        yield started
    finally:
        for node in started:
            node.end()
