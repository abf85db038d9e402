"""Networks of many layers: small ones against differences and against peers, and the sizes of the large ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.compare import largest_difference
from benchmarks.peers import prepare
from benchmarks.problems.deep_networks import residual_network, transformer
from benchmarks.sides import LIMITS, is_installed, recorded
from benchmarks.workload import Array, Question, Workload
from engine import Compiler, open_executor

SMALL = {
    "residual": residual_network((4, 6), blocks=1, batch=3, side=24, classes=5),
    "transformer": transformer(2, width=8, heads=2, batch=2, tokens=6),
}
EXECUTOR = open_executor("cpu")


def in_doubles(work: Workload) -> Workload:
    return replace(
        work,
        parameters=[a.astype("float64") for a in work.parameters],
        data=[a.astype("float64") if a.dtype.kind == "f" else a for a in work.data],
    )


def results(work: Workload, *, splits_sums: bool = False) -> Sequence[Array]:
    plan = Compiler(LIMITS, splits_sums=splits_sums).compile(*recorded(work)).plan
    return EXECUTOR.run(plan, dict(enumerate(work.arrays)))


def moved(work: Workload, along: Sequence[Array], by: float) -> float:
    """The value where all parameters have moved."""
    there = [a + by * d for a, d in zip(work.parameters, along, strict=True)]
    (value,) = results(replace(work, parameters=there, question=Question.VALUES))
    return float(value)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_gradients_are_what_differences_say(name: str) -> None:
    work = in_doubles(SMALL[name])
    rng = np.random.default_rng(0)
    along: list[Array] = [rng.normal(size=a.shape) for a in work.parameters]
    _, *gradients = results(work)
    slope = sum(float((g * d).sum()) for g, d in zip(gradients, along, strict=True))
    assert slope == pytest.approx((moved(work, along, 1e-6) - moved(work, along, -1e-6)) / 2e-6, rel=1e-5)


@pytest.mark.parametrize("name", SMALL)
def test_sums_in_two_give_the_same(name: str) -> None:
    work = in_doubles(SMALL[name])
    assert largest_difference(results(work, splits_sums=True), results(work), "float64") < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("peer", ["torch", "jax"])
@pytest.mark.parametrize("name", SMALL)
def test_peers_compute_the_same(name: str, peer: str) -> None:
    if not is_installed(peer):
        pytest.skip(f"{peer} is not installed")
    theirs = prepare(peer, SMALL[name])
    largest_difference(results(SMALL[name]), theirs.read(theirs.call()), "float32")


@pytest.mark.slow
def test_they_are_as_large_as_those_of_their_names() -> None:
    """ResNet-18 has 11,689,512 parameters, and a layer of width d has 12 d² + 13 d."""
    assert sum(a.size for a in residual_network().parameters) == 11_689_512
    assert sum(a.size for a in transformer().parameters) == 6 * (12 * 512**2 + 13 * 512)
