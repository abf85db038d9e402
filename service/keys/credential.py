"""Credential in a request's head: the digest of a key, or what is wrong. No part of a key goes any further."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from hashlib import sha256
from typing import Final, NamedTuple

#: what our keys begin with, so that who finds one knows what it is
KEY_PREFIX: Final = "gs_"
#: bytes of a key that are left to chance
_BYTES: Final = 32
#: RFC 6750, 2.1; the scheme's case does not matter (RFC 9110, 11.1)
_BEARER: Final = re.compile(rb"bearer +([A-Za-z0-9._~+/-]+=*)", re.IGNORECASE)
_FORM: Final = "Authorization: Bearer KEY"
#: a key wherever it stands: somebody may have put it into a path, or into the id of a request
_ANYWHERE: Final = re.compile(rf"{KEY_PREFIX}[A-Za-z0-9_-]{{16,}}")


class Credential(NamedTuple):
    """The SHA-256 of the key that came; None where none came that could be one, and then why, as a sentence."""

    digest: bytes | None
    complaint: str = ""


def new_key() -> str:
    """A key that nobody can guess."""
    return KEY_PREFIX + secrets.token_urlsafe(_BYTES)


def mask_keys(text: str) -> str:
    """Replace keys in a text that is to be logged or traced, wherever they stand, by `gs_…`."""
    return _ANYWHERE.sub(f"{KEY_PREFIX}…", text) if KEY_PREFIX in text else text


def digest_of(key: str) -> bytes:
    """Return the SHA-256 of a key. A key is long and random, so that no slow hash has to protect it."""
    return sha256(key.encode("ascii")).digest()


def credential_of(fields: Iterable[tuple[bytes, bytes]]) -> Credential:
    """Read the key from header fields, whose names are in lower case."""
    stated = [value for name, value in fields if name == b"authorization"]
    if not stated:
        return Credential(None, f"the request has no key; send one as {_FORM}")
    if len(stated) > 1:
        return Credential(None, f"the request has the header Authorization {len(stated)} times; send it once")
    found = _BEARER.fullmatch(stated[0])
    if found is None:
        return Credential(None, f"the header Authorization is not of the form {_FORM}")
    return Credential(sha256(found[1]).digest())
