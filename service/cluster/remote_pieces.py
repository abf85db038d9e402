"""Pieces of sums that other servers compute: ordinary requests through the ingress, with the original caller's key.

If the response is anything but the sums, the piece runs elsewhere, or here: it stores nothing, so it can be repeated.
"""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import Final

import aiohttp

from service.api.media import PIECE_SUMS, SAFETENSORS
from service.cluster.connecting import PeerConnections, body_of
from service.workers.sums import PieceDeclined
from service.workers.task import PIECE_HEADER, Reply, Task

#: seconds to connect to the ingress
_CONNECT_SECONDS: Final = 1.0
#: most connections to the ingress
_CONNECTIONS: Final = 64
#: statuses of an ingress or server that may have room in a moment
_RETRYABLE: Final = frozenset({429, 502, 503, 504})


class IngressPieces:
    """Client that sends pieces to the ingress, for one event loop."""

    def __init__(self, ingress: str) -> None:
        self._ingress = ingress
        self._connections = PeerConnections(_CONNECTIONS, _CONNECT_SECONDS)

    async def sums(self, task: Task, request: Reply, nbytes: int) -> Reply:
        """Ask another server for the sums of a piece of a task, which have `nbytes` bytes.

        Raises PieceDeclined.
        """
        seconds = task.expires - time.monotonic()
        if seconds <= 0:
            raise PieceDeclined("no time is left", may_retry=False)
        fields, body = body_of(request.parts)
        url = f"{self._ingress}/v1/{task.call}?timeout_ms={max(1, int(1000 * seconds))}"
        responding = self._connections.request(
            "POST", url, [*_headers(task, request), *fields], body, total_seconds=seconds
        )
        try:
            async with await responding as response:
                return await _read_sums(response, nbytes)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise PieceDeclined(f"{type(error).__name__}: {error}", may_retry=True) from error

    async def close(self) -> None:
        """Close all connections."""
        await self._connections.close()


def _headers(task: Task, request: Reply) -> list[tuple[str, str]]:
    key = next(value for name, value in request.headers if name == PIECE_HEADER)
    headers = [
        ("Content-Type", SAFETENSORS),
        ("Accept", PIECE_SUMS),
        ("X-Request-ID", task.request_id),
        (PIECE_HEADER, key),
    ]
    return [*headers, ("Authorization", task.credential)] if task.credential else headers


async def _read_sums(response: aiohttp.ClientResponse, nbytes: int) -> Reply:
    """Read the sums in a response. Raises PieceDeclined if it has none, and aiohttp.ClientError."""
    if response.status != HTTPStatus.OK:
        raise PieceDeclined(f"status {response.status}", may_retry=response.status in _RETRYABLE)
    length = response.headers.get("Content-Length", "")
    if response.headers.get("Content-Type") != PIECE_SUMS or length != str(nbytes):
        raise PieceDeclined(f"unexpected response of {length or 'unknown'} bytes", may_retry=False)
    return Reply(200, PIECE_SUMS, [await response.read()], tuple(response.headers.items()))
