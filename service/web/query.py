"""The query of a computing call: its deadline, read from the head so that the body need not be touched."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qsl

from engine import printable
from service.errors import Refusal

_MILLISECONDS: Final = re.compile(r"[0-9]{1,18}")


def timeout_of(query: bytes, most_ms: int) -> float:
    """Seconds that a request may take: `timeout_ms`, lowered to the server's. Raises Refusal (invalid_field)."""
    stated = most_ms
    seen: set[str] = set()
    for name, value in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
        if name != "timeout_ms" or name in seen:
            raise _refusal_of(name, name in seen)
        seen.add(name)
        stated = _milliseconds(value)
    return min(stated, most_ms) / 1000


def _milliseconds(value: str) -> int:
    if not _MILLISECONDS.fullmatch(value) or not int(value):
        got = printable(value) or "nothing"
        raise Refusal(
            "invalid_field",
            f"timeout_ms must be a whole number of milliseconds of at least 1, but is {got}",
            expected="a whole number of at least 1",
            got=got,
        )
    return int(value)


def _refusal_of(name: str, twice: bool) -> Refusal:
    if twice:
        return Refusal("invalid_field", "timeout_ms stands twice in the query", expected="timeout_ms once", got="twice")
    shown = printable(name)
    detail = f"the query has no parameter “{shown}” (known: timeout_ms)"
    return Refusal("invalid_field", detail, expected="timeout_ms", got=shown)
