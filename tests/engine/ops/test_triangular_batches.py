"""Many small triangular systems: accurate, with few Python steps, and within planned memory."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Builder, Limits, TensorType, registry
from engine.compiler.plan import make_plan
from engine.ir.run_context import RunContext
from tests.contract.cases import assert_planned_peak_holds
from tests.engine.compiler.steps import steps_of
from tests.engine.ops.matrices import RNG, real, transposed
from tests.engine.ops.run import Array, run

VARIANTS = [{"lower": i, "transpose": j} for i in (True, False) for j in (False, True)]
#: shapes of matrices and right-hand sides: swept by rows, or passed to BLAS one by one
SHAPES = [
    ((50, 1, 1), (50, 1, 3)),
    ((50, 4, 4), (50, 4, 1)),
    ((200, 32, 32), (200, 32, 4)),
    ((200, 32, 32), (200, 32, 5)),
    ((200, 32, 32), (32, 4)),
    ((3, 20, 6, 6), (20, 6, 2)),
    ((60, 1, 5, 5), (1, 2, 5, 4)),
    ((16, 4, 4), (4, 2)),
    ((17, 4, 4), (4, 2)),
]


def triangle(a: Array, *, lower: bool, transpose: bool) -> Array:
    t: Array = (np.tril if lower else np.triu)(a)
    return transposed(t) if transpose else t


@pytest.mark.parametrize("way", VARIANTS, ids=str)
@pytest.mark.parametrize(("a", "b"), SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_solutions_are_backward_stable(
    a: tuple[int, ...], b: tuple[int, ...], way: dict[str, bool], dtype: str
) -> None:
    """Higham's theorem 8.5, for any triangle: |t y − b| ≤ n ε |t| |y|, element by element."""
    left, right = (RNG.normal(size=shape).astype(dtype) for shape in (a, b))
    y = run("triangular_solve", left, right, **way)
    t, y = triangle(left, **way).astype("longdouble"), y.astype("longdouble")
    bound = (a[-1] + 2) * np.finfo(dtype).eps * (abs(t) @ abs(y))
    assert (abs(t @ y - right) <= bound).all()


@pytest.mark.slow
@pytest.mark.parametrize("way", VARIANTS, ids=str)
def test_python_steps_do_not_grow_with_the_batch(way: dict[str, bool]) -> None:
    def work(*batch: int) -> int:
        a, b = np.broadcast_to(np.eye(3), (*batch, 3, 3)), real(*batch, 3, 2)
        op = registry().ops["triangular_solve"]
        return steps_of(lambda: op.forward(RunContext(np), a, b, out=np.empty_like(b), **way))

    work(100)
    assert work(100) == work(1000)
    assert work(100, 1) == work(1000, 1) == work(10, 100)


@pytest.mark.parametrize("way", VARIANTS, ids=str)
def test_singular_triangle_does_not_affect_the_others(way: dict[str, bool]) -> None:
    a, b = real(100, 3, 3) + 3 * np.eye(3), real(100, 3, 2)
    expected = run("triangular_solve", a, b, **way)
    a[7, 1, 1] = 0
    actual = run("triangular_solve", a, b, **way)
    assert not np.isfinite(actual[7, 1]).any()
    np.testing.assert_array_equal(np.delete(actual, 7, 0), np.delete(expected, 7, 0))


@pytest.mark.parametrize("way", VARIANTS, ids=str)
def test_other_triangle_is_not_read(way: dict[str, bool]) -> None:
    a, b = real(100, 4, 4) + 3 * np.eye(4), real(100, 4, 2)
    spoiled = a + np.where(triangle(np.ones((4, 4)), lower=way["lower"], transpose=False), 0, np.nan)
    np.testing.assert_array_equal(run("triangular_solve", spoiled, b, **way), run("triangular_solve", a, b, **way))


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
@pytest.mark.parametrize(("count", "n", "m"), [(20_000, 4, 1), (20_000, 4, 4), (2000, 20, 12)])
def test_memory_stays_within_plan(count: int, n: int, m: int, dtype: str) -> None:
    """One column, several, and more columns than the sweep takes."""
    feeds = {0: np.tile(np.eye(n, dtype=dtype), (count, 1, 1)), 1: np.ones((count, n, m), dtype)}
    builder = Builder(registry())
    a, b = (builder.leaf(TensorType.of(feed), i) for i, feed in feeds.items())
    plan = make_plan(builder.graph([a.transpose().triangular_solve(b, transpose=True)]), Limits())
    assert_planned_peak_holds(plan, feeds)
