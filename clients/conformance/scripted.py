"""A server that answers what a case says, and remembers what came.

What came for one case lies under its id, so that a client that is late disturbs no other.
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
#: where a client asks more often than a case says
_NO_MORE: Final = {"status": 500, "text": "the case has no more answers"}
_CHUNK: Final = 1 << 16


class Came(NamedTuple):
    """A request: its path behind that of the case, the query as it stood, headers by their names in lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class _Script:
    answers: list[Mapping[str, Any]]
    came: list[Came] = field(default_factory=list)


class ScriptedServer:
    """The scripts of cases by their ids."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._scripts: dict[str, _Script] = {}
        self._lock = threading.Lock()

    def begin(self, case: Case) -> str:
        """Have this case answered; where it is to ask."""
        with self._lock:
            self._scripts[case["id"]] = _Script(list(case["answers"]))
        return f"{self._url}/{case['id']}"

    def end(self, case: Case) -> list[Came]:
        """What came for it, in order."""
        with self._lock:
            return self._scripts.pop(case["id"]).came

    def answer(self, name: str, came: Came) -> Mapping[str, Any]:
        """The next answer of a case."""
        with self._lock:
            script = self._scripts.get(name)
            if script is None:
                return _NO_MORE
            script.came.append(came)
            return script.answers.pop(0) if script.answers else _NO_MORE


@contextmanager
def scripted_server(*, future: bool = False) -> Iterator[ScriptedServer]:
    """Serve on a free port for as long as the block lasts; with `future`, what tomorrow's server would answer."""
    grow = grown_body if future else _as_it_is
    handler = type("_Handler", (_Handler,), {"grow": staticmethod(grow)})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        http.daemon_threads = True
        scripted = ScriptedServer(f"http://127.0.0.1:{http.server_address[1]}")
        handler.scripted = scripted  # type: ignore[attr-defined] # of the class that is made above
        serving = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        try:
            yield scripted
        finally:
            http.shutdown()
            serving.join()


def _as_it_is(_media_type: str, body: bytes) -> bytes:
    return body


class _Handler(BaseHTTPRequestHandler):
    scripted: ScriptedServer
    grow: Callable[[str, bytes], bytes]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Note what came, and answer it. A connection serves one request, so that no library tries again by itself."""
        split = urlsplit(self.path)
        _, name, *rest = split.path.split("/", 2)
        headers = {key.lower(): value for key, value in self.headers.items()}
        came = Came(self.command, "/" + "".join(rest), split.query, headers, self._body())
        self.close_connection = True
        answer = self.scripted.answer(name, came)
        if answer.get("close") != "before":
            self._send(answer)

    do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = do_GET  # noqa: N815 - as the library asks for them

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
        with suppress(BrokenPipeError, ConnectionResetError):  # where the client has read enough
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
        """Nothing: what came is compared."""


def rendered(
    answer: Mapping[str, Any], grow: Callable[[str, bytes], bytes] = _as_it_is
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of an answer of a case."""
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
