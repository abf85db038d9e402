"""What the tests of the engine share."""

from __future__ import annotations

import pytest

from tests.engine.ops import matrices


@pytest.fixture(autouse=True)
def _draws_of_its_own() -> None:
    """Each test draws the same matrices, whatever ran before it in its process."""
    matrices.RNG.bit_generator.state = matrices.FIRST
