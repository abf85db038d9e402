"""Tracing: a span for each request, with child spans for its phases, exported to an OpenTelemetry collector.

A span is created after its request is over, from timings recorded then, so tracing adds nothing to the request path.
It continues the client's trace (`traceparent`, or the formats that OTEL_PROPAGATORS names). It contains no body data.
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
from service.observe.request_log import AnsweredRequest
from service.workers.task import Reply, Timings

#: a request's headers: names in lower case, raw values
Fields = Sequence[tuple[bytes, bytes]]

#: paths that monitoring polls every few seconds; their spans would be noise
UNTRACED_PATHS: Final = ("/health/live", "/health/ready", "/metrics")
#: methods recorded by name; all others become `_OTHER`, since a client may send thousands of different names
_METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE"))


class _Headers(Getter[Fields]):
    """Accessor of header fields for the propagators."""

    def get(self, carrier: Fields, key: str) -> list[str] | None:
        name = key.encode()
        return [value.decode("latin-1") for field_name, value in carrier if field_name == name] or None

    def keys(self, carrier: Fields) -> list[str]:
        return [name.decode("latin-1") for name, _ in carrier]


_HEADERS: Final = _Headers()


class Tracing:
    """Recorder of request spans. `end` exports the remaining spans and stops the exporter, however long that takes."""

    def __init__(self, tracer: Tracer, end: Callable[[], None]) -> None:
        self._tracer = tracer
        self._end = end

    def add(self, answered: AnsweredRequest, fields: Fields, reply: Reply | None) -> str:
        """Record a request that has just been answered. Return its trace id, or "" if it is not traced."""
        if answered.path in UNTRACED_PATHS:
            return ""
        ended, now = time.time_ns(), time.monotonic()

        def wall_time(monotonic: float) -> int:
            return ended - int(1e9 * (now - monotonic))

        context = propagate.extract(fields, Context(), _HEADERS)
        attributes = {name: value for name, value in _attributes(answered, reply) if value != ""}
        name = f"{attributes['http.request.method']} {answered.route}".rstrip()
        started = wall_time(now - answered.seconds)
        span = self._tracer.start_span(name, context, SpanKind.SERVER, attributes, start_time=started)
        if span.is_recording():
            if answered.status >= 500:
                span.set_status(Status(StatusCode.ERROR))
            if reply is not None and reply.begun:
                parent = set_span_in_context(span, Context())
                for phase, start, end in _phases(reply.timings, reply.begun):
                    self._tracer.start_span(phase, parent, start_time=wall_time(start)).end(wall_time(end))
        span.end(ended)
        return format_trace_id(span.get_span_context().trace_id)

    def close(self, timeout: float) -> None:
        """Export the remaining spans within `timeout` seconds."""
        ending = Thread(target=self._end, name="last spans", daemon=True)
        ending.start()
        ending.join(timeout)


def tracing_to(endpoint: str) -> Tracing:
    """Return a `Tracing` to the collector at this URL; the OTEL_* variables set sampling, batching and names."""
    detected = OTELResourceDetector().detect().attributes
    resource = Resource.create({"service.name": "gradserve", "service.version": VERSIONS["gradserve"], **detected})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint)))
    return Tracing(provider.get_tracer("gradserve", VERSIONS["gradserve"]), provider.shutdown)


def _attributes(answered: AnsweredRequest, reply: Reply | None) -> Iterator[tuple[str, str | int | bool]]:
    """Yield span attributes, with OpenTelemetry's names where it defines one."""
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


def _phases(timings: Timings, begin: float) -> Iterator[tuple[str, float, float]]:
    """Yield the name, begin and end of each phase that took any time. The backward pass ends with the execution."""
    start = begin - timings.waited
    for name in ("waited", "decode", "plan", "execute", "encode"):
        seconds: float = getattr(timings, name)
        if seconds > 0:
            yield name, start, start + seconds
        start += seconds
        if name == "execute" and timings.backward > 0:
            yield "backward", start - timings.backward, start
