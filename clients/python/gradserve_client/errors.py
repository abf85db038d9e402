"""Everything that can go wrong, by what one does about it.

GradserveError
├── InputError               refused before anything was sent: mend the program
├── TransportError           there is no answer that could be read
│   ├── ConnectionFailed     none came, or half of one: look at the network, or try again
│   ├── MalformedAnswer      something else came than was promised: look at what stands in between
│   └── AnswerTooLarge       it is longer than `max_response_bytes`: ask for less, or raise that
├── DeadlineError            the time was up: ask for less, or give more
│   └── DeadlineRefusal      … and it was the server that said so
└── Refusal                  the server's report, with all of its fields
    ├── GraphError           the request is wrong, or more than one may ask: mend the graph, or what it is fed
    ├── AuthenticationError  the key is missing, unknown, or not allowed this: get another
    ├── RateError            the key has used up its rate: ask less often
    ├── OverloadError        the server is busy, or about to stop: ask later
    ├── DeadlineRefusal
    ├── NotFoundError        nothing is kept under this name or id: put or register it
    ├── ConditionError       somebody else has written meanwhile, or needs it: read again, then write
    ├── StoreFullError       there is no room: delete something
    └── ServerError          a fault of the server's own: report it with its `request_id`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final


class GradserveError(Exception):
    """Whatever this package raises on purpose."""


class InputError(GradserveError, ValueError):
    """What the client knows to be wrong, and has not sent."""


class TransportError(GradserveError):
    """There is no answer that could be read."""


class ConnectionFailed(TransportError):
    """No answer came, or half of one. What keeps something may have been kept."""


class MalformedAnswer(TransportError):
    """What came is not what was promised: another media type, broken JSON, a tensor that does not fit its bytes."""


class AnswerTooLarge(TransportError):
    """The answer is longer than `max_response_bytes`. It was not read."""


class DeadlineError(GradserveError):
    """The time for all tries was up."""


class Refusal(GradserveError):
    """A report of the server's, as docs/wire.md has it: `detail` is for people, `code` for programs.

    Codes are an open list; what did not come, as with a proxy's page, is empty or None. `extra` has the members that
    this client does not know, `retry_after` the seconds that the server wants to be left alone, and `errors` all that
    was found wrong, where that was more than one thing.
    """

    def __init__(self, problem: Mapping[str, Any], retry_after: float | None = None) -> None:
        self.status: int = problem["status"]
        self.code = _text(problem, "code") or ""
        self.detail = _text(problem, "detail") or ""
        self.type = _text(problem, "type") or ""
        self.title = _text(problem, "title") or ""
        self.request_id = _text(problem, "request_id") or ""
        self.node = _whole(problem, "node")
        self.function = _whole(problem, "function")
        self.function_node = _whole(problem, "function_node")
        self.operand = _whole(problem, "operand")
        self.expected = _text(problem, "expected")
        self.got = _text(problem, "got")
        self.pointer = _text(problem, "pointer")
        self.errors = tuple(
            refusal({**one, "status": _whole(one, "status") or self.status}) for one in _reports(problem)
        )
        self.extra: dict[str, Any] = {name: value for name, value in problem.items() if name not in _KNOWN}
        self.retry_after = retry_after
        self._problem = problem
        said = f"{self.code}: {self.detail}" if self.code else f"status {self.status}, without a report that says why"
        super().__init__(said)

    def __reduce__(self) -> tuple[Any, ...]:
        # As it was made: exceptions are made again of their message otherwise, on the way between processes.
        return type(self), (self._problem, self.retry_after), {"args": self.args}

    def add(self, sentence: str) -> None:
        """Say more than the report does, of what the client knows."""
        self.args = (f"{self.args[0]} ({sentence})",)


class GraphError(Refusal):
    """The request is wrong, or more than one may ask."""


class AuthenticationError(Refusal):
    """The key is missing, unknown, or not allowed this."""


class RateError(Refusal):
    """The key has used up its rate."""


class OverloadError(Refusal):
    """The server cannot take it now."""


class DeadlineRefusal(DeadlineError, Refusal):
    """The time was up on the server."""


class NotFoundError(Refusal):
    """Nothing is kept under this name or id."""


class ConditionError(Refusal):
    """The state is another one than the request demands, or than it was."""


class StoreFullError(Refusal):
    """There is no room left for what was to be kept."""


class ServerError(Refusal):
    """A fault of the server's own."""


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
    """A member that is a string; None where it is absent, or anything else."""
    value = problem.get(name)
    return value if isinstance(value, str) else None


def _whole(problem: Mapping[str, Any], name: str) -> int | None:
    value = problem.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _reports(problem: Mapping[str, Any]) -> list[dict[str, Any]]:
    errors = problem.get("errors")
    return [one for one in errors if isinstance(one, dict)] if isinstance(errors, list) else []


def refusal(problem: Mapping[str, Any], retry_after: float | None = None) -> Refusal:
    """A report as the error that says what to do about it."""
    status = problem["status"]
    kind = _BY_STATUS.get(status, ServerError if status >= 500 else GraphError)
    return kind(problem, retry_after)
