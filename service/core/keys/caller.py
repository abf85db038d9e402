"""Identity of a request's sender: the credential in its headers, the caller, and the tenant for fair sharing.

A credential is the digest of a key, or a complaint about it. The key itself is not passed on.
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

    COMPUTE = "compute"  # computing calls
    READ = "read"  # read and list stored graphs and tensors
    WRITE = "write"  # store and delete graphs and tensors
    ADMIN = "admin"  # the server's own statistics


@dataclass(frozen=True, slots=True)
class Caller:
    """Holder of a key: its name in logs and metrics, its permissions, and the namespace of its graphs and tensors.

    Callers of one namespace share everything; callers of different namespaces see nothing of each other.
    """

    name: str
    namespace: str
    scopes: frozenset[KeyScope]

    def require(self, needed: KeyScope) -> None:
        """Raise Refusal (forbidden) unless the caller has this scope."""
        if needed not in self.scopes:
            raise missing_scope(needed, self.scopes)


def missing_scope(needed: KeyScope, held: Collection[KeyScope]) -> Refusal:
    """Return the refusal of a key that lacks the needed scope."""
    shown = ", ".join(scope for scope in KeyScope if scope in held)
    detail = f"this request needs a key with the scope {needed}, but its key has {shown}"
    return Refusal("forbidden", detail, expected=needed.value, got=shown)


#: caller of every request if no keys are configured
ANONYMOUS: Final = Caller("", "", frozenset(KeyScope))

#: prefix of generated keys, by which secret scanners recognise a leaked one
KEY_PREFIX: Final = "gs_"
#: RFC 6750, 2.1; the scheme is case-insensitive (RFC 9110, 11.1)
_BEARER: Final = re.compile(rb"bearer +([A-Za-z0-9._~+/-]+=*)", re.IGNORECASE)
_FORM: Final = "Authorization: Bearer KEY"
#: a key anywhere in a text: a client may have put it into a path or into a request id
_ANYWHERE: Final = re.compile(rf"{KEY_PREFIX}[A-Za-z0-9_-]{{16,}}")


class Credential(NamedTuple):
    """SHA-256 of the received key, or a sentence on why there is none."""

    digest: bytes | None
    complaint: str = ""


def new_key() -> str:
    """Return a new random key."""
    return KEY_PREFIX + secrets.token_urlsafe(32)


def mask_keys(text: str) -> str:
    """Replace every key in a text for logs or traces by `gs_…`."""
    return _ANYWHERE.sub(f"{KEY_PREFIX}…", text) if KEY_PREFIX in text else text


def digest_of(key: str) -> bytes:
    """Return the SHA-256 of a key. A key is long and random, so no slow password hash is needed."""
    return sha256(key.encode("ascii")).digest()


def credential_of(fields: Iterable[tuple[bytes, bytes]]) -> Credential:
    """Parse the credential from header fields, whose names are in lower case."""
    values = [value for name, value in fields if name == b"authorization"]
    if not values:
        return Credential(None, f"the request has no key; send one as {_FORM}")
    if len(values) > 1:
        return Credential(None, f"the request has the header Authorization {len(values)} times; send it once")
    match = _BEARER.fullmatch(values[0])
    if match is None:
        return Credential(None, f"the header Authorization must have the form {_FORM}")
    return Credential(sha256(match[1]).digest())


#: prefix length of an IPv6 site in bits; a single subscriber has 2⁶⁴ addresses
_SITE: Final = 64


def tenant_of(caller: Caller, address: str) -> str:
    """Return the name under which the caller's share is counted: its namespace, or without keys its address.

    IPv6 addresses of one site are one tenant. A connection without an address (a Unix socket) has the empty address.
    Namespace and address tenants never have the same name.
    """
    return f"namespace {caller.namespace}" if caller is not ANONYMOUS else f"address {_site(address)}"


def _site(address: str) -> str:
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(IPv6Address(int(parsed) >> _SITE << _SITE))
    return address
