"""Media types and content codings: which are supported, and how one is negotiated."""

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

#: media types of the bodies and answers of computing calls, the default first
SUPPORTED: Final = (JSON, SAFETENSORS)


def content_kind(content_type: str) -> str | None:
    """Map a Content-Type to JSON, the default, or safetensors; None for anything else."""
    kind, _, parameters = content_type.partition(";")
    kind = kind.strip().lower()
    if kind in (SAFETENSORS, OCTETS):
        return SAFETENSORS
    charset = parameters.replace(" ", "").replace('"', "").lower().partition("charset=")[2]
    return JSON if kind in ("", JSON) and charset in ("", "utf-8", "utf8") else None


def negotiate(accept: str, supported: Sequence[str]) -> str | None:
    """Return the supported type that an Accept header prefers, the earlier of two equal ones; None if there is none.

    The most specific range that matches a type determines its weight (RFC 9110, 12.5.1).
    """
    if not accept.strip():
        return supported[0]
    weights = dict(_range(item) for item in accept.split(","))
    if SAFETENSORS not in weights and OCTETS in weights:
        weights[SAFETENSORS] = weights[OCTETS]
    ranges = ("application/*", "*/*")
    ranked = [
        (next((weights[r] for r in (kind, *ranges) if r in weights), 0.0), -i) for i, kind in enumerate(supported)
    ]
    best, index = max(ranked)
    return supported[-index] if best > 0 else None


def takes_gzip(accept_encoding: str) -> bool:
    """Return whether an Accept-Encoding header allows gzip (RFC 9110, 12.5.3)."""
    weights = dict(_range(item) for item in accept_encoding.split(","))
    return next((weights[coding] for coding in (GZIP, "x-gzip", "*") if coding in weights), 0.0) > 0


def _range(item: str) -> tuple[str, float]:
    media_range, *parameters = (part.strip().lower() for part in item.split(";"))
    weight = next((p[2:] for p in parameters if p.startswith("q=")), "1")
    with suppress(ValueError):
        return media_range, float(weight)
    return media_range, 0.0
