"""Description of an operation in the OpenAPI document, in addition to its path and its docstring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from service.api.calls.description import Json
from service.web.pages.error_pages import Failure


@dataclass(frozen=True)
class Operation:
    """Everything that the document states about one operation.

    `call` names the task that computes the responses to the examples, on the shared graph if `registered`, for the
    tensor or model `subject`. `statuses` maps the statuses of successful responses to their meanings, and `bodiless`
    those of responses without a body. `is_binary` tells whether responses may be safetensors, `takes_binary` whether
    requests may. `headers` are those of the responses.
    """

    answer: str
    failures: Sequence[Failure]
    request: str = ""
    requests: Mapping[str, Json] = field(default_factory=dict)
    parameters: Sequence[Json] = ()
    call: str = ""
    registered: bool = False
    subject: str | None = None
    statuses: Mapping[str, str] = field(default_factory=lambda: {"200": "Success"})
    bodiless: Mapping[str, str] = field(default_factory=dict)
    headers: Sequence[str] = ()
    is_binary: bool = False
    takes_binary: bool = True
