"""Other servers over HTTP: connections that are kept, questions, and whole requests that are passed on."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final, TypeVar

import httpx

from service.cluster.connecting import peer_client
from service.cluster.peers import Answer, Moved, Silent, Slow, Unreachable
from service.cluster.protocol import (
    ALIVE,
    MISDIRECTED,
    PROTOCOL,
    PROTOCOL_HEADER,
    SECRET_HEADER,
    message_of,
    owner_of_body,
    read_message,
    refusal_of_row,
    speaks,
)
from service.errors import Refusal
from service.prefix import BETWEEN_SERVERS

#: seconds without an answer after which a server is asked whether it lives, and that it has to say so
PEER_SILENCE: Final = 1.0
#: connections to all servers together
_CONNECTIONS: Final = 256
_T = TypeVar("_T")

_logger = logging.getLogger("gradserve.cluster")


class HttpPeers:
    """Questions to other servers, for one event loop."""

    def __init__(self, secret: str) -> None:
        headers = {SECRET_HEADER: secret, PROTOCOL_HEADER: str(PROTOCOL)}
        self._client = peer_client(_CONNECTIONS, PEER_SILENCE, headers)

    async def ask(
        self, address: str, what: str, head: Mapping[str, Any], blobs: Sequence[bytes | memoryview], expires: float
    ) -> Answer:
        """As `Peers` has it."""
        body = b"".join(message_of({**head, "left": min(expires - time.monotonic(), 86_400.0)}, blobs))
        request = self._client.build_request("POST", f"{address}{BETWEEN_SERVERS}{what}", content=body)
        response = await self.watched(address, self._client.send(request), expires)
        check(response, address)
        said, rest = read_message(response.content)
        if "refused" in said:
            raise refusal_of_row(said["refused"])
        return Answer(said, rest)

    async def passed(self, address: str, request: httpx.Request, expires: float) -> httpx.Response:
        """The beginning of the answer to a request that another server is to answer; it has to be closed.

        Raises Moved, Unreachable, Silent, Slow.
        """
        response = await self.watched(address, self._client.send(request, stream=True), expires)
        if response.status_code == MISDIRECTED:
            await response.aread()
            await response.aclose()
        check(response, address)
        return response

    def request(self, method: str, url: str, headers: Sequence[tuple[str, str]], content: Any) -> httpx.Request:
        """A request with the headers that say that a server makes it."""
        return self._client.build_request(method, url, headers=[*headers], content=content)

    async def close(self) -> None:
        """As `Peers` has it."""
        await self._client.aclose()

    async def watched(self, address: str, answering: Awaitable[_T], expires: float) -> _T:
        """What is answered, as long as the server lives. Raises Unreachable, Silent, Slow."""
        task = asyncio.ensure_future(answering)
        try:
            while not (await asyncio.wait([task], timeout=PEER_SILENCE))[0]:
                if time.monotonic() >= expires:
                    raise Slow(address)
                if not await self._lives(address):
                    raise Silent(address)
            return task.result()
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise Unreachable(address) from error
        except httpx.TransportError as error:
            raise Silent(address) from error
        finally:
            task.cancel()

    async def _lives(self, address: str) -> bool:
        try:
            response = await self._client.get(f"{address}{BETWEEN_SERVERS}{ALIVE}", timeout=PEER_SILENCE)
        except httpx.TransportError:
            return False
        return response.status_code == httpx.codes.OK


def check(response: httpx.Response, address: str) -> None:
    """Raise Moved, or Refusal where the servers do not understand each other."""
    stated = response.headers.get(PROTOCOL_HEADER)
    if stated is None:
        _logger.error("%s does not know the secret of this server, and is not of its cluster", address)
        raise _misunderstood()
    if not speaks(stated):
        _logger.error("%s speaks version %s between servers, and this one %d", address, stated, PROTOCOL)
        raise _misunderstood()
    if response.status_code == MISDIRECTED:
        raise Moved(owner_of_body(response.content))


def _misunderstood() -> Refusal:
    detail = "the server that has what this is about cannot be asked for it; the log says why"
    return Refusal("not_ready", detail, retry_after=5)
