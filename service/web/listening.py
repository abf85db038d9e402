"""The socket that a server listens on, and TLS by certificate files."""

from __future__ import annotations

import resource
import socket
import ssl
import sys
from ipaddress import ip_address
from typing import Final

from service.settings import Settings
from service.web.origin import is_loopback

#: connections that wait to be accepted
BACKLOG: Final = 2048


def bound(host: str, port: int) -> socket.socket:
    """A socket with the address, which does not listen yet. Raises OSError, UnicodeError when it cannot be had.

    An answer's head and body may be two writes: with Nagle's algorithm the second would wait some 40 ms for the
    client's delayed acknowledgement. Accepted sockets inherit that it is off.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    socket.getaddrinfo(host, port, family)  # raises gaierror, which binding would make an error without a reason
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.bind((host, port))
    except BaseException:
        made.close()
        raise
    return made


def announce(settings: Settings, listening: socket.socket) -> None:
    """Say on standard output where the server is."""
    scheme = "http" if settings.tls_cert is None else "https"
    sys.stdout.write(f"gradserve listening on {address(settings.host, listening, scheme)}\n")
    sys.stdout.flush()


def address(host: str, listening: socket.socket, scheme: str = "http") -> str:
    """The URL of a bound socket."""
    return f"{scheme}://{place(host, listening.getsockname()[1])}"


def place(host: str, port: int) -> str:
    """Where a server is, as URLs have it: an address of IPv6 in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def keep_to_this_machine(settings: Settings, listening: socket.socket) -> None:
    """Raises RuntimeError where others could reach a server that asks for no key, and nobody has said they may."""
    if settings.asks_for_keys or settings.insecure == "on" or is_loopback(ip_address(listening.getsockname()[0])):
        return
    raise RuntimeError(
        f"--host {settings.host} lets other machines in, and no key is asked for; set --keys-file or "
        "GRADSERVE_API_KEY, or say --insecure if everybody may compute here"
    )


def allow_descriptors(wanted: int) -> None:
    """Let this process have so many files and sockets at once, or as many as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def tls_context(settings: Settings) -> ssl.SSLContext | None:
    """What the settings ask for; None for plain HTTP. Raises RuntimeError where the files are no pair."""
    certificate, key = settings.tls_cert, settings.tls_key
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise RuntimeError("--tls-cert and --tls-key go together: a certificate and its key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        reason = error.reason or "no certificate and key in PEM"
        raise RuntimeError(f"cannot use {certificate} with {key}: {reason}") from None
    except OSError as error:
        raise RuntimeError(f"cannot read {certificate} and {key}: {error.strerror}") from None
    return context
