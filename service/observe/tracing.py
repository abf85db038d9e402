"""Traces: each request as a span, with the parts of its work inside, for a collector of OpenTelemetry.

A span is made when its request is over, from what is known then: nothing is done on a request's way. It continues the
trace of the client (`traceparent`, or what OTEL_PROPAGATORS names). Nothing of a body is in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from threading import Thread
from typing import Final

from opentelemetry import propagate
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagators.textmap import Getter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer, format_trace_id, set_span_in_context

from service.core.installed import VERSIONS
from service.observe.request_log import Answered
from service.workers.task import Reply, Timings

#: a request's headers: names in lower case, values as they came
Fields = Sequence[tuple[bytes, bytes]]

#: what is asked for every few seconds by machines, and is of interest to nobody
UNTRACED: Final = ("/health/live", "/health/ready", "/metrics")
#: other methods are one: a client may send thousands of names
_METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE"))


class _Headers(Getter[Fields]):
    """Reader of headers for the propagators."""

    def get(self, carrier: Fields, key: str) -> list[str] | None:
        name = key.encode()
        return [value.decode("latin-1") for stated, value in carrier if stated == name] or None

    def keys(self, carrier: Fields) -> list[str]:
        return [name.decode("latin-1") for name, _ in carrier]


_HEADERS: Final = _Headers()


class Tracing:
    """Maker of spans of requests; `end` hands the last ones out and stops, however long that takes."""

    def __init__(self, tracer: Tracer, end: Callable[[], None]) -> None:
        self._tracer = tracer
        self._end = end

    def add(self, answered: Answered, fields: Fields, reply: Reply | None) -> str:
        """Add a request that has just been answered; returns the id of its trace, or "" where it is in none."""
        if answered.path in UNTRACED:
            return ""
        ended, now = time.time_ns(), time.monotonic()

        def at(monotonic: float) -> int:
            return ended - int(1e9 * (now - monotonic))

        context = propagate.extract(fields, Context(), _HEADERS)
        attributes = {name: value for name, value in _described(answered, reply) if value != ""}
        name = f"{attributes['http.request.method']} {answered.route}".rstrip()
        begun = at(now - answered.seconds)
        span = self._tracer.start_span(name, context, SpanKind.SERVER, attributes, start_time=begun)
        if span.is_recording():
            if answered.status >= 500:
                span.set_status(Status(StatusCode.ERROR))
            if reply is not None and reply.begun:
                parent = set_span_in_context(span, Context())
                for part, start, end in _laid_out(reply.timings, reply.begun):
                    self._tracer.start_span(part, parent, start_time=at(start)).end(at(end))
        span.end(ended)
        return format_trace_id(span.get_span_context().trace_id)

    def close(self, timeout: float) -> None:
        """Hand out what waits, for so many seconds at most."""
        ending = Thread(target=self._end, name="last spans", daemon=True)
        ending.start()
        ending.join(timeout)


def tracing_to(endpoint: str) -> Tracing:
    """Traces to the collector at this URL; the variables OTEL_* say how many, how often, and under which name."""
    said = OTELResourceDetector().detect().attributes
    resource = Resource.create({"service.name": "gradserve", "service.version": VERSIONS["gradserve"], **said})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint)))
    return Tracing(provider.get_tracer("gradserve", VERSIONS["gradserve"]), provider.shutdown)


def _described(answered: Answered, reply: Reply | None) -> Iterator[tuple[str, str | int | bool]]:
    """Attributes, under OpenTelemetry's names where it has one."""
    yield "http.request.method", answered.method if answered.method in _METHODS else "_OTHER"
    yield "http.route", answered.route
    yield "http.response.status_code", answered.status
    yield "http.request.body.size", answered.received
    yield "http.response.body.size", answered.sent
    yield "error.type", str(answered.status) if answered.status >= 500 else ""
    yield "gradserve.request_id", answered.request_id
    yield "gradserve.caller", answered.caller
    yield "gradserve.call", answered.call
    yield "gradserve.graph_id", answered.graph_id
    if reply is not None and reply.status == 200:
        yield "gradserve.plan_cached", reply.cached


def _laid_out(timings: Timings, begun: float) -> Iterator[tuple[str, float, float]]:
    """Each part that took any time: its name, begin and end; the way back is the last part of the execution."""
    at = begun - timings.waited
    for name in ("waited", "decode", "plan", "execute", "encode"):
        seconds: float = getattr(timings, name)
        if seconds > 0:
            yield name, at, at + seconds
        at += seconds
        if name == "execute" and timings.backward > 0:
            yield "backward", at - timings.backward, at
