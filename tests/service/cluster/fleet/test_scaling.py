"""The target number of servers."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from service.cluster.fleet.scaling import by_work, servers_for


@pytest.mark.parametrize(
    ("running", "queued", "workers", "telling", "servers"),
    [
        (0, 0, 8, 2, 1),  # one server stays when idle
        (5, 0, 8, 2, 2),  # 5 jobs at 0.7 · 4 workers a server
        (6, 0, 8, 2, 3),
        (8, 20, 8, 2, 10),  # queued jobs count like running ones
        (4, 0, 4, 4, 6),
    ],
)
def test_target_utilization_is_seven_tenths(
    running: int, queued: int, workers: int, telling: int, servers: int
) -> None:
    assert servers_for({"running": running, "queued": queued, "workers": workers}, telling) == servers


@pytest.mark.parametrize("totals", [{}, {"running": 3.0, "workers": 0.0}])
def test_number_is_unchanged_without_metrics(totals: dict[str, float]) -> None:
    assert servers_for(totals, 2) is None
    assert by_work(SimpleNamespace(aggregated_metrics=None, target_num_replicas=5)) == (5, {})


def test_metrics_of_all_servers_are_summed() -> None:
    metrics = {"running": {"a": 4.0, "b": 2.0}, "queued": {"a": 0.0, "b": 0.0}, "workers": {"a": 4.0, "b": 4.0}}
    assert by_work(SimpleNamespace(aggregated_metrics=metrics, target_num_replicas=9)) == (3, {})
