"""The asyncio transport, on an asynchronous httpx client."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx

from gradserve_client.answers import Response
from gradserve_client.incoming import ResponseReader, client_options, stream_arguments, translate_error
from gradserve_client.requests import Request
from gradserve_client.retries import Deadline


class AsyncTransport:
    """Connections to one server."""

    def __init__(
        self, url: str, api_key: str | None, max_response_bytes: int, transport: httpx.AsyncBaseTransport | None
    ) -> None:
        self._http = httpx.AsyncClient(**client_options(url, api_key), transport=transport)
        self._max_response_bytes = max_response_bytes

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def send(self, request: Request, deadline: Deadline) -> Response:
        """Send a request and return the response. Raises TransportError, DeadlineError or InputError."""
        content = _pieces(request) if request.body else None
        try:
            async with self._http.stream(**stream_arguments(request, deadline), content=content) as response:
                reader = ResponseReader(response, self._max_response_bytes, deadline)
                async for chunk in response.aiter_bytes():
                    reader.add(chunk)
                return reader.finish()
        except httpx.HTTPError as error:
            raise translate_error(error, request, deadline) from error


async def _pieces(request: Request) -> AsyncIterator[bytes]:
    for piece in request.pieces():
        yield piece
