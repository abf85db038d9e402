"""float16 ends at 65,504: what fits in it arrives, whatever a kernel or a rule computes on the way."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from engine import COTANGENTS, Compiler, Limits, TensorType, open_executor
from tests.contract.cases import Array, Case, all_cases, has_rule
from tests.engine.ops.run import grads, run
from tests.sampling import together

EXECUTOR = open_executor(os.environ.get("GRADSERVE_TEST_DEVICE", "cpu"))
LARGE = 40_000.0
#: of the largest entry: a few roundings of float16
CLOSE = 2**-7
#: of the cotangent: what cancels in float32, as in y · (g − Σ g·y) where y rounds to 1
CANCELLED = 2**-22
#: of each draw of the samples' operands
SIZES = (1.0, 24.0)


def pulled(case: Case, output: int, arrays: Sequence[Array], cotangent: Array, by: Compiler) -> list[Array]:
    """The result, and the gradients of sum(result · cotangent) by the float operands."""
    node = len(arrays) + (1 + output if case.op.several else 0)
    wrt = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]
    types = {i: TensorType.of(a) for i, a in enumerate(arrays)}
    compiled = by.gradients(case.program(), types, node, wrt, cotangent=TensorType.of(cotangent))
    feeds: dict[Any, Array] = {**dict(enumerate(arrays)), (COTANGENTS, node): cotangent}
    return EXECUTOR.run(compiled.plan, feeds)


def drawn(case: Case, size: float) -> list[Array]:
    """Operands in float16, larger than the samples'."""
    return [(a * size).astype("float16") if a.dtype.kind == "f" else a for a in case.arrays()]


def wide(arrays: Sequence[Array]) -> list[Array]:
    """The same numbers in float64."""
    return [a.astype("float64") if a.dtype == np.float16 else a for a in arrays]


def largest(arrays: Sequence[Array]) -> float:
    return max((float(np.abs(a).max()) for a in arrays if a.size), default=0.0)


def results() -> list[tuple[Case, int, float]]:
    """Every differentiable result of every sample, at each size."""
    cases = [c for c in all_cases() if has_rule(c) and "dtype" not in c.sample.attrs and not c.is_complex]
    floats = [(c, k) for c in cases for k, t in enumerate(c.result_types()) if t.is_differentiable and not t.is_complex]
    return [(c, k, size) for c, k in floats for size in SIZES]


@together
@pytest.mark.parametrize(("case", "output", "size"), results(), ids=str)
def test_gradients_that_fit_arrive(case: Case, output: int, size: float) -> None:
    """As large as they and the cotangent can be: derivatives are linear in it. The samples themselves fit."""
    arrays = drawn(case, size)
    shape, by = case.result_types()[output].shape, Compiler(Limits())
    cotangent = np.asarray(np.random.default_rng(3).uniform(0.5, 1, shape))
    wanted = pulled(case, output, wide(arrays), cotangent, by)
    fits = largest(wanted[:1]) <= LARGE and all(np.isfinite(a).all() for a in wanted)
    assert fits or size > 1
    if not fits:
        return
    scaled = (cotangent * LARGE / max(1.0, largest(wanted[1:]))).astype("float16")
    wanted = pulled(case, output, wide(arrays), scaled.astype("float64"), by)
    for found, value in zip(pulled(case, output, arrays, scaled, by), wanted, strict=True):
        assert np.isfinite(found).all()
        tolerance = CLOSE * largest([value]) + CANCELLED * largest([scaled])
        np.testing.assert_allclose(found.astype("float64"), value, rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_nothing_is_doubled_before_it_is_made_smaller(dtype: str) -> None:
    """Not in any dtype: the cotangent may be near its end."""
    large = np.asarray(0.7 * np.finfo(dtype).max, dtype)
    _, (by_var,) = grads("var", np.array([0, 1], dtype), cotangent=large)
    assert by_var.tolist() == [-0.5 * large, 0.5 * large]
    _, (by_cholesky,) = grads("cholesky", np.eye(2, dtype=dtype), cotangent=[[0, 0], [large, 0]])
    assert by_cholesky.tolist() == [[0, 0.5 * large], [0.5 * large, 0]]


@pytest.mark.parametrize(
    ("op", "operands", "attrs", "value"),
    [
        ("linear", ([2], [[40_000]], [-30_000]), {}, 50_000),
        ("mlp_layer", ([2], [[40_000]], [-30_000]), {}, 50_000),
        ("einsum", ([300], [300], [0.5]), {"equation": "i,i,i->i"}, 45_000),
        ("log_eps", ([60_000],), {"eps": 60_000}, np.log(120_000)),
    ],
)
def test_composites_round_once(op: str, operands: tuple[list[float], ...], attrs: dict[str, Any], value: float) -> None:
    found = run(op, *(np.array(x, "float16") for x in operands), **attrs)
    assert found.dtype == np.float16
    assert found.tolist() == [np.float16(value)]
