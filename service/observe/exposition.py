"""Metrics in the form that Prometheus reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Final, TypeVar

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from service.api.calls import calls
from service.core.installed import VERSIONS
from service.core.settings import Settings
from service.observe.tally import OTHER, ClusterFigures, Histogram, Tally
from service.workers.pool import Pool, Stats
from service.workers.sums import DONE_ELSEWHERE, DONE_HERE

#: what stands in front of each name
_OURS: Final = "gradserve"
_Name = TypeVar("_Name")
# What alerts look for is there from the start, as 0: Prometheus sees no increase in what begins with 1.
_GRAVE: Final = (500, 503, 504)
_OUTCOMES: Final = ("written", "store_full", "not_ready", "unconfirmed", "internal_error")
_ENDS: Final = ("died", "stuck", "stopped", "never ready", "fault")
_SIGNALS: Final = ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGSYS", "SIGKILL")
_QUESTIONS: Final = ("answer", "graph", "proposal", "request", "versions")
_DENIALS: Final = ("unauthenticated", "forbidden", "rate_limited")


class Exposition(Collector):
    """Answer to a scrape. Nothing is computed for it in between."""

    def __init__(self, tally: Tally, pool: Pool, settings: Settings) -> None:
        self._tally = tally
        self._settings = settings
        self._pool = pool
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)  # of the front: descriptors, memory, time of the processor

    def text(self, accept: str) -> tuple[bytes, str]:
        """Write all metrics, and name their type: OpenMetrics if `accept` asks for it, or else Prometheus' own form."""
        encode, media_type = choose_encoder(accept)
        return encode(self._registry), media_type

    def describe(self) -> Iterable[Metric]:
        """Describe nothing: the names are known when they are asked for."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Every metric, as it is now."""
        yield InfoMetricFamily(_OURS, "what serves", {**VERSIONS, "device": self._pool.device})
        yield from self._requests()
        yield from _of_pool(self._pool.stats())
        yield from self._state()
        yield from self._access()

    def _requests(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            f"{_OURS}_requests",
            "requests that were answered, by call, status and facade",
            labels=("call", "status", "facade"),
        )
        grave = product([*calls(), OTHER], _GRAVE, [""])
        for (call, status, facade), count in sorted(_begun(grave, self._tally.requests).items()):
            requests.add_metric((call, str(status), facade), count)
        yield requests
        yield _durations(f"{_OURS}_request_seconds", "from a request's head to its answer", "call", self._tally.seconds)
        yield CounterMetricFamily(f"{_OURS}_received_bytes", "bytes of bodies", value=self._tally.received)
        yield CounterMetricFamily(f"{_OURS}_sent_bytes", "bytes of answers", value=self._tally.sent)
        yield _durations(f"{_OURS}_phase_seconds", "the parts of the work for an answer", "phase", self._tally.timings)
        plans = CounterMetricFamily(f"{_OURS}_plans", "plans that were used, by where they came from", labels=("from",))
        plans.add_metric(("cache",), self._tally.plans[True])
        plans.add_metric(("made",), self._tally.plans[False])
        yield plans

    def _state(self) -> Iterator[Metric]:
        text = "commits of what callers keep, by outcome: written, or the code of the refusal"
        commits = CounterMetricFamily(f"{_OURS}_state_commits", text, labels=("outcome",))
        yield _by(commits, _begun(_OUTCOMES, self._tally.commits))
        text = "from a commit's being handed in to its end, on disk where it is to be"
        seconds = self._tally.commit_seconds
        yield HistogramMetricFamily(
            f"{_OURS}_state_commit_seconds", text, buckets=list(seconds.buckets()), sum_value=seconds.total
        )
        held = self._tally.holdings()
        yield GaugeMetricFamily(f"{_OURS}_tensors", "resident tensors", value=held.tensors)
        yield GaugeMetricFamily(f"{_OURS}_tensor_bytes", "bytes of resident tensors", value=held.tensor_bytes)
        yield GaugeMetricFamily(f"{_OURS}_graphs", "registered graphs", value=held.graphs)
        yield GaugeMetricFamily(f"{_OURS}_graph_bytes", "bytes of registered graphs", value=held.graph_bytes)
        yield GaugeMetricFamily(f"{_OURS}_models", "models", value=held.models)
        yield GaugeMetricFamily(f"{_OURS}_model_bytes", "bytes of models", value=held.model_bytes)
        yield GaugeMetricFamily(f"{_OURS}_state_behind", "writes that are not on disk yet", value=held.behind)

        if self._tally.cluster is not None:
            yield from _of_cluster(self._tally.cluster())

    def _access(self) -> Iterator[Metric]:
        text = "requests that their callers may not make, by reason"
        denied = CounterMetricFamily(f"{_OURS}_requests_denied", text, labels=("reason",))
        yield _by(denied, _begun(_DENIALS, self._tally.denials))
        text = "settings that are numbers, by name: what other figures are to be compared with"
        stated = {name: value for name, value in self._settings if isinstance(value, int | float)}
        yield _by(GaugeMetricFamily(f"{_OURS}_setting", text, labels=("name",)), stated)


def _durations(name: str, text: str, label: str, histograms: Mapping[str, Histogram]) -> Metric:
    family = HistogramMetricFamily(name, text, labels=(label,))
    for value, histogram in sorted(histograms.items()):
        family.add_metric((value,), list(histogram.buckets()), histogram.total)
    return family


def _of_pool(stats: Stats) -> Iterator[Metric]:
    yield _by(GaugeMetricFamily(f"{_OURS}_queued", "jobs that wait for a worker", labels=("lane",)), stats.queued)
    text = "callers that share the workers: namespaces, or addresses where no keys are asked for"
    yield GaugeMetricFamily(f"{_OURS}_callers", text, value=stats.callers)
    text = "jobs of those who had most that were refused in a full queue, to make room for others'"
    yield CounterMetricFamily(f"{_OURS}_displaced", text, value=stats.displaced)
    text = "pieces of sums over examples that were done for the sums of this server"
    pieces = CounterMetricFamily(f"{_OURS}_pieces", text, labels=("where",))
    yield _by(pieces, _begun((DONE_HERE, DONE_ELSEWHERE), stats.pieces))
    text = "pieces of sums that were begun again: their worker had ended, or they were late"
    yield CounterMetricFamily(f"{_OURS}_pieces_repeated", text, value=stats.repeated)
    yield GaugeMetricFamily(f"{_OURS}_running", "jobs that workers have", value=stats.running)
    yield _by(GaugeMetricFamily(f"{_OURS}_workers", "workers that are ready", labels=("lane",)), stats.workers)
    text = "workers that were replaced, by reason"
    yield _by(CounterMetricFamily(f"{_OURS}_worker_restarts", text, labels=("reason",)), _begun(_ENDS, stats.restarts))
    text = "workers that were ended by a signal, by its name"
    yield _by(
        CounterMetricFamily(f"{_OURS}_worker_incidents", text, labels=("signal",)), _begun(_SIGNALS, stats.incidents)
    )
    text = "plans that run without kernels, since they ended workers"
    yield GaugeMetricFamily(f"{_OURS}_condemned_plans", text, value=stats.condemned)
    text = "bytes that requests have reserved"
    yield GaugeMetricFamily(f"{_OURS}_reserved_bytes", text, value=stats.reserved)
    text = "memory of the workers"
    yield GaugeMetricFamily(f"{_OURS}_worker_resident_bytes", text, value=stats.resident)
    text = "memory that the workers' pools hold on GPUs"
    yield GaugeMetricFamily(f"{_OURS}_gpu_bytes", text, value=stats.device)
    text = "kernels that workers have compiled, or loaded from the cache"
    yield CounterMetricFamily(f"{_OURS}_kernels", text, value=stats.compiled)


def _of_cluster(figures: ClusterFigures) -> Iterator[Metric]:
    yield GaugeMetricFamily(f"{_OURS}_shards", "shards of the state that this server has", value=figures.shards)
    text = "shards that were taken over from servers that did not answer"
    yield CounterMetricFamily(f"{_OURS}_takeovers", text, value=figures.takeovers)
    text = "looks at the place of the state, whether another server has taken a shard over"
    yield CounterMetricFamily(f"{_OURS}_looks", text, value=figures.looks)
    text = "what was passed on to owners of shards: questions by their names, and whole requests"
    passed_on = CounterMetricFamily(f"{_OURS}_passed_on", text, labels=("what",))
    yield _by(passed_on, _begun(_QUESTIONS, figures.passed_on))


def _begun(names: Iterable[_Name], counted: Mapping[_Name, int]) -> dict[_Name, int]:
    """Add 0 for what has not happened to what was counted."""
    return dict.fromkeys(names, 0) | dict(counted)


def _by(family: CounterMetricFamily | GaugeMetricFamily, values: Mapping[str, float]) -> Metric:
    for label, value in sorted(values.items()):
        family.add_metric((label,), value)
    return family
