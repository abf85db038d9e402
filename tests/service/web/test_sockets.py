"""Requests to a server process that no HTTP library would send."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Callable

import httpx
import pytest

from tests.conftest import RunningServer
from tests.service.support import SQUARES, exchange, read_response

pytestmark = pytest.mark.slow

BODY = json.dumps(SQUARES).encode()


def post(*headers: bytes, body: bytes = BODY, length: int | None = None) -> bytes:
    """Build a POST of the body; `length` overrides its Content-Length."""
    stated = b"Content-Length: %d" % (len(body) if length is None else length)
    head = [b"POST /v1/gradients HTTP/1.1", b"Host: localhost", stated, *headers]
    return b"\r\n".join(head) + b"\r\n\r\n" + body


def check_problem(received: bytes, status: int, code: str, *, closes: bool = True) -> None:
    """Check that the response is a complete problem report and whether it closes the connection."""
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status), received[:500]
    headers = head.lower()
    assert b"content-type: application/problem+json" in headers
    report = json.loads(body)
    assert (report["status"], report["code"]) == (status, code)
    assert b"x-request-id: " + report["request_id"].encode() in headers
    assert (b"connection: close" in headers) is closes


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nBad\x00Name: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64) + b"\r\n\r\n",
    ],
    ids=[
        "words",
        "HTTP/0.9",
        "no host",
        "no colon",
        "negative length",
        "two lengths",
        "coding",
        "NUL",
        "TLS",
    ],
)
def test_malformed_request_is_refused(server: RunningServer, sent: bytes) -> None:
    check_problem(exchange(server.address, sent), 400, "bad_request_framing")


def test_content_length_with_transfer_encoding_is_refused(server: RunningServer) -> None:
    """Proxies disagree on which header counts, which allows request smuggling."""
    sent = post(b"Transfer-Encoding: chunked", body=b"0\r\n\r\n")
    check_problem(exchange(server.address, sent), 400, "bad_request_framing")


def test_malformed_chunk_is_refused(server: RunningServer) -> None:
    head = b"POST /v1/forward HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    check_problem(exchange(server.address, head + b"zz\r\n"), 400, "bad_request_framing")


@pytest.mark.parametrize("filler", [20_000, 200_000])
def test_oversized_headers_are_refused(server: RunningServer, filler: int) -> None:
    sent = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nX-Filler: " + b"x" * filler
    check_problem(exchange(server.address, sent), 431, "headers_too_large")
    assert exchange(server.address, sent + b"\r\n\r\n").startswith(b"HTTP/1.1 431 ")


def test_oversized_request_line_is_refused(server: RunningServer) -> None:
    sent = b"GET /" + b"x" * 50_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert exchange(server.address, sent).startswith(b"HTTP/1.1 431 ")


def test_http2_upgrade_is_ignored(server: RunningServer) -> None:
    """Java's HTTP client sends this offer with every request by default."""
    sent = post(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABk")
    received = exchange(server.address, sent)
    assert received.startswith(b"HTTP/1.1 200 "), received
    assert b'"data":[2.0,4.0]' in received


def test_websocket_upgrade_is_ignored(server: RunningServer) -> None:
    upgrade = [b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Key: AAAA", b"Sec-WebSocket-Version: 13"]
    assert exchange(server.address, post(*upgrade)).startswith(b"HTTP/1.1 200 ")


def test_expect_continue(server: RunningServer) -> None:
    with socket.create_connection(server.address, timeout=30) as connection:
        connection.sendall(post(b"Expect: 100-continue", body=b"", length=len(BODY)))
        assert connection.recv(1000).startswith(b"HTTP/1.1 100 ")
        connection.sendall(BODY)
        assert read_response(connection).startswith(b"HTTP/1.1 200 ")


def test_expect_continue_may_be_refused_at_once(server: RunningServer) -> None:
    sent = post(b"Expect: 100-continue", b"Content-Type: text/csv", body=b"", length=1000)
    check_problem(exchange(server.address, sent), 415, "unsupported_media_type")


def test_connection_stays_open_after_failed_requests(server: RunningServer) -> None:
    with socket.create_connection(server.address, timeout=30) as connection:
        for body, status in ((BODY, b"200"), (b"", b"400"), (b"{}", b"422"), (BODY, b"200")):
            connection.sendall(post(body=body))
            assert read_response(connection).startswith(b"HTTP/1.1 " + status)


@pytest.fixture(scope="module")
def strict(start_server: Callable[..., RunningServer]) -> RunningServer:
    """A server with a short body timeout."""
    return start_server("--body-timeout", "0.2", "--max-body-bytes", "1000000", "--drain-bytes", "8000000")


def test_incomplete_body_times_out(strict: RunningServer) -> None:
    check_problem(exchange(strict.address, post(length=len(BODY) + 1)), 408, "request_timeout")


def test_body_in_slow_pieces_is_read(strict: RunningServer) -> None:
    """The timeout applies to silence, not to the complete body."""
    with socket.create_connection(strict.address, timeout=30) as connection:
        connection.sendall(post(body=b"", length=len(BODY)))
        for byte in BODY:
            connection.sendall(bytes([byte]))
        assert read_response(connection).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("size", [1_000_001, 5_000_000])
def test_client_that_keeps_writing_receives_the_refusal(strict: RunningServer, size: int) -> None:
    check_problem(exchange(strict.address, post(body=b" " * size)), 413, "body_too_large")


def test_endless_chunked_body_is_refused(strict: RunningServer) -> None:
    head = b"POST /v1/forward HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"%x\r\n" % 100_000 + b" " * 100_000 + b"\r\n"
    check_problem(exchange(strict.address, head + chunk * 12), 413, "body_too_large")


REFUSED_EARLY = {
    "too large": (post(length=10**9), 413),
    "no such path": (post(length=1000).replace(b"/v1/gradients", b"/v1/nothing"), 404),
    "of another type": (post(b"Content-Type: text/csv", length=1000), 415),
    "chunked": (b"POST /v1/nothing HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n \r\n", 404),
}


@pytest.fixture(scope="module")
def patient(start_server: Callable[..., RunningServer]) -> RunningServer:
    """A server with a body timeout of an hour."""
    return start_server("--body-timeout", "3600")


@pytest.mark.parametrize("half_close", [False, True], ids=["silent", "half-closed"])
@pytest.mark.parametrize(("sent", "status"), REFUSED_EARLY.values(), ids=REFUSED_EARLY)
def test_connection_closes_soon_after_an_early_refusal(
    patient: RunningServer, sent: bytes, status: int, *, half_close: bool
) -> None:
    with socket.create_connection(patient.address, timeout=30) as connection:
        connection.sendall(sent)
        if half_close:
            connection.shutdown(socket.SHUT_WR)
        assert read_response(connection).startswith(b"HTTP/1.1 %d " % status)
        assert connection.recv(1) == b""


def test_server_survives_clients_that_hang_up(server: RunningServer) -> None:
    for sent in (post(length=10_000), b"GET / HT", post()):
        with socket.create_connection(server.address, timeout=30) as connection:
            connection.sendall(sent)
    assert httpx.get(server.url + "/health/live").status_code == 200


@pytest.mark.smoke
def test_sigterm_stops_an_idle_server(start_server: Callable[..., RunningServer]) -> None:
    server = start_server()
    with httpx.Client() as idle:
        assert idle.get(server.url + "/health/ready").status_code == 200
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=30) == 0


def test_sigterm_answers_a_request_being_received(start_server: Callable[..., RunningServer]) -> None:
    """The request is too late and is refused, but it gets an answer."""
    server = start_server()
    with socket.create_connection(server.address, timeout=30) as connection:
        connection.sendall(post(b"Expect: 100-continue", body=b"", length=len(BODY)))
        assert connection.recv(1000).startswith(b"HTTP/1.1 100 ")  # the server is reading the body
        server.process.send_signal(signal.SIGTERM)
        wait_until_closed(server.address)
        connection.sendall(BODY)
        check_problem(read_response(connection), 503, "shutting_down")
    assert server.process.wait(timeout=30) == 0


def test_sigterm_stops_a_server_with_an_unfinished_body(
    start_server: Callable[..., RunningServer],
) -> None:
    server = start_server("--shutdown-grace", "1", "--body-timeout", "3000")
    with socket.create_connection(server.address, timeout=30) as connection:
        connection.sendall(post(b"Expect: 100-continue", body=b"", length=1000))
        assert connection.recv(1000).startswith(b"HTTP/1.1 100 ")
        server.process.send_signal(signal.SIGTERM)
        check_problem(read_response(connection), 503, "shutting_down")
    assert server.process.wait(timeout=30) == 0


def test_second_signal_stops_a_server_at_once(start_server: Callable[..., RunningServer]) -> None:
    server = start_server("--shutdown-grace", "3600", "--body-timeout", "3000")
    with socket.create_connection(server.address, timeout=30) as connection:
        connection.sendall(post(b"Expect: 100-continue", body=b"", length=1000))
        assert connection.recv(1000).startswith(b"HTTP/1.1 100 ")
        server.process.send_signal(signal.SIGTERM)
        wait_until_closed(server.address)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=30) == 0


def wait_until_closed(address: tuple[str, int]) -> None:
    """Wait until connections are refused, after the server has seen the signal. A connection may also be reset."""
    while True:
        try:
            socket.create_connection(address, timeout=30).close()
        except ConnectionResetError:
            continue
        except ConnectionRefusedError:
            return
