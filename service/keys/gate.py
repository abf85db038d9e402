"""Authentication: find who holds the key of a request, and whether they may make it, before its body is looked at.

Both doors ask the `Gate`. The `KeyRing` has the keys that are valid now; a `Keyholder` counts the requests of one key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from service.errors import Refusal
from service.keys.caller import KeyScope
from service.keys.credential import Credential
from service.keys.key_ring import KeyRing
from service.keys.keyholder import EVERYBODY, Keyholder

_UNKNOWN: Final = "the server does not know this key; it may have been revoked"


class Access(NamedTuple):
    """Access that a request's head asks for, None where anybody may have it, and the key that it comes with."""

    needed: KeyScope | None
    credential: Credential


class Gate:
    """Gate that lets requests in by their keys; all of them, where there is no ring of keys.

    `denied` is told the code of every refusal.
    """

    def __init__(self, keys: KeyRing | None = None, denied: Callable[[str], None] = lambda _: None) -> None:
        self._keys = keys
        self._denied = denied

    def enter(self, access: Access) -> Keyholder:
        """Let a request in, and return its keyholder; `leave` is to be called on it when the request is over.

        Raises Refusal: unauthenticated, forbidden, rate_limited.
        """
        if self._keys is None or access.needed is None:
            holder = EVERYBODY
            holder.enter()
            return holder
        try:
            holder = self._known(self._keys, access.credential)
            holder.caller.require(access.needed)
            holder.enter()
        except Refusal as refusal:
            self._denied(refusal.code)
            raise
        return holder

    def _known(self, keys: KeyRing, credential: Credential) -> Keyholder:
        if credential.digest is None:
            raise Refusal("unauthenticated", credential.complaint)
        holder = keys.find(credential.digest)
        if holder is None:
            raise Refusal("unauthenticated", _UNKNOWN)
        return holder
