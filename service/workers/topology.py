"""Topology: the number of worker processes, the place of each, and the memory that all of them take."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, NamedTuple

from service.core import machine
from service.core.budget import (
    FRONT_BYTES,
    FRONT_LIMIT,
    REQUESTS_PER_PLAN,
    SMALL_PLAN,
    SMALL_REQUEST,
    WORKER_BYTES,
    WORKER_CACHE_BYTES,
    WorkerCounts,
)
from service.core.settings import Settings, budget_of, settings_for_worker

#: variables that set the number of BLAS threads: if one is set, the server does not interfere
_BLAS: Final = {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"}


class Topology(NamedTuple):
    """Number of `general` workers, whether there are a quick one and a spare, and the GPU of each, if it has one.

    A GPU has one worker, which takes short tasks too, and no spare: each process that opens a GPU takes hundreds of
    megabytes of its memory, and two processes would take turns on it. On CPUs, a quick worker and a spare cost no more
    than their memory.
    """

    general: int
    quick: bool
    spare: bool
    cards: tuple[str, ...]

    @property
    def processes(self) -> int:
        """Number of all processes."""
        return self.general + self.quick + self.spare

    def environment(self, number: int) -> Mapping[str, str]:
        """Return the variables of a worker by number: its GPU, and the number of BLAS threads.

        By default, BLAS would start a thread for every processor, though the worker may use only its share of them.
        """
        threads = (
            {} if _BLAS & os.environ.keys() else {"OPENBLAS_NUM_THREADS": str(machine.cpus_per_worker(self.general))}
        )
        return threads | ({"CUDA_VISIBLE_DEVICES": self.cards[number]} if self.cards else {})


def topology_for(settings: Settings, device: str) -> Topology:
    """Return the workers that a server has on a device."""
    if device == "cpu":
        return Topology(*WorkerCounts(settings.workers), cards=())
    cards = machine.visible_gpus()
    return Topology(max(1, len(cards)), quick=False, spare=False, cards=cards)


def share_of_memory(settings: Settings) -> int:
    """Return the bytes that each worker may take: front and workers together, no more than the system has.

    Bodies and tensors come on top: they are shared, and have budgets of their own. When the first worker starts, it is
    not known yet whether GPUs are used, so the larger number of processes counts.
    """
    processes = max(topology_for(settings, "cpu").processes, len(machine.visible_gpus()))
    return max(0, machine.memory_bytes() - FRONT_LIMIT) // processes


class Footprint(NamedTuple):
    """Bytes of private memory of the front, and of each worker, once their caches are full.

    They follow from the settings and from measurements. Bodies, tensors and executions come on top, each with a budget
    of its own.
    """

    front: int
    workers: int
    worker: int

    @property
    def whole(self) -> int:
        """Bytes of all processes together."""
        return self.front + self.workers * self.worker


def typical_footprint(settings: Settings) -> Footprint:
    """Estimate the footprint with graphs of about 60 nodes, as many plans as are cached, and all kernels."""
    worker_settings = settings_for_worker(settings, topology_for(settings, "cpu").processes)
    budget = budget_of(worker_settings)
    cached_requests = min(budget.cached_requests, SMALL_REQUEST * REQUESTS_PER_PLAN * worker_settings.plan_cache)
    plans = min(worker_settings.plan_cache_bytes, SMALL_PLAN * worker_settings.plan_cache)
    return _footprint(settings, FRONT_BYTES, plans + cached_requests + budget.kernels)


def largest_footprint(settings: Settings) -> Footprint:
    """Bound the footprint for any requests: every cache has as many bytes as it may have.

    The front keeps registered graphs, and answers to calls with an Idempotency-Key.
    """
    worker_settings = settings_for_worker(settings, topology_for(settings, "cpu").processes)
    front = FRONT_BYTES + settings.max_graph_bytes + settings.max_answer_bytes
    return _footprint(settings, front, budget_of(worker_settings).caches)


def _footprint(settings: Settings, front: int, caches: int) -> Footprint:
    return Footprint(front, topology_for(settings, "cpu").processes, WORKER_BYTES + WORKER_CACHE_BYTES + caches)
