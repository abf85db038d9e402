"""Failure: a refusal as pages show it, with a request that provokes it where one does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from service.calls.description import Json
from service.errors import Refusal

#: of every request that is shown
REQUEST_ID: Final = "6f1c2d7e9a4b4c0f8d3e5a7b9c1d2e3f"


@dataclass(frozen=True)
class Failure:
    """A refusal of one code, by a request: a JSON `body` or a `raw` one; or by a `head`, and then it is `stated`.

    Neither body nor head: a state of the server or of the connection, which no single request brings about.
    """

    code: str
    body: Json | None = None
    raw: str | None = None
    head: Mapping[str, Any] = field(default_factory=dict)
    stated: Refusal | None = None

    @property
    def request(self) -> Json:
        """What to send: `body` or `raw`, `path`, `query`, `method`, `headers`."""
        sent = {"body": self.body, "raw": self.raw, **self.head}
        return {name: value for name, value in sent.items() if value is not None}
