"""Media types and content coding: those that are supported, and the negotiation of one for a request."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

JSON: Final = "application/json"
SAFETENSORS: Final = "application/vnd.safetensors"
OCTETS: Final = "application/octet-stream"  # from clients without a name for the format; taken as safetensors
PROBLEM: Final = "application/problem+json"
PIECE_SUMS: Final = "application/vnd.gradserve.sums"  # of a piece of a sum, between servers
GZIP: Final = "gzip"

#: types of the bodies and answers of computing calls, the default first
SPOKEN: Final = (JSON, SAFETENSORS)


def content_kind(stated: str) -> str | None:
    """Map a Content-Type to JSON, the default, or safetensors; None for anything else."""
    kind, _, parameters = stated.partition(";")
    kind = kind.strip().lower()
    if kind in (SAFETENSORS, OCTETS):
        return SAFETENSORS
    charset = parameters.replace(" ", "").replace('"', "").lower().partition("charset=")[2]
    return JSON if kind in ("", JSON) and charset in ("", "utf-8", "utf8") else None


def accepted(accept: str, spoken: Sequence[str]) -> str | None:
    """Return the one of `spoken` that an Accept header prefers, the earlier of two equal ones; None if there is none.

    The most specific range that fits a type decides about it (RFC 9110, 12.5.1).
    """
    if not accept.strip():
        return spoken[0]
    stated = dict(_range(item) for item in accept.split(","))
    if SAFETENSORS not in stated and OCTETS in stated:
        stated[SAFETENSORS] = stated[OCTETS]
    ranges = ("application/*", "*/*")
    liked = [(next((stated[r] for r in (kind, *ranges) if r in stated), 0.0), -i) for i, kind in enumerate(spoken)]
    best, place = max(liked)
    return spoken[-place] if best > 0 else None


def takes_gzip(accept_encoding: str) -> bool:
    """Return whether an Accept-Encoding header allows gzip (RFC 9110, 12.5.3)."""
    stated = dict(_range(item) for item in accept_encoding.split(","))
    return next((stated[coding] for coding in (GZIP, "x-gzip", "*") if coding in stated), 0.0) > 0


def _range(item: str) -> tuple[str, float]:
    media_range, *parameters = (part.strip().lower() for part in item.split(";"))
    weight = next((p[2:] for p in parameters if p.startswith("q=")), "1")
    with suppress(ValueError):
        return media_range, float(weight)
    return media_range, 0.0
