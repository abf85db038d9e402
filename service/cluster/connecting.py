"""HTTP connections to other servers and to the ingress: made on first use, and kept alive."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Final

import aiohttp
from yarl import URL

#: seconds for which an idle connection is kept
_KEEPALIVE_SECONDS: Final = 20.0
#: bytes of a request that are written at once
_SLICE_BYTES: Final = 1 << 20
#: default header fields of aiohttp, which servers do not read
_SKIPPED_HEADERS: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


class PeerConnections:
    """Connections of one event loop to servers, never through a proxy. Must be closed."""

    def __init__(self, limit: int, connect_seconds: float, headers: Mapping[str, str] | None = None) -> None:
        """At most `limit` connections, each made within `connect_seconds`; `headers` are sent with every request."""
        self._limit, self._headers = limit, headers
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds)

    @cached_property
    def session(self) -> aiohttp.ClientSession:
        """The client session, made on first use, since it belongs to the running event loop."""
        return aiohttp.ClientSession(
            # Names are resolved for each connection: a server with a new address must not seem dead.
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
        """Send a request; return the beginning of the response, which must be read to its end or closed.

        All of it must be done within `total_seconds`. aiohttp may send an idempotent request again after a lost
        connection, unless its body is an iterator that has been read from. Raises aiohttp.ClientError, TimeoutError.
        """
        timeout = self._timeout
        if total_seconds is not None:
            timeout = aiohttp.ClientTimeout(total=total_seconds, sock_connect=timeout.sock_connect)
        return await self.session.request(
            method, _encoded_url(url), headers=headers, data=body, timeout=timeout, allow_redirects=False
        )

    async def close(self) -> None:
        """Close all connections."""
        if "session" in vars(self):
            await self.session.close()


@lru_cache(128)
def _encoded_url(url: str) -> URL:
    """Parse a URL without encoding it again; cached, since the same few are used over and over."""
    return URL(url, encoded=True)


def body_of(parts: Sequence[bytes | memoryview]) -> tuple[list[tuple[str, str]], bytes | AsyncIterator[bytes]]:
    """Return header fields and body for these parts. A long body is written in slices, without joining the parts."""
    length = sum(map(len, parts))
    if length <= _SLICE_BYTES:
        return [], b"".join(parts)

    async def slices() -> AsyncIterator[bytes]:
        for part in parts:
            for start in range(0, len(part), _SLICE_BYTES):
                yield bytes(part[start : start + _SLICE_BYTES])

    return [("Content-Length", str(length))], slices()
