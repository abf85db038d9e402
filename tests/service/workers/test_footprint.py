"""What a server settles at follows its settings, and what its workers may remember."""

from __future__ import annotations

import numpy as np
import pytest

from engine import registry
from engine.ops.elementwise import base as elementwise
from service.core.settings import Settings, budget_of, settings_for_worker
from service.workers.topology import Footprint, largest_footprint, typical_footprint
from service.workers.worker import Worker, kernel_store

MIB = 1 << 20
SOME = {"workers": 2, "plan_cache": 64, "plan_cache_bytes": 256 * MIB, "max_graph_bytes": 7 * MIB}


def made(**stated: object) -> Settings:
    return Settings(device="cpu", **SOME | {"max_answer_bytes": 5 * MIB} | stated)


@pytest.mark.parametrize(
    ("more", "usual", "most"),
    [
        ({"plan_cache": 128}, True, False),
        ({"plan_cache_bytes": 512 * MIB}, True, True),
        ({"workers": 3}, True, True),
        ({"max_graph_bytes": 8 * MIB}, False, True),
        ({"max_answer_bytes": 6 * MIB}, False, True),
        ({"max_bytes": 1 << 40}, False, False),
        ({"held_bytes": 1 << 40}, False, False),
        ({"max_tensor_bytes": 1 << 40}, False, False),
    ],
    ids=str,
)
def test_it_follows_the_settings(more: dict[str, int], usual: bool, most: bool) -> None:
    assert (typical_footprint(made(**more)).whole > typical_footprint(made()).whole) == usual
    assert (largest_footprint(made(**more)).whole > largest_footprint(made()).whole) == most


def test_without_kernels_it_is_less() -> None:
    assert typical_footprint(made(compile="off")).worker < typical_footprint(made()).worker


def test_it_is_what_the_processes_take_together() -> None:
    assert Footprint(front=10, workers=3, worker=4).whole == 22
    assert typical_footprint(made()).workers == 4, "a quick one and a spare beside the two"


@pytest.mark.parametrize("whole", [4 * MIB, 64 * MIB, 1 << 30])
def test_it_has_all_that_a_worker_may_remember(whole: int) -> None:
    """Between a worker's figure where nothing may be remembered and its figure lies what its caches may take."""
    settings = made(plan_cache_bytes=whole, cache_dir=None)
    own = settings_for_worker(settings, typical_footprint(settings).workers)
    at_work = Worker(own)
    caches = [at_work._cached_requests, at_work._programs._cache, at_work.engine.compiler.plans]
    store = kernel_store(own)
    assert store is not None
    limits = [cache.bytes for cache in caches] + [at_work._executor.instances.bytes, store._cache.capacity]
    empty = largest_footprint(made(plan_cache_bytes=1)).worker
    assert largest_footprint(settings).worker - empty == sum(limits) == budget_of(own).caches
    assert budget_of(own).plans + budget_of(own).ready + budget_of(own).graphs == own.plan_cache_bytes


def test_kernels_of_formulas_are_few() -> None:
    """Each number in an attribute makes another one: they are not to be kept by the thousand."""
    memory, op, number = elementwise._kernels, registry().ops["mul_scalar"], np.dtype("float64")
    for i in range(2 * 1024):
        memory(op, (number, number, number), {"scalar": i + 0.5})
    assert 0 < len(memory) <= 1024
