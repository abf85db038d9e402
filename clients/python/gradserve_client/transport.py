"""The synchronous transport, on an httpx client."""

from __future__ import annotations

import httpx

from gradserve_client.answers import Response
from gradserve_client.incoming import ResponseReader, client_options, stream_arguments, translate_error
from gradserve_client.requests import Request
from gradserve_client.retries import Deadline


class Transport:
    """Connections to one server."""

    def __init__(
        self, url: str, api_key: str | None, max_response_bytes: int, transport: httpx.BaseTransport | None
    ) -> None:
        self._http = httpx.Client(**client_options(url, api_key), transport=transport)
        self._max_response_bytes = max_response_bytes

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def send(self, request: Request, deadline: Deadline) -> Response:
        """Send a request and return the response. Raises TransportError, DeadlineError or InputError."""
        content = request.pieces() if request.body else None
        try:
            with self._http.stream(**stream_arguments(request, deadline), content=content) as response:
                reader = ResponseReader(response, self._max_response_bytes, deadline)
                for chunk in response.iter_bytes():
                    reader.add(chunk)
                return reader.finish()
        except httpx.HTTPError as error:
            raise translate_error(error, request, deadline) from error
