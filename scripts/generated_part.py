"""Generated part of a page, between two markers."""

from __future__ import annotations


def replace_part(page: str, start: str, end: str, part: str, label: str) -> str:
    """Return the page with its generated part replaced. `label` names the part in errors.

    Raises ValueError if the page lacks the markers.
    """
    before, start_marker, rest = page.partition(start)
    _, end_marker, after = rest.partition(end)
    if not start_marker or not end_marker:
        raise ValueError(f"the page has no place for {label}, between {start.strip()} and {end}")
    return f"{before}{start}\n{part}\n{end}{after}"
