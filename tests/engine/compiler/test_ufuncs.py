"""Ufuncs of matrices, called by machine code, match NumPy."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from engine import registry
from engine.compiler.recipes import recipe_for
from engine.ir.op import Kernel
from engine.ir.tensor_type import Strided, TensorType
from tests.engine.codegen.microkernels.running import Array, run_recipe

pytest.importorskip("llvmlite")

RNG = np.random.default_rng(9)


def run_in_body(name: str, *operands: Array) -> Array:
    """Run the recipe of an op in a loop body."""
    op = cast("Kernel", registry().ops[name])
    types = [Strided(TensorType.of(x), x.strides) for x in operands]
    out: Any = op.infer(*types)
    recipe = recipe_for(op, "cpu", out, *types, in_body=True)
    assert recipe is not None
    return run_recipe(recipe, operands, out.shape, out.dtype)


def definite(*shape: int) -> Array:
    """Matrices whose symmetric part is positive definite; they themselves are not symmetric."""
    return RNG.normal(size=shape) + 8 * np.eye(shape[-1])


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (2, 3, 4, 4)])
def test_cholesky_uses_the_symmetric_part(shape: tuple[int, ...]) -> None:
    x = definite(*shape)
    np.testing.assert_allclose(
        run_in_body("cholesky", x), np.linalg.cholesky((x + x.swapaxes(-1, -2)) / 2), 1e-13, 1e-14
    )


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (2, 3, 4, 4)])
def test_inv_matches_numpy(shape: tuple[int, ...]) -> None:
    x = definite(*shape)
    np.testing.assert_allclose(run_in_body("inv", x), np.linalg.inv(x), 1e-13, 1e-14)


@pytest.mark.parametrize(("a", "b"), [((3, 3), (3, 2)), ((2, 4, 4), (4, 1)), ((2, 1, 3, 3), (5, 3, 4))])
def test_solve_matches_numpy(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = definite(*a), RNG.normal(size=b)
    np.testing.assert_allclose(run_in_body("solve", x, y), np.linalg.solve(x, y), 1e-12, 1e-14)
