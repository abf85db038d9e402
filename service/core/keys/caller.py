"""Identity of a request's sender: the credential in its head, the caller, and the tenant that it counts for.

A credential is the digest of a key, or the complaint about it. The key itself goes no further.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple

from service.core.errors import Refusal


class KeyScope(StrEnum):
    """Permission of a key."""

    COMPUTE = "compute"  # the computing calls
    READ = "read"  # graphs and tensors that are kept, and the catalogue of both
    WRITE = "write"  # to keep and to delete them
    ADMIN = "admin"  # the server's own figures


@dataclass(frozen=True, slots=True)
class Caller:
    """Holder of a key: name in logs and metrics, permissions, and the namespace of its graphs and tensors.

    Callers of one namespace share everything; those of different ones see nothing of each other.
    """

    name: str
    namespace: str
    scopes: frozenset[KeyScope]

    def require(self, needed: KeyScope) -> None:
        """Raise Refusal (forbidden) unless the caller has this scope."""
        if needed not in self.scopes:
            raise lacking(needed, self.scopes)


def lacking(needed: KeyScope, held: Collection[KeyScope]) -> Refusal:
    """Return the refusal of a key without the scope that is needed."""
    shown = ", ".join(scope for scope in KeyScope if scope in held)
    detail = f"this needs a key of the scope {needed}, and the one that came has {shown}"
    return Refusal("forbidden", detail, expected=needed.value, got=shown)


#: the caller of all requests if no keys are asked for
ANYONE: Final = Caller("", "", frozenset(KeyScope))

#: prefix of our keys, by which a leaked one is recognised
KEY_PREFIX: Final = "gs_"
#: RFC 6750, 2.1; the scheme's case does not matter (RFC 9110, 11.1)
_BEARER: Final = re.compile(rb"bearer +([A-Za-z0-9._~+/-]+=*)", re.IGNORECASE)
_FORM: Final = "Authorization: Bearer KEY"
#: a key wherever it stands: somebody may have put it into a path, or into the id of a request
_ANYWHERE: Final = re.compile(rf"{KEY_PREFIX}[A-Za-z0-9_-]{{16,}}")


class Credential(NamedTuple):
    """SHA-256 of the key that came, or a sentence on why there is none."""

    digest: bytes | None
    complaint: str = ""


def new_key() -> str:
    """Make a random key."""
    return KEY_PREFIX + secrets.token_urlsafe(32)


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


#: bits of an IPv6 address that one site has in common: whoever has an address has 2⁶⁴ of them
_SITE: Final = 64


def tenant_of(caller: Caller, address: str) -> str:
    """Return the name under which the caller's share is counted: a namespace, or an address if no keys are asked for.

    IPv6 addresses of one site are one tenant. A connection without an address (a Unix socket) has the empty one.
    Tenants of different kinds never have the same name.
    """
    return f"namespace {caller.namespace}" if caller is not ANYONE else f"address {_site(address)}"


def _site(address: str) -> str:
    try:
        known = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(known, IPv6Address):
        if known.ipv4_mapped is not None:
            return str(known.ipv4_mapped)
        return str(IPv6Address(int(known) >> _SITE << _SITE))
    return address
