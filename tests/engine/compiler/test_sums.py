"""Sums over leading and trailing axes get a microkernel above a minimum size."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from engine import TensorType, registry
from engine.compiler.recipes import sum_recipe
from engine.ir.op import Kernel


@pytest.mark.parametrize(("shape", "has"), [((16, 16, 16), True), ((16, 16, 15), False), ((1, 2, 1), False)])
def test_sum_recipe_needs_4096_elements(shape: tuple[int, ...], has: bool) -> None:
    x = TensorType(shape, np.dtype("float64"))
    recipe = sum_recipe(cast("Kernel", registry().ops["sum"]), x.with_shape(shape[1:2]), x, axes=(0, 2))
    assert (recipe is not None) == has
