"""Heads that came before. Clients send the same few again and again; to look one up costs a hundredth of parsing it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from service.web.parsing import Head

#: heads that are kept, at least; and the bytes that one may have
MOST_HEADS: Final = 1024
_MOST_BYTES: Final = 2048
_LENGTH: Final = re.compile(rb"\r\n[Cc]ontent-[Ll]ength: ([0-9]{1,18})\r\n")

Key = bytes | tuple[bytes, bytes]


class KnownHeads:
    """Reader of heads, each that is like one before by its bytes; like means the same but for the number of its length.

    Two generations stand for an order by use: what is met in the old one moves to the young one, and when that is
    full, the old one goes.
    """

    def __init__(self, read: Callable[[bytes], Head], most: int = MOST_HEADS) -> None:
        self._read = read
        self._most = most
        self._young: dict[Key, Head] = {}
        self._old: dict[Key, Head] = {}

    def find(self, raw: bytes) -> tuple[Head, int]:
        """A head, and the length of the body that it announces. Raises Refusal: bad_request_framing."""
        found = _LENGTH.search(raw)
        # Two parts and not a whole: a head that states no number at all must not be found as one that states some.
        key: Key = (raw[: found.start(1)], raw[found.end(1) :]) if found else raw
        head = self._young.get(key)
        if head is None:
            head = self._old.get(key) or self._read(raw)
            if len(raw) <= _MOST_BYTES:
                self._keep(key, head)
        return head, int(found[1]) if found else head.length

    def _keep(self, key: Key, head: Head) -> None:
        if len(self._young) >= self._most:
            self._old, self._young = self._young, {}
        self._young[key] = head
