"""I/O without asyncio: one request, one answer."""

from __future__ import annotations

import httpx

from gradserve_client.answers import Response
from gradserve_client.incoming import Incoming, options_of, stated, understood
from gradserve_client.requests import Request
from gradserve_client.retries import Deadline


class Transport:
    """Connections to a server."""

    def __init__(self, url: str, api_key: str | None, most: int, transport: httpx.BaseTransport | None) -> None:
        self._http = httpx.Client(**options_of(url, api_key), transport=transport)
        self._most = most

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def send(self, request: Request, deadline: Deadline) -> Response:
        """The answer. Raises TransportError, DeadlineError, InputError."""
        left = deadline.left()
        request = request.within(left)
        content = request.pieces() if request.body else None
        try:
            with self._http.stream(**stated(request), content=content, timeout=left) as response:
                incoming = Incoming(response, self._most, deadline)
                for chunk in response.iter_raw():
                    incoming.add(chunk)
                return incoming.whole()
        except httpx.HTTPError as error:
            raise understood(error, request, deadline) from error
