"""A corpus sent to a server, its answers written down, and two such files compared."""

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

#: what differs from one moment to the next, whatever the server: time, and whether a refused body had come by then
_OF_THE_MOMENT: Final = frozenset({"date", "connection"})
#: so do seconds in a body; which worker was free, and so whether it knew the plan; and names that a server makes up
_MEASURED: Final = re.compile(
    rb'"execute_ms\\?":[0-9.e+-]+|"plan_cached\\?":(?:true|false)|(?<="request_id":)"[0-9a-f]{32}"|(?<="etag":)"[0-9a-f]{16}"'
)


#: how requests call themselves
ID: Final = "exchange-"


class Answer(NamedTuple):
    """What came back, less what is of the moment."""

    status: int
    headers: dict[str, str]
    content: bytes

    @classmethod
    def of(cls, response: httpx.Response) -> Answer:
        """The answer that a response is. Its length follows from its bytes, less what was measured in them."""
        content = _MEASURED.sub(_mask, _without_padding(response.content))
        headers = {name: value for name, value in sorted(response.headers.items()) if name not in _OF_THE_MOMENT}
        if content != response.content:
            headers |= {"content-length": str(len(content))}
        for name, ours in (("x-request-id", ID), ("etag", "none")):
            headers |= {} if headers.get(name, ours).startswith(ours) else {name: "*"}
        return cls(response.status_code, headers, content)

    def line(self) -> str:
        """A line of a file."""
        return json.dumps([self.status, self.headers, base64.b64encode(self.content).decode()])

    @classmethod
    def from_line(cls, line: str) -> Answer:
        """The answer that a line is."""
        status, headers, content = json.loads(line)
        return cls(status, headers, base64.b64decode(content))


def _mask(measured: re.Match[bytes]) -> bytes:
    """What stands for it: a field or a value of one, so that JSON stays JSON."""
    return b'"*":0' if b":" in measured[0] else b'"*"'


def _without_padding(content: bytes) -> bytes:
    """A safetensors header has its length in front, and is filled up: both depend on the digits of what is measured."""
    if content[8:9] != b"{":
        return content
    end = 8 + int.from_bytes(content[:8], "little")
    return content[8:end].rstrip(b" ") + content[end:]


def record(url: str, requests: Iterable[Request], into: Path) -> int:
    """Send them to the server one after the other, and write down what it answers. How many there were."""
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
    """A request, and the two answers to it; None where one of the files has ended."""

    request: Request
    before: Answer | None
    after: Answer | None

    @property
    def is_of_order(self) -> bool:
        """Whether both are the same OpenAPI document, whose fields may stand in any order."""
        if not self.request.path.startswith("/openapi") or self.before is None or self.after is None:
            return False
        return bool(json.loads(self.before.content) == json.loads(self.after.content))


def differences(requests: Iterable[Request], before: Path, after: Path) -> Iterator[Difference]:
    """What is not answered with the same status, headers and bytes."""
    with before.open() as first, after.open() as second:
        for request, *lines in zip_longest(requests, first, second):
            answers = [None if line is None else Answer.from_line(line) for line in lines]
            if answers[0] != answers[1]:
                difference = Difference(request, *answers)
                if not difference.is_of_order:
                    yield difference
