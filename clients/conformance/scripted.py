"""HTTP server that sends the answers of a case and records the requests.

The requests of a case have its id in their paths, so that a slow client does not disturb the next case.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from clients.conformance.bits import to_file
from clients.conformance.cases import Case
from clients.conformance.rewriting import grown_body

JSON: Final = "application/json"
PROBLEM: Final = "application/problem+json"
SAFETENSORS: Final = "application/vnd.safetensors"
#: answer to requests beyond those that the case has answers for
_NO_MORE: Final = {"status": 500, "text": "the case has no more answers"}
_CHUNK: Final = 1 << 16


class ReceivedRequest(NamedTuple):
    """A request: its path after the case's id, the raw query, and headers by lower-case name."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class _Script:
    answers: list[Mapping[str, Any]]
    requests: list[ReceivedRequest] = field(default_factory=list)


class ScriptedServer:
    """Scripted answers of cases, by case id."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._scripts: dict[str, _Script] = {}
        self._lock = threading.Lock()

    def begin(self, case: Case) -> str:
        """Start answering for a case, and return the URL to call."""
        with self._lock:
            self._scripts[case["id"]] = _Script(list(case["answers"]))
        return f"{self._url}/{case['id']}"

    def end(self, case: Case) -> list[ReceivedRequest]:
        """Stop answering for a case, and return its requests in order."""
        with self._lock:
            return self._scripts.pop(case["id"]).requests

    def answer(self, name: str, request: ReceivedRequest) -> Mapping[str, Any]:
        """Record a request, and return the next answer of the case."""
        with self._lock:
            script = self._scripts.get(name)
            if script is None:
                return _NO_MORE
            script.requests.append(request)
            return script.answers.pop(0) if script.answers else _NO_MORE


@contextmanager
def scripted_server(*, future: bool = False) -> Iterator[ScriptedServer]:
    """Serve on a free port for the duration of the block. With `future`, extend answers as a future server might."""
    grow = grown_body if future else _unchanged
    handler = type("_Handler", (_Handler,), {"grow": staticmethod(grow)})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        http.daemon_threads = True
        scripted = ScriptedServer(f"http://127.0.0.1:{http.server_address[1]}")
        handler.scripted = scripted  # type: ignore[attr-defined] # an attribute of the class created above
        serving = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        try:
            yield scripted
        finally:
            http.shutdown()
            serving.join()


def _unchanged(_media_type: str, body: bytes) -> bytes:
    return body


class _Handler(BaseHTTPRequestHandler):
    scripted: ScriptedServer
    grow: Callable[[str, bytes], bytes]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Record a request, and answer it. Close the connection, so that no HTTP library retries on its own."""
        split = urlsplit(self.path)
        _, name, *rest = split.path.split("/", 2)
        headers = {key.lower(): value for key, value in self.headers.items()}
        request = ReceivedRequest(self.command, "/" + "".join(rest), split.query, headers, self._body())
        self.close_connection = True
        answer = self.scripted.answer(name, request)
        if answer.get("close") != "before":
            self._send(answer)

    do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = do_GET  # noqa: N815 - names that http.server requires

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", "").lower():
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        chunks = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(chunks)

    def _send(self, answer: Mapping[str, Any]) -> None:
        status, headers, body = rendered(answer, self.grow)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        chunked = answer.get("chunked", False)
        self.send_header(*(("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(len(body)))))
        self.send_header("Connection", "close")
        self.end_headers()
        half = answer.get("close") == "middle"
        with suppress(BrokenPipeError, ConnectionResetError):  # the client may stop reading early
            self._send_body(body[: len(body) // 2] if half else body, chunked, whole=not half)

    def _send_body(self, body: bytes, chunked: bool, *, whole: bool) -> None:
        if not chunked:
            self.wfile.write(body)
            return
        for start in range(0, len(body), _CHUNK):
            chunk = body[start : start + _CHUNK]
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        if whole:
            self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_: object) -> None:
        """Log nothing: requests are compared instead."""


def rendered(
    answer: Mapping[str, Any], grow: Callable[[str, bytes], bytes] = _unchanged
) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of an answer of a case."""
    status = answer.get("status", 200)
    media_type, body = _content(answer, status)
    headers = {"Content-Type": media_type} | answer.get("headers", {}) if media_type else answer.get("headers", {})
    body = grow(headers.get("Content-Type", ""), body)
    return status, headers, body + b" " * (answer.get("pad", 0) - len(body))


def _content(answer: Mapping[str, Any], status: int) -> tuple[str, bytes]:
    if "json" in answer:
        return (JSON if status < 400 else PROBLEM), json.dumps(answer["json"]).encode()
    if "file" in answer:
        file = answer["file"]
        metadata = {"response": json.dumps(file["response"])}
        return SAFETENSORS, to_file(file["tensors"], metadata, file.get("header_bytes", 0))
    if "hex" in answer:
        return SAFETENSORS, bytes.fromhex(answer["hex"])
    return "", answer.get("text", "").encode()
