"""The examples of loops, each run as a user does: their comparisons agree, also with values computed by the test."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import httpx
import numpy as np
import pytest

from examples.server import running_server
from tests.docs.marked import ROOT

pytestmark = pytest.mark.slow

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]\d+)?")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running_server("--device", "cpu") as address:
        yield address


def printed(name: str, url: str, *options: str) -> dict[str, str]:
    """The output of an example: each line by the text before its colon."""
    command = [sys.executable, ROOT / "examples" / f"{name}.py", "--url", url, *options]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    return dict(line.split(": ", 1) for line in run.stdout.splitlines() if ": " in line)


def numbers(text: str) -> list[float]:
    """The numbers in a line."""
    return [float(number) for number in NUMBER.findall(text)]


def test_adaptive_solver_gradient_matches_keplers_law(url: str) -> None:
    """∂P/∂m at a fixed start, by differences of Kepler's third law."""
    lines = printed("adaptive", url)
    assert lines["steps"].endswith("finished: True")
    near, v = 1 - 0.967, np.sqrt((1 + 0.967) / (1 - 0.967))

    def period(velocity: float, mass: float) -> float:
        return 2 * np.pi * (2 / near - velocity**2 / mass) ** -1.5 / np.sqrt(mass)

    h = 1e-7
    truth = {
        "by velocity": -v * (period(v + h, 1) - period(v - h, 1)) / (2 * h),
        "by mass": -v * (period(v, 1 + h) - period(v, 1 - h)) / (2 * h),
    }
    for name, expected in truth.items():
        gradient, _, error = numbers(lines[name])
        assert gradient == pytest.approx(expected, rel=1e-5)
        assert error < 1e-9


def test_scan_kalman_filter_finds_the_published_variances(url: str) -> None:
    lines = printed("kalman", url)
    for name in ("energy", "by log var ε", "by log var η"):
        value, expected = numbers(lines[name])
        assert value == pytest.approx(expected, rel=1e-10)
    noise, drift, *published = numbers(lines["variances"])
    assert published == [15099, 1469.1]
    assert (noise, drift) == pytest.approx(published, rel=1e-4)


def test_scan_lstm_matches_the_unrolled_lstm(url: str) -> None:
    lines = printed("lstm", url, "--length", "40", "--steps", "20")
    before, after, _ = numbers(lines["loss"])
    assert after < before / 2
    assert numbers(lines["largest difference of the gradients"])[0] < 1e-13
    assert numbers(lines["scan"])[0] < 20
    assert numbers(lines["unrolled"])[0] > 100


def test_implicit_layer_uses_the_implicit_function_theorem(url: str) -> None:
    lines = printed("deq", url)
    assert "finished: True" in lines["iterations"]
    for name in ("by w", "by v", "by b"):
        norm, difference = numbers(lines[name])
        assert difference < 1e-11
        assert norm > 1e-3


def test_hmc_chains_have_the_posterior_moments(url: str) -> None:
    lines = printed("hmc", url, "--draws", "300", "--seed", "3")
    for name in ("intercept", "slope"):
        mean, error, expected = numbers(lines[name])
        assert error < 0.01
        assert abs(mean - expected) < 5 * error
        deviation, exact = numbers(lines[f"deviation of {name}"])
        assert deviation == pytest.approx(exact, rel=0.05)
    assert numbers(lines["correlation"])[0] == pytest.approx(numbers(lines["correlation"])[1], abs=0.05)


def test_diffusion_samples_the_clusters(url: str) -> None:
    """2,000 points: shares to within 0.011 and centres to within 0.025, one standard deviation each."""
    lines = printed("diffusion", url, "--count", "2000")
    for i in range(3):
        share, expected, x, y, *centre, width, wide = numbers(lines[f"cluster {i}"])
        assert share == pytest.approx(expected, abs=0.05)
        assert (x, y) == pytest.approx(centre, abs=0.1)
        assert width == pytest.approx(wide, rel=0.1)


def test_one_training_request_matches_step_by_step_training(url: str) -> None:
    lines = printed("train_once", url)
    assert lines["at once"].startswith("440 steps")
    assert lines["step by step"].startswith("440 steps")
    assert numbers(lines["test accuracy"])[0] >= 0.95
    weight, difference = numbers(lines["largest weight"])
    assert difference < 1e-11
    assert weight > 0.1
    assert httpx.get(url + "/v1/tensors").json() == {"tensors": []}
