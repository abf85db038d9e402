"""`gradserve ingress`: run HAProxy as one address for several servers until a signal."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from engine import printable
from service.cluster.ingress.configuration import IngressLayout
from service.cluster.ingress.process import haproxy, haproxy_program
from service.core.settings import Settings
from service.web.listening import bind_socket, socket_url, tls_context

_NAME: Final = r"[A-Za-z0-9_]([A-Za-z0-9._-]{0,252}[A-Za-z0-9])?"
_HOST_AND_PORT: Final = re.compile(rf"({_NAME}|\[[0-9A-Fa-f:.]+\]):([0-9]{{1,5}})")
_MAX_CONNECTIONS: Final = 1_000_000
_PORT: Final = (1, 65_535)
#: smallest and largest value of each number
_BOUNDS: Final[Mapping[str, tuple[int, int]]] = {
    "port": (0, 65_535), "dns_port": _PORT, "metrics_port": (0, 65_535), "timeout_ms": (1, 86_400_000),
    "shutdown_grace": (1, 86_400), "threads": (1, 64), "slots": (1, 1024), "max_connections": (1, _MAX_CONNECTIONS),
    "server_connections": (1, _MAX_CONNECTIONS),
}  # fmt: skip


def run_ingress(options: Mapping[str, Any]) -> None:
    """Run HAProxy until a signal: the first signal ends it gracefully, the second at once.

    Raises RuntimeError with one sentence, also if HAProxy exits by itself; OSError or UnicodeError if the address
    cannot be used.
    """
    numbers = {}
    for name, (minimum, maximum) in _BOUNDS.items():
        text = options[name]
        if not re.fullmatch("[0-9]{1,8}", text) or not minimum <= int(text) <= maximum:
            flag = "--" + name.replace("_", "-")
            raise RuntimeError(f"{flag} must be a whole number from {minimum} to {maximum}, but is “{printable(text)}”")
        numbers[name] = int(text)
    layout, pem, program = _layout(options, numbers), _pem(options), haproxy_program()
    with bind_socket(options["host"], numbers["port"]) as listening:
        url = socket_url(options["host"], listening, "https" if pem else "http")
        with haproxy(program, layout, listening, pem) as process:
            for signum in (signal.SIGTERM, signal.SIGINT):
                signal.signal(signum, lambda *_: process.drain())
            sys.stdout.write(f"gradserve ingress listening on {url}\n")
            sys.stdout.flush()
            process.wait()


def _layout(options: Mapping[str, Any], numbers: Mapping[str, int]) -> IngressLayout:
    nodes = tuple(_check_address("--node", node) for node in options["node"] or ())
    if len(nodes) > numbers["slots"]:
        raise RuntimeError(f"--node names {len(nodes)} servers, but --slots allows {numbers['slots']}")
    nameserver = options["nameserver"]
    return IngressLayout(
        listen="",
        nodes=nodes,
        dns=None if options["dns"] is None else _check_address("--dns", f"{options['dns']}:{numbers['dns_port']}"),
        nameservers=() if nameserver is None else (_check_address("--nameserver", nameserver),),
        slots=numbers["slots"],
        metrics=f"127.0.0.1:{numbers['metrics_port']}" if numbers["metrics_port"] else None,
        timeout_ms=numbers["timeout_ms"],
        grace_seconds=numbers["shutdown_grace"],
        threads=numbers["threads"],
        connections=numbers["max_connections"],
        connections_to_each=numbers["server_connections"],
    )


def _check_address(flag: str, address: str) -> str:
    """Return a HOST:PORT unchanged if it is valid. Raises RuntimeError."""
    if not _HOST_AND_PORT.fullmatch(address) or not _PORT[0] <= int(address.rpartition(":")[2]) <= _PORT[1]:
        expected = "a name" if flag == "--dns" else "HOST:PORT, as in 10.0.0.7:8000 or [fd00::7]:8000"
        raise RuntimeError(f"{flag} must be {expected}, but is “{printable(address)}”")
    return address


def _pem(options: Mapping[str, Any]) -> bytes:
    """Concatenate certificate and key, as HAProxy needs them; return b"" for plain HTTP. Raises RuntimeError."""
    certificate, key = (None if options[name] is None else Path(options[name]) for name in ("tls_cert", "tls_key"))
    # Check the pair as a server does; tls_context reads only these two settings.
    context = tls_context(Settings.model_construct(tls_cert=certificate, tls_key=key))
    if context is None or certificate is None or key is None:
        return b""
    return certificate.read_bytes() + b"\n" + key.read_bytes()
