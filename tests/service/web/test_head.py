"""HEAD and 405: every route that takes GET takes HEAD, and a path tells which methods it takes."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.conftest import Client, RunningServer
from tests.service.support import problem, tensor

PATHS = [
    "/", "/docs", "/docs/errors", "/docs/errors/not_found", "/health/live", "/health/ready", "/openapi.json",
    "/openapi-3.0.json", "/openapi-sdk.json", "/openapi-sdk-3.0.json", "/v1/ops", "/v1/ops/sum", "/v1/graphs",
    "/v1/tensors", "/v1/tensors/nothing", "/v1/models", "/v1/models/nothing", "/nowhere",
]  # fmt: skip


@contextmanager
def connected(server: RunningServer) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection(*server.address, timeout=60)
    try:
        yield connection
    finally:
        connection.close()


def fields(response: http.client.HTTPResponse) -> dict[str, str]:
    return {
        name.lower(): value for name, value in response.getheaders() if name.lower() not in ("date", "x-request-id")
    }


@pytest.mark.slow
def test_head_has_the_status_and_headers_of_get(server: RunningServer) -> None:
    """A body would be read as the next response on the connection."""
    with connected(server) as connection:
        for path in PATHS:
            connection.request("HEAD", path)
            head = connection.getresponse()
            assert head.read() == b""
            connection.request("GET", path)
            got = connection.getresponse()
            assert len(got.read()) == int(head.headers["Content-Length"]), path
            assert (head.status, fields(head)) == (got.status, fields(got)), path
        connection.request("HEAD", "/metrics")  # whose counts change from one response to the next
        metrics = connection.getresponse()
        assert (metrics.status, metrics.read()) == (200, b"")


@pytest.mark.parametrize("path", PATHS[:-1])
def test_head_is_routed_as_get(client: Client, path: str) -> None:
    assert client.request("HEAD", path).status_code == client.get(path).status_code


@pytest.mark.parametrize(
    ("method", "path", "allow", "hint"),
    [
        ("PATCH", "/v1/tensors/x", "DELETE, GET, HEAD, PUT", ""),
        ("GET", "/v1/gradients", "POST", ""),
        ("POST", "/v1/tensors", "GET, HEAD", "did you mean PUT /v1/tensors/{name}?"),
        ("POST", "/v1/models", "GET, HEAD", "did you mean PUT /v1/models/{name}?"),
        ("DELETE", "/v1/tensors", "GET, HEAD", "did you mean DELETE /v1/tensors/{name}?"),
        ("PUT", "/v1/graphs", "GET, HEAD, POST", ""),
    ],
)  # fmt: skip
def test_method_not_allowed(client: Client, method: str, path: str, allow: str, hint: str) -> None:
    response = client.request(method, path, json=tensor([1], [1]))
    report = problem(response, 405, "method_not_allowed")
    assert response.headers["allow"] == allow
    assert report["detail"] == f"{path} does not support {method}; it supports {allow}" + (f"; {hint}" if hint else "")


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("/v1/gradient", "/v1/gradients"), ("/gradients", "/v1/gradients"), ("/V1/Gradients", "/v1/gradients"),
        ("/v1/jacobians", "/v1/jacobian"), ("/health", "/health/live"), ("/metric", "/metrics"),
        ("/v1/tensor", "/v1/tensors"),
    ],
)  # fmt: skip
def test_unknown_path_suggests_the_nearest(client: Client, path: str, nearest: str) -> None:
    report = problem(client.request("POST", path, json={}), 404, "not_found")
    assert report["detail"] == f"the path {path} does not exist; did you mean {nearest}?"


def test_unknown_path_without_a_near_one(client: Client) -> None:
    detail = problem(client.get("/swagger"), 404, "not_found")["detail"]
    assert detail == "the path /swagger does not exist; /docs lists the calls"
