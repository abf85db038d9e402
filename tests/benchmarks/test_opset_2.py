"""Benchmark spectra and decompositions match NumPy and SciPy, and each row has a goal."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.compare import Differs, largest_difference
from benchmarks.goals import GOALS
from benchmarks.peers import prepare
from benchmarks.problems import decompositions, spectra
from benchmarks.problems.decompositions import DECOMPOSITIONS
from benchmarks.problems.spectra import SPECTRA
from benchmarks.sides import gradserve
from benchmarks.workload import Array, Question, Unsupported, Workload

ROWS = SPECTRA | DECOMPOSITIONS
NAMES = [name for name in ROWS if not name.endswith("-values")]
#: tolerances relative to the largest number of a result
NEAR = {"float32": 1e-4, "float64": 1e-10}


@pytest.fixture(autouse=True)
def _smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce the sizes, so that no test takes seconds."""
    monkeypatch.setattr(spectra, "NUMBERS", 1_000)
    monkeypatch.setattr(spectra, "SIDE", 16)
    for name, extent in {"ROWS": 1_000, "TABLE": 50}.items():
        monkeypatch.setattr(decompositions, name, extent)


def results(work: Workload, side: str = "gradserve") -> list[Array]:
    prepared = gradserve(work, "cpu") if side == "gradserve" else prepare(side, work)
    return prepared.read(prepared.call())


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_values_match_numpy_and_scipy(name: str) -> None:
    work = ROWS[f"{name}-values"]()
    assert largest_difference(results(work), results(work, "scipy"), work.dtype) <= NEAR[work.dtype]


def slope(work: Workload, along: list[Array], step: float) -> float:
    """The derivative of a loss along a direction, by finite differences in float64."""
    wide = [a.astype(np.result_type(a, "float64")) if a.dtype.kind in "fc" else a for a in work.arrays]
    ends = []
    for distance in (step, -step):
        moved = [a + distance * v for a, v in zip(wide, along, strict=False)]
        arrays = [*moved, *wide[len(moved) :]]
        count = len(along)
        values = Workload(work.name, work.title, work.function, arrays[:count], arrays[count:], Question.VALUES)
        ends.append(float(results(values)[0]))
    return (ends[0] - ends[1]) / (2 * step)


def direction(rng: np.random.Generator, like: Array) -> Array:
    parts = rng.standard_normal((2, *like.shape))
    return np.asarray(parts[0] + 1j * parts[1] if like.dtype.kind == "c" else parts[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith("-512")])
def test_gradients_match_finite_differences(name: str) -> None:
    work = ROWS[name]()
    rng = np.random.default_rng(0)
    along = [direction(rng, a) for a in work.parameters]
    if name.startswith("eigh"):
        along = [v + v.swapaxes(-1, -2) for v in along]
    _, *gradients = results(work)
    derivative = sum(float(np.vdot(g, v).real) for g, v in zip(gradients, along, strict=True))
    assert derivative == pytest.approx(slope(work, along, 1e-6), rel=1e-3)


def test_every_row_has_a_goal() -> None:
    assert {*ROWS} <= {*GOALS}


def test_scipy_computes_only_values_of_rows_that_name_it() -> None:
    for name in ("complex-product", "W3"):
        work = ROWS.get(name, lambda: Workload("W3", "", lambda ops, x: x, [np.ones(2)]))()
        with pytest.raises(Unsupported):
            prepare("scipy", work)


def test_differing_imaginary_parts_are_detected() -> None:
    one = [np.array([1 + 2j])]
    assert largest_difference(one, one, "float64") == 0
    with pytest.raises(Differs):
        largest_difference(one, [np.conj(one[0])], "float64")
