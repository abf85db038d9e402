"""Send a corpus to a server, record its answers, and compare two recordings."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Final, NamedTuple

import httpx

from tests.exchanges.corpus import Request

#: headers that vary between runs: the time, and whether a refused body had arrived
_VARYING_HEADERS: Final = frozenset({"date", "connection"})
#: values in bodies that vary: times; whether the plan was cached, which depends on the worker; and generated ids
_VARYING_VALUES: Final = re.compile(
    rb'"execute_ms\\?":[0-9.e+-]+|"plan_cached\\?":(?:true|false)|(?<="request_id":)"[0-9a-f]{32}"|(?<="etag":)"[0-9a-f]{16}"'
)


#: the prefix of the request ids
ID: Final = "exchange-"


class Answer(NamedTuple):
    """An answer, without the parts that vary between runs."""

    status: int
    headers: dict[str, str]
    content: bytes

    @classmethod
    def of(cls, response: httpx.Response) -> Answer:
        """The answer of a response, with the length of the masked content."""
        content = _VARYING_VALUES.sub(_mask, _without_padding(response.content))
        headers = {name: value for name, value in sorted(response.headers.items()) if name not in _VARYING_HEADERS}
        if content != response.content:
            headers |= {"content-length": str(len(content))}
        for name, ours in (("x-request-id", ID), ("etag", "none")):
            headers |= {} if headers.get(name, ours).startswith(ours) else {name: "*"}
        return cls(response.status_code, headers, content)

    def line(self) -> str:
        """The answer as a line of a file."""
        return json.dumps([self.status, self.headers, base64.b64encode(self.content).decode()])

    @classmethod
    def from_line(cls, line: str) -> Answer:
        """The answer of a line."""
        status, headers, content = json.loads(line)
        return cls(status, headers, base64.b64decode(content))


def _mask(measured: re.Match[bytes]) -> bytes:
    """The mask of a field or of a value, which keeps the JSON valid."""
    return b'"*":0' if b":" in measured[0] else b'"*"'


def _without_padding(content: bytes) -> bytes:
    """Strip the length and padding of a safetensors header, which depend on the digits of measured times."""
    if content[8:9] != b"{":
        return content
    end = 8 + int.from_bytes(content[:8], "little")
    return content[8:end].rstrip(b" ") + content[end:]


def record(url: str, requests: Iterable[Request], into: Path) -> int:
    """Send the requests one after the other, record the answers, and return their number."""
    graph_id = "0" * 64
    number = 0
    with httpx.Client(base_url=url, timeout=120) as client, into.open("w") as file:
        for number, request in enumerate(requests, 1):
            path = request.path.replace("{graph_id}", graph_id)
            named = {"X-Request-Id": f"{ID}{number}", **request.headers}
            response = client.request(request.method, path, headers=named, content=request.content or None)
            if (request.method, request.path) == ("POST", "/v1/graphs") and response.is_success:
                graph_id = response.json()["graph_id"]
            file.write(Answer.of(response).line() + "\n")
    return number


class Difference(NamedTuple):
    """A request and its two answers; None if a file has ended."""

    request: Request
    before: Answer | None
    after: Answer | None

    @property
    def is_of_order(self) -> bool:
        """Whether both answers are the same OpenAPI document with fields in another order."""
        if not self.request.path.startswith("/openapi") or self.before is None or self.after is None:
            return False
        return bool(json.loads(self.before.content) == json.loads(self.after.content))


def differences(requests: Iterable[Request], before: Path, after: Path) -> Iterator[Difference]:
    """The requests that are not answered with the same status, headers and bytes."""
    with before.open() as first, after.open() as second:
        for request, *lines in zip_longest(requests, first, second):
            answers = [None if line is None else Answer.from_line(line) for line in lines]
            if answers[0] != answers[1]:
                difference = Difference(request, *answers)
                if not difference.is_of_order:
                    yield difference
