"""Every way in which a request can be refused: one table, one exception, one form of report.

Refusal                   raised by the service, wherever it is found out
engine.EngineError        raised by the engine; `from_engine` makes it a Refusal
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import orjson

from engine import EngineError
from schemas import Problem


class Kind(NamedTuple):
    """Meaning of a code to HTTP and to a reader."""

    status: int
    title: str


#: where the codes are explained
ERRORS: Final = "/docs/errors"

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


#: what is said of a request that raised something unexpected while it was read: the fault is ours, the cause its input
UNREADABLE: Final = "the server could not read the request; its log has the cause under this request_id"


@dataclass
class Refusal(Exception):
    """A request that is turned down: `detail` is one sentence; the rest says where, for programs."""

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
        """The HTTP status of the code."""
        return KINDS[self.code].status

    @property
    def headers(self) -> dict[str, str]:
        """Header fields that go with the report."""
        stated: dict[str, str | int | None] = {"Retry-After": self.retry_after, "Allow": self.allow}
        if self.code == "unauthenticated":
            stated["WWW-Authenticate"] = "Bearer"
        return {name: str(value) for name, value in stated.items() if value is not None}

    def problem(self, request_id: str) -> Problem:
        """The report."""
        kind = KINDS[self.code]
        report = Problem(
            type=f"{ERRORS}/{self.code}",
            title=kind.title,
            status=kind.status,
            detail=self.detail,
            code=self.code,
            request_id=request_id,
        )
        for name in ("node", "function", "function_node", "operand", "expected", "got", "pointer"):
            if (value := getattr(self, name)) is not None:
                report[name] = value
        if self.errors:
            report["errors"] = [error.problem(request_id) for error in self.errors]
        return report

    def body(self, request_id: str) -> bytes:
        """The report as JSON."""
        return orjson.dumps(self.problem(request_id))


def linked(reports: bytes, prefix: str) -> bytes:
    """JSON that has reports in it, of which the types lead to the pages under a prefix.

    In what is quoted within a text, the marks around it are escaped.
    """
    return reports.replace(f'"type":"{ERRORS}/'.encode(), f'"type":"{prefix}{ERRORS}/'.encode())


def from_engine(error: EngineError) -> Refusal:
    """Convert the engine's error, with a pointer to the node or operand it names; other errors are in `errors`.

    Inside a function, the pointer leads there.
    """
    found = [_refusal(one) for one in (error, *error.others)]
    return replace(found[0], errors=found) if len(found) > 1 else found[0]


def _refusal(error: EngineError) -> Refusal:
    return Refusal(
        error.code,
        error.detail,
        node=error.node,
        function=error.function,
        function_node=error.function_node,
        operand=error.operand,
        expected=error.expected,
        got=error.got,
        pointer=_pointer(error),
    )


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


def fault() -> Refusal:
    """The report of a fault of ours; the cause stands in the log, under the request's id."""
    return Refusal("internal_error", "the server failed on this request; its log has the cause under this request_id")


def unreadable() -> Refusal:
    """The report of a request that raised something unexpected while it was read; the log has the cause."""
    return Refusal("invalid_field", UNREADABLE, expected="a request that this call takes", pointer="")


def stopping() -> Refusal:
    """The report of a server that takes nothing new."""
    return Refusal("shutting_down", "the server is stopping and takes no new work", retry_after=5)


def full(held: int, retry_after: int) -> Refusal:
    """The report of a server that holds so many requests, which are all that it holds."""
    detail = f"the server already holds {held} requests, its limit; try again shortly"
    return Refusal("queue_full", detail, retry_after=retry_after)


def late(seconds: float) -> Refusal:
    """The report of a request whose time, so many seconds, is up."""
    return Refusal("deadline_exceeded", f"the request was not finished within its {seconds:g} s")


def out_of_memory() -> Refusal:
    """The report where an allocation failed in spite of the budgets."""
    return Refusal("over_budget", "the server ran out of memory on this request; send a smaller one", got="no memory")
