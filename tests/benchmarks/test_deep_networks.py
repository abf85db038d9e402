"""Deep networks: small ones against finite differences and peers, and the sizes of the large ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.card.phases import BENCHED
from benchmarks.compare import Differs, largest_difference
from benchmarks.goals import CARD_GOALS
from benchmarks.peers import READ_BY_JAX, prepare, read_by_torch
from benchmarks.problems.deep_networks import DEEP_ON_CARDS, residual_network, transformer
from benchmarks.sides import LIMITS, is_installed, planned, recorded
from benchmarks.suite import chosen, find
from benchmarks.workload import Array, Question, Unsupported, Workload
from engine import Compiler, open_executor

SMALL = {
    "residual": residual_network((4, 6), blocks=1, batch=3, side=24, classes=5),
    "transformer": transformer(2, width=8, heads=2, batch=2, tokens=6),
}
EXECUTOR = open_executor("cpu")


def in_float64(work: Workload) -> Workload:
    return replace(
        work,
        parameters=[a.astype("float64") for a in work.parameters],
        data=[a.astype("float64") if a.dtype.kind == "f" else a for a in work.data],
    )


def results(work: Workload, *, splits_sums: bool = False) -> Sequence[Array]:
    plan = Compiler(LIMITS, splits_sums=splits_sums).compile(*recorded(work)).plan
    return EXECUTOR.run(plan, dict(enumerate(work.arrays)))


def moved(work: Workload, along: Sequence[Array], distance: float) -> float:
    """The value after all parameters have moved along a direction."""
    parameters = [a + distance * d for a, d in zip(work.parameters, along, strict=True)]
    (value,) = results(replace(work, parameters=parameters, question=Question.VALUES))
    return float(value)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_gradients_match_finite_differences(name: str) -> None:
    work = in_float64(SMALL[name])
    rng = np.random.default_rng(0)
    along: list[Array] = [rng.normal(size=a.shape) for a in work.parameters]
    _, *gradients = results(work)
    slope = sum(float((g * d).sum()) for g, d in zip(gradients, along, strict=True))
    assert slope == pytest.approx((moved(work, along, 1e-6) - moved(work, along, -1e-6)) / 2e-6, rel=1e-5)


@pytest.mark.parametrize("name", SMALL)
def test_split_sums_give_the_same_results(name: str) -> None:
    work = in_float64(SMALL[name])
    assert largest_difference(results(work, splits_sums=True), results(work), "float64") < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("peer", ["torch", "jax"])
@pytest.mark.parametrize("name", SMALL)
def test_peers_compute_the_same_results(name: str, peer: str) -> None:
    if not is_installed(peer):
        pytest.skip(f"{peer} is not installed")
    theirs = prepare(peer, SMALL[name])
    work = SMALL[name]
    largest_difference(results(work), theirs.read(theirs.call()), "float32", vanishing=work.vanishing)


# ---------------------------------------------------------------- card workloads


def test_float16_is_close_to_float64() -> None:
    """The gradients are float16, and few of them underflow."""
    half = transformer(2, width=16, heads=2, batch=2, tokens=8, dtype="float16")
    actual, expected = results(half), results(in_float64(half))
    assert {a.dtype.name for a in actual} == {"float16"}
    largest_difference(actual, expected, "float16", vanishing=half.vanishing)
    assert all(
        np.count_nonzero(g) > 0.9 * np.count_nonzero(w)
        for k, (g, w) in enumerate(zip(actual, expected, strict=True))
        if k not in half.vanishing
    )


def test_vanishing_gradients_are_zero_up_to_rounding() -> None:
    work = in_float64(SMALL["transformer"])
    _, *gradients = results(work)
    largest = [np.abs(g).max() for g in gradients]
    assert [k for k, g in enumerate(largest) if g < 1e-12 * max(largest)] == [k - 1 for k in work.vanishing]


def test_vanishing_results_are_compared_on_the_scale_of_others() -> None:
    one, other = [np.ones(2), np.array([1e-9])], [np.ones(2), np.array([-1e-9])]
    assert largest_difference(one, other, "float32", vanishing=(1,)) == pytest.approx(2e-9)
    with pytest.raises(Differs):
        largest_difference(one, other, "float32")


def test_card_workloads_have_names_and_precisions() -> None:
    works = {name: make() for name, make in DEEP_ON_CARDS.items()}
    assert [(work.name, work.dtype, work.precision) for work in works.values()] == [
        ("N1-tf32", "float32", "tf32"),
        ("N2-tf32", "float32", "tf32"),
        ("N2-half", "float16", "float32"),
    ]
    assert all(work.title.startswith(f"{name}: ") for name, work in works.items())
    assert {*works} <= {*BENCHED} & {*CARD_GOALS}
    assert chosen([*works]) == dict.fromkeys(works, "cards")
    assert not {*works} & {*chosen([])}
    assert all(find(name)().name == name for name in works)


def test_plan_has_the_precision_of_the_workload() -> None:
    work = SMALL["transformer"]
    for variant in (work, replace(work, precision="tf32")):
        assert planned(Compiler(LIMITS), variant).precision == variant.precision


def test_peers_use_the_precision_of_the_engine() -> None:
    def switch() -> SimpleNamespace:
        return SimpleNamespace(allow_tf32=None, allow_fp16_reduced_precision_reduction=None)

    backends = SimpleNamespace(cuda=SimpleNamespace(matmul=switch()), cudnn=switch())
    for precision, allowed in (("float32", False), ("tf32", True), ("float32", False)):
        read_by_torch(SimpleNamespace(backends=backends), precision)
        assert backends.cuda.matmul.allow_tf32 is backends.cudnn.allow_tf32 is allowed
        assert backends.cuda.matmul.allow_fp16_reduced_precision_reduction is False
    assert READ_BY_JAX == {"float32": "highest", "tf32": "tensorfloat32"}
    with pytest.raises(Unsupported, match="no float32 as bfloat16"):
        read_by_torch(SimpleNamespace(backends=backends), "bfloat16")


def test_tf32_results_have_a_wider_tolerance() -> None:
    one, other = [np.array([1.0, 2.0])], [np.array([1.01, 2.0])]
    assert largest_difference(one, other, "float32", "tf32") == pytest.approx(0.005)
    for dtype, precision in (("float32", "float32"), ("float64", "tf32")):
        with pytest.raises(Differs):
            largest_difference(one, other, dtype, precision)


@pytest.mark.slow
def test_parameter_counts_match_the_published_networks() -> None:
    """ResNet-18 has 11,689,512 parameters, and a layer of width d has 12 d² + 13 d."""
    assert sum(a.size for a in residual_network().parameters) == 11_689_512
    assert sum(a.size for a in transformer().parameters) == 6 * (12 * 512**2 + 13 * 512)
