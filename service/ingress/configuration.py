"""Configuration of HAProxy: a text that follows from a layout alone.

The words are those of HAProxy's manual, https://docs.haproxy.org/2.6/configuration.html, and none is newer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from service.ingress.reports import (
    ANSWERED,
    HIDDEN,
    UNANSWERED,
    as_it_is_sent,
    elsewhere,
    in_format,
    quoted,
)
from service.prefix import BETWEEN_SERVERS
from service.transport.sum_parts import PIECE_HEADER

#: the servers, as HAProxy calls them together, and each with a number behind it
BACKEND: Final = "servers"
SLOT: Final = "gs"
#: bytes of the buffer that holds a request's head, and the body of one that may be sent again
BUFFER_BYTES: Final = 32 << 10
#: bytes of the pipes by which bodies go from socket to socket uncopied
PIPE_BYTES: Final = 1 << 20
#: seconds behind those of a request, in which the server's own report of the time arrives
LATE_SECONDS: Final = 5
#: seconds within which the rest of such a body comes
BODY_SECONDS: Final = 8
#: of a request that is done once, however often it comes
_ONCE: Final = "{ req.hdr(Idempotency-Key) -m found }"
#: what makes a request's id fit for a report, as servers have it
_SANE_ID: Final = "^[A-Za-z0-9._:+/=-]{1,128}$"
#: what of a path stands in JSON as it is
_PLAIN_PATH: Final = "^[A-Za-z0-9/._~-]{1,128}$"
#: paths of servers that the ingress hides, by the path that is told, in all ways of writing them that some server might
#: take for it: //cluster, /./cluster, /%63luster, /metrics/
_HIDDEN: Final = {
    BETWEEN_SERVERS: ("between_servers", f"^(/+[.])*/+{BETWEEN_SERVERS.strip('/')}(/|$)"),
    "/metrics": ("metrics", "^(/+[.])*/+metrics(/+[.]?)*$"),
}


@dataclass(frozen=True)
class IngressLayout:
    """Layout that HAProxy's configuration follows from. Addresses are as HAProxy has them: `127.0.0.1:8000`, `fd@3`."""

    listen: str
    #: HOST:PORT of each server; names are looked up once, at the start
    nodes: tuple[str, ...] = ()
    #: HOST:PORT of a name whose addresses are the servers, and which is looked up again and again
    dns: str | None = None
    #: HOST:PORT of who is asked for it; none: whom the machine asks
    nameservers: tuple[str, ...] = ()
    #: how many servers there can be
    slots: int = 32
    #: where the files of `files` lie
    folder: str = "/usr/local/etc/haproxy"
    #: path of the runtime socket
    socket: str | None = None
    #: file with certificate and key, in PEM
    certificate: str | None = None
    #: address of the metrics
    metrics: str | None = "127.0.0.1:8405"
    timeout_ms: int = 30_000
    grace_seconds: int = 30
    threads: int = 1
    connections: int = 4096
    connections_to_each: int = 500


def files(layout: IngressLayout) -> Mapping[str, bytes]:
    """By name, what lies in the layout's folder: the configuration, and reports that it refers to."""
    reports = {_report_file(status): as_it_is_sent(refusal) for status, refusal in UNANSWERED.items()}
    return {"haproxy.cfg": configuration(layout).encode(), **reports}


def configuration(layout: IngressLayout) -> str:
    """The whole text."""
    sections = [_global(layout), _defaults(layout), _frontend(layout), _servers(layout)]
    sections += [_resolvers(layout)] if layout.dns else []
    sections += [_metrics(layout.metrics)] if layout.metrics else []
    return "\n".join("\n  ".join(lines) + "\n" for lines in map(list, sections))


def _report_file(status: int) -> str:
    return f"{status}.http"


def _global(layout: IngressLayout) -> Iterator[str]:
    yield "global"
    yield f"nbthread {layout.threads}"
    yield f"maxconn {layout.connections}"
    yield f"hard-stop-after {layout.grace_seconds}s"
    yield f"tune.bufsize {BUFFER_BYTES}"
    yield f"tune.pipesize {PIPE_BYTES}"
    if layout.socket:
        yield f"stats socket {quoted(layout.socket)} mode 600 level admin"
    if layout.certificate:
        yield "ssl-default-bind-options ssl-min-ver TLSv1.2"


def _defaults(layout: IngressLayout) -> Iterator[str]:
    yield "defaults"
    yield "mode http"
    yield "timeout connect 1s"
    yield "timeout client 75s"
    yield "timeout http-request 10s"
    yield "timeout http-keep-alive 75s"
    yield "timeout queue 5s"
    yield "timeout check 5s"
    yield f"timeout server {layout.timeout_ms + 1000 * LATE_SECONDS}ms"
    yield "option http-no-delay"
    yield "option splice-request"
    yield "option splice-response"
    yield "option abortonclose"
    for status in UNANSWERED:
        yield f"errorfile {status} {quoted(f'{layout.folder}/{_report_file(status)}')}"
    for status, refusal in ANSWERED.items():
        yield f"http-error status {status} {in_format(refusal)}"


def _frontend(layout: IngressLayout) -> Iterator[str]:
    tls = f" ssl crt {quoted(layout.certificate)} alpn http/1.1" if layout.certificate else ""
    named = "req.hdr(x-request-id)"
    yield "frontend ingress"
    # Everything here speaks HTTP/1.1: what a server says of framing is then said of what a client sent.
    yield f"bind {layout.listen} proto h1{tls}"
    yield "http-request set-var(txn.id) uuid()"
    yield f"http-request set-var(txn.id) {named} if {{ {named} -m reg {_SANE_ID} }}"
    for path, (name, pattern) in _HIDDEN.items():
        yield f"acl {name} path,url_dec -m reg -i {pattern}"
        yield f"http-request return status 404 {in_format(HIDDEN, '%[path]')} if {name} {_plain()}"
        yield f"http-request return status 404 {in_format(elsewhere(path))} if {name}"
    # HAProxy calls it 502 where a server ends without an answer; for clients that is 503, as with a server alone.
    yield "http-after-response set-status 503 if { status 502 }"
    yield f"default_backend {BACKEND}"


def _plain() -> str:
    return f"{{ path -m reg {_PLAIN_PATH} }}"


def _servers(layout: IngressLayout) -> Iterator[str]:
    yield f"backend {BACKEND}"
    # Pieces of one caller's sum are spread, and those of the same rows go to one server.
    yield "http-request set-var(txn.of) req.hdr(Authorization)"
    yield f"http-request set-var(txn.of) req.hdr({PIECE_HEADER}) if {{ req.hdr({PIECE_HEADER}) -m found }}"
    yield "balance hash var(txn.of)"
    yield "hash-type consistent sdbm avalanche"
    yield "hash-balance-factor 125"
    yield "option httpchk"
    yield "http-check send meth GET uri /health/ready ver HTTP/1.1 hdr Host localhost"
    yield "http-check expect status 200"
    yield "option redispatch 1"
    yield "retries 3"
    yield "retry-on conn-failure empty-response"
    # Only what is here whole can be sent again; clients send the head by itself. More than the buffer holds goes on.
    yield f"http-request wait-for-body time {BODY_SECONDS}s if {_ONCE}"
    # Whether a server has done what it did not answer cannot be seen: only what may be done twice is sent again.
    yield f"http-request disable-l7-retry if !{{ method GET HEAD }} !{_ONCE}"
    yield (
        "default-server check inter 500ms fastinter 100ms fall 3 rise 1 observe layer4 error-limit 3 "
        f"on-error mark-down init-addr libc,none maxconn {layout.connections_to_each}"
    )
    yield from _places(layout)


def _places(layout: IngressLayout) -> Iterator[str]:
    """A line for each server that is stated, and one for all that may come."""
    if layout.dns:
        yield f"server-template {SLOT} 1-{layout.slots} {layout.dns} resolvers names init-addr none"
        return
    for number, node in enumerate(layout.nodes, 1):
        yield f"server {SLOT}{number} {node}"
    if len(layout.nodes) < layout.slots:
        yield f"server-template {SLOT} {len(layout.nodes) + 1}-{layout.slots} 127.0.0.1:1 disabled"


def _resolvers(layout: IngressLayout) -> Iterator[str]:
    yield "resolvers names"
    yield from (f"nameserver n{number} {each}" for number, each in enumerate(layout.nameservers, 1))
    if not layout.nameservers:
        yield "parse-resolv-conf"
    yield "accepted_payload_size 8192"
    yield "timeout resolve 1s"
    yield "timeout retry 1s"
    # A name that cannot be looked up for a while changes nothing; one that leads elsewhere does at once.
    yield "hold valid 1s"
    yield "hold obsolete 0s"
    yield from (f"hold {failure} 3600s" for failure in ("other", "refused", "timeout", "nx"))


def _metrics(address: str) -> Iterator[str]:
    yield "frontend metrics"
    yield f"bind {address}"
    yield "http-request use-service prometheus-exporter if { path /metrics }"
    yield "http-request return status 404"
