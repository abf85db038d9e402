"""What the tests of the engine share."""

from __future__ import annotations

from tests.engine.ops import matrices


def pytest_runtest_setup() -> None:
    """Each test draws the same matrices, whatever ran before it in its process; a fixture costs each test more."""
    matrices.RNG.bit_generator.state = matrices.FIRST
