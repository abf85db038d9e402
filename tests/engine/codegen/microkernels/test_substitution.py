"""Triangular systems are solved as accurately as by any substitution, without reading the other triangle."""

from __future__ import annotations

import numpy as np
import pytest

from engine.codegen.microkernels.axis_kernels import substitution
from engine.ir.tensor_type import Strided, TensorType
from tests.engine.codegen.microkernels.running import Array, run_recipe

pytest.importorskip("llvmlite")


def solved(a: Array, b: Array, lower: bool, transpose: bool) -> Array:
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*batch, *b.shape[-2:])
    types = [Strided(TensorType.of(x), x.strides) for x in (a, b)]
    recipe = substitution(TensorType(shape, a.dtype), *types, lower=lower, transpose=transpose)
    return run_recipe(recipe, [a, b], shape, a.dtype, order=lambda count: reversed(range(count)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize(("batch", "beside"), [((), ()), ((2, 1), (3,)), ((), (4,)), ((5,), ())])
def test_solution_satisfies_the_system(
    batch: tuple[int, ...], beside: tuple[int, ...], lower: bool, transpose: bool, dtype: str
) -> None:
    rng, n = np.random.default_rng(0), 6
    a = (rng.normal(size=(*batch, n, n)) + 5 * np.eye(n)).astype(dtype)
    b = rng.normal(size=(*beside, n, 3)).astype(dtype)
    triangle = np.tril(a) if lower else np.triu(a)
    op = triangle.swapaxes(-1, -2) if transpose else triangle
    other = ~np.tril(np.ones((n, n), bool)) if lower else np.tril(np.ones((n, n), bool), -1)
    a[..., other] = np.nan
    y = solved(a, b, lower, transpose)
    bound = (n + 2) * np.finfo(dtype).eps * (np.abs(op) @ np.abs(y))
    assert np.all(np.abs(op.astype("longdouble") @ y - b) <= bound)
    turned = np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2)
    assert solved(turned, b[..., ::-1], lower, transpose)[..., ::-1].tobytes() == y.tobytes()


def test_zero_on_the_diagonal_gives_infinity() -> None:
    y = solved(np.array([[0.0, 9.0], [1.0, 2.0]]), np.array([[1.0], [1.0]]), lower=True, transpose=False)
    assert y.tolist() == [[np.inf], [-np.inf]]
