"""Connections to other servers and to the ingress, over HTTP: made when first needed, and kept."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Final

import aiohttp
from yarl import URL

#: seconds for which a connection is kept that nobody uses
_KEEPALIVE_SECONDS: Final = 20.0
#: bytes of a request that are written at a time
_SLICE_BYTES: Final = 1 << 20
#: what a client says of itself, and what nobody here reads
_SKIPPED_HEADERS: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


class PeerConnections:
    """Connections of one event loop to servers, by no proxy: none is in between. To be closed."""

    def __init__(self, limit: int, connect_seconds: float, headers: Mapping[str, str] | None = None) -> None:
        """Make at most so many, each within so many seconds; `headers` go with every request."""
        self._limit, self._headers = limit, headers
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds)

    @cached_property
    def session(self) -> aiohttp.ClientSession:
        """The client, for whoever first asks in the event loop."""
        return aiohttp.ClientSession(
            # A name is looked up for each connection: a server that has moved is not taken to be gone.
            connector=aiohttp.TCPConnector(
                limit=self._limit, keepalive_timeout=_KEEPALIVE_SECONDS, use_dns_cache=False
            ),
            headers=self._headers,
            skip_auto_headers=_SKIPPED_HEADERS,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=self._timeout,
            auto_decompress=False,
        )

    async def request(
        self,
        method: str,
        url: str,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes | AsyncIterator[bytes] | None = None,
        total_seconds: float | None = None,
    ) -> aiohttp.ClientResponse:
        """Begin an answer, which has to be read to its end or closed; all of it `within` so many seconds.

        A request that is the same when it is made twice may be sent again where a connection ends, unless its body is
        an iterator of which something has been read. Raises aiohttp.ClientError, TimeoutError.
        """
        timeout = self._timeout
        if total_seconds is not None:
            timeout = aiohttp.ClientTimeout(total=total_seconds, sock_connect=timeout.sock_connect)
        return await self.session.request(
            method, _encoded_url(url), headers=headers, data=body, timeout=timeout, allow_redirects=False
        )

    async def close(self) -> None:
        """End all of them."""
        if "session" in vars(self):
            await self.session.close()


@lru_cache(128)
def _encoded_url(url: str) -> URL:
    """Return an address as it is to be sent: questions are asked again and again under the same."""
    return URL(url, encoded=True)


def body_of(parts: Sequence[bytes | memoryview]) -> tuple[list[tuple[str, str]], bytes | AsyncIterator[bytes]]:
    """Make the header fields and the body of these parts; a long body is written a slice at a time, and not joined."""
    length = sum(map(len, parts))
    if length <= _SLICE_BYTES:
        return [], b"".join(parts)

    async def slices() -> AsyncIterator[bytes]:
        for part in parts:
            for start in range(0, len(part), _SLICE_BYTES):
                yield bytes(part[start : start + _SLICE_BYTES])

    return [("Content-Length", str(length))], slices()
