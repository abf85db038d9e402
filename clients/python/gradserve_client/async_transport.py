"""I/O with asyncio: one request, one answer."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx

from gradserve_client.answers import Response
from gradserve_client.incoming import Incoming, options_of, stated, understood
from gradserve_client.requests import Request
from gradserve_client.retries import Deadline


class AsyncTransport:
    """Connections to a server."""

    def __init__(self, url: str, api_key: str | None, most: int, transport: httpx.AsyncBaseTransport | None) -> None:
        self._http = httpx.AsyncClient(**options_of(url, api_key), transport=transport)
        self._most = most

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def send(self, request: Request, deadline: Deadline) -> Response:
        """The answer. Raises TransportError, DeadlineError, InputError."""
        left = deadline.left()
        request = request.within(left)
        content = _pieces(request) if request.body else None
        try:
            async with self._http.stream(**stated(request), content=content, timeout=left) as response:
                incoming = Incoming(response, self._most, deadline)
                async for chunk in response.aiter_raw():
                    incoming.add(chunk)
                return incoming.whole()
        except httpx.HTTPError as error:
            raise understood(error, request, deadline) from error


async def _pieces(request: Request) -> AsyncIterator[bytes]:
    for piece in request.pieces():
        yield piece
