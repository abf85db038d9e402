"""The examples of decompositions, masks and special functions, each run as a user does, against known values."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from scipy import optimize, stats

from tests.demo.test_loops import numbers, printed, url
from tests.docs.marked import ROOT

__all__ = ["url"]

pytestmark = pytest.mark.slow


def test_pca_has_gradients_of_whole_subspaces(url: str) -> None:
    lines = printed("pca", url, "--steps", "40")
    assert numbers(lines["variance"])[0] < 1e-12
    assert numbers(lines["nuclear norm"])[0] < 1e-12
    first, last, _ = numbers(lines["held by the plane"])
    assert first < 0.7
    assert last > 0.99


def test_slater_determinant_gives_the_ground_state_energy(url: str) -> None:
    lines = printed("slater", url)
    for name in ("slogdet", "det"):
        energy, exact, worst = numbers(lines[name])
        assert energy == exact == 12.5
        assert worst < 1e-9


def test_censored_survival_times_fit_by_maximum_likelihood(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed("survival", url)
    assert numbers(lines["gradient"])[0] < 1e-6
    monkeypatch.syspath_prepend(ROOT / "examples")
    survival = import_module("survival")
    times, failed = survival.machines()

    def energy(theta: np.ndarray) -> float:  # type: ignore[type-arg]
        distribution = stats.gamma(np.exp(theta[0]), scale=np.exp(theta[1]))
        return -float(np.where(failed, distribution.logpdf(times), distribution.logsf(survival.END)).sum())

    expected = np.exp(optimize.minimize(energy, np.log([2.0, 2.0]), method="Nelder-Mead", options={"xatol": 1e-9}).x)
    np.testing.assert_allclose(numbers(lines["found"])[:2], expected, rtol=2e-4)


def test_masked_boxes_descend_onto_objects(url: str) -> None:
    lines = printed("detection", url, "--steps", "60")
    assert len(set(numbers(lines["count"]))) == 1
    slope, differences = numbers(lines["slope"])
    assert abs(slope - differences) < 1e-5
    loss, _ = numbers(lines["loss"])
    assert loss < 0.2
