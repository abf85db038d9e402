"""Long listings, page by page: how much of one a request asks for, and from where on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from heapq import nsmallest
from typing import Final, NamedTuple

from engine import printable
from service.errors import Refusal
from service.web.query import parameters_of

_USUAL: Final = 100
_MOST: Final = 1000
_COUNT: Final = re.compile(r"[0-9]{1,9}")


class Page(NamedTuple):
    """Page of so many entries, from behind the one that is called `after`; None: from the first on."""

    limit: int
    after: str | None


def names_of_page(there: Iterable[str], limit: int, after: str | None) -> tuple[list[str], str | None]:
    """The names of a page, in their order, and what is to be stated as `after` for the next one, where there is one."""
    names = nsmallest(limit + 1, there if after is None else (name for name in there if name > after))
    return names[:limit], names[limit - 1] if len(names) > limit else None


def page_of(query: bytes) -> Page:
    """The page that a query asks for. Raises Refusal (invalid_field)."""
    stated = parameters_of(query, ("limit", "after"))
    limit = stated.get("limit", str(_USUAL))
    if not _COUNT.fullmatch(limit) or not 1 <= int(limit) <= _MOST:
        got = printable(limit) or "nothing"
        expected = f"a whole number from 1 to {_MOST}"
        raise Refusal("invalid_field", f"limit must be {expected}, but is {got}", expected=expected, got=got)
    return Page(int(limit), stated.get("after"))
