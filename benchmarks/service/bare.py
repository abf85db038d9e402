"""The least that an HTTP server in Python can do, by httptools on uvloop, with nothing checked.

`python -m benchmarks.service.bare echo` sends each body back, as one writes such a server: the parser calls for each
part of a body, and the parts are written back. With `floor` the body is received into one block, past the parser: what
any server pays for the way there and back. With `worker CALL` the service's worker answers, in this very process: what
a call costs with no isolation, no admission and no deadline.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from collections.abc import Callable
from typing import cast

import httptools
import uvloop

BodyParts = list[bytes | memoryview]
#: the parts of an answer's body to a request's body, and both's media type
Respond = Callable[[memoryview, str], BodyParts]
READ = 1 << 18


class Echo(asyncio.Protocol):
    """One connection, whose bodies come in parts."""

    def __init__(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._parts: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep it."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Everything goes through the parser."""
        self._parser.feed_data(data)

    def on_body(self, part: bytes) -> None:
        """Keep it."""
        self._parts.append(part)

    def on_message_complete(self) -> None:
        """Send it back."""
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % sum(map(len, self._parts))
        self._transport.writelines([head, *self._parts])
        self._parts = []


class Bare(asyncio.BufferedProtocol):
    """One connection, whose bodies are received into one block each."""

    def __init__(self, respond: Respond) -> None:
        self._respond = respond
        self._buffer = memoryview(bytearray(READ))
        self._parser = httptools.HttpRequestParser(self)
        self._body: memoryview | None = None
        self._filled = 0
        self._kind = ""
        self._length = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep it."""
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        """The body's own block, once it is known how long it is."""
        del sizehint
        return self._buffer if self._body is None else self._body[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Heads go through the parser; what lies in the body's block already does not."""
        if self._body is None:
            self._parser.feed_data(self._buffer[:nbytes])
        else:
            self._filled += nbytes
        if self._body is not None and self._filled == len(self._body):
            self._answer(self._body)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Length and media type."""
        match name.lower():
            case b"content-length":
                self._length = int(value)
            case b"accept":
                self._kind = value.decode()

    def on_headers_complete(self) -> None:
        """Take a block."""
        self._body, self._filled = memoryview(bytearray(self._length)), 0

    def on_body(self, part: bytes) -> None:
        """What came with the head."""
        assert self._body is not None
        self._body[self._filled : self._filled + len(part)] = part
        self._filled += len(part)

    def _answer(self, body: memoryview) -> None:
        parts = self._respond(body, self._kind)
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {sum(map(len, parts))}\r\nContent-Type: {self._kind}\r\n\r\n"
        self._transport.writelines([head.encode(), *parts])
        self._body, self._parser = None, httptools.HttpRequestParser(self)


def worker(call: str) -> Respond:
    """The service's worker, as the settings have it."""
    from engine import registry, warm  # noqa: PLC0415 - an echo does without
    from service.core.settings import Settings  # noqa: PLC0415
    from service.workers import task  # noqa: PLC0415
    from service.workers.worker import Worker  # noqa: PLC0415

    work = Worker(Settings(device="cpu"))
    warm(registry())

    def respond(body: memoryview, kind: str) -> BodyParts:
        job = task.Task(
            call, bytes(body) if len(body) < READ else body, "bare", 30.0, time.monotonic() + 30.0, kind, kind
        )
        return list(work(job).parts)

    return respond


async def serve(connection: Callable[[], asyncio.BaseProtocol]) -> None:
    """Until the process is ended."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = await asyncio.get_running_loop().create_server(connection, sock=listening)
    print(f"listening on http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    await server.serve_forever()


def main() -> None:
    """Serve one of the three."""
    if sys.argv[1] == "echo":
        uvloop.run(serve(Echo))
    respond: Respond = (lambda body, _: [body]) if sys.argv[1] == "floor" else worker(sys.argv[2])
    uvloop.run(serve(lambda: Bare(respond)))


if __name__ == "__main__":
    main()
