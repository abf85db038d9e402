"""A card for tests of executors: the one that there is, and a stand-in, which needs none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.cuda import cupy_backend
from tests.engine.cuda.stand_in_card import StandInCard, card_in_place


@pytest.fixture
def stand_in() -> Iterator[StandInCard]:
    """The stand-in for CuPy and cuBLASLt in their places."""
    with card_in_place() as made:
        yield made


@pytest.fixture(params=["card", "stand-in"])
def card(request: pytest.FixtureRequest) -> None:
    """Tests run on the card, and without one."""
    if request.param == "stand-in":
        request.getfixturevalue("stand_in")
    elif not cupy_backend.is_available():
        pytest.skip("there is no GPU")
