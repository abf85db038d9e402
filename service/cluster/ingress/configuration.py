"""Configuration of HAProxy: a text that follows from a layout alone.

The words are those of HAProxy's manual, https://docs.haproxy.org/2.6/configuration.html, and none is newer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from engine import printable
from service.api.media import PROBLEM
from service.core.errors import Refusal
from service.core.prefix import BETWEEN_SERVERS
from service.workers.task import PIECE_HEADER

#: the id of requests that could not be read: HAProxy writes their reports as they stand in a file
UNREAD: Final = "ingress"
#: HAProxy's variable that has the id of a request
TOLD_ID: Final = "%[var(txn.id)]"
_HEADER: Final = "x-request-id"
_NO_SNIFFING: Final = {"x-content-type-options": "nosniff"}

#: by the status that HAProxy gives an error, while the request is known
ANSWERED: Final = {
    502: Refusal(
        "unconfirmed",
        "the server ended before it had answered: what the request writes may be kept, or not; with an "
        "Idempotency-Key it may be sent again as it is",
        retry_after=1,
    ),
    503: Refusal("not_ready", "no server that is ready could be reached", retry_after=1),
    504: Refusal(
        "deadline_exceeded",
        "the server did not answer within the time that the ingress gives it: what the request writes may be kept, or "
        "not",
    ),
}
#: by the status, where the head could not be read, or nothing of the request is known any more
UNANSWERED: Final = {
    400: Refusal("bad_request_framing", "the ingress could not read the request as HTTP/1.1"),
    408: Refusal("request_timeout", "the request did not arrive within the time that the ingress gives it"),
    413: Refusal("body_too_large", "the ingress takes no request of this size"),
    500: Refusal("not_ready", "the ingress has no memory for the request", retry_after=1),
    501: Refusal("bad_request_framing", "the ingress does not know how the body is encoded"),
}


def elsewhere(path: str) -> Refusal:
    """Refuse a path that no server has."""
    shown = printable(path)
    return Refusal("not_found", f"there is nothing at {shown}; /docs lists the calls", got=shown)


def as_it_is_sent(refusal: Refusal) -> bytes:
    """Write the whole response, head and body, as it stands in a file of HAProxy's, which ends lines as HTTP does."""
    body = refusal.body(UNREAD)
    fields = {"content-type": PROBLEM, _HEADER: UNREAD, "content-length": str(len(body)), "connection": "close"}
    fields |= {**_NO_SNIFFING, **{name.lower(): value for name, value in refusal.headers.items()}}
    lines = [f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return "\n".join([*lines, "", ""]).encode() + body


def in_format(refusal: Refusal, *filled: str) -> str:
    """Write what follows the status in a line of HAProxy's that answers: type, body, headers.

    `filled` are HAProxy's expressions that the body has, beside the id; all else is text.
    """
    body = refusal.body(TOLD_ID).decode().replace("%", "%%")
    for expression in (TOLD_ID, *filled):
        body = body.replace(expression.replace("%", "%%"), expression)
    fields = {_HEADER: TOLD_ID, **_NO_SNIFFING, **refusal.headers}
    headers = [f"hdr {name} {value}" for name, value in fields.items()]
    return " ".join([f"content-type {PROBLEM}", f"lf-string {quoted(body)}", *headers])


def quoted(text: str) -> str:
    """Write text as one word of HAProxy's: between strong quotes, where no character means anything else."""
    return "'" + text.replace("'", "'\\''") + "'"


#: the report of a path of servers that callers have no business with, where the path stands in JSON as it is
HIDDEN: Final = elsewhere("%[path]")


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
    """Map the files of the layout's folder by name: the configuration, and reports that it refers to."""
    reports = {_report_file(status): as_it_is_sent(refusal) for status, refusal in UNANSWERED.items()}
    return {"haproxy.cfg": configuration(layout).encode(), **reports}


def configuration(layout: IngressLayout) -> str:
    """Write the whole text."""
    sections = [_global(layout), _defaults(layout), _frontend(layout), _servers(layout)]
    sections += [_resolvers(layout)] if layout.dns else []
    if layout.metrics:
        use = "http-request use-service prometheus-exporter if { path /metrics }"
        sections.append(iter(("frontend metrics", f"bind {layout.metrics}", use, "http-request return status 404")))
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
        plain = f"{{ path -m reg {_PLAIN_PATH} }}"
        yield f"http-request return status 404 {in_format(HIDDEN, '%[path]')} if {name} {plain}"
        yield f"http-request return status 404 {in_format(elsewhere(path))} if {name}"
    # HAProxy calls it 502 where a server ends without an answer; for clients that is 503, as with a server alone.
    yield "http-after-response set-status 503 if { status 502 }"
    yield f"default_backend {BACKEND}"


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
    """Yield a line for each server that is stated, and one for all that may come."""
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
