"""The memory footprint of a server follows its settings and the caches of its workers."""

from __future__ import annotations

import numpy as np
import pytest

from engine import registry
from engine.ops.elementwise import base as elementwise
from service.core.settings import Settings, budget_of, settings_for_worker
from service.workers.topology import Footprint, largest_footprint, typical_footprint
from service.workers.worker import Worker, kernel_store

MIB = 1 << 20
BASE = {"workers": 2, "plan_cache": 64, "plan_cache_bytes": 256 * MIB, "max_graph_bytes": 7 * MIB}


def settings_with(**changes: object) -> Settings:
    return Settings(device="cpu", **BASE | {"max_answer_bytes": 5 * MIB} | changes)


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
def test_footprint_follows_the_settings(more: dict[str, int], usual: bool, most: bool) -> None:
    assert (typical_footprint(settings_with(**more)).whole > typical_footprint(settings_with()).whole) == usual
    assert (largest_footprint(settings_with(**more)).whole > largest_footprint(settings_with()).whole) == most


def test_footprint_is_smaller_without_kernels() -> None:
    assert typical_footprint(settings_with(compile="off")).worker < typical_footprint(settings_with()).worker


def test_whole_footprint_is_the_sum_of_the_processes() -> None:
    assert Footprint(front=10, workers=3, worker=4).whole == 22
    assert typical_footprint(settings_with()).workers == 4, "a quick one and a spare beside the two"


@pytest.mark.parametrize("whole", [4 * MIB, 64 * MIB, 1 << 30])
def test_footprint_includes_the_caches_of_a_worker(whole: int) -> None:
    """A worker's footprint exceeds that of one without caches by the capacity of its caches."""
    settings = settings_with(plan_cache_bytes=whole, cache_dir=None)
    own = settings_for_worker(settings, typical_footprint(settings).workers)
    cached_worker = Worker(own)
    caches = [cached_worker._cached_requests, cached_worker._programs._cache, cached_worker.engine.compiler.plans]
    store = kernel_store(own)
    assert store is not None
    limits = [cache.bytes for cache in caches] + [cached_worker._executor.instances.bytes, store._cache.capacity]
    empty = largest_footprint(settings_with(plan_cache_bytes=1)).worker
    assert largest_footprint(settings).worker - empty == sum(limits) == budget_of(own).caches
    assert budget_of(own).plans + budget_of(own).ready + budget_of(own).graphs == own.plan_cache_bytes


def test_elementwise_kernel_cache_is_bounded() -> None:
    """Each attribute value compiles another kernel: they must not be cached by the thousand."""
    kernel_cache, op, number = elementwise._kernels, registry().ops["mul_scalar"], np.dtype("float64")
    for i in range(2 * 1024):
        kernel_cache(op, (number, number, number), {"scalar": i + 0.5})
    assert 0 < len(kernel_cache) <= 1024
