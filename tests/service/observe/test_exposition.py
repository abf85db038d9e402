"""Metrics, as a parser of Prometheus' form reads them; and what a server says when it starts."""

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
    """A pool that has this to say."""

    def __init__(self, said: Stats) -> None:
        super().__init__(Worker(Settings(device="cpu", compile="off")), "cpu", 1, 0)
        self._said = said

    def stats(self) -> Stats:
        return self._said


def scraped(tally: Tally) -> dict[tuple[str, str], float]:
    """Samples by name, and by the values of their labels, if any; an empty one is as good as none."""
    text, media_type = Exposition(tally, Pool(STATS), Settings(queue=11)).text("")
    assert media_type.startswith("text/plain")
    samples = [s for family in text_string_to_metric_families(text.decode()) for s in family.samples]
    return {(s.name, ",".join(filter(None, s.labels.values()))): s.value for s in samples}


def test_every_count_is_there_under_its_name() -> None:
    tally = Tally()
    tally.count("gradients", 200, 10, 20, 0.0015)
    tally.count("gradients", 503, 1, 2, 0.5)
    tally.count(None, 200, 0, 0, 0.1, "umbridge")
    tally.count_work(Reply(200, "", [], timings=Timings(decode=0.25), cached=True))
    found = scraped(tally)
    assert found["gradserve_requests_total", "gradients,200"] == 1
    assert found["gradserve_requests_total", "gradients,503"] == 1
    assert found["gradserve_requests_total", "other,umbridge,200"] == 1
    assert found["gradserve_request_seconds_count", "gradients"] == 2
    assert found["gradserve_request_seconds_bucket", "gradients,0.002"] == 1
    assert found["gradserve_request_seconds_sum", "gradients"] == 0.5015
    assert found["gradserve_phase_seconds_sum", "decode"] == 0.25
    assert found["gradserve_received_bytes_total", ""] == 11
    assert found["gradserve_sent_bytes_total", ""] == 22
    assert found["gradserve_plans_total", "cache"] == 1
    assert found["gradserve_plans_total", "made"] == 0
    assert [found["gradserve_queued", lane] for lane in ("quick", "long")] == [3, 4]
    assert found["gradserve_running", ""] == 5
    assert [found["gradserve_workers", lane] for lane in ("quick", "long")] == [1, 2]
    assert found["gradserve_worker_restarts_total", "killed"] == 6
    assert found["gradserve_reserved_bytes", ""] == 7
    assert found["gradserve_worker_resident_bytes", ""] == 8
    assert found["gradserve_gpu_bytes", ""] == 9
    assert found["gradserve_kernels_total", ""] == 10
    assert found["gradserve_worker_incidents_total", "SIGSEGV"] == 11
    assert found["gradserve_worker_incidents_total", "SIGBUS"] == 0
    assert found["gradserve_condemned_plans", ""] == 12
    assert found["gradserve_callers", ""] == 11
    assert found["gradserve_displaced_total", ""] == 12
    assert found["gradserve_pieces_total", "here"] == 13
    assert found["gradserve_pieces_repeated_total", ""] == 14


def test_what_is_kept_and_who_was_denied() -> None:
    tally = Tally()
    tally.holdings = lambda: Holdings(3, 4096, graphs=5, graph_bytes=512, models=6, model_bytes=64, pending_writes=2)
    tally.count_commit("written", 0.0015)
    tally.count_commit("store_full", 0.5)
    tally.count_denial("unauthenticated")
    found = scraped(tally)
    assert found["gradserve_state_commits_total", "written"] == 1
    assert found["gradserve_state_commits_total", "store_full"] == 1
    assert found["gradserve_state_commit_seconds_count", ""] == 2
    assert found["gradserve_state_commit_seconds_bucket", "0.002"] == 1
    assert found["gradserve_state_commit_seconds_sum", ""] == 0.5015
    assert found["gradserve_tensors", ""] == 3
    assert found["gradserve_tensor_bytes", ""] == 4096
    assert found["gradserve_graphs", ""] == 5
    assert found["gradserve_graph_bytes", ""] == 512
    assert found["gradserve_models", ""] == 6
    assert found["gradserve_model_bytes", ""] == 64
    assert found["gradserve_state_behind", ""] == 2
    assert found["gradserve_requests_denied_total", "unauthenticated"] == 1


def test_what_alerts_look_for_begins_with_nothing() -> None:
    found = scraped(Tally())
    for name, label in (
        ("requests", "gradients,500"),
        ("requests", "other,503"),
        ("state_commits", "store_full"),
        ("requests_denied", "unauthenticated"),
        ("worker_restarts", "died"),
        ("worker_incidents", "SIGBUS"),
    ):
        assert found[f"gradserve_{name}_total", label] == 0, "Prometheus sees no increase in what begins with 1"


def test_settings_that_are_numbers_are_there_to_compare_with() -> None:
    found = scraped(Tally())
    assert found["gradserve_setting", "queue"] == 11
    assert ("gradserve_setting", "host") not in found
    assert ("gradserve_setting", "compile") not in found


def test_open_metrics_for_who_asks_for_them() -> None:
    text, media_type = Exposition(Tally(), Pool(Stats()), Settings()).text(
        "application/openmetrics-text; version=1.0.0"
    )
    assert media_type.startswith("application/openmetrics-text")
    assert text.endswith(b"# EOF\n")


def test_a_server_says_what_it_will_do() -> None:
    said = "\n".join(banner(Settings(device="cpu", workers=3, queue=7, max_body_bytes="1MiB", compile="off"), "cpu"))
    for word in ("computes on cpu", "3 workers of 1 thread", "1MiB of JSON", "7 requests may wait", "not compiled"):
        assert word in said


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ({"state": "memory"}, ("end with the server", "nobody is asked for a key")),
        ({"state": "/var/lib/x", "api_key": "gs_" + "a" * 43}, ("kept in /var/lib/x", "one key is asked for")),
        ({"keys_file": "/etc/keys"}, ("those of /etc/keys",)),
    ],
)
def test_the_banner_says_what_is_kept_and_who_may_ask(stated: dict[str, str], words: tuple[str, ...]) -> None:
    said = "\n".join(banner(Settings(device="cpu", **stated), "cpu"))
    for word in words:
        assert word in said
    assert "gs_a" not in said
