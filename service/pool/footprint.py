"""Footprint of the processes once their caches are full, by the settings and by what was measured.

Bodies, tensors and executions come on top, each with a budget of its own.
"""

from __future__ import annotations

from typing import NamedTuple

from service.budget import (
    FRONT_BYTES,
    REMEMBERED_BYTES,
    REQUESTS_OF_A_PLAN,
    SMALL_PLAN,
    SMALL_REQUEST,
    WORKER_BYTES,
)
from service.pool.topology import topology_for
from service.settings import Settings, budget_of, own_settings


class Footprint(NamedTuple):
    """Bytes of private memory of the front, and of each of so many workers."""

    front: int
    workers: int
    worker: int

    @property
    def whole(self) -> int:
        """Of all processes together."""
        return self.front + self.workers * self.worker


def settled(settings: Settings) -> Footprint:
    """What a server settles at where graphs have some 60 nodes: as many plans as there may be, and all kernels."""
    own = own_settings(settings, topology_for(settings, "cpu").processes)
    budget = budget_of(own)
    again = min(budget.cached_requests, SMALL_REQUEST * REQUESTS_OF_A_PLAN * own.plan_cache)
    plans = min(own.plan_cache_bytes, SMALL_PLAN * own.plan_cache)
    return _footprint(settings, FRONT_BYTES, plans + again + budget.kernels)


def settled_at_most(settings: Settings) -> Footprint:
    """What it settles at whatever it is sent: as many bytes of everything as there may be, and of what the front keeps.

    What is kept by the front are registered graphs, and answers for those who ask again.
    """
    own = own_settings(settings, topology_for(settings, "cpu").processes)
    front = FRONT_BYTES + settings.max_graph_bytes + settings.max_answer_bytes
    return _footprint(settings, front, budget_of(own).caches)


def _footprint(settings: Settings, front: int, caches: int) -> Footprint:
    return Footprint(front, topology_for(settings, "cpu").processes, WORKER_BYTES + REMEMBERED_BYTES + caches)
