"""The query of a request, read from the head so that the body need not be touched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from heapq import nsmallest
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote_plus

from engine import printable
from service.core.errors import Refusal

#: the query's parameter that every call with a deadline takes
TIME: Final = "timeout_ms"
_MILLISECONDS: Final = re.compile(r"[0-9]{1,18}")
#: entries of a page
_USUAL: Final = 100
_MOST: Final = 1000
_COUNT: Final = re.compile(r"[0-9]{1,9}")


def parameters_of(query: bytes, known: Sequence[str]) -> dict[str, str]:
    """Read these parameters of a query, each once. Raises Refusal (invalid_field)."""
    stated: dict[str, str] = {}
    for name, value in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
        if name not in known or name in stated:
            if name in stated:
                detail = f"{name} stands twice in the query"
                raise Refusal("invalid_field", detail, expected=f"{name} once", got="twice")
            shown, listed = printable(name), ", ".join(known)
            detail = f"the query has no parameter “{shown}” (known: {listed})"
            raise Refusal("invalid_field", detail, expected=listed, got=shown)
        stated[name] = value
    return stated


def timeout_of(query: bytes, most_ms: int) -> float:
    """Seconds that a request may take: `timeout_ms`, lowered to the server's. Raises Refusal (invalid_field)."""
    return timeout_in(parameters_of(query, (TIME,)), most_ms)


def timeout_in(parameters: dict[str, str], most_ms: int) -> float:
    """Read it where the query may state other things, too."""
    stated = parameters.get(TIME)
    if stated is None:
        return most_ms / 1000
    if not _MILLISECONDS.fullmatch(stated) or not int(stated):
        got = printable(stated) or "nothing"
        detail = f"timeout_ms must be a whole number of milliseconds of at least 1, but is {got}"
        raise Refusal("invalid_field", detail, expected="a whole number of at least 1", got=got)
    return min(int(stated), most_ms) / 1000


def without_time(query: bytes) -> str:
    """Leave the time out of a query: whoever asks the same with more time, or with less, has the same text."""
    stated = query.decode("latin-1").split("&")
    return "&".join(part for part in stated if unquote_plus(part.partition("=")[0]) != TIME)


def choice_in(parameters: dict[str, str], name: str, choices: Sequence[str]) -> str:
    """Read a choice of the query, the first one where nothing is stated. Raises Refusal (invalid_field)."""
    value = parameters.get(name, choices[0])
    if value not in choices:
        expected, got = " or ".join(choices), printable(value) or "nothing"
        raise Refusal("invalid_field", f"{name} must be {expected}, but is {got}", expected=expected, got=got)
    return value


class Page(NamedTuple):
    """Page of a long listing: so many entries, from behind the one that is called `after`; None: from the first on."""

    limit: int
    after: str | None


def names_of_page(there: Iterable[str], limit: int, after: str | None) -> tuple[list[str], str | None]:
    """Return the names of a page, in their order, and the `after` of the next page, if there is one."""
    names = nsmallest(limit + 1, there if after is None else (name for name in there if name > after))
    return names[:limit], names[limit - 1] if len(names) > limit else None


def page_of(query: bytes) -> Page:
    """Return the page that a query asks for. Raises Refusal (invalid_field)."""
    stated = parameters_of(query, ("limit", "after"))
    limit = stated.get("limit", str(_USUAL))
    if not _COUNT.fullmatch(limit) or not 1 <= int(limit) <= _MOST:
        got = printable(limit) or "nothing"
        expected = f"a whole number from 1 to {_MOST}"
        raise Refusal("invalid_field", f"limit must be {expected}, but is {got}", expected=expected, got=got)
    return Page(int(limit), stated.get("after"))
