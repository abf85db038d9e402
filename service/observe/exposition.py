"""Metrics in the Prometheus exposition formats."""

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
from service.observe.tally import OTHER, ClusterStats, Histogram, Tally
from service.workers.pool import Pool, Stats
from service.workers.sums import DONE_ELSEWHERE, DONE_HERE

#: prefix of each metric name
_PREFIX: Final = "gradserve"
_Name = TypeVar("_Name")
# Series that alerts watch exist from the start with 0: Prometheus sees no increase in a series that begins with 1.
_ERROR_STATUSES: Final = (500, 503, 504)
_OUTCOMES: Final = ("written", "store_full", "not_ready", "unconfirmed", "internal_error")
_MOVES: Final = ("free", "handed_over", "unresponsive", "without_store")
_RESTART_REASONS: Final = ("died", "stuck", "stopped", "never ready", "fault")
_SIGNALS: Final = ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGSYS", "SIGKILL")
_QUESTIONS: Final = ("answer", "graph", "proposal", "request", "versions")
_DENIALS: Final = ("unauthenticated", "forbidden", "rate_limited")


class Exposition(Collector):
    """Prometheus collector. It computes nothing between scrapes."""

    def __init__(self, tally: Tally, pool: Pool, settings: Settings) -> None:
        self._tally = tally
        self._settings = settings
        self._pool = pool
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)  # of the front: file descriptors, memory, CPU time

    def text(self, accept: str) -> tuple[bytes, str]:
        """Return all metrics and their media type: OpenMetrics if `accept` asks for it, else Prometheus text."""
        encode, media_type = choose_encoder(accept)
        return encode(self._registry), media_type

    def describe(self) -> Iterable[Metric]:
        """Return no descriptions: the metric names are known only at a scrape."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield every metric with its current value."""
        yield InfoMetricFamily(_PREFIX, "Versions and device of the server.", {**VERSIONS, "device": self._pool.device})
        yield from self._requests()
        yield from _of_pool(self._pool.stats())
        yield from self._state()
        yield from self._access()

    def _requests(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            f"{_PREFIX}_requests",
            "Requests by call, status and facade.",
            labels=("call", "status", "facade"),
        )
        errors = product([*calls(), OTHER], _ERROR_STATUSES, [""])
        for (call, status, facade), count in sorted(_with_zeros(errors, self._tally.requests).items()):
            requests.add_metric((call, str(status), facade), count)
        yield requests
        yield _durations(
            f"{_PREFIX}_request_seconds",
            "Seconds from the head of a request to the end of its response.",
            "call",
            self._tally.seconds,
        )
        yield CounterMetricFamily(f"{_PREFIX}_received_bytes", "Bytes of request bodies.", value=self._tally.received)
        yield CounterMetricFamily(f"{_PREFIX}_sent_bytes", "Bytes of responses.", value=self._tally.sent)
        yield _durations(
            f"{_PREFIX}_phase_seconds", "Seconds of each phase of a request.", "phase", self._tally.timings
        )
        plans = CounterMetricFamily(
            f"{_PREFIX}_plans", "Plans that were used, from the cache or newly made.", labels=("from",)
        )
        plans.add_metric(("cache",), self._tally.plans[True])
        plans.add_metric(("made",), self._tally.plans[False])
        yield plans

    def _state(self) -> Iterator[Metric]:
        text = "Writes to the state by outcome: written, or the code of the error."
        commits = CounterMetricFamily(f"{_PREFIX}_state_commits", text, labels=("outcome",))
        yield _by(commits, _with_zeros(_OUTCOMES, self._tally.commits))
        text = "Seconds of a write to the state, until it is on disk if it is durable."
        seconds = self._tally.commit_seconds
        yield HistogramMetricFamily(
            f"{_PREFIX}_state_commit_seconds", text, buckets=list(seconds.buckets()), sum_value=seconds.total
        )
        holdings = self._tally.holdings()
        yield GaugeMetricFamily(f"{_PREFIX}_tensors", "Resident tensors.", value=holdings.tensors)
        yield GaugeMetricFamily(f"{_PREFIX}_tensor_bytes", "Bytes of resident tensors.", value=holdings.tensor_bytes)
        yield GaugeMetricFamily(f"{_PREFIX}_graphs", "Registered graphs.", value=holdings.graphs)
        yield GaugeMetricFamily(f"{_PREFIX}_graph_bytes", "Bytes of registered graphs.", value=holdings.graph_bytes)
        yield GaugeMetricFamily(f"{_PREFIX}_models", "Models.", value=holdings.models)
        yield GaugeMetricFamily(f"{_PREFIX}_model_bytes", "Bytes of models.", value=holdings.model_bytes)
        yield GaugeMetricFamily(
            f"{_PREFIX}_state_behind", "Writes that are not on disk yet.", value=holdings.pending_writes
        )

        if self._tally.cluster is not None:
            yield from _of_cluster(self._tally.cluster())

    def _access(self) -> Iterator[Metric]:
        text = "Requests that the client was not allowed to make, by reason."
        denied = CounterMetricFamily(f"{_PREFIX}_requests_denied", text, labels=("reason",))
        yield _by(denied, _with_zeros(_DENIALS, self._tally.denials))
        text = "Numeric settings by name: the limits to compare other metrics with."
        numeric_settings = {name: value for name, value in self._settings if isinstance(value, int | float)}
        yield _by(GaugeMetricFamily(f"{_PREFIX}_setting", text, labels=("name",)), numeric_settings)


def _durations(name: str, text: str, label: str, histograms: Mapping[str, Histogram]) -> Metric:
    family = HistogramMetricFamily(name, text, labels=(label,))
    for value, histogram in sorted(histograms.items()):
        family.add_metric((value,), list(histogram.buckets()), histogram.total)
    return family


def _of_pool(stats: Stats) -> Iterator[Metric]:
    yield _by(GaugeMetricFamily(f"{_PREFIX}_queued", "Jobs that wait for a worker.", labels=("lane",)), stats.queued)
    text = "Callers that share the workers: namespaces, or addresses if the server requires no keys."
    yield GaugeMetricFamily(f"{_PREFIX}_callers", text, value=stats.callers)
    text = "Jobs of the busiest callers that were rejected in a full queue, to make room for other callers."
    yield CounterMetricFamily(f"{_PREFIX}_displaced", text, value=stats.displaced)
    text = "Pieces of this server's sums over examples, by where they were computed."
    pieces = CounterMetricFamily(f"{_PREFIX}_pieces", text, labels=("where",))
    yield _by(pieces, _with_zeros((DONE_HERE, DONE_ELSEWHERE), stats.pieces))
    text = "Pieces of sums that were started again, because their worker ended or they were late."
    yield CounterMetricFamily(f"{_PREFIX}_pieces_repeated", text, value=stats.repeated)
    yield GaugeMetricFamily(f"{_PREFIX}_running", "Jobs that workers are running.", value=stats.running)
    yield _by(GaugeMetricFamily(f"{_PREFIX}_workers", "Workers that are ready.", labels=("lane",)), stats.workers)
    text = "Workers that were replaced, by reason."
    yield _by(
        CounterMetricFamily(f"{_PREFIX}_worker_restarts", text, labels=("reason",)),
        _with_zeros(_RESTART_REASONS, stats.restarts),
    )
    text = "Workers that were killed by a signal, by its name."
    yield _by(
        CounterMetricFamily(f"{_PREFIX}_worker_incidents", text, labels=("signal",)),
        _with_zeros(_SIGNALS, stats.incidents),
    )
    text = "Plans that run without kernels, because they killed workers."
    yield GaugeMetricFamily(f"{_PREFIX}_condemned_plans", text, value=stats.condemned)
    text = "Bytes that requests have reserved."
    yield GaugeMetricFamily(f"{_PREFIX}_reserved_bytes", text, value=stats.reserved)
    text = "Memory of the workers in bytes."
    yield GaugeMetricFamily(f"{_PREFIX}_worker_resident_bytes", text, value=stats.resident)
    text = "GPU memory in the pools of the workers, in bytes."
    yield GaugeMetricFamily(f"{_PREFIX}_gpu_bytes", text, value=stats.device)
    text = "Kernels that workers have compiled or loaded from the cache."
    yield CounterMetricFamily(f"{_PREFIX}_kernels", text, value=stats.compiled)


def _of_cluster(figures: ClusterStats) -> Iterator[Metric]:
    yield GaugeMetricFamily(f"{_PREFIX}_shards", "Shards of the state that this server owns.", value=figures.shards)
    text = "Shards taken over from servers that did not respond, or could not reach the store."
    yield CounterMetricFamily(f"{_PREFIX}_takeovers", text, value=figures.takeovers)
    text = "Shards that this server has opened, by reason."
    moves = CounterMetricFamily(f"{_PREFIX}_shard_moves", text, labels=("reason",))
    yield _by(moves, _with_zeros(_MOVES, figures.moves))
    text = "Shards of this server whose store has not answered for three leases."
    yield GaugeMetricFamily(f"{_PREFIX}_shards_without_store", text, value=figures.blind)
    text = "Bytes of resident tensors that are in memory; the others are read from the store when they are used."
    yield GaugeMetricFamily(f"{_PREFIX}_tensor_memory_bytes", text, value=figures.tensor_memory)
    text = "1 while another process answers at the address of this server, else 0."
    yield GaugeMetricFamily(f"{_PREFIX}_address_conflict", text, value=int(figures.has_conflict))
    text = "Checks whether another server has taken over a shard."
    yield CounterMetricFamily(f"{_PREFIX}_looks", text, value=figures.state_checks)
    text = "Queries and whole requests forwarded to the owners of shards, by kind."
    passed_on = CounterMetricFamily(f"{_PREFIX}_passed_on", text, labels=("what",))
    yield _by(passed_on, _with_zeros(_QUESTIONS, figures.forwarded))


def _with_zeros(names: Iterable[_Name], counted: Mapping[_Name, int]) -> dict[_Name, int]:
    """Return the counts, with 0 for each of `names` that has not been counted."""
    return dict.fromkeys(names, 0) | dict(counted)


def _by(family: CounterMetricFamily | GaugeMetricFamily, values: Mapping[str, float]) -> Metric:
    for label, value in sorted(values.items()):
        family.add_metric((label,), value)
    return family
