"""Description of one operation in the OpenAPI document, beyond its path and its docstring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from service.api.calls.description import Json
from service.web.pages.error_pages import Failure


@dataclass(frozen=True)
class Operation:
    """All there is to say of one.

    `call` names the job that answers the examples, on the shared graph where that is `registered`, about the tensor
    or model that is its `subject`. `statuses` are those of its answers, each with what it means, and `bodiless` those
    without a body; `is_binary`, whether they come as safetensors, too, and `takes_binary`, whether requests do; and
    `headers` are what they have.
    """

    answer: str
    failures: Sequence[Failure]
    request: str = ""
    requests: Mapping[str, Json] = field(default_factory=dict)
    parameters: Sequence[Json] = ()
    call: str = ""
    registered: bool = False
    subject: str | None = None
    statuses: Mapping[str, str] = field(default_factory=lambda: {"200": "The answer"})
    bodiless: Mapping[str, str] = field(default_factory=dict)
    headers: Sequence[str] = ()
    is_binary: bool = False
    takes_binary: bool = True
