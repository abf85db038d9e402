"""HAProxy configuration, generated from a layout.

Its keywords are described in https://docs.haproxy.org/2.6/configuration.html, and none is newer than that version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from engine import printable
from service.api.media import PROBLEM
from service.core.errors import Refusal
from service.core.prefix import CLUSTER_PREFIX
from service.workers.task import PIECE_HEADER

#: request id in reports of requests that could not be parsed: HAProxy sends error files verbatim
UNKNOWN_ID: Final = "ingress"
#: HAProxy expression for the id of a request
ID_VARIABLE: Final = "%[var(txn.id)]"
_HEADER: Final = "x-request-id"
_NO_SNIFFING: Final = {"x-content-type-options": "nosniff"}

#: refusals of requests that HAProxy has parsed, by the status that it chooses
ANSWERED: Final = {
    502: Refusal(
        "unconfirmed",
        "the server ended before it responded: the writes of the request may or may not be stored; with an "
        "Idempotency-Key, you can send the request again",
        retry_after=1,
    ),
    503: Refusal("not_ready", "the ingress cannot reach a ready server", retry_after=1),
    504: Refusal(
        "deadline_exceeded",
        "the server did not respond within the timeout of the ingress: the writes of the request may or may not be "
        "stored",
    ),
}
#: refusals of requests that HAProxy could not parse, or does not remember, by status
UNANSWERED: Final = {
    400: Refusal("bad_request_framing", "the ingress could not read the request as HTTP/1.1"),
    408: Refusal("request_timeout", "the request did not arrive within the timeout of the ingress"),
    413: Refusal("body_too_large", "the request is too large for the ingress"),
    500: Refusal("not_ready", "the ingress is out of memory", retry_after=1),
    501: Refusal("bad_request_framing", "the ingress does not support the encoding of the body"),
}


def no_such_path(path: str) -> Refusal:
    """Return the refusal of a path that no server has."""
    shown_path = printable(path)
    return Refusal("not_found", f"the path {shown_path} does not exist; /docs lists the calls", got=shown_path)


def raw_response(refusal: Refusal) -> bytes:
    """Write a whole response, head and body, for an error file of HAProxy, where line ends are those of HTTP."""
    body = refusal.body(UNKNOWN_ID)
    fields = {"content-type": PROBLEM, _HEADER: UNKNOWN_ID, "content-length": str(len(body)), "connection": "close"}
    fields |= {**_NO_SNIFFING, **{name.lower(): value for name, value in refusal.headers.items()}}
    lines = [f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return "\n".join([*lines, "", ""]).encode() + body


def log_format_response(refusal: Refusal, *expressions: str) -> str:
    """Write the arguments of an HAProxy directive that answers a request: type, body, headers.

    `expressions` are HAProxy expressions in the body, beside the id; all other text is literal.
    """
    body = refusal.body(ID_VARIABLE).decode().replace("%", "%%")
    for expression in (ID_VARIABLE, *expressions):
        body = body.replace(expression.replace("%", "%%"), expression)
    fields = {_HEADER: ID_VARIABLE, **_NO_SNIFFING, **refusal.headers}
    headers = [f"hdr {name} {value}" for name, value in fields.items()]
    return " ".join([f"content-type {PROBLEM}", f"lf-string {quoted(body)}", *headers])


def quoted(text: str) -> str:
    """Quote text as one word of HAProxy's configuration: in single quotes, where no character is special."""
    return "'" + text.replace("'", "'\\''") + "'"


#: refusal of a hidden path that needs no escaping in JSON
HIDDEN: Final = no_such_path("%[path]")


#: names in HAProxy's configuration: of the group of servers, and of each server before its number
BACKEND: Final = "servers"
SLOT: Final = "gs"
#: bytes of the buffer for a request's head, and for the body of a request that may be sent again
BUFFER_BYTES: Final = 32 << 10
#: bytes of the pipes through which bodies are spliced from socket to socket
PIPE_BYTES: Final = 1 << 20
#: seconds beyond a request's timeout, so that the server's own report of it can arrive
LATE_SECONDS: Final = 5
#: seconds for the rest of a body that may be sent again
BODY_SECONDS: Final = 8
#: condition: a request that is executed once, however often it is sent
_HAS_IDEMPOTENCY_KEY: Final = "{ req.hdr(Idempotency-Key) -m found }"
#: pattern of request ids that are safe in reports, as in `service.web.head`
_VALID_ID: Final = "^[A-Za-z0-9._:+/=-]{1,128}$"
#: pattern of paths that need no escaping in JSON
_PLAIN_PATH: Final = "^[A-Za-z0-9/._~-]{1,128}$"
#: hidden paths of servers: the name of a condition, and a pattern of all spellings that a server might accept:
#: //cluster, /./cluster, /%63luster, /metrics/
_HIDDEN: Final = {
    CLUSTER_PREFIX: ("between_servers", f"^(/+[.])*/+{CLUSTER_PREFIX.strip('/')}(/|$)"),
    "/metrics": ("metrics", "^(/+[.])*/+metrics(/+[.]?)*$"),
}


@dataclass(frozen=True)
class IngressLayout:
    """Parameters of HAProxy's configuration. Addresses are in HAProxy's form: `127.0.0.1:8000`, `fd@3`."""

    listen: str
    #: HOST:PORT of each server; names are looked up once, at the start
    nodes: tuple[str, ...] = ()
    #: HOST:PORT of a DNS name whose addresses are the servers; resolved continuously
    dns: str | None = None
    #: HOST:PORT of the nameservers; if empty, those of the machine
    nameservers: tuple[str, ...] = ()
    #: most servers
    slots: int = 32
    #: folder of `files`
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
    """Map file names to contents: the configuration, and the error files that it refers to."""
    reports = {_report_file(status): raw_response(refusal) for status, refusal in UNANSWERED.items()}
    return {"haproxy.cfg": configuration(layout).encode(), **reports}


def configuration(layout: IngressLayout) -> str:
    """Write the configuration."""
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
        yield f"http-error status {status} {log_format_response(refusal)}"


def _frontend(layout: IngressLayout) -> Iterator[str]:
    tls = f" ssl crt {quoted(layout.certificate)} alpn http/1.1" if layout.certificate else ""
    client_id = "req.hdr(x-request-id)"
    yield "frontend ingress"
    # HTTP/1.1 end to end, so that a server's report about framing is about the bytes that the client sent.
    yield f"bind {layout.listen} proto h1{tls}"
    yield "http-request set-var(txn.id) uuid()"
    yield f"http-request set-var(txn.id) {client_id} if {{ {client_id} -m reg {_VALID_ID} }}"
    for path, (name, pattern) in _HIDDEN.items():
        yield f"acl {name} path,url_dec -m reg -i {pattern}"
        is_plain = f"{{ path -m reg {_PLAIN_PATH} }}"
        yield f"http-request return status 404 {log_format_response(HIDDEN, '%[path]')} if {name} {is_plain}"
        yield f"http-request return status 404 {log_format_response(no_such_path(path))} if {name}"
    # HAProxy's status is 502 if a server ends without an answer; clients get 503, as from a server without an ingress.
    yield "http-after-response set-status 503 if { status 502 }"
    yield f"default_backend {BACKEND}"


def _servers(layout: IngressLayout) -> Iterator[str]:
    yield f"backend {BACKEND}"
    # A caller's requests go to one server. Pieces of a sum have keys of their own: they are spread over the servers,
    # and the piece of the same rows goes to the same server each time.
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
    # HAProxy can send again only what it has completely, and clients often send the head in a packet of its own. A body
    # larger than the buffer is not waited for.
    yield f"http-request wait-for-body time {BODY_SECONDS}s if {_HAS_IDEMPOTENCY_KEY}"
    # After a failure nobody knows whether the server executed the request: only repeatable ones are sent again.
    yield f"http-request disable-l7-retry if !{{ method GET HEAD }} !{_HAS_IDEMPOTENCY_KEY}"
    yield (
        "default-server check inter 500ms fastinter 100ms fall 3 rise 1 observe layer4 error-limit 3 "
        f"on-error mark-down init-addr libc,none maxconn {layout.connections_to_each}"
    )
    yield from _server_lines(layout)


def _server_lines(layout: IngressLayout) -> Iterator[str]:
    """Yield a line for each configured server, and one for all slots that are filled later."""
    if layout.dns:
        yield f"server-template {SLOT} 1-{layout.slots} {layout.dns} resolvers names init-addr none"
        return
    for number, node in enumerate(layout.nodes, 1):
        yield f"server {SLOT}{number} {node}"
    if len(layout.nodes) < layout.slots:
        yield f"server-template {SLOT} {len(layout.nodes) + 1}-{layout.slots} 127.0.0.1:1 disabled"


def _resolvers(layout: IngressLayout) -> Iterator[str]:
    yield "resolvers names"
    yield from (f"nameserver n{number} {nameserver}" for number, nameserver in enumerate(layout.nameservers, 1))
    if not layout.nameservers:
        yield "parse-resolv-conf"
    yield "accepted_payload_size 8192"
    yield "timeout resolve 1s"
    yield "timeout retry 1s"
    # While the name cannot be resolved, servers stay in the table. A new address takes effect at once.
    yield "hold valid 1s"
    yield "hold obsolete 0s"
    yield from (f"hold {failure} 3600s" for failure in ("other", "refused", "timeout", "nx"))
