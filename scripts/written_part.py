"""Generated part of a page, between two markers."""

from __future__ import annotations


def rewritten(page: str, start: str, end: str, part: str, what: str) -> str:
    """Return the page with its generated part replaced. `what` names the part in errors.

    Raises ValueError if the page lacks the markers.
    """
    before, start_marker, rest = page.partition(start)
    _, end_marker, after = rest.partition(end)
    if not start_marker or not end_marker:
        raise ValueError(f"the page has no place for {what}, between {start.strip()} and {end}")
    return f"{before}{start}\n{part}\n{end}{after}"
