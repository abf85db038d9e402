"""Connections to other servers and to the ingress: one that ends as soon as it is made was not made."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

import httpx

#: seconds for which a connection is kept that nobody uses
_KEPT_SECONDS: Final = 20.0


def peer_client(connections: int, connect: float, headers: Mapping[str, str] | None = None) -> httpx.AsyncClient:
    """A client of at most so many connections, each made within so many seconds, by no proxy: none is in between."""
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it has a line for each request
    limits = httpx.Limits(max_connections=connections, keepalive_expiry=_KEPT_SECONDS)
    return httpx.AsyncClient(
        headers=headers,
        timeout=httpx.Timeout(None, connect=connect),
        transport=PeerTransport(limits=limits, trust_env=False),
        trust_env=False,
    )


class PeerTransport(httpx.AsyncHTTPTransport):
    """Transport of httpx without its fault where the other end closes a connection at once."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The answer to a request. Raises httpx.TransportError."""
        try:
            return await super().handle_async_request(request)
        except AttributeError as error:
            # Before anything is sent, anyio asks the socket whom it leads to; uvloop has none any more.
            if error.name != "getpeername":
                raise
            raise httpx.ConnectError("the connection ended as soon as it was made", request=request) from error
