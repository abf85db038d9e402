"""The parts that both transports share: write requests for httpx, read its responses, translate its errors."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final

import httpx

from gradserve_client.answers import Response
from gradserve_client.errors import AnswerTooLarge, ConnectionFailed, GradserveError, InputError, MalformedAnswer
from gradserve_client.requests import Request
from gradserve_client.retries import Deadline

#: environment variable with the default API key
KEY_VARIABLE: Final = "GRADSERVE_API_KEY"
#: shortest timeout of httpx, in seconds: leaves time to receive even the server's report of a timeout
_MIN_TIMEOUT: Final = 0.05
_KEY: Final = re.compile(r"[\x21-\x7e]+")


def client_options(url: str, api_key: str | None) -> dict[str, Any]:
    """Return the constructor arguments of an httpx client. Raises InputError, with messages that never show the key."""
    key = os.environ.get(KEY_VARIABLE) if api_key is None else api_key
    if key and not _KEY.fullmatch(key):
        raise InputError("the API key contains characters that are not allowed in a header")
    # A compressed body could exceed max_response_bytes once decompressed; and tensors compress poorly.
    headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {key}"} if key else {})
    try:
        parsed_url = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise InputError(f"the server's URL is invalid: {error}") from None
    if parsed_url.scheme not in ("http", "https") or not parsed_url.host:
        raise InputError("the server's URL is invalid: expected http:// or https://, and a host")
    return {"base_url": parsed_url, "headers": headers}


def stream_arguments(request: Request, deadline: Deadline) -> dict[str, Any]:
    """Return the arguments of `httpx.Client.stream` for a request, except the body.

    Raises DeadlineError if there is no time left.
    """
    remaining = deadline.remaining()
    request = request.with_timeout(remaining)
    headers = {**request.headers, "Content-Length": str(request.length)} if request.body else request.headers
    timeout = None if remaining is None else max(remaining, _MIN_TIMEOUT)
    arguments = {"method": request.method, "url": request.path, "params": request.query, "headers": headers}
    return {**arguments, "timeout": timeout}


def translate_error(error: httpx.HTTPError, request: Request, deadline: Deadline) -> GradserveError:
    """Translate an exception of httpx. The message quotes neither headers nor bodies.

    The timeout of httpx is the time left until the deadline, so a timeout means that the deadline has passed.
    """
    if isinstance(error, httpx.TimeoutException):
        return deadline.error()
    if isinstance(error, httpx.TransportError) and not isinstance(error, httpx.LocalProtocolError):
        return ConnectionFailed(f"{request.method} {request.path}: {type(error).__name__}: {error}")
    return InputError(f"{request.method} {request.path} cannot be sent: {type(error).__name__}")


class ResponseReader:
    """A response that is being received. Raises AnswerTooLarge beyond the limit, and MalformedAnswer."""

    def __init__(self, response: httpx.Response, max_response_bytes: int, deadline: Deadline) -> None:
        self._status = response.status_code
        self._headers: Mapping[str, str] = response.headers
        self._max_response_bytes = max_response_bytes
        self._deadline = deadline
        self._body = bytearray()
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise MalformedAnswer("the response is compressed, but the client requested it uncompressed")
        self._require_length(int(response.headers.get("content-length", "0")))

    def add(self, chunk: bytes) -> None:
        """Append a chunk to the body."""
        self._deadline.remaining()
        self._require_length(len(self._body) + len(chunk))
        self._body += chunk

    def _require_length(self, length: int) -> None:
        if length > self._max_response_bytes:
            raise AnswerTooLarge(
                f"the response exceeds {self._max_response_bytes} bytes (max_response_bytes) and was not read"
            )

    def finish(self) -> Response:
        """Return the complete response."""
        return Response(self._status, self._headers, self._body)
