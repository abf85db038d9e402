"""The exceptions of this package, grouped by how to react.

GradserveError
├── InputError               rejected before it was sent: fix the program
├── TransportError           no readable response
│   ├── ConnectionFailed     no response, or an incomplete one: check the network, or retry
│   ├── MalformedAnswer      not a gradserve response: look for a proxy in between
│   └── AnswerTooLarge       longer than `max_response_bytes`: request less, or raise the limit
├── DeadlineError            the timeout expired: request less, or raise the timeout
│   └── DeadlineRefusal      … on the server
└── Refusal                  an error report of the server, with all of its fields
    ├── GraphError           an invalid request, or one beyond a limit: fix the graph or its feeds
    ├── AuthenticationError  the API key is missing, unknown or lacks the permission: use another key
    ├── RateError            the key has exceeded its rate limit: send fewer requests
    ├── OverloadError        the server is busy or shutting down: retry later
    ├── DeadlineRefusal
    ├── NotFoundError        nothing is stored under this name or id: put or register it
    ├── ConditionError       another client has written it, or it is in use: read again, then write
    ├── StoreFullError       the server's store is full: delete something
    └── ServerError          an internal error of the server: report it with its `request_id`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final


class GradserveError(Exception):
    """The base class of all exceptions that this package raises."""


class InputError(GradserveError, ValueError):
    """An invalid argument, detected by the client before anything was sent."""


class TransportError(GradserveError):
    """The server's response is missing or cannot be read."""


class ConnectionFailed(TransportError):
    """No response, or an incomplete one. The server may still have carried out the request."""


class MalformedAnswer(TransportError):
    """The response is not valid: an unexpected media type, broken JSON, or a tensor that does not fit its bytes."""


class AnswerTooLarge(TransportError):
    """The response is longer than `max_response_bytes`. It was not read."""


class DeadlineError(GradserveError):
    """The timeout expired before all attempts of the call were done."""


class Refusal(GradserveError):
    """An error report of the server, as docs/wire.md describes it: `detail` is for people, `code` for programs.

    New codes may be added at any time. Members that the report lacks, as in an error page of a proxy, are empty or
    None. `extra` holds the members that this client does not know. `retry_after` is the number of seconds after which
    the server accepts a retry. `errors` lists all errors, if the server found more than one.
    """

    def __init__(self, problem: Mapping[str, Any], retry_after: float | None = None) -> None:
        self.status: int = problem["status"]
        self.code = _text(problem, "code") or ""
        self.detail = _text(problem, "detail") or ""
        self.type = _text(problem, "type") or ""
        self.title = _text(problem, "title") or ""
        self.request_id = _text(problem, "request_id") or ""
        self.node = _integer(problem, "node")
        self.function = _integer(problem, "function")
        self.function_node = _integer(problem, "function_node")
        self.operand = _integer(problem, "operand")
        self.expected = _text(problem, "expected")
        self.got = _text(problem, "got")
        self.pointer = _text(problem, "pointer")
        self.errors = tuple(
            refusal({**report, "status": _integer(report, "status") or self.status}) for report in _reports(problem)
        )
        self.extra: dict[str, Any] = {name: value for name, value in problem.items() if name not in _KNOWN}
        self.retry_after = retry_after
        self._problem = problem
        message = f"{self.code}: {self.detail}" if self.code else f"status {self.status} without a problem report"
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        # By default, unpickling would call the class with the message alone.
        return type(self), (self._problem, self.retry_after), {"args": self.args}

    def add(self, sentence: str) -> None:
        """Append a sentence to the message, with a fact that only the client knows."""
        self.args = (f"{self.args[0]} ({sentence})",)


class GraphError(Refusal):
    """The request is invalid, or exceeds a limit of the server."""


class AuthenticationError(Refusal):
    """The API key is missing, unknown, or lacks the permission."""


class RateError(Refusal):
    """The API key has exceeded its rate limit."""


class OverloadError(Refusal):
    """The server is busy or shutting down."""


class DeadlineRefusal(DeadlineError, Refusal):
    """The timeout expired on the server."""


class NotFoundError(Refusal):
    """Nothing is stored under this name or id."""


class ConditionError(Refusal):
    """A condition of the request does not hold, or the state has changed in the meantime."""


class StoreFullError(Refusal):
    """The server has no room for what the request would store."""


class ServerError(Refusal):
    """An internal error of the server."""


_KNOWN: Final = frozenset(
    (
        "status",
        "code",
        "detail",
        "type",
        "title",
        "request_id",
        "node",
        "function",
        "function_node",
        "operand",
        "expected",
        "got",
        "pointer",
        "errors",
    )
)
_BY_STATUS: Final[Mapping[int, type[Refusal]]] = {
    401: AuthenticationError,
    403: AuthenticationError,
    404: NotFoundError,
    408: DeadlineRefusal,
    409: ConditionError,
    412: ConditionError,
    429: RateError,
    503: OverloadError,
    504: DeadlineRefusal,
    507: StoreFullError,
}


def _text(problem: Mapping[str, Any], name: str) -> str | None:
    """Return a member that is a string; None if it is absent or has another type."""
    value = problem.get(name)
    return value if isinstance(value, str) else None


def _integer(problem: Mapping[str, Any], name: str) -> int | None:
    value = problem.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _reports(problem: Mapping[str, Any]) -> list[dict[str, Any]]:
    errors = problem.get("errors")
    return [report for report in errors if isinstance(report, dict)] if isinstance(errors, list) else []


def refusal(problem: Mapping[str, Any], retry_after: float | None = None) -> Refusal:
    """Convert an error report into the exception for its status. `retry_after` is in seconds."""
    status = problem["status"]
    error_class = _BY_STATUS.get(status, ServerError if status >= 500 else GraphError)
    return error_class(problem, retry_after)
