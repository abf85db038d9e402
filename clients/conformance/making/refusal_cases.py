"""Cases of every error code of the server, and the error that a client raises for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from clients.conformance.bits import Json
from clients.conformance.cases import Case
from clients.conformance.making.exchange_parts import REQUEST_ID, SEEN, WAITS, exchange, raised
from service.core.errors import KINDS, Refusal

#: type of error by status; any other status is `server` from 500 on, and `graph` below
_TYPES: Final = {
    401: "authentication",
    403: "authentication",
    404: "not_found",
    408: "deadline",
    409: "condition",
    412: "condition",
    429: "rate",
    503: "overload",
    504: "deadline",
    507: "store_full",
}
#: statuses that clients retry
_REPEATED: Final = frozenset({408, 429, 503})
#: members of a problem that errors do not have under that name
_NOT_SHOWN: Final = frozenset({"type", "title", "errors"})


def refusal_cases() -> Iterator[Case]:
    """Yield all cases."""
    for code in KINDS:
        yield _case(f"refusal-{code.replace('_', '-')}", _refusal(code))
    several = _refusal("missing_feed")
    several.errors = [_refusal("missing_feed"), Refusal("dtype_mismatch", "the feed of node 1 is int8", node=1)]
    yield _case("refusal-of-several-faults", several)
    for status in (402, 418, 451, 499, 501, 502, 520, 599):
        problem = {
            "type": "/of/tomorrow",
            "title": "New",
            "status": status,
            "detail": "It is new.",
            "code": "brand_new",
        }
        answer = {"status": status, "json": problem | {"request_id": REQUEST_ID}}
        error = raised(_type_of(status), status, "brand_new", detail="It is new.", request_id=REQUEST_ID)
        yield exchange(f"refusal-unknown-{status}", [answer], [SEEN], [error])


def _type_of(status: int) -> str:
    return _TYPES.get(status, "server" if status >= 500 else "graph")


def _refusal(code: str) -> Refusal:
    """Return a refusal of this code, with all members that a problem may have."""
    location: Json = (
        {"node": 0, "operand": 1, "pointer": "/graph/nodes/0/operands/1"} if KINDS[code].status == 422 else {}
    )
    return Refusal(code, f"a sentence about {code}", expected="something", got="“something” else", **location)


def _case(name: str, refusal: Refusal) -> Case:
    """Return a case of one try, or of as many as a client makes if the error is retried."""
    problem: Json = json.loads(refusal.body(REQUEST_ID))
    tries = _tries(refusal)
    answer: Json = {"status": refusal.status, "json": problem}
    if refusal.headers:
        answer["headers"] = refusal.headers
    error = {"raised": {"type": _type_of(refusal.status)} | _fields(problem)}
    return exchange(name, [answer] * tries, [SEEN] * tries, [error], waits=WAITS[: tries - 1])


def _tries(refusal: Refusal) -> int:
    if refusal.status not in _REPEATED:
        return 1
    return 2 if refusal.code == "worker_died" else 3


def _fields(problem: Json) -> dict[str, Any]:
    """Return the members of a problem that the error has."""
    members = {name: value for name, value in problem.items() if name not in _NOT_SHOWN}
    if "errors" in problem:
        members["errors"] = [_fields(error) for error in problem["errors"]]
    return members
