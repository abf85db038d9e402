"""A card for tests of executors: the real one, and a stand-in that needs no GPU."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.cuda import cupy_backend
from tests.engine.cuda.stand_in_card import StandInCard, card_in_place


@pytest.fixture
def stand_in() -> Iterator[StandInCard]:
    """The stand-in, in place of CuPy and cuBLASLt."""
    with card_in_place() as card:
        yield card


@pytest.fixture(params=["card", "stand-in"])
def card(request: pytest.FixtureRequest) -> None:
    """Run a test on the real card, and on the stand-in."""
    if request.param == "stand-in":
        request.getfixturevalue("stand_in")
    elif not cupy_backend.is_available():
        pytest.skip("there is no GPU")
