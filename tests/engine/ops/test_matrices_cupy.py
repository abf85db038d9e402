"""Calls of the factorizations to CuPy, checked by a stand-in with CuPy's rules on top of NumPy: no GPU is needed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine import registry
from engine.ir.run_context import RunContext
from tests.engine.ops.matrices import close, definite, real, regular
from tests.engine.ops.run import Array

GARBAGE = 123.0


class CuPy:
    """NumPy with a stricter `linalg`: no broadcasting, no empty arrays, and failures are reported only on request."""

    def __init__(self) -> None:
        self.config = "ignore"
        self.dtypes: set[Any] = set()
        self.calls = 0
        one_by_one = {name: self.checked(getattr(np.linalg, name)) for name in ("cholesky", "inv", "solve")}
        self.linalg = SimpleNamespace(**one_by_one, slogdet=np.linalg.slogdet)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @contextmanager
    def errstate(self, *, linalg: str) -> Iterator[None]:
        before, self.config = self.config, linalg
        yield
        self.config = before

    def checked(self, f: Callable[..., Array]) -> Callable[..., Array]:
        def call(*operands: Array) -> Array:
            check(*operands)
            self.calls += 1
            self.dtypes.add(operands[0].dtype)
            try:
                return f(*operands)
            except np.linalg.LinAlgError:
                if self.config == "raise":
                    raise
                return np.full_like(operands[-1], GARBAGE)

        return call


def check(*operands: Array) -> None:
    assert {x.dtype for x in operands} in ({np.dtype("float32")}, {np.dtype("float64")})
    assert all(x.size for x in operands)
    assert len({x.shape[:-1] for x in operands}) == 1


def solve_triangular(a: Array, b: Array, trans: str, lower: bool, check_finite: bool) -> Array:
    check(a, b)
    assert not check_finite, "it would wait for the GPU"
    triangle = (np.tril if lower else np.triu)(a)
    return np.linalg.solve({"N": triangle, "T": triangle.swapaxes(-1, -2)}[trans], b)


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> CuPy:
    stand_in = CuPy()
    modules = {name: ModuleType(name) for name in ("cupyx", "cupyx.scipy", "cupyx.scipy.linalg")}
    modules["cupyx"].errstate = stand_in.errstate  # type: ignore[attr-defined]
    modules["cupyx.scipy.linalg"].solve_triangular = solve_triangular  # type: ignore[attr-defined]
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return stand_in


def on_cupy_and_numpy(
    cupy: CuPy, name: str, shape: tuple[int, ...], dtype: Any, *operands: Array, **attrs: Any
) -> tuple[Any, Any]:
    """Return the kernel's result on the stand-in, and on NumPy."""
    outs = [np.full(shape, GARBAGE, dtype) for _ in range(2)]
    for run, out in zip((RunContext(cupy, device="cuda"), RunContext(np)), outs, strict=True):
        registry().ops[name].forward(run, *operands, out=out, **attrs)
    return outs[0], outs[1]


SHAPES = [(3, 3), (2, 3, 3), (2, 1, 4, 4), (0, 3, 3), (0, 0)]


@pytest.mark.parametrize("name", ["cholesky", "inv"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_factors_and_inverses_match_numpy(cupy: CuPy, name: str, shape: tuple[int, ...], dtype: str) -> None:
    actual, expected = on_cupy_and_numpy(cupy, name, shape, dtype, definite(*shape).astype(dtype))
    np.testing.assert_allclose(actual, expected, {"float16": 1e-3, "float32": 1e-5, "float64": 1e-14}[dtype], 1e-6)
    computed = "float32" if dtype == "float16" else dtype  # float64 is 32 times slower on most GPUs
    assert cupy.dtypes == ({np.dtype(computed)} if actual.size else set())


@pytest.mark.parametrize("attrs", [{"lower": i, "transpose": j} for i in (False, True) for j in (False, True)], ids=str)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_systems_match_numpy(cupy: CuPy, attrs: dict[str, bool], dtype: str) -> None:
    for a, b in (
        ((3, 3), (3, 2)),
        ((2, 3, 3), (3, 2)),
        ((4, 1, 3, 3), (2, 3, 1)),
        ((0, 3, 3), (3, 2)),
        ((0, 0), (0, 2)),
    ):
        left, right = regular(*a).astype(dtype), real(*b)
        shape = (*np.broadcast_shapes(a[:-2], b[:-2]), *b[-2:])
        tolerance = {"rtol": 1e-2 if dtype == "float16" else 1e-5, "atol": 1e-3 if dtype == "float16" else 1e-6}
        for name, stated in (("triangular_solve", attrs), ("solve", {})):
            np.testing.assert_allclose(*on_cupy_and_numpy(cupy, name, shape, dtype, left, right, **stated), **tolerance)


def test_errors_are_raised_for_failing_batches_only(cupy: CuPy) -> None:
    x = definite(5, 3, 3)
    x[2] = np.ones((3, 3)) - 2 * np.eye(3)
    actual, _ = on_cupy_and_numpy(cupy, "cholesky", x.shape, float, x)
    assert np.isnan(actual[2]).all()
    close(actual[[0, 1, 3, 4]], np.linalg.cholesky(x[[0, 1, 3, 4]]))
    x[2] = np.ones((3, 3))
    actual, _ = on_cupy_and_numpy(cupy, "inv", x.shape, float, x)
    assert np.isnan(actual[2]).all()
    close(actual[3:], np.linalg.inv(x[3:]))
    actual, _ = on_cupy_and_numpy(cupy, "solve", (5, 3, 1), float, x, real(3, 1))
    assert list(np.isnan(actual).all(axis=(1, 2))) == [False, False, True, False, False]
    assert cupy.config == "ignore"


def test_isolating_bad_matrices_takes_few_calls(cupy: CuPy) -> None:
    """One bad matrix in a thousand costs a few calls per level; a thousand cost little more than one call each."""
    x = np.broadcast_to(np.eye(2), (1000, 2, 2)).copy()
    x[700] *= -1
    on_cupy_and_numpy(cupy, "cholesky", x.shape, float, x)
    assert cupy.calls <= 40
    cupy.calls = 0
    on_cupy_and_numpy(cupy, "cholesky", x.shape, float, -np.abs(x))
    assert cupy.calls <= 1200
