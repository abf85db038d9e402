"""Guarantee 3: body size, JSON depth, nodes and chunks have limits; each limit is a documented setting."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.guarantees.figures import Figures
from tests.guarantees.jobs import small
from tests.guarantees.oversized import repeated_nodes
from tests.guarantees.started import ROOT, Started
from tests.guarantees.talk import Answer, Connection, head

pytestmark = pytest.mark.guarantee(3)
PAGE = ROOT / "docs" / "guide" / "limits-and-operations.md"


def settings() -> list[str]:
    """The flags of all settings."""
    command = [sys.executable, "-m", "service", "settings"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return [line.split()[0] for line in printed.splitlines() if line.startswith("--")]


def chunk_limit_flag() -> str:
    """The setting that limits the number of chunks."""
    flags = [flag for flag in settings() if "chunk" in flag]
    assert flags, "no setting limits the number of chunks"
    return flags[0]


def chunked(pieces: list[bytes]) -> bytes:
    """A chunked request."""
    top = head("/v1/gradients", None, more=("Transfer-Encoding: chunked",))
    return top + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def send(server: Started, sent: bytes) -> Answer:
    """Send these bytes, and return the response."""
    with Connection(server.address) as connection:
        connection.send(sent)
        return connection.answer()


def posted(body: bytes) -> bytes:
    """A request with a Content-Length."""
    return head("/v1/gradients", len(body)) + body


def assert_refused(answer: Answer, status: int, code: str) -> None:
    """Assert that the response has this status and error code."""
    assert (answer.status, answer.json()["code"]) == (status, code)


def test_limits_are_documented_settings(figures: Figures) -> None:
    page = PAGE.read_text("utf-8")
    limits = [
        "--max-body-bytes",
        "--max-binary-bytes",
        "--max-header-bytes",
        "--json-depth",
        "--max-nodes",
        chunk_limit_flag(),
    ]
    missing = [flag for flag in limits if flag not in settings() or f"`{flag}`" not in page]
    figures.at_most(
        f"limits that are not documented settings, of {len(limits)}", len(missing), 0, "", ", ".join(missing)
    )


def test_body_limit_is_exact(start: Callable[..., Started]) -> None:
    server = start("--max-body-bytes", "5000")
    padding = b" " * (5000 - len(small()))
    assert send(server, posted(small() + padding)).status == 200
    assert_refused(send(server, posted(small() + padding + b" ")), 413, "body_too_large")
    whole = small() + padding
    assert send(server, chunked([whole[:2000], whole[2000:]])).status == 200
    assert_refused(send(server, chunked([whole[:2000], whole[2000:], b" "])), 413, "body_too_large")


def test_depth_limit_is_exact(start: Callable[..., Started]) -> None:
    server = start("--json-depth", "20")
    assert_refused(send(server, posted(b"[" * 21 + b"]" * 21)), 400, "too_deep")
    assert send(server, posted(b"[" * 20 + b"]" * 20)).json()["code"] != "too_deep"


def test_node_limit_is_exact(start: Callable[..., Started]) -> None:
    server = start("--max-nodes", "50")
    assert_refused(send(server, posted(repeated_nodes(b'{"op":"input"}', 51))), 413, "too_many_nodes")
    assert send(server, posted(repeated_nodes(b'{"op":"input"}', 50))).json()["code"] != "too_many_nodes"


def test_too_many_chunks_are_refused(start: Callable[..., Started]) -> None:
    body = small()
    server = start(chunk_limit_flag(), str(len(body) // 2 + 1))
    assert send(server, chunked([body[i : i + 2] for i in range(0, len(body), 2)])).status == 200
    answer = send(server, chunked([body[i : i + 1] for i in range(len(body))]))
    assert 400 <= answer.status < 500, answer.body
