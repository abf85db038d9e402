"""A collector of traces: a small HTTP server that reads OTLP, and waits for what a test expects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

TIMEOUT = 60.0


class Collector:
    """Received spans, and the resources that they belong to."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.spans: list[Span] = []
        self.resources: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self._changed = Condition()

    def take(self, path: str, body: bytes) -> None:
        """Record one message."""
        message = ExportTraceServiceRequest.FromString(body)
        with self._changed:
            self.paths.append(path)
            for each in message.resource_spans:
                self.resources.append(values(each.resource.attributes))
                self.spans += [span for scope in each.scope_spans for span in scope.spans]
            self._changed.notify_all()

    def until(self, condition: Callable[[list[Span]], bool]) -> list[Span]:
        """Wait for a condition on the spans; return all spans."""
        with self._changed:
            assert self._changed.wait_for(lambda: condition(self.spans), TIMEOUT), [span.name for span in self.spans]
            return [*self.spans]

    def named(self, name: str) -> Span:
        """The first span of this name."""
        return next(s for s in self.until(lambda spans: any(span.name == name for span in spans)) if s.name == name)

    def inside(self, parent: Span) -> dict[str, Span]:
        """The spans inside another one, by name."""
        return {span.name: span for span in self.spans if span.parent_span_id == parent.span_id}


def values(attributes: Any) -> dict[str, Any]:
    """Attributes as a dictionary."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.take(self.path, self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector = Collector(f"http://127.0.0.1:{server.server_port}")
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
