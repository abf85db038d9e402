"""Reports of HAProxy's own errors, in the form of the servers' reports."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from engine import printable
from service.errors import Refusal
from service.wire.media import PROBLEM

#: the id of requests that could not be read: HAProxy writes their reports as they stand in a file
UNREAD: Final = "ingress"
#: HAProxy's variable that has the id of a request
TOLD_ID: Final = "%[var(txn.id)]"
_HEADER: Final = "x-request-id"
_NO_SNIFFING: Final = {"x-content-type-options": "nosniff"}

#: by the status that HAProxy gives an error, while the request is known
ANSWERED: Final = {
    502: Refusal(
        "unconfirmed",
        "the server ended before it had answered: what the request writes may be kept, or not; with an "
        "Idempotency-Key it may be sent again as it is",
        retry_after=1,
    ),
    503: Refusal("not_ready", "no server that is ready could be reached", retry_after=1),
    504: Refusal(
        "deadline_exceeded",
        "the server did not answer within the time that the ingress gives it: what the request writes may be kept, or "
        "not",
    ),
}
#: by the status, where the head could not be read, or nothing of the request is known any more
UNANSWERED: Final = {
    400: Refusal("bad_request_framing", "the ingress could not read the request as HTTP/1.1"),
    408: Refusal("request_timeout", "the request did not arrive within the time that the ingress gives it"),
    413: Refusal("body_too_large", "the ingress takes no request of this size"),
    500: Refusal("not_ready", "the ingress has no memory for the request", retry_after=1),
    501: Refusal("bad_request_framing", "the ingress does not know how the body is encoded"),
}


def elsewhere(path: str) -> Refusal:
    """What a server answers on a path that it does not have."""
    shown = printable(path)
    return Refusal("not_found", f"there is nothing at {shown}; /docs lists the calls", got=shown)


def as_it_is_sent(refusal: Refusal) -> bytes:
    """The whole response, head and body, as it stands in a file of HAProxy's, which ends the lines as HTTP does."""
    body = refusal.body(UNREAD)
    fields = {"content-type": PROBLEM, _HEADER: UNREAD, "content-length": str(len(body)), "connection": "close"}
    fields |= {**_NO_SNIFFING, **{name.lower(): value for name, value in refusal.headers.items()}}
    lines = [f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return "\n".join([*lines, "", ""]).encode() + body


def in_format(refusal: Refusal, *filled: str) -> str:
    """What follows the status in a line of HAProxy's that answers: type, body, headers.

    `filled` are HAProxy's expressions that the body has, beside the id; all else is text.
    """
    body = refusal.body(TOLD_ID).decode().replace("%", "%%")
    for expression in (TOLD_ID, *filled):
        body = body.replace(expression.replace("%", "%%"), expression)
    fields = {_HEADER: TOLD_ID, **_NO_SNIFFING, **refusal.headers}
    headers = [f"hdr {name} {value}" for name, value in fields.items()]
    return " ".join([f"content-type {PROBLEM}", f"lf-string {quoted(body)}", *headers])


def quoted(text: str) -> str:
    """Text as one word of HAProxy's: between strong quotes, where no character means anything else."""
    return "'" + text.replace("'", "'\\''") + "'"


#: the report of a path of servers that callers have no business with, where the path stands in JSON as it is
HIDDEN: Final = elsewhere("%[path]")
