"""Pieces of sums that other servers do: ordinary requests through the ingress, with the key of whoever asked for all.

Whatever else than the sums comes back, the piece is run by somebody else, or here: it keeps nothing.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Final

import httpx

from service.cluster.connecting import peer_client
from service.pool.sums import AnsweredSums, NotElsewhere
from service.transport.job import Job, Reply
from service.transport.sum_parts import PIECE_HEADER
from service.wire.media import PIECE_SUMS, SAFETENSORS

#: seconds in which the ingress is connected to
_CONNECT: Final = 1.0
#: connections to the ingress
_CONNECTIONS: Final = 64
#: bytes of a request that are written at a time
_WRITTEN: Final = 1 << 20
#: who says so may have room in a moment: 429, 502 to 504
_LATER: Final = frozenset({429, 502, 503, 504})


class IngressPieces:
    """Client that asks for them, for one event loop."""

    def __init__(self, ingress: str) -> None:
        self._ingress = ingress
        self._client = peer_client(_CONNECTIONS, _CONNECT)

    async def sums(self, job: Job, request: Reply, nbytes: int) -> AnsweredSums:
        """What another server answers to a request of a piece of a job, whose sums take so many bytes.

        Raises NotElsewhere.
        """
        left = job.expires - time.monotonic()
        if left <= 0:
            raise NotElsewhere("the time is up", later=False)
        try:
            async with self._client.stream(
                "POST",
                f"{self._ingress}/v1/{job.call}",
                params={"timeout_ms": max(1, int(1000 * left))},
                headers=_headers(job, request),
                content=_chunks(request),
                timeout=httpx.Timeout(left, connect=_CONNECT),
            ) as response:
                return await _sent(response, nbytes)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise NotElsewhere(f"{type(error).__name__}: {error}", later=True) from error

    async def close(self) -> None:
        """Ask no more."""
        await self._client.aclose()


def _headers(job: Job, request: Reply) -> list[tuple[str, str]]:
    key = next(value for name, value in request.headers if name == PIECE_HEADER)
    stated = [
        ("Content-Type", SAFETENSORS),
        ("Content-Length", str(sum(map(len, request.parts)))),
        ("Accept", PIECE_SUMS),
        ("X-Request-ID", job.request_id),
        (PIECE_HEADER, key),
    ]
    return [*stated, ("Authorization", job.credential)] if job.credential else stated


async def _chunks(request: Reply) -> AsyncIterator[bytes]:
    for piece in request.parts:
        for start in range(0, len(piece), _WRITTEN):
            yield bytes(piece[start : start + _WRITTEN])


async def _sent(response: httpx.Response, nbytes: int) -> AnsweredSums:
    """What was answered, where it is the sums. Raises NotElsewhere, and httpx.TransportError."""
    if response.status_code != httpx.codes.OK:
        raise NotElsewhere(f"status {response.status_code}", later=response.status_code in _LATER)
    length = response.headers.get("Content-Length", "")
    if response.headers.get("Content-Type") != PIECE_SUMS or length != str(nbytes):
        raise NotElsewhere(f"an answer of another kind, of {length or 'unknown'} bytes", later=False)
    return AnsweredSums(await response.aread(), tuple(response.headers.items()))
