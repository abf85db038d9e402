"""Refusals of requests: the table of codes, the exception, and the problem report (RFC 9457).

The service raises `Refusal`; the engine raises `EngineError`, which `from_engine` converts:

    Refusal("not_found", "there is no model “m”", got="m")   →   404 {"code": "not_found", "detail": …, "got": "m"}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import orjson

from engine import EngineError
from engine.ir.errors import DtypeMismatch, OperandCount, ShapeMismatch, UnknownOp
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
    "invalid_json": Kind(400, "Invalid JSON"),
    "duplicate_key": Kind(400, "Duplicate key in a JSON object"),
    "too_deep": Kind(400, "JSON nested too deeply"),
    "bad_request_framing": Kind(400, "Malformed HTTP request"),
    "unauthenticated": Kind(401, "Missing or invalid API key"),
    "forbidden": Kind(403, "Permission denied"),
    "not_found": Kind(404, "Not found"),
    "method_not_allowed": Kind(405, "Method not allowed"),
    "not_acceptable": Kind(406, "Not acceptable"),
    "request_timeout": Kind(408, "Timed out receiving the body"),
    "conflict": Kind(409, "The same request is in progress"),
    "in_use": Kind(409, "Resource in use"),
    "precondition_failed": Kind(412, "Precondition failed"),
    "body_too_large": Kind(413, "Body too large"),
    "too_many_nodes": Kind(413, "Too many nodes"),
    "over_budget": Kind(413, "Resource limit exceeded"),
    "unsupported_media_type": Kind(415, "Unsupported media type"),
    "misdirected": Kind(421, "Unknown host name"),
    "unknown_op": Kind(422, "Unknown op"),
    "bad_reference": Kind(422, "Invalid node reference"),
    "operand_count": Kind(422, "Wrong number of operands"),
    "bad_attribute": Kind(422, "Invalid attribute"),
    "shape_mismatch": Kind(422, "Shape mismatch"),
    "dtype_mismatch": Kind(422, "Dtype mismatch"),
    "index_out_of_range": Kind(422, "Index out of range"),
    "missing_feed": Kind(422, "Missing feed"),
    "unexpected_feed": Kind(422, "Unexpected feed"),
    "bad_tensor": Kind(422, "Invalid tensor"),
    "non_scalar_output": Kind(422, "Cotangent required for a non-scalar node"),
    "not_differentiable": Kind(422, "Not differentiable"),
    "invalid_field": Kind(422, "Invalid field"),
    "rate_limited": Kind(429, "Too many requests"),
    "headers_too_large": Kind(431, "Headers too large"),
    "internal_error": Kind(500, "Internal server error"),
    "queue_full": Kind(503, "Server busy"),
    "shutting_down": Kind(503, "Server shutting down"),
    "not_ready": Kind(503, "Server not ready"),
    "worker_died": Kind(503, "Worker process died"),
    "unconfirmed": Kind(503, "Write not confirmed"),
    "deadline_exceeded": Kind(504, "Deadline exceeded"),
    "store_full": Kind(507, "Storage full"),
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


def pointer(place: Sequence[str | int]) -> str:
    """Format a location as a JSON pointer (RFC 6901)."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in place)


def from_engine(error: EngineError, request: Mapping[str, Any] | None = None) -> Refusal:
    """Convert an engine error, with a JSON pointer to the innermost place that it is about.

    That is a place in the graph, or in a field of the `request`, if the client stated the field there. If the error
    carries further errors, `errors` lists all of them.
    """
    refusals = [
        Refusal(
            each.code,
            each.detail,
            **{name: getattr(each, name) for name in _PLACE},
            pointer=_pointer(each, request),
        )
        for each in (error, *error.others)
    ]
    return replace(refusals[0], errors=refusals) if len(refusals) > 1 else refusals[0]


_Place = tuple[str | int, ...]
#: names that requests give to a field of the engine, if not the same one alone: leaves have values or types,
#: `gradients` takes one cotangent, and `plan` assumes a tangent for each leaf in `wrt`
_FIELD_NAMES: Final = {
    "feeds": ("feeds", "types", "inputs", "bound"),
    "cotangents": ("cotangents", "cotangent"),
    "tangents": ("tangents", "wrt"),
}


def _pointer(error: EngineError, request: Mapping[str, Any] | None) -> str | None:
    root: _Place = ("graph",)
    node = error.node
    if error.function is not None:
        root, node = ("graph", "functions", error.function), error.function_node
        if error.field:
            return pointer((*root, *error.field))
    elif error.field and request is not None and (place := _place_in_request(error, request)):
        return pointer(place)
    elif node is None:
        return None
    return pointer(root if node is None else (*root, "nodes", node, *_part_of_node(error)))


def _part_of_node(error: EngineError) -> _Place:
    if error.attribute is not None:
        return ("attrs", error.attribute)
    if error.operand is not None:
        return ("operands", error.operand)
    if isinstance(error, OperandCount):
        return ("operands",)
    return ("op",) if isinstance(error, UnknownOp) else ()


def _place_in_request(error: EngineError, request: Mapping[str, Any]) -> _Place | None:
    """Return the place of an error in a field of the request; None if no entry of the field names its node.

    If several entries name the node, the last one repeats the others.
    """
    if error.named_node is None:
        return error.field
    field = str(error.field[0])
    for name in _FIELD_NAMES.get(field, (field,)):
        value = request.get(name)
        if not isinstance(value, list):
            if value is not None:
                return (name,)  # `of` or `cotangent`: it has no entries
            continue
        for i in reversed(range(len(value))):
            entry = value[i]
            if entry == error.named_node:
                return (name, i)
            if isinstance(entry, dict) and entry["node"] == error.named_node:
                return (name, i, _part_of_entry(error, entry))
    return None


def _part_of_entry(error: EngineError, entry: Mapping[str, Any]) -> str:
    """Return the key of an entry at which the error is: the tensor or a part of its type if that does not fit."""
    if not isinstance(error, ShapeMismatch | DtypeMismatch):
        return "node"
    keys = ("tensor", "tensor_id", "shape" if isinstance(error, ShapeMismatch) else "dtype")
    return next((key for key in keys if key in entry), "node")


def internal_error() -> Refusal:
    """Return the refusal for a bug in the server; the log has the cause under the request's id."""
    return Refusal("internal_error", "the server failed on this request; its log has the cause under this request_id")


def unreadable() -> Refusal:
    """Return the refusal for an unexpected exception while a request was parsed; the log has the cause."""
    return Refusal("invalid_field", UNREADABLE, expected="a request that this call accepts", pointer="")


def stopping() -> Refusal:
    """Return the refusal that a stopping server sends."""
    return Refusal("shutting_down", "the server is shutting down and accepts no new requests", retry_after=5)


def queue_full(held: int, retry_after: int) -> Refusal:
    """Return the refusal that a server sends if it holds its maximum number of requests."""
    detail = f"the server already holds {held} requests, its limit; try again shortly"
    return Refusal("queue_full", detail, retry_after=retry_after)


def deadline_exceeded(seconds: float) -> Refusal:
    """Return the refusal for a request that did not finish within `seconds`."""
    return Refusal("deadline_exceeded", f"the request did not finish within its timeout of {seconds:g} s")


def out_of_memory() -> Refusal:
    """Return the refusal for an allocation that failed despite the budgets."""
    return Refusal("over_budget", "the server ran out of memory on this request; send a smaller one", got="no memory")
