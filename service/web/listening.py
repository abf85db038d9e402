"""Listening sockets of a server, and TLS from certificate files."""

from __future__ import annotations

import errno
import os
import resource
import socket
import ssl
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from ipaddress import ip_address
from typing import Final

from engine import printable
from service.core.settings import WILDCARD, Settings
from service.web.head import is_loopback, is_of_this_machine

#: most connections that wait to be accepted
BACKLOG: Final = 2048
#: most connections to the metrics listener, in all and from one address
MONITOR_CONNECTIONS: Final = 64
_MONITOR_CONNECTIONS_PER_CLIENT: Final = 16
#: seconds between two attempts to bind an address
_RETRY_SECONDS: Final = 0.5


def bind_socket(host: str, port: int) -> socket.socket:
    """Bind a socket that does not listen yet. Raises OSError, UnicodeError if the address is not available.

    Nagle's algorithm is off, and accepted sockets inherit that: head and body of a response may be two writes, and the
    second would wait some 40 ms for the client's delayed acknowledgement.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    socket.getaddrinfo(host, port, family)  # raises gaierror; `bind` would raise an error without a reason
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listening.bind((host, port))
    except BaseException:
        listening.close()
        raise
    return listening


def bind_when_free(host: str, port: int, seconds: float) -> socket.socket:
    """Bind a socket; wait at most `seconds` for another process to release the address. Raises OSError."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return bind_socket(host, port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > deadline:
                raise
        time.sleep(_RETRY_SECONDS)


def bind_monitor(settings: Settings) -> AbstractContextManager[socket.socket | None]:
    """Return the socket of the metrics listener, closed with the context; None without `metrics_port`.

    Raises RuntimeError with one sentence if the address is not available.
    """
    host, port = settings.metrics_host, settings.metrics_port
    if port is None:
        return nullcontext()
    try:
        return bind_socket(host, port)
    except (OSError, UnicodeError) as error:
        raise RuntimeError(
            f"cannot listen on port {port} on {printable(host)} for metrics: {describe_bind_error(error)}"
        ) from None


def monitor_settings(settings: Settings) -> Settings:
    """Return the settings of the metrics listener: plain HTTP without keys, and few connections.

    On the loopback it answers only to the names that a server without keys answers to; otherwise web pages could read
    the metrics by DNS rebinding. On any other address it answers to all names: Prometheus calls pods by their
    addresses.
    """
    on_loopback = is_of_this_machine(host_and_port(settings.metrics_host, 0))
    return settings.model_copy(
        update={
            "keys_file": None,
            "api_key": None,
            "insecure": "on",
            "allowed_hosts": settings.allowed_hosts if on_loopback else (WILDCARD,),
            "cors_origins": (),
            "facades": (),
            "tls_cert": None,
            "tls_key": None,
            "max_connections": MONITOR_CONNECTIONS,
            "max_connections_per_client": _MONITOR_CONNECTIONS_PER_CLIENT,
        }
    )


def describe_bind_error(error: OSError | UnicodeError) -> str:
    """Describe why a socket could not be bound. Errors of name resolution have numbers of their own, or none."""
    if isinstance(error, socket.gaierror):
        return f"unknown host ({error.strerror})"
    if isinstance(error, UnicodeError):
        return "invalid host name"
    return os.strerror(error.errno or 0)


def announce(settings: Settings, listening: socket.socket, monitor: socket.socket | None) -> None:
    """Print the address of the server to standard output, and on a second line that of its metrics."""
    scheme = "http" if settings.tls_cert is None else "https"
    sys.stdout.write(f"gradserve listening on {socket_url(settings.host, listening, scheme)}\n")
    if monitor is not None:
        sys.stdout.write(f"gradserve metrics at {socket_url(settings.metrics_host, monitor)}/metrics\n")
    sys.stdout.flush()


def socket_url(host: str, listening: socket.socket, scheme: str = "http") -> str:
    """Return the URL of a bound socket."""
    return f"{scheme}://{host_and_port(host, listening.getsockname()[1])}"


def host_and_port(host: str, port: int) -> str:
    """Write host and port as in URLs: an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def require_keys_for_remote(settings: Settings, listening: socket.socket) -> None:
    """Raise RuntimeError for a server without keys that other machines reach, unless the settings allow it."""
    if settings.requires_keys or settings.insecure == "on" or is_loopback(ip_address(listening.getsockname()[0])):
        return
    raise RuntimeError(
        f"--host {settings.host} accepts connections from other machines, but the server has no API keys; set "
        "--keys-file or GRADSERVE_API_KEY, or --insecure if anyone may use the server"
    )


def allow_descriptors(count: int) -> None:
    """Raise this process's limit of open files and sockets to `count`, or as far as allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def tls_context(settings: Settings) -> ssl.SSLContext | None:
    """Make the TLS context of the settings; None for plain HTTP. Raises RuntimeError for unusable files."""
    certificate, key = settings.tls_cert, settings.tls_key
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise RuntimeError("set both --tls-cert and --tls-key: a certificate and its key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        reason = error.reason or "not a certificate and its key in PEM"
        raise RuntimeError(f"cannot use {certificate} with {key}: {reason}") from None
    except OSError as error:
        raise RuntimeError(f"cannot read {certificate} and {key}: {error.strerror}") from None
    return context
