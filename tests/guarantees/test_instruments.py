"""Tests of the instruments themselves: trends, known results and attacks. Not timed, so part of every run."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.conftest import Client
from tests.guarantees import framing, malformed, oversized
from tests.guarantees.known import Known, Maker, density, directional, doubled, examples, quadratic
from tests.guarantees.trend import trend

FLOOR = 1 << 20
LEVEL = 300 * FLOOR


def fluctuating(seed: int) -> np.ndarray:
    """Memory that is allocated and freed, so that neighbouring samples are correlated."""
    rng = np.random.default_rng(seed)
    x = np.zeros(800)
    for i in range(1, 800):
        x[i] = 0.95 * x[i - 1] + rng.standard_normal()
    return LEVEL + 0.3 * FLOOR * x


@pytest.mark.parametrize("seed", range(20))
def test_fluctuating_memory_is_flat(seed: int) -> None:
    assert trend(fluctuating(seed)).is_flat(FLOOR)


@pytest.mark.parametrize("seed", range(20))
def test_leak_in_fluctuating_memory_is_detected(seed: int) -> None:
    assert not trend(fluctuating(seed) + np.linspace(0.0, 40.0, 800) * FLOOR).is_flat(FLOOR)


def test_small_leak_in_steady_memory_is_detected() -> None:
    assert not trend(LEVEL + np.linspace(0.0, 3.0, 800) * FLOOR).is_flat(FLOOR)


def test_growth_in_the_first_half_does_not_count() -> None:
    assert trend([LEVEL] * 100 + [2 * LEVEL] * 500).is_flat(0)


def test_too_few_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="are needed"):
        trend([1.0] * 60)


def send(client: Client, known: Known) -> bytes:
    headers = {"Content-Type": known.kind, "Accept": known.kind}
    return client.post(known.path, content=known.body, headers=headers).content


@pytest.mark.parametrize("make", [density, quadratic, directional, examples, doubled])
def test_known_answer_matches_only_its_own_request(client: Client, make: Maker) -> None:
    rng = np.random.default_rng(1)
    for _ in range(4):
        known, other = make(rng), make(rng)
        body = send(client, known)
        assert known.is_answered_by(body)
        assert not other.is_answered_by(body)


@pytest.mark.slow
def test_attacks_are_many_and_have_unique_names() -> None:
    cases = [*malformed.cases(), *oversized.cases()]
    assert len(cases) > 120
    assert len({case.name for case in cases}) == len(cases)
    assert len({frame.name for frame in framing.frames()}) == len(framing.frames()) > 70


def test_oversized_bodies_have_the_intended_form() -> None:
    """The JSON of large bodies is written by hand; check its form."""
    nodes = json.loads(oversized.repeated_nodes(b'{"op":"input"}', 3))["graph"]["nodes"]
    assert nodes == [{"op": "input"}] * 3
    assert json.loads(oversized.numbers(5))["feeds"][0]["tensor"]["data"] == [0.25] * 5
