"""HTTP over plain sockets, for tests that send bytes that no HTTP library would send."""

from __future__ import annotations

import json
import socket
import struct
import time
from dataclasses import dataclass, field
from typing import Any

Address = tuple[str, int]
JSON = "application/json"
SAFETENSORS = "application/vnd.safetensors"

#: header lines that are added to every request, such as an API key
LINES: list[str] = []


class Hangup(Exception):
    """The server closed the connection without a response."""


@dataclass
class Answer:
    """A response, and the seconds until its headers arrived."""

    status: int
    headers: dict[str, str]
    body: bytes
    seconds: float = 0.0

    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)


def head(path: str, length: int | None, method: str = "POST", kind: str = JSON, more: tuple[str, ...] = ()) -> bytes:
    """The request line and headers; without a length there is no Content-Length."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Type: {kind}", f"Accept: {kind}", *LINES]
    lines += [] if length is None else [f"Content-Length: {length}"]
    return "\r\n".join([*lines, *more]).encode() + b"\r\n\r\n"


def posted(path: str, body: bytes, kind: str = JSON) -> bytes:
    """A complete request."""
    return head(path, len(body), kind=kind) + body


@dataclass(eq=False)
class Connection:
    """A persistent connection."""

    address: Address
    timeout: float = 60.0
    buffer: int = 0  # the kernel's receive buffer in bytes; 0: the default
    source: str = ""  # the source address; empty: the system's choice
    lines: tuple[str, ...] = ()  # additional header lines of each request
    _left: bytes = b""
    _socket: socket.socket = field(init=False)

    def __post_init__(self) -> None:
        self._socket = socket.socket()
        if self.buffer:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.buffer)
        self._socket.settimeout(self.timeout)
        if self.source:
            self._socket.bind((self.source, 0))
        self._socket.connect(self.address)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def fileno(self) -> int:
        """The file descriptor, for selectors."""
        return self._socket.fileno()

    def send(self, sent: bytes) -> None:
        """Send all bytes. Raises OSError if the server has closed the connection."""
        self._socket.sendall(sent)

    def take(self, most: int = 1 << 16) -> bytes:
        """Receive the next bytes; empty if the server has closed the connection."""
        return self._socket.recv(most)

    def ask(self, path: str, body: bytes = b"", method: str = "POST", kind: str = JSON) -> Answer:
        """Send one request, and return the response."""
        start = time.perf_counter()
        self.send(head(path, len(body), method, kind, self.lines) + body)
        return self.answer(start)

    def answer(self, start: float | None = None) -> Answer:
        """Read one response, and skip interim ones. Raises Hangup, TimeoutError."""
        start = time.perf_counter() if start is None else start
        while b"\r\n\r\n" not in self._left:
            self._more()
        seconds = time.perf_counter() - start
        top, _, rest = self._left.partition(b"\r\n\r\n")
        first, *lines = top.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        status = int(first.split()[1])
        self._left = rest
        if status < 200:
            return self.answer(start)
        return Answer(status, headers, self._exactly(int(headers.get("content-length", 0))), seconds)

    def _exactly(self, length: int) -> bytes:
        pieces, missing = [self._left[:length]], length - len(self._left)
        self._left = self._left[length:]
        while missing > 0:
            piece = self.take(min(missing, 1 << 20))
            if not piece:
                raise Hangup(f"{missing} of {length} bytes are missing")
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)

    def _more(self) -> None:
        piece = self.take()
        if not piece:
            raise Hangup("the connection was closed without a response")
        self._left += piece

    def ended(self, within: float) -> float | None:
        """Read until the server closes the connection; return the seconds that it took, or None after `within`."""
        start = time.perf_counter()
        while (left := start + within - time.perf_counter()) > 0:
            self._socket.settimeout(left)
            try:
                if not self.take():
                    return time.perf_counter() - start
            except TimeoutError:
                return None
            except ConnectionError:
                return time.perf_counter() - start
        return None

    def reset(self) -> None:
        """Close the connection with a TCP reset."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def __del__(self) -> None:
        self._socket.close()  # a failing test does not close its connections

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def once(address: Address, path: str, body: bytes = b"", method: str = "POST", kind: str = JSON) -> Answer:
    """Send one request on a new connection."""
    with Connection(address) as connection:
        return connection.ask(path, body, method, kind)
