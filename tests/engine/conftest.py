"""Setup shared by the tests of the engine."""

from __future__ import annotations

from tests.engine.ops import matrices


def pytest_runtest_setup() -> None:
    """Reset the generator of random matrices, so that no test depends on earlier ones; a fixture costs more time."""
    matrices.RNG.bit_generator.state = matrices.INITIAL_STATE
