"""Autoscaling: how many servers there should be for the current load."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any, Final

#: fraction of all workers that should be busy
BUSY: Final = 0.7


def by_work(context: Any) -> tuple[int, dict[str, Any]]:
    """Return how many servers keep the fraction BUSY of their workers busy: the autoscaling policy of Serve.

    `context` is Ray's AutoscalingContext. Serve keeps the number within the bounds of the deployment, and follows it
    after the configured delays. The second part of the result is state to remember: none.
    """
    metrics: Mapping[str, Mapping[Any, float]] = context.aggregated_metrics or {}
    reporting = len(metrics.get("workers", {}))
    totals = {name: sum(values.values()) for name, values in metrics.items()}
    return servers_for(totals, reporting) or context.target_num_replicas, {}


def servers_for(totals: Mapping[str, float], reporting: int) -> int | None:
    """Return the servers for `running` and `queued` tasks, None if none reports. `reporting` servers have `workers`."""
    workers = totals.get("workers", 0.0)
    if not reporting or not workers:
        return None
    tasks = totals.get("running", 0.0) + totals.get("queued", 0.0)
    return max(1, ceil(tasks * reporting / (BUSY * workers)))
