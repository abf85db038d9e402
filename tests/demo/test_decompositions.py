"""The examples of decompositions, masks and special functions, each run as a user does, beside truths."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from scipy import optimize, stats

from tests.demo.test_loops import numbers, printed, url
from tests.docs.marked import ROOT

__all__ = ["url"]

pytestmark = pytest.mark.slow


def test_principal_components_have_the_gradients_of_whole_spaces(url: str) -> None:
    lines = printed("pca", url, "--steps", "40")
    assert numbers(lines["variance"])[0] < 1e-12
    assert numbers(lines["nuclear norm"])[0] < 1e-12
    first, last, _ = numbers(lines["held by the plane"])
    assert first < 0.7
    assert last > 0.99


def test_fermions_have_the_energy_of_their_ground_state(url: str) -> None:
    lines = printed("slater", url)
    for name in ("slogdet", "det"):
        found, right, worst = numbers(lines[name])
        assert found == right == 12.5
        assert worst < 1e-9


def test_times_that_are_cut_off_have_the_most_likely_distribution(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed("survival", url)
    assert numbers(lines["gradient"])[0] < 1e-6
    monkeypatch.syspath_prepend(ROOT / "examples")
    survival = import_module("survival")
    times, failed = survival.machines()

    def energy(theta: np.ndarray) -> float:  # type: ignore[type-arg]
        found = stats.gamma(np.exp(theta[0]), scale=np.exp(theta[1]))
        return -float(np.where(failed, found.logpdf(times), found.logsf(survival.END)).sum())

    right = np.exp(optimize.minimize(energy, np.log([2.0, 2.0]), method="Nelder-Mead", options={"xatol": 1e-9}).x)
    np.testing.assert_allclose(numbers(lines["found"])[:2], right, rtol=2e-4)


def test_boxes_that_a_mask_picks_descend_onto_objects(url: str) -> None:
    lines = printed("detection", url, "--steps", "60")
    assert len(set(numbers(lines["count"]))) == 1
    found, differences = numbers(lines["slope"])
    assert abs(found - differences) < 1e-5
    loss, _ = numbers(lines["loss"])
    assert loss < 0.2
