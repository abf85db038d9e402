"""Metrics, as a Prometheus parser reads them, and the banner of a starting server."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from service.core.settings import Settings
from service.observe.banner import banner
from service.observe.exposition import Exposition
from service.observe.tally import Holdings, Tally
from service.workers.pool import Stats
from service.workers.task import Reply, Timings
from service.workers.worker import Worker
from tests.service.thread_pool import ThreadPool

STATS = Stats(
    queued={"quick": 3, "long": 4},
    running=5,
    workers={"quick": 1, "long": 2},
    restarts={"killed": 6},
    reserved=7,
    resident=8,
    device=9,
    compiled=10,
    incidents={"SIGSEGV": 11},
    condemned=12,
    callers=11,
    displaced=12,
    pieces={"here": 13, "elsewhere": 3},
    repeated=14,
)


class Pool(ThreadPool):
    """A pool with these statistics."""

    def __init__(self, stats: Stats) -> None:
        super().__init__(Worker(Settings(device="cpu", compile="off")), "cpu", 1, 0)
        self._stats = stats

    def stats(self) -> Stats:
        return self._stats


def scrape(tally: Tally) -> dict[tuple[str, str], float]:
    """Samples by name and by the values of their labels; an empty label value counts as absent."""
    text, media_type = Exposition(tally, Pool(STATS), Settings(queue=11)).text("")
    assert media_type.startswith("text/plain")
    samples = [s for family in text_string_to_metric_families(text.decode()) for s in family.samples]
    return {(s.name, ",".join(filter(None, s.labels.values()))): s.value for s in samples}


def test_every_metric_has_its_name() -> None:
    tally = Tally()
    tally.count("gradients", 200, 10, 20, 0.0015)
    tally.count("gradients", 503, 1, 2, 0.5)
    tally.count(None, 200, 0, 0, 0.1, "umbridge")
    tally.count_work(Reply(200, "", [], timings=Timings(decode=0.25), cached=True))
    samples = scrape(tally)
    assert samples["gradserve_requests_total", "gradients,200"] == 1
    assert samples["gradserve_requests_total", "gradients,503"] == 1
    assert samples["gradserve_requests_total", "other,umbridge,200"] == 1
    assert samples["gradserve_request_seconds_count", "gradients"] == 2
    assert samples["gradserve_request_seconds_bucket", "gradients,0.002"] == 1
    assert samples["gradserve_request_seconds_sum", "gradients"] == 0.5015
    assert samples["gradserve_phase_seconds_sum", "decode"] == 0.25
    assert samples["gradserve_received_bytes_total", ""] == 11
    assert samples["gradserve_sent_bytes_total", ""] == 22
    assert samples["gradserve_plans_total", "cache"] == 1
    assert samples["gradserve_plans_total", "made"] == 0
    assert [samples["gradserve_queued", lane] for lane in ("quick", "long")] == [3, 4]
    assert samples["gradserve_running", ""] == 5
    assert [samples["gradserve_workers", lane] for lane in ("quick", "long")] == [1, 2]
    assert samples["gradserve_worker_restarts_total", "killed"] == 6
    assert samples["gradserve_reserved_bytes", ""] == 7
    assert samples["gradserve_worker_resident_bytes", ""] == 8
    assert samples["gradserve_gpu_bytes", ""] == 9
    assert samples["gradserve_kernels_total", ""] == 10
    assert samples["gradserve_worker_incidents_total", "SIGSEGV"] == 11
    assert samples["gradserve_worker_incidents_total", "SIGBUS"] == 0
    assert samples["gradserve_condemned_plans", ""] == 12
    assert samples["gradserve_callers", ""] == 11
    assert samples["gradserve_displaced_total", ""] == 12
    assert samples["gradserve_pieces_total", "here"] == 13
    assert samples["gradserve_pieces_repeated_total", ""] == 14


def test_state_and_denial_metrics() -> None:
    tally = Tally()
    tally.holdings = lambda: Holdings(3, 4096, graphs=5, graph_bytes=512, models=6, model_bytes=64, pending_writes=2)
    tally.count_commit("written", 0.0015)
    tally.count_commit("store_full", 0.5)
    tally.count_denial("unauthenticated")
    samples = scrape(tally)
    assert samples["gradserve_state_commits_total", "written"] == 1
    assert samples["gradserve_state_commits_total", "store_full"] == 1
    assert samples["gradserve_state_commit_seconds_count", ""] == 2
    assert samples["gradserve_state_commit_seconds_bucket", "0.002"] == 1
    assert samples["gradserve_state_commit_seconds_sum", ""] == 0.5015
    assert samples["gradserve_tensors", ""] == 3
    assert samples["gradserve_tensor_bytes", ""] == 4096
    assert samples["gradserve_graphs", ""] == 5
    assert samples["gradserve_graph_bytes", ""] == 512
    assert samples["gradserve_models", ""] == 6
    assert samples["gradserve_model_bytes", ""] == 64
    assert samples["gradserve_state_behind", ""] == 2
    assert samples["gradserve_requests_denied_total", "unauthenticated"] == 1


def test_metrics_of_alerts_start_at_zero() -> None:
    samples = scrape(Tally())
    for name, label in (
        ("requests", "gradients,500"),
        ("requests", "other,503"),
        ("state_commits", "store_full"),
        ("requests_denied", "unauthenticated"),
        ("worker_restarts", "died"),
        ("worker_incidents", "SIGBUS"),
    ):
        assert samples[f"gradserve_{name}_total", label] == 0, "Prometheus sees no increase in what begins with 1"


def test_numeric_settings_are_exposed() -> None:
    samples = scrape(Tally())
    assert samples["gradserve_setting", "queue"] == 11
    assert ("gradserve_setting", "host") not in samples
    assert ("gradserve_setting", "compile") not in samples


def test_openmetrics_format_on_request() -> None:
    text, media_type = Exposition(Tally(), Pool(Stats()), Settings()).text(
        "application/openmetrics-text; version=1.0.0"
    )
    assert media_type.startswith("application/openmetrics-text")
    assert text.endswith(b"# EOF\n")


def test_banner_summarizes_the_settings() -> None:
    text = "\n".join(banner(Settings(device="cpu", workers=3, queue=7, max_body_bytes="1MiB", compile="off"), "cpu"))
    for word in (
        "computes on cpu",
        "3 workers with 1 thread",
        "a body of 1MiB (JSON)",
        "queue: 7 requests",
        "not compiled",
    ):
        assert word in text


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ({"state": "memory"}, ("are lost when the server stops", "clients need no key")),
        ({"state": "/var/lib/x", "api_key": "gs_" + "a" * 43}, ("stored in /var/lib/x", "clients need the API key")),
        ({"keys_file": "/etc/keys"}, ("a key of /etc/keys",)),
    ],
)
def test_banner_describes_state_and_keys(stated: dict[str, str], words: tuple[str, ...]) -> None:
    text = "\n".join(banner(Settings(device="cpu", **stated), "cpu"))
    for word in words:
        assert word in text
    assert "gs_a" not in text
