"""Calls of the decompositions to CuPy, checked by a stand-in with CuPy's rules on top of NumPy: no GPU is needed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine import TensorType, registry
from engine.ir.run_context import RunContext
from engine.ops.linalg.lu import Cofactors
from engine.ops.linalg.matrix_exp import ExponentialSlope
from engine.ops.linalg.spectral import EighValues, SingularValues
from engine.ops.linalg.symmetric_function import SymmetricSlope
from tests.engine.ops.matrices import real
from tests.engine.ops.run import Array
from tests.engine.ops.test_matrices_cupy import CuPy

NAMES = ("eigh", "eigvalsh", "svd", "qr", "det", "inv", "solve")


class Card(CuPy):
    """CuPy with its decompositions: float32 or float64 only, no empty arrays, and no exception by default."""

    def __init__(self) -> None:
        super().__init__()
        self.refused = 0
        self.linalg = SimpleNamespace(**{name: self.strict(getattr(np.linalg, name)) for name in NAMES})

    def strict(self, f: Callable[..., Any]) -> Callable[..., Any]:
        def call(*operands: Array, **options: bool) -> Any:
            assert all(x.size and x.dtype in (np.float32, np.float64) and np.isfinite(x).all() for x in operands)
            self.dtypes.add(operands[0].dtype)
            if f.__name__ in ("eigh", "svd") and (operands[0][..., 0, 0] == 7).any():
                assert self.config == "raise"
                self.refused += 1
                raise np.linalg.LinAlgError
            return f(*operands, **options)

        return call


def lu_factor(x: Array, check_finite: bool) -> tuple[Array, Any]:
    lapack = pytest.importorskip("scipy.linalg").lapack
    assert not check_finite, "it would wait for the GPU"
    factors, exchanges, _ = getattr(lapack, "dgetrf" if x.dtype == np.float64 else "sgetrf")(x)
    return factors, SimpleNamespace(get=lambda: exchanges)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Iterator[Card]:
    stand_in = Card()
    modules = {name: ModuleType(name) for name in ("cupyx", "cupyx.scipy", "cupyx.scipy.linalg")}

    @contextmanager
    def errstate(*, linalg: str) -> Iterator[None]:
        before, stand_in.config = stand_in.config, linalg
        try:
            yield
        finally:
            stand_in.config = before

    modules["cupyx"].errstate = errstate  # type: ignore[attr-defined]
    modules["cupyx.scipy.linalg"].lu_factor = lu_factor  # type: ignore[attr-defined]
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return stand_in


OPS = registry().ops
USES: dict[str, tuple[Any, int, dict[str, Any]]] = {
    **{name: (OPS[name], 1, {}) for name in ("qr", "lu", "matrix_exp", "det")},
    "pinv": (OPS["pinv"], 1, {"rcond": None}),
    "eigh": (OPS["eigh"], 1, {"degenerate": "nan"}),
    "svd": (OPS["svd"], 1, {"degenerate": "nan"}),
    "symmetric_function": (OPS["symmetric_function"], 1, {"function": "exp"}),
    "eigenvalues": (EighValues(), 1, {"degenerate": "nan"}),
    "singular values": (SingularValues(), 1, {"degenerate": "nan"}),
    "cofactors": (Cofactors(), 1, {}),
    "slope of exp": (ExponentialSlope(), 2, {}),
    "slope of log": (SymmetricSlope(), 2, {"function": "log"}),
}


def computed(run: RunContext, use: str, x: Array) -> Sequence[Array]:
    op, count, attrs = USES[use]
    types = op.infer(*[TensorType.of(x)] * count, **attrs)
    outs = tuple(np.empty(t.shape, t.dtype) for t in (types if isinstance(types, tuple) else (types,)))
    with np.errstate(all="ignore"):
        op.forward(run, *[x] * count, out=outs if op.several else outs[0], **attrs)
    return outs


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 20, 20), (40, 3, 3), (0, 3, 3), (0, 0)], ids=str)
@pytest.mark.parametrize("use", USES)
def test_results_match_the_cpu(card: Card, use: str, shape: tuple[int, ...], dtype: str) -> None:
    x = (real(*shape) / 4 + np.eye(shape[-1]) * np.arange(3, shape[-1] + 3)).astype(dtype)
    x = (x + x.swapaxes(-1, -2)) / 2
    actual = computed(RunContext(card, device="cuda"), use, x)
    expected = computed(RunContext(np), use, x)
    tolerance = {"float16": 1e-2, "float32": 2e-3, "float64": 1e-11}[dtype]
    for y, other in zip(*([a.astype(float) for a in side] for side in (actual, expected)), strict=True):
        scale = np.abs(np.where(np.isfinite(other), other, 0)).max(initial=1)
        np.testing.assert_allclose(np.abs(y), np.abs(other), tolerance, tolerance * scale)
    narrow = {"float16": "float32"}.get(dtype, dtype)  # float64 is 32 times slower on most GPUs
    assert card.dtypes <= {np.dtype(narrow)}


@pytest.mark.parametrize("use", ["eigh", "svd"])
def test_matrix_that_fails_does_not_affect_the_others(card: Card, use: str) -> None:
    x = np.stack([np.diag([3.0, 2.0]), np.diag([7.0, 2.0]), np.full((2, 2), np.nan), np.diag([5.0, 1.0])])
    for y, expected in zip(
        computed(RunContext(card, device="cuda"), use, x), computed(RunContext(np), use, x), strict=True
    ):
        assert np.isnan(y[[1, 2]]).all()
        np.testing.assert_allclose(y[[0, 3]], expected[[0, 3]], 1e-12, 1e-13)
    assert card.refused == 2
    assert card.config == "ignore"
