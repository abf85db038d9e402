"""Record of a key: everything but the key itself."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from service.keys.caller import Caller, KeyScope
from service.sizes import Size

_RATE: Final = re.compile(r"([1-9][0-9]{0,8})/(s|min|h)")
_SECONDS: Final = {"s": 1.0, "min": 60.0, "h": 3600.0}


class Rate(NamedTuple):
    """Rate of so many requests in so many seconds."""

    requests: int
    seconds: float


def rate_of(text: str) -> Rate:
    """Parse `10/s`, `600/min` or `5000/h`. Raises ValueError."""
    found = _RATE.fullmatch(text)
    if found is None:
        raise ValueError("a rate is a whole number of requests per s, min or h, as in 10/s")
    return Rate(int(found[1]), _SECONDS[found[2]])


def _checked(text: str) -> str:
    rate_of(text)
    return text


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


class KeyRecord(BaseModel):
    """One key: its name, its SHA-256 in hexadecimal digits, what it is good for, and how much of it.

    What begins with `max_` is for its namespace, and replaces the share that a namespace has of the setting so called.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    namespace: str = Field(pattern=r"^[A-Za-z0-9_.-]{0,64}$")
    scopes: tuple[KeyScope, ...] = Field(min_length=1)
    rate: Annotated[str, AfterValidator(_checked)] | None = None
    concurrency: int | None = Field(None, ge=1)
    max_graphs: int | None = Field(None, ge=0)
    max_graph_bytes: Size | None = Field(None, ge=0)
    max_tensors: int | None = Field(None, ge=0)
    max_tensor_bytes: Size | None = Field(None, ge=0)
    max_answers: int | None = Field(None, ge=0)
    max_answer_bytes: Size | None = Field(None, ge=0)
    max_models: int | None = Field(None, ge=0)
    max_model_bytes: Size | None = Field(None, ge=0)
    added: str = Field(default_factory=_now)

    @property
    def caller(self) -> Caller:
        """The caller that the key stands for."""
        return Caller(self.name, self.namespace, frozenset(self.scopes))


#: limits of what a namespace keeps that a key may state
KEPT_LIMITS: Final = tuple(name for name in KeyRecord.model_fields if name.startswith("max_"))


class KeyList(BaseModel):
    """Content of a key file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    keys: tuple[KeyRecord, ...] = ()
