"""Functions of SciPy: computed in float64 and block by block, for any layout, within the declared memory."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from engine.codegen.kernels.array_functions import ARRAY_FUNCTIONS, BLOCK
from engine.codegen.kernels.program import KernelBuilder, Level
from engine.ir.run_context import RunContext
from engine.ir.tensor_type import TensorType
from engine.ops.elementwise.base import LibraryFunction, in_float32
from engine.ops.elementwise.erf import Erfinv, LogNdtr
from engine.ops.elementwise.gamma import Digamma, Lgamma

RUN = RunContext(np)


def psi(x: float) -> float:
    """ψ(x) by its recurrence, and the asymptotic series from 20 on."""
    below = 0.0
    while x < 20:
        below, x = below - 1 / x, x + 1
    return below + math.log(x) - 1 / (2 * x) - 1 / (12 * x**2) + 1 / (120 * x**4) - 1 / (252 * x**6)


REFERENCES: list[tuple[LibraryFunction, Callable[[float], float], list[float]]] = [
    (Lgamma(), math.lgamma, [0.5, 1.0, 3.5, 10.0, 170.0, -1.5]),
    (Digamma(), psi, [0.5, 1.0, 2.25, 9.0, 40.0]),
    (LogNdtr(), lambda x: math.log(math.erfc(-x / math.sqrt(2)) / 2), [-5.0, -1.0, 0.0, 2.0, 5.0]),
]


def computed(op: LibraryFunction, x: np.ndarray, dtype: str = "float64") -> np.ndarray:
    out = np.empty(x.shape, dtype)
    op.compute(RUN, x, out=out)
    return out


@pytest.mark.parametrize(("op", "reference", "points"), REFERENCES, ids=lambda case: getattr(case, "name", None))
def test_functions_match_their_references(
    op: LibraryFunction, reference: Callable[[float], float], points: list[float]
) -> None:
    np.testing.assert_allclose(computed(op, np.array(points)), [*map(reference, points)], 1e-12, 1e-15)


def test_erfinv_inverts_erf() -> None:
    x = np.linspace(-0.999, 0.999, 101)
    np.testing.assert_allclose([math.erf(y) for y in computed(Erfinv(), x)], x, 1e-13)


@pytest.mark.parametrize("layout", ["strided", "turned", "broadcast"])
def test_result_does_not_depend_on_layout(layout: str) -> None:
    dense = np.linspace(0.3, 4.0, 60).reshape(6, 10)
    x = {"strided": dense[::2, ::3], "turned": dense.T[::-1], "broadcast": np.broadcast_to(dense[0], (4, 10))}[layout]
    np.testing.assert_array_equal(computed(Lgamma(), x), computed(Lgamma(), x.copy()))


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 3])
def test_result_does_not_depend_on_blocks(size: int) -> None:
    x = np.linspace(0.3, 4.0, 2 * BLOCK + 3)
    np.testing.assert_array_equal(computed(Lgamma(), x[:size]), computed(Lgamma(), x)[:size])


def test_float16_is_rounded_once_from_float64() -> None:
    x = np.linspace(0.3, 9.0, 500).astype("float16")
    np.testing.assert_array_equal(computed(Lgamma(), x, "float16"), computed(Lgamma(), x.astype(float)).astype("f2"))


@pytest.mark.parametrize("op", [op for op, _, _ in REFERENCES], ids=lambda op: op.name)
def test_workspace_stops_growing_at_one_block(op: LibraryFunction) -> None:
    sizes = [op.workspace(TensorType((n,), np.dtype("float64"))) for n in (0, 10, BLOCK, 100 * BLOCK)]
    assert sizes == [8 * ARRAY_FUNCTIONS[op.function].arrays * n for n in (0, 10, BLOCK, BLOCK)]
    assert op.workspace((TensorType((9,), np.dtype("float64")),)) == 0


def test_formula_exists_for_float32_only() -> None:
    formula = in_float32("lgamma")
    narrow, wide = (KernelBuilder(dtype).load(Level.ELEMENT) for dtype in ("float32", "float64"))
    assert formula(narrow) is not None
    assert formula(wide) is None
