"""Refusals of requests: the table of codes, the exception, and the problem report (RFC 9457).

The service raises `Refusal`; the engine raises `EngineError`, which `from_engine` converts:

    Refusal("not_found", "there is no model “m”", got="m")   →   404 {"code": "not_found", "detail": …, "got": "m"}
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import orjson

from engine import EngineError
from schemas import Problem


class Kind(NamedTuple):
    """HTTP status and title of an error code."""

    status: int
    title: str


#: path of the documentation pages on the codes
ERRORS: Final = "/docs/errors"
#: fields of a report that engine errors have too
_PLACE: Final = ("node", "function", "function_node", "operand", "expected", "got")

KINDS: Final[dict[str, Kind]] = {
    "invalid_json": Kind(400, "The body is not JSON"),
    "duplicate_key": Kind(400, "A JSON object has a key twice"),
    "too_deep": Kind(400, "The JSON is nested too deeply"),
    "bad_request_framing": Kind(400, "The request is not well-formed HTTP"),
    "unauthenticated": Kind(401, "A key is needed"),
    "forbidden": Kind(403, "Not allowed"),
    "not_found": Kind(404, "There is no such thing"),
    "method_not_allowed": Kind(405, "The path does not take this method"),
    "not_acceptable": Kind(406, "None of the accepted media types is spoken here"),
    "request_timeout": Kind(408, "The body did not arrive in time"),
    "conflict": Kind(409, "The state has changed"),
    "in_use": Kind(409, "Something that is kept needs it"),
    "precondition_failed": Kind(412, "A condition of the request does not hold"),
    "body_too_large": Kind(413, "The body is too large"),
    "too_many_nodes": Kind(413, "The graph has too many nodes"),
    "over_budget": Kind(413, "The request needs more than the server gives one request"),
    "unsupported_media_type": Kind(415, "The media type is not spoken here"),
    "misdirected": Kind(421, "The server is not known by this name"),
    "unknown_op": Kind(422, "There is no such op"),
    "bad_reference": Kind(422, "A node is referred to that cannot be"),
    "operand_count": Kind(422, "Too few or too many operands"),
    "bad_attribute": Kind(422, "An attribute is wrong"),
    "shape_mismatch": Kind(422, "Shapes do not fit"),
    "dtype_mismatch": Kind(422, "A dtype does not fit"),
    "index_out_of_range": Kind(422, "An index is outside its axis"),
    "missing_feed": Kind(422, "A leaf has no value"),
    "unexpected_feed": Kind(422, "A value is given for a node that takes none"),
    "bad_tensor": Kind(422, "A tensor is malformed"),
    "non_scalar_output": Kind(422, "A tensor of several elements is differentiated without a cotangent"),
    "not_differentiable": Kind(422, "There is no derivative"),
    "invalid_field": Kind(422, "A field is wrong"),
    "rate_limited": Kind(429, "Too many requests"),
    "headers_too_large": Kind(431, "The headers are too large"),
    "internal_error": Kind(500, "A fault of the server"),
    "queue_full": Kind(503, "The server is busy"),
    "shutting_down": Kind(503, "The server is stopping"),
    "not_ready": Kind(503, "The server cannot do this now"),
    "worker_died": Kind(503, "A worker ended with the request"),
    "unconfirmed": Kind(503, "It is not known whether this was kept"),
    "deadline_exceeded": Kind(504, "The time is up"),
    "store_full": Kind(507, "There is no room left"),
}
#: detail for an unexpected exception while a request is parsed: the bug is ours, but the input triggers it
UNREADABLE: Final = "the server could not read the request; its log has the cause under this request_id"


@dataclass
class Refusal(Exception):
    """Refusal of a request: `detail` is one sentence for people; the other fields locate the error for programs."""

    code: str
    detail: str
    node: int | None = None
    function: int | None = None
    function_node: int | None = None
    operand: int | None = None
    expected: str | None = None
    got: str | None = None
    pointer: str | None = None
    retry_after: int | None = None
    allow: str | None = None
    errors: list[Refusal] = field(default_factory=list)

    @property
    def status(self) -> int:
        """HTTP status of the code."""
        return KINDS[self.code].status

    @property
    def headers(self) -> dict[str, str]:
        """Header fields of the response."""
        fields: dict[str, str | int | None] = {"Retry-After": self.retry_after, "Allow": self.allow}
        if self.code == "unauthenticated":
            fields["WWW-Authenticate"] = "Bearer"
        return {name: str(value) for name, value in fields.items() if value is not None}

    def problem(self, request_id: str) -> Problem:
        """Return the problem report."""
        kind = KINDS[self.code]
        report = Problem(
            type=f"{ERRORS}/{self.code}",
            title=kind.title,
            status=kind.status,
            detail=self.detail,
            code=self.code,
            request_id=request_id,
        )
        for name in (*_PLACE, "pointer"):
            if (value := getattr(self, name)) is not None:
                report[name] = value
        if self.errors:
            report["errors"] = [error.problem(request_id) for error in self.errors]
        return report

    def body(self, request_id: str) -> bytes:
        """Return the problem report as JSON."""
        return orjson.dumps(self.problem(request_id))


def with_prefixed_links(reports: bytes, prefix: str) -> bytes:
    """Prepend a prefix to the links in JSON reports. Reports quoted in strings have escaped quotes: they stay."""
    return reports.replace(f'"type":"{ERRORS}/'.encode(), f'"type":"{prefix}{ERRORS}/'.encode())


def from_engine(error: EngineError) -> Refusal:
    """Convert an engine error, with a JSON pointer to the node or operand, also inside a function.

    If the error carries further errors, `errors` lists all of them.
    """
    refusals = [
        Refusal(each.code, each.detail, **{name: getattr(each, name) for name in _PLACE}, pointer=_pointer(each))
        for each in (error, *error.others)
    ]
    return replace(refusals[0], errors=refusals) if len(refusals) > 1 else refusals[0]


def _pointer(error: EngineError) -> str | None:
    inside, node = error.function is not None, error.node
    if inside:
        node = error.function_node
    elif node is None:
        return None
    function = f"/functions/{error.function}" if inside else ""
    place = "" if node is None else f"/nodes/{node}"
    operand = "" if node is None or error.operand is None else f"/operands/{error.operand}"
    return f"/graph{function}{place}{operand}"


def internal_error() -> Refusal:
    """Return the refusal for a bug in the server; the log has the cause under the request's id."""
    return Refusal("internal_error", "the server failed on this request; its log has the cause under this request_id")


def unreadable() -> Refusal:
    """Return the refusal for an unexpected exception while a request was parsed; the log has the cause."""
    return Refusal("invalid_field", UNREADABLE, expected="a request that this call takes", pointer="")


def stopping() -> Refusal:
    """Return the refusal that a stopping server sends."""
    return Refusal("shutting_down", "the server is stopping and takes no new work", retry_after=5)


def queue_full(held: int, retry_after: int) -> Refusal:
    """Return the refusal that a server sends if it holds its maximum number of requests."""
    detail = f"the server already holds {held} requests, its limit; try again shortly"
    return Refusal("queue_full", detail, retry_after=retry_after)


def deadline_exceeded(seconds: float) -> Refusal:
    """Return the refusal for a request that did not finish within `seconds`."""
    return Refusal("deadline_exceeded", f"the request was not finished within its {seconds:g} s")


def out_of_memory() -> Refusal:
    """Return the refusal for an allocation that failed despite the budgets."""
    return Refusal("over_budget", "the server ran out of memory on this request; send a smaller one", got="no memory")
