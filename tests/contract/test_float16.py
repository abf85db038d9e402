"""float16 range: results up to 65,504 are exact enough, whatever the intermediate results are."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from engine import COTANGENTS, Compiler, Limits, TensorType, open_executor
from tests.contract.cases import Array, Case, all_cases, aspects, has_rule
from tests.engine.ops.run import grads, run
from tests.sampling import sampled, together

EXECUTOR = open_executor(os.environ.get("GRADSERVE_TEST_DEVICE", "cpu"))
LARGE = 40_000.0
#: tolerance relative to the largest entry: a few roundings of float16
CLOSE = 2**-7
#: tolerance relative to the cotangent: cancellation in float32, as in y · (g − Σ g·y) if y rounds to 1
CANCELLED = 2**-22
#: factors applied to the sample operands
SIZES = (1.0, 24.0)


def value_and_gradients(
    case: Case, output: int, arrays: Sequence[Array], cotangent: Array, compiler: Compiler
) -> list[Array]:
    """Return the result, and the gradients of sum(result · cotangent) with respect to the float operands."""
    node = len(arrays) + (1 + output if case.op.several else 0)
    wrt = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]
    types = {i: TensorType.of(a) for i, a in enumerate(arrays)}
    compiled = compiler.gradients(case.program(), types, node, wrt, cotangent=TensorType.of(cotangent))
    feeds: dict[Any, Array] = {**dict(enumerate(arrays)), (COTANGENTS, node): cotangent}
    return EXECUTOR.run(compiled.plan, feeds)


def float16_operands(case: Case, size: float) -> list[Array]:
    """Return the sample operands in float16, multiplied by `size`."""
    return [(a * size).astype("float16") if a.dtype.kind == "f" else a for a in case.arrays()]


def as_float64(arrays: Sequence[Array]) -> list[Array]:
    """Return the same numbers in float64."""
    return [a.astype("float64") if a.dtype == np.float16 else a for a in arrays]


def max_abs(arrays: Sequence[Array]) -> float:
    return max((float(np.abs(a).max()) for a in arrays if a.size), default=0.0)


def result_cases() -> list[tuple[Case, int, float]]:
    """Return every differentiable result of every sample, at each size."""
    cases = [c for c in all_cases() if has_rule(c) and "dtype" not in c.sample.attrs and not c.is_complex]
    floats = [(c, k) for c in cases for k, t in enumerate(c.result_types()) if t.is_differentiable and not t.is_complex]
    return [(c, k, size) for c, k in floats for size in SIZES]


def result_aspects(entry: tuple[Case, int, float]) -> Iterator[Hashable]:
    """Yield the op with its result and size, and the aspects of the case."""
    case, output, size = entry
    yield case.op.name, output, size
    yield from aspects(case)


@together
@pytest.mark.parametrize(("case", "output", "size"), sampled(result_cases(), result_aspects), ids=str)
def test_float16_gradients_match_float64(case: Case, output: int, size: float) -> None:
    """Scale the cotangent so that the gradients just fit, because derivatives are linear in it."""
    arrays = float16_operands(case, size)
    shape, compiler = case.result_types()[output].shape, Compiler(Limits())
    cotangent = np.asarray(np.random.default_rng(3).uniform(0.5, 1, shape))
    expected = value_and_gradients(case, output, as_float64(arrays), cotangent, compiler)
    fits = max_abs(expected[:1]) <= LARGE and all(np.isfinite(a).all() for a in expected)
    assert fits or size > 1
    if not fits:
        return
    scaled = (cotangent * LARGE / max(1.0, max_abs(expected[1:]))).astype("float16")
    expected = value_and_gradients(case, output, as_float64(arrays), scaled.astype("float64"), compiler)
    for actual, value in zip(value_and_gradients(case, output, arrays, scaled, compiler), expected, strict=True):
        assert np.isfinite(actual).all()
        tolerance = CLOSE * max_abs([value]) + CANCELLED * max_abs([scaled])
        np.testing.assert_allclose(actual.astype("float64"), value, rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_intermediate_results_do_not_overflow(dtype: str) -> None:
    """Use a cotangent near the largest number of each dtype."""
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
def test_composite_rounds_once(op: str, operands: tuple[list[float], ...], attrs: dict[str, Any], value: float) -> None:
    actual = run(op, *(np.array(x, "float16") for x in operands), **attrs)
    assert actual.dtype == np.float16
    assert actual.tolist() == [np.float16(value)]
