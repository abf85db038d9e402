"""A part of a page that is written by a program, between two marks."""

from __future__ import annotations


def rewritten(page: str, start: str, end: str, part: str, what: str) -> str:
    """The page with this part in place of its own; `what` it is, for who reads the error.

    Raises ValueError where the page has no place for it.
    """
    before, begins, rest = page.partition(start)
    _, ends, after = rest.partition(end)
    if not begins or not ends:
        raise ValueError(f"the page has no place for {what}, between {start.strip()} and {end}")
    return f"{before}{start}\n{part}\n{end}{after}"
