"""Pages of codes: for each its explanation, the calls that answer it, and an example."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from service.calls.description import Json
from service.errors import KINDS, Kind
from service.pages.explanations import BEYOND_THE_DOCUMENT, EXPLAINED, Explanation
from service.pages.failure import REQUEST_ID, Failure
from service.pages.layout import laid_out, shortened
from service.wire.media import PROBLEM

_NAMED: Final = 6  # calls that a page names


@dataclass(frozen=True)
class Sent:
    """A whole request: `content` is its body as it is sent."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    content: str = ""
    body: Json | None = None

    @property
    def text(self) -> str:
        """The request for a reader: long parts shortened, the body laid out."""
        head = [f"{self.method} {self.path}", *(f"{name}: {shortened(value)}" for name, value in self.headers.items())]
        body = shortened(self.content) if self.body is None else laid_out(self.body)
        return "\n".join([*head, "", body]) if body else "\n".join(head)


@dataclass(frozen=True)
class Example:
    """A problem as the server reports it; and the request that brings it about, where one alone does."""

    problem: Json
    sent: Sent | None = None


@dataclass(frozen=True)
class ErrorPage:
    """Page of one code: all that is said of it."""

    code: str
    kind: Kind
    explanation: Explanation
    calls: tuple[str, ...]
    example: Example | None

    @property
    def reserved(self) -> bool:
        """Whether the code is kept for calls of a later version."""
        return self.example is None

    @property
    def where(self) -> str:
        """Which calls answer it, as a sentence, if any; the first ones, where they are many."""
        if self.calls:
            named = ", ".join(f"`{call}`" for call in self.calls[:_NAMED])
            more = len(self.calls) - _NAMED
            return f"Answered by {named}{f' and {more} more' if more > 0 else ''}."
        return "Reserved: no call answers it yet." if self.reserved else "Answered by any path."


def error_pages(document: Json) -> dict[str, ErrorPage]:
    """A page for every code; calls and examples are those of this OpenAPI document."""
    documented = list(_documented(document))
    return {code: _page(code, documented) for code in KINDS}


def _page(code: str, documented: list[tuple[str, str, Example]]) -> ErrorPage:
    found = [(call, example) for known, call, example in documented if known == code]
    examples = [example for _, example in found] + [_beyond(f) for f in BEYOND_THE_DOCUMENT if f.code == code]
    calls = tuple(call for call, _ in found)
    return ErrorPage(code, KINDS[code], EXPLAINED[code], calls, min(examples, key=_effort, default=None))


def _effort(example: Example) -> int:
    """A request is better than none, and one without a body better than one with."""
    return 2 if example.sent is None else int(example.sent.method != "GET")


def _documented(document: Json) -> Iterator[tuple[str, str, Example]]:
    """Every example of a problem: its code, its call, and itself."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            call = f"{method.upper()} {path}"
            for response in operation["responses"].values():
                described = _resolved(document, response).get("content", {}).get(PROBLEM, {})
                for code, referred in described.get("examples", {}).items():
                    shown = _resolved(document, referred)
                    yield code, call, Example(shown["value"], _sent(call, shown.get("x-request")))


def _resolved(document: Json, described: Json) -> Json:
    """What stands under `components`, where this refers to it."""
    if "$ref" not in described:
        return described
    _, components, kind, name = described["$ref"].split("/")
    found: Json = document[components][kind][name]
    return found


def _sent(call: str, stated: Json | None) -> Sent | None:
    """The request of an example, which states what differs from a plain one. None where nothing is stated."""
    if stated is None:
        return None
    method, path = call.split()
    body = stated.get("body", {} if method != "GET" and "raw" not in stated else None)
    return Sent(
        stated.get("method", method),
        stated.get("path", path),
        stated.get("headers", {}),
        stated.get("raw", "" if body is None else json.dumps(body)),
        body,
    )


def _beyond(failure: Failure) -> Example:
    assert failure.stated is not None
    sent = _sent("GET /", failure.request) if failure.request else None
    return Example(dict(failure.stated.problem(REQUEST_ID)), sent)
