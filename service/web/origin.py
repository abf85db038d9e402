"""By which names the server may be called, and by which web pages: a browser sends what any page tells it to.

A page from elsewhere reaches a server on the loopback in two ways. It calls it by its address: then the browser says
where the page is from. Or the page's own name leads to 127.0.0.1 all at once (DNS rebinding), so that the browser takes
server and page for the same: then the name is a stranger's.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from starlette.datastructures import Headers

from engine import printable
from service.core.errors import Refusal
from service.core.settings import EVERY, Settings

_AUTHORITY: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@/?#,\s]+)(?::([0-9]*))?")
_ORIGIN: Final = re.compile(r"(https?)://(.*)", re.IGNORECASE)
_USUAL_PORTS: Final = {"http": "80", "https": "443"}
#: what is asked of any server under any address: whether it is well
HEALTH: Final = "/health/"


class OriginPolicy:
    """Policy of a server of these settings on origins."""

    def __init__(self, settings: Settings) -> None:
        named = settings.allowed_hosts
        # Who has to send a key is not helped by a name: a browser that is led astray sends none.
        self._names = None if settings.asks_for_keys or EVERY in named else frozenset(map(canonical_origin, named))
        self._origins = frozenset(settings.cors_origins)
        self._reach = settings.asks_for_keys or settings.insecure == "on"

    def check_address(self, host: str) -> None:
        """Raise Refusal (forbidden) where others reach the address that a request came to, and may not.

        Our own connections are on the loopback then. Of another server's it is known with the first request.
        """
        address = None if self._reach else _address(host)
        if address is not None and not is_loopback(address):
            detail = (
                f"others reach this server, at {address}, and it asks for no key: set GRADSERVE_KEYS_FILE or "
                "GRADSERVE_API_KEY, or GRADSERVE_INSECURE=on if everybody may compute here"
            )
            raise Refusal("forbidden", detail, expected="a server on the loopback, or one with keys")

    def check(self, headers: Headers, scheme: str, route: str | None, *, visits: bool) -> None:
        """Raise Refusal (misdirected, forbidden) where the request is not to be served.

        `route` is the path that leads to what is asked for, None where none does; a page that is open to everybody may
        be visited from anywhere, by a click on a link.
        """
        host = headers.get("host", "")
        is_named = self._names is None or is_of_this_machine(host) or _name(host) in self._names
        if not is_named and "host" in headers and not (route or "").startswith(HEALTH):
            got = printable(host)
            advice = "call it localhost, or start it with --allowed-hosts"
            detail = f"the server is not known by the name “{got}”; {advice}"
            raise Refusal("misdirected", detail, expected="localhost, or a name of --allowed-hosts", got=got)
        origin = ", ".join(headers.getlist("origin"))
        if origin in self._origins or (EVERY in self._origins and "origin" in headers):
            return
        if "origin" in headers:
            if not _is_origin_of(origin, scheme, host):
                raise _forbidden(origin)
        elif is_cross_site(headers) and not (visits and is_visit(headers)):
            raise _forbidden("other sites")


def canonical_origin(name: str) -> str:
    """Write a host's name or address as it is compared: in lower case, without a dot at its end; addresses in short."""
    address = _address(name)
    return str(address) if address is not None else name.lower().removesuffix(".")


def is_of_this_machine(host: str) -> bool:
    """Whether the value of `Host` names the loopback, under whatever port (RFC 6761, 6.3 for names)."""
    name = _name(host)
    if name is None:
        return False
    address = _address(name)
    if address is None:
        return name == "localhost" or (name.endswith(".localhost") and not name.startswith("."))
    return is_loopback(address)


def is_loopback(address: IPv4Address | IPv6Address) -> bool:
    """Whether only this machine reaches it."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def is_of_a_browser(headers: Headers) -> bool:
    """Whether a browser sends this for a page, as far as it says."""
    return "origin" in headers or any(name.startswith("sec-fetch-") for name in headers)


def is_cross_site(headers: Headers) -> bool:
    """Whether a browser says that a page of another site asks."""
    return "cross-site" in headers.get("sec-fetch-site", "").lower()


def is_visit(headers: Headers) -> bool:
    """Whether a person goes there, in a tab of its own, rather than a page fetches or frames it."""
    return headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"


def _is_origin_of(origin: str, scheme: str, host: str) -> bool:
    found = _ORIGIN.fullmatch(origin)
    if found is None or found[1].lower() != scheme:
        return False
    mine = _place(host, scheme)
    return mine is not None and mine == _place(found[2], scheme)


def _place(authority: str, scheme: str) -> tuple[str, str] | None:
    found = _AUTHORITY.fullmatch(authority)
    return None if found is None else (canonical_origin(found[1]), found[2] or _USUAL_PORTS[scheme])


def _name(authority: str) -> str | None:
    """Return the name or address without the port."""
    found = _AUTHORITY.fullmatch(authority)
    return None if found is None else canonical_origin(found[1])


def _address(name: str) -> IPv4Address | IPv6Address | None:
    """Read a name that is an address; those of IPv6 are in brackets, or were before `canonical_origin`."""
    try:
        found = ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None
    return None if isinstance(found, IPv4Address) and name.startswith("[") else found


def _forbidden(origin: str) -> Refusal:
    got = printable(origin)
    return Refusal("forbidden", f"pages of {got} may not make this call", got=got)
