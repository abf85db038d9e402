"""Tenant whose share a request comes out of."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import Final

from service.keys.caller import ANYONE, Caller

#: bits of an IPv6 address that one site has in common: whoever has an address has 2⁶⁴ of them
_SITE: Final = 64


def tenant_of(caller: Caller, address: str) -> str:
    """Return the name that this caller's share is counted under: a namespace, or an address if no keys are asked for.

    Of IPv6 addresses, those of one site are one tenant. A connection without an address (a Unix socket) has the empty
    one. Tenants of different kinds never have the same name.
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
