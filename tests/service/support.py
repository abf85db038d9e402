"""Build requests and check responses."""

from __future__ import annotations

import socket
from typing import Any

import httpx

from service.core.errors import UNREADABLE

Json = dict[str, Any]


def node(op: str, *operands: int, **attrs: Any) -> Json:
    """A node of a graph."""
    return {"op": op, "operands": list(operands), "attrs": attrs}


def tensor(shape: list[int], data: list[Any], dtype: str = "float64") -> Json:
    """A tensor, as JSON numbers."""
    return {"dtype": dtype, "shape": shape, "data": data}


def feed(i: int, shape: list[int], data: list[Any], dtype: str = "float64") -> Json:
    """A feed for node `i`."""
    return {"node": i, "tensor": tensor(shape, data, dtype)}


def request(*nodes: Json, feeds: list[Json] | None = None, **more: Any) -> Json:
    """A request on a graph of these nodes."""
    return {"graph": {"nodes": list(nodes)}, "feeds": feeds or [], **more}


#: sum(w²) at w = [1, 2]
SQUARES = request(node("parameter"), node("square", 0), node("sum", 1), feeds=[feed(0, [2], [1, 2])])


def problem(response: httpx.Response, status: int, code: str) -> Json:
    """Check the status and code of a problem response; return its report."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    report: Json = response.json()
    assert (response.status_code, report["code"]) == (status, code), report["detail"]
    assert report["status"] == status
    assert report["detail"] != UNREADABLE
    assert report["request_id"] == response.headers["x-request-id"]
    assert {"type", "title", "detail"} <= set(report)
    return report


def exchange(address: tuple[str, int], sent: bytes, *, half_close: bool = False) -> bytes:
    """Send bytes on a connection; return the bytes received until it closes or one response is complete."""
    with socket.create_connection(address, timeout=30) as connection:
        connection.sendall(sent)
        if half_close:
            connection.shutdown(socket.SHUT_WR)
        return read_response(connection)


def read_response(connection: socket.socket) -> bytes:
    """Read one whole response with a Content-Length; less if the server closes early."""
    received = b""
    while not _is_whole(received):
        piece = connection.recv(65536)
        if not piece:
            break
        received += piece
    return received


def _is_whole(received: bytes) -> bool:
    head, separator, body = received.partition(b"\r\n\r\n")
    if not separator:
        return False
    lengths = [int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return len(body) >= (lengths[0] if lengths else 0)
