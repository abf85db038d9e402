"""What both transports make of httpx: how its requests are written, its answers read, and its errors understood."""

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

#: the variable that has the key, where no argument gives one
KEY_VARIABLE: Final = "GRADSERVE_API_KEY"
_KEY: Final = re.compile(r"[\x21-\x7e]+")


def options_of(url: str, api_key: str | None) -> dict[str, Any]:
    """What a client of httpx is made with. Raises InputError, which does not show the key."""
    key = os.environ.get(KEY_VARIABLE) if api_key is None else api_key
    if key and not _KEY.fullmatch(key):
        raise InputError("the key has characters that a header cannot have")
    # Compressed answers would be longer than they are said to be, and tensors are not worth it.
    headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {key}"} if key else {})
    try:
        stated = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise InputError(f"this is no URL: {error}") from None
    if stated.scheme not in ("http", "https") or not stated.host:
        raise InputError("a server's URL begins with http:// or https://, and has a host")
    return {"base_url": stated, "headers": headers}


def stated(request: Request) -> dict[str, Any]:
    """What httpx is told of a request, beside its body."""
    headers = {**request.headers, "Content-Length": str(request.length)} if request.body else request.headers
    return {"method": request.method, "url": request.path, "params": request.query, "headers": headers}


def understood(error: httpx.HTTPError, request: Request, deadline: Deadline) -> GradserveError:
    """What went wrong. Timeouts are what was left of the deadline. Neither headers nor bodies are quoted."""
    if isinstance(error, httpx.TimeoutException):
        return deadline.passed()
    if isinstance(error, httpx.TransportError) and not isinstance(error, httpx.LocalProtocolError):
        return ConnectionFailed(f"{request.method} {request.path}: {type(error).__name__}: {error}")
    return InputError(f"{request.method} {request.path} cannot be sent: {type(error).__name__}")


class Incoming:
    """An answer as it comes, of which no more is read than may be. Raises AnswerTooLarge, MalformedAnswer."""

    def __init__(self, response: httpx.Response, most: int, deadline: Deadline) -> None:
        self._status = response.status_code
        self._headers: Mapping[str, str] = response.headers
        self._most = most
        self._deadline = deadline
        self._body = bytearray()
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise MalformedAnswer("the answer is compressed, which was not asked for")
        self._admit(int(response.headers.get("content-length", "0")))

    def add(self, chunk: bytes) -> None:
        """More of the body."""
        self._deadline.left()
        self._admit(len(self._body) + len(chunk))
        self._body += chunk

    def _admit(self, length: int) -> None:
        if length > self._most:
            raise AnswerTooLarge(f"the answer has more than {self._most} bytes (max_response_bytes), and was not read")

    def whole(self) -> Response:
        """The answer, once all of it is here."""
        return Response(self._status, self._headers, self._body)
