"""Connections to other servers and to the ingress: one that ends as soon as it is made was not made."""

from __future__ import annotations

import httpx


class PeerTransport(httpx.AsyncHTTPTransport):
    """As httpx has it, without its fault where the other end closes a connection at once."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The answer to a request. Raises httpx.TransportError."""
        try:
            return await super().handle_async_request(request)
        except AttributeError as error:
            # Before anything is sent, anyio asks the socket whom it leads to; uvloop has none any more.
            if error.name != "getpeername":
                raise
            raise httpx.ConnectError("the connection ended as soon as it was made", request=request) from error
