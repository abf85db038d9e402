"""The kernel for each direction of a pool."""

from __future__ import annotations

import pytest

from engine.codegen.microkernels.product import MatrixLayout
from engine.codegen.microkernels.windows import DirectedPool, PoolDirection, PoolGeometry
from engine.compiler import recipes as pools


@pytest.mark.parametrize(
    ("direction", "kernel"),
    [("max", "max_pool"), ("avg", "avg_pool"), ("max_indices", "max_pool_indices"), ("max_back", "max_pool_back")],
)
def test_each_direction_has_its_kernel(direction: PoolDirection, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("max_pool", "avg_pool", "max_pool_indices", "max_pool_back"):
        monkeypatch.setattr(pools, name, lambda *given, name=name: (name, *given))
    planes, given = MatrixLayout(160, 8, (3200,)), MatrixLayout(80, 8, (800,))
    geometry = PoolGeometry("float64", 8, (2,), (20, 20), (10, 10), (2, 2), (2, 2), (0, 0), planes)
    back = (given,) if direction == "max_back" else ()
    assert pools.pool_recipe(DirectedPool(geometry, direction, *back)) == (kernel, geometry, *back)
