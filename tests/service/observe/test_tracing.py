"""Traces, as a collector receives them: from the observer alone, and from a server with workers."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from service import app
from service.api.media import JSON
from service.core.settings import Settings
from service.observe.request_log import AnsweredRequest
from service.observe.tally import Tally
from service.observe.tracing import Tracing, tracing_to
from service.web.observer import Recorder
from service.workers.task import Reply, Timings
from tests.conftest import ANNOUNCEMENT, ROOT
from tests.service.observe.collector import Collector, collecting, values
from tests.service.support import SQUARES
from tests.service.web.harness import FakePool, house, post, run

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SAMPLED = (b"traceparent", f"00-{TRACE}-{PARENT}-01".encode())
KEY = "k" * 43
REQUEST = AnsweredRequest("id-1", "ana", "POST", "/v1/gradients", "/v1/gradients", "gradients", "", 200, 10, 20, 0.5)


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as running_collector:
        yield running_collector


@pytest.fixture
def tracing(collector: Collector) -> Iterator[Tracing]:
    opened_tracing = tracing_to(f"{collector.url}/v1/traces")
    yield opened_tracing
    opened_tracing.close(60)


@pytest.mark.slow
def test_request_is_a_span(collector: Collector, tracing: Tracing) -> None:
    trace_id = tracing.add(REQUEST, (), None)
    tracing.close(60)
    span = collector.named("POST /v1/gradients")
    assert span.trace_id.hex() == trace_id
    assert not span.parent_span_id
    assert span.kind == Span.SPAN_KIND_SERVER
    assert span.end_time_unix_nano - span.start_time_unix_nano == pytest.approx(5e8, abs=1e3)
    assert abs(span.end_time_unix_nano - time.time_ns()) < 600e9
    assert values(span.attributes) == {
        "http.request.method": "POST",
        "http.route": "/v1/gradients",
        "http.response.status_code": 200,
        "http.request.body.size": 10,
        "http.response.body.size": 20,
        "gradserve.request_id": "id-1",
        "gradserve.caller": "ana",
        "gradserve.call": "gradients",
    }
    assert collector.resources[0]["service.name"] == "gradserve"
    assert collector.paths == ["/v1/traces"]


@pytest.mark.slow
def test_trace_of_the_client_is_continued(collector: Collector, tracing: Tracing) -> None:
    assert tracing.add(REQUEST, (SAMPLED,), None) == TRACE
    tracing.close(60)
    span = collector.named("POST /v1/gradients")
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)


@pytest.mark.slow
@pytest.mark.parametrize("stated", [b"", b"00-xyz", b"00-" + b"0" * 32 + b"-" + b"1" * 16 + b"-01", b"\xff\xfe"])
def test_malformed_traceparent_is_ignored(stated: bytes, collector: Collector, tracing: Tracing) -> None:
    trace_id = tracing.add(REQUEST, ((b"traceparent", stated),), None)
    assert re.fullmatch("[0-9a-f]{32}", trace_id)
    tracing.close(60)
    assert not collector.named("POST /v1/gradients").parent_span_id


@pytest.mark.slow
def test_unsampled_client_is_not_traced(collector: Collector, tracing: Tracing) -> None:
    unsampled = (b"traceparent", f"00-{TRACE}-{PARENT}-00".encode())
    assert tracing.add(REQUEST, (unsampled,), None) == TRACE, "the log has it all the same"
    tracing.add(REQUEST._replace(route="/v1/jvp"), (), None)
    tracing.close(60)
    assert [span.name for span in collector.until(bool)] == ["POST /v1/jvp"]


@pytest.mark.slow
def test_phases_are_consecutive_spans(collector: Collector, tracing: Tracing) -> None:
    timings = Timings(waited=0.01, decode=0.02, plan=0.0, execute=0.2, backward=0.15, encode=0.03)
    reply = Reply(200, JSON, [], timings=timings, cached=True, begun=time.monotonic() - 0.3)
    tracing.add(REQUEST, (), reply)
    tracing.close(60)
    span = collector.named("POST /v1/gradients")
    inside = collector.inside(span)
    assert list(inside) == ["waited", "decode", "execute", "backward", "encode"], "planning took no time"
    ends = {name: (each.start_time_unix_nano, each.end_time_unix_nano) for name, each in inside.items()}
    assert span.start_time_unix_nano <= ends["waited"][0]
    assert span.end_time_unix_nano - ends["decode"][0] >= 0.3e9 - 1e3, "work begins when a worker takes it up"
    assert ends["waited"][1] == pytest.approx(ends["decode"][0], abs=1e3)
    assert ends["decode"][1] == pytest.approx(ends["execute"][0], abs=1e3)
    assert ends["backward"][1] == pytest.approx(ends["execute"][1], abs=1e3)
    assert ends["execute"][1] == pytest.approx(ends["encode"][0], abs=1e3)
    assert ends["execute"][1] - ends["execute"][0] == pytest.approx(0.2e9, abs=1e3)
    assert ends["encode"][1] <= span.end_time_unix_nano
    assert values(span.attributes)["gradserve.plan_cached"] is True


@pytest.mark.slow
def test_only_server_errors_are_error_spans(collector: Collector, tracing: Tracing) -> None:
    tracing.add(REQUEST._replace(status=500), (), None)
    tracing.add(REQUEST._replace(status=422, route="/v1/jvp"), (), None)
    tracing.close(60)
    failed, refused = collector.named("POST /v1/gradients"), collector.named("POST /v1/jvp")
    assert (failed.status.code, values(failed.attributes)["error.type"]) == (Status.STATUS_CODE_ERROR, "500")
    assert refused.status.code == Status.STATUS_CODE_UNSET


@pytest.mark.slow
def test_span_names_have_low_cardinality(collector: Collector, tracing: Tracing) -> None:
    tracing.add(REQUEST._replace(method="BREW", route=""), (), None)
    tracing.add(REQUEST._replace(path="/health/ready", route="/health/ready"), (), None)
    tracing.close(60)
    assert [span.name for span in collector.until(bool)] == ["_OTHER"]


@pytest.mark.slow
def test_opentelemetry_variables_are_respected(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "gradients-of-ana")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_always_off")
    tracing = tracing_to(f"{collector.url}/v1/traces")
    tracing.add(REQUEST, (), None)
    tracing.add(REQUEST._replace(route="/v1/jvp"), (SAMPLED,), None)
    tracing.close(60)
    assert [span.name for span in collector.until(bool)] == ["POST /v1/jvp"]
    assert collector.resources[0]["service.name"] == "gradients-of-ana"


@pytest.mark.slow
def test_fast_path_and_routes_report_route_and_trace(collector: Collector, tracing: Tracing) -> None:
    def answer(_: Any) -> Reply:
        return Reply(200, JSON, [b"{}"], timings=Timings(execute=0.001), begun=time.monotonic())

    async def scenario() -> None:
        async with house(FakePool(answer), observer=Recorder(Tally(), None, tracing)) as opened:
            parent = b": ".join(SAMPLED)
            for request in (
                post(b"{}", parent),
                post(b"{}", parent, path=b"/v1/forward/"),
                b"GET /v1/ops/exp HTTP/1.1\r\nHost: localhost\r\n\r\n",
                b"GET /v1/ops/exp/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
                b"GET /v1/graphs/secret HTTP/1.1\r\nHost: localhost\r\n\r\n",
                b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n",
            ):
                await opened.ask(request)

    run(scenario, asyncio.new_event_loop)
    tracing.close(60)
    spans = [span for span in collector.until(bool) if span.kind == Span.SPAN_KIND_SERVER]
    assert [span.name for span in spans] == [
        "POST /v1/forward", "POST /v1/forward", "GET /v1/ops/{name}", "GET /v1/ops/{name}",
        "GET /v1/graphs/{graph_id}", "GET",
    ]  # fmt: skip
    assert [span.trace_id.hex() == TRACE for span in spans] == [True, True, False, False, False, False]
    assert list(collector.inside(spans[0])) == ["execute"]


def test_missing_extra_is_reported_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "service.observe.tracing")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(RuntimeError, match=r"--trace-endpoint needs OpenTelemetry: pip install 'gradserve\[otel\]'"):
        app.load_tracing()


@pytest.mark.parametrize(
    ("stated", "meant"),
    [
        ("http://collector:4318", "http://collector:4318/v1/traces"),
        ("https://collector/", "https://collector/v1/traces"),
        ("http://collector:4318/otlp", "http://collector:4318/otlp"),
        ("none", None),
    ],
)
def test_valid_endpoint(stated: str, meant: str | None) -> None:
    assert Settings(trace_endpoint=stated).trace_endpoint == meant


@pytest.mark.parametrize("stated", ["collector:4318", "ftp://collector", "http://"])
def test_malformed_endpoint_is_refused(stated: str) -> None:
    with pytest.raises(ValueError, match="expected the http:// or https:// URL of a collector"):
        Settings(trace_endpoint=stated)


def start_server(*options: str) -> subprocess.Popen[str]:
    """Start a server with these options and a piped log."""
    command = [sys.executable, "-m", "service", "--port", "0", "--device", "cpu", "--workers", "1", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)


def ask_server(*options: str, headers: dict[str, str] | None = None) -> tuple[httpx.Response, list[str]]:
    """Ask a server with these options for a gradient, shut it down, and return the answer and the lines of its log."""
    with start_server(*options) as process:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix(ANNOUNCEMENT).strip()
        answer = httpx.post(f"{url}/v1/gradients", json=SQUARES, headers=headers, timeout=60)
        process.terminate()
        _, log = process.communicate(timeout=60)
    return answer, log.splitlines()


@pytest.mark.smoke
@pytest.mark.slow
def test_server_traces_its_work(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADSERVE_API_KEY", KEY)
    headers = {"traceparent": SAMPLED[1].decode(), "X-Request-Id": "mine", "Authorization": f"Bearer {KEY}"}
    answer, log = ask_server("--trace-endpoint", collector.url, "--log-format", "json", headers=headers)
    assert answer.status_code == 200
    span = collector.named("POST /v1/gradients")
    inside = collector.inside(span)
    assert {"decode", "plan", "execute", "backward", "encode"} <= set(inside)
    for each in inside.values():
        assert span.start_time_unix_nano <= each.start_time_unix_nano <= each.end_time_unix_nano
        assert each.end_time_unix_nano <= span.end_time_unix_nano
    (line,) = [each for each in map(json.loads, log) if each["logger"] == "gradserve.requests"]
    assert (line["trace_id"], line["request_id"], line["caller"]) == (TRACE, "mine", "(environment)")
    attributes = values(span.attributes)
    assert (attributes["gradserve.request_id"], attributes["gradserve.caller"]) == ("mine", "(environment)")
    assert not [text for text in (*log, *map(str, collector.spans), str(collector.resources)) if KEY in text]


@pytest.mark.slow
def test_missing_collector_costs_no_request() -> None:
    answer, log = ask_server("--trace-endpoint", "http://127.0.0.1:9")
    assert answer.status_code == 200
    assert not [line for line in log if "Traceback" in line]


@pytest.mark.slow
def test_opentelemetry_is_not_loaded_without_tracing() -> None:
    program = "import sys, service.app; sys.exit('opentelemetry.sdk' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0
