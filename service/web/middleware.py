"""ASGI middleware in front of the routes: origins, limits, keys, CORS, problem reports.

`Guard` refuses a request because of its head if it can, and counts the bytes of its body otherwise. It authenticates
the caller, unless the connection has done so, and sets the deadline of the request, for everything that waits. How long
a body may take is checked by the server that holds the connection.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

import orjson
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine import printable
from service.api.media import PROBLEM
from service.core.errors import Refusal, internal_error
from service.core.keys.authentication import Access, Gate, Keyholder
from service.core.keys.caller import credential_of
from service.core.prefix import path_within, url_prefix
from service.core.settings import Settings
from service.facades.protocols import Facade, owner_of
from service.web.head import (
    NO_SNIFFING,
    REQUEST_ID_HEADER,
    OriginPolicy,
    body_limit,
    check_head,
    media_of,
    new_id,
    timeout_of,
    too_large,
    too_long,
    valid_request_id,
)
from service.web.responses import problem_response
from service.web.routing import route_path, scope_of, shortened_path

_logger = logging.getLogger("gradserve")


class Guard:
    """Middleware that authenticates callers, checks heads, limits bodies, and sets deadlines."""

    def __init__(self, app: ASGIApp, settings: Settings, gate: Gate) -> None:
        self._app = app
        self._settings = settings
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        holder, app = None, self._app
        try:
            try:
                limit = self._settings.max_header_bytes
                size = len(scope.get("raw_path") or b"") + len(scope["query_string"])
                if size + sum(len(name) + len(value) + 4 for name, value in scope["headers"]) > limit:
                    raise too_large(limit)
                holder = self._authenticate(scope)
                receive = limit_body(receive, self._body_limit(scope))
                self._set_deadline(scope)
            except Refusal as refusal:
                app = problem_response(Request(scope), refusal)
            await app(scope, receive, send)
        finally:
            if holder is not None:
                holder.leave()

    def _authenticate(self, scope: Scope) -> Keyholder | None:
        """Identify the caller, and count the request until its response. Raises Refusal for a key without the scope."""
        if "caller" in scope["state"]:
            return None
        needed = scope_of(scope["method"], scope["state"]["route_path"], metrics=self._settings.metrics)
        holder = self._gate.enter(Access(needed, credential_of(scope["headers"])))
        scope["state"]["caller"] = holder.caller
        return holder

    def _body_limit(self, scope: Scope) -> int:
        """Return the most bytes that the body may have. Raises Refusal."""
        headers = Headers(scope=scope)
        media = scope["state"]["media"] = media_of(scope["method"], path_within(scope), headers)
        limit, announced = body_limit(media, self._settings), headers.get("content-length", "")
        if announced.isdecimal() and int(announced) > limit:
            raise too_long(limit, f"{announced} bytes")
        return limit

    def _set_deadline(self, scope: Scope) -> None:
        """Store the `timeout` of a request, in seconds, and its deadline `expires`, on the monotonic clock.

        Raises Refusal: invalid_field.
        """
        state = scope["state"]
        state["timeout"] = timeout_of(scope["query_string"], self._settings.timeout_ms)
        state["expires"] = state["arrived"] + state["timeout"]


def limit_body(receive: Receive, max_bytes: int) -> Receive:
    """Wrap `receive` so that it raises Refusal (body_too_large) after more than `max_bytes` bytes."""
    count = 0

    async def receive_counted() -> Message:
        nonlocal count
        message = await receive()
        count += len(message.get("body", b""))
        if count > max_bytes:
            raise too_long(max_bytes, "more")
        return message

    return receive_counted


class OriginCheck:
    """Middleware that refuses foreign hosts and origins, and heads that two parsers could read differently.

    It stores the path of the matching route as `route_path`, and the `prefix` of links, in the state of the request.
    """

    def __init__(self, app: ASGIApp, settings: Settings, routes: Sequence[BaseRoute]) -> None:
        self._app = app
        self._policy = OriginPolicy(settings)
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] == "http":
            try:
                self._check(scope)
            except Refusal as refusal:
                await problem_response(Request(scope), refusal)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        headers, method = Headers(scope=scope), scope["method"]
        scope["state"]["prefix"] = url_prefix(scope)
        self._policy.check_address((scope.get("server") or ("",))[0])
        check_head(scope["http_version"], scope["path"], headers)
        route = scope["state"]["route_path"] = route_path(scope, self._routes)
        is_page = method == "GET" and route is not None and scope_of(method, route) is None
        self._policy.check(headers, scope["scheme"], route, visits=is_page)


class TrailingSlash:
    """Middleware that treats `/path/` as `/path`. Without a redirect: many clients drop the body then, or send a GET.

    A path that matches no route in either form stays as it was sent, so that the report shows that.
    """

    def __init__(self, app: ASGIApp, routes: Sequence[BaseRoute]) -> None:
        self._app = app
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http":
            scope["path"] = shortened_path(scope, self._routes)
        await self._app(scope, receive, send)


class Cors(CORSMiddleware):
    """Starlette's CORS middleware, with a problem report for pages that may not call."""

    def __init__(self, app: ASGIApp, origins: tuple[str, ...]) -> None:
        super().__init__(
            app,
            allow_origins=origins,
            allow_methods=("GET", "POST", "PUT", "DELETE"),
            allow_headers=("*",),
            expose_headers=(REQUEST_ID_HEADER, "ETag", "Idempotency-Replayed", "Location", "Retry-After"),
        )

    def preflight_response(self, request_headers: Headers) -> Response:
        """Answer a preflight request. Raises Refusal (forbidden)."""
        response = super().preflight_response(request_headers)
        if response.status_code == 200:
            return response
        origin = printable(request_headers.get("origin", ""))
        raise Refusal("forbidden", f"pages from {origin} may not make this call", got=origin)


class ReportRewriter:
    """Wrapper of `send` that buffers a problem report until it is complete, and sends what `rewrite` returns.

    `rewrite` gets the start of the response, which it may change, and the report; it returns the new body.
    """

    def __init__(self, send: Send, rewrite: Callable[[Message, bytes], bytes]) -> None:
        self._send, self._rewrite = send, rewrite
        self._start: Message | None = None
        self._report = b""

    async def __call__(self, message: Message) -> None:
        """Send the next part of a response."""
        is_start = message["type"] == "http.response.start"
        if is_start and Headers(raw=message["headers"]).get("content-type", "").startswith(PROBLEM):
            self._start = message
        elif self._start is None:
            await self._send(message)
        else:
            self._report += message.get("body", b"")
            if not message.get("more_body", False):
                body = self._rewrite(self._start, self._report)
                await self._send(self._start)
                await self._send({"type": "http.response.body", "body": body})


class ProtocolErrors:
    """Middleware that rewrites problem reports in the form of the protocol whose path was called."""

    def __init__(self, app: ASGIApp, facades: Sequence[Facade]) -> None:
        self._app = app
        self._facades = facades

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        facade = owner_of(path_within(scope), self._facades) if scope["type"] == "http" else None
        if facade is None:
            await self._app(scope, receive, send)
            return

        def rewrite(start: Message, report_body: bytes) -> bytes:
            start["status"], answer = facade.write_error(orjson.loads(report_body))
            body = b"".join(answer.parts)
            fields = [pair for pair in start["headers"] if pair[0].lower() not in (b"content-type", b"content-length")]
            body_fields = [(b"content-type", answer.media_type.encode()), (b"content-length", b"%d" % len(body))]
            start["headers"] = fields + body_fields
            return body

        await self._app(scope, receive, ReportRewriter(send, rewrite))


class Envelope:
    """Outermost middleware: gives a request its id and time of arrival, and reports every exception as a fault."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. Never raises, since servers close the connection after an exception."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        initial_state = {"request_id": id_of(scope), "arrived": time.monotonic()}
        scope["state"] = {**initial_state, **scope.get("state", {})}  # the connection may have set them already
        request_id = scope["state"]["request_id"]
        sender = _IdSender(request_id, send)
        try:
            await self._app(scope, receive, sender)
        except Refusal as raised:
            refusal = raised
        except asyncio.CancelledError:  # the grace period after SIGTERM is over
            refusal = Refusal("shutting_down", "the server shut down before the request was finished")
        except Exception:
            _logger.exception("request %s failed", request_id, extra={"request_id": request_id})
            refusal = internal_error()
        else:
            return
        if not sender.response_started:
            await problem_response(Request(scope), refusal)(scope, receive, sender)


class _IdSender:
    """Wrapper of `send` that adds the headers of every response, and records whether a response has started."""

    def __init__(self, request_id: str, send: Send) -> None:
        self._request_id = request_id
        self._send = send
        self.response_started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.response_started = True
            headers = MutableHeaders(scope=message)
            headers[REQUEST_ID_HEADER] = self._request_id
            headers.setdefault(*NO_SNIFFING)
        await self._send(message)


def id_of(scope: Scope) -> str:
    """Return the client's own request id if it is valid, otherwise a new one."""
    return valid_request_id(Headers(scope=scope).get(REQUEST_ID_HEADER, "")) or new_id()
