"""How many servers there should be, from what they have to do."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any, Final

#: the share of all workers that is busy when there are as many servers as there should be
BUSY: Final = 0.7


def by_work(context: Any) -> tuple[int, dict[str, Any]]:
    """Answer Serve, as its policy: as many servers as have their workers busy to a share of BUSY.

    `context` is an AutoscalingContext of Ray. Serve keeps the number within the bounds of the deployment, and waits for
    as long as its delays say before it follows. The second part is what is to be remembered: nothing.
    """
    stated: Mapping[str, Mapping[Any, float]] = context.aggregated_metrics or {}
    telling = len(stated.get("workers", {}))
    totals = {name: sum(of_each.values()) for name, of_each in stated.items()}
    return servers_for(totals, telling) or context.target_num_replicas, {}


def servers_for(totals: Mapping[str, float], telling: int) -> int | None:
    """Servers for `running` and `queued` tasks, of which `telling` have `workers` together. None while none tells."""
    workers = totals.get("workers", 0.0)
    if not telling or not workers:
        return None
    tasks = totals.get("running", 0.0) + totals.get("queued", 0.0)
    return max(1, ceil(tasks * telling / (BUSY * workers)))
