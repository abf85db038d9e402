"""Plans with kernels to compile, and their expected results."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engine import Builder, Limits, Plan, TensorType, registry
from engine.compiler.fusion import fuse
from engine.compiler.plan import make_plan
from engine.runtime import numpy_backend as kernels
from engine.runtime.numpy_backend import NumPyExecutor

Array = np.ndarray[Any, Any]
FEED = {0: np.linspace(-1, 1, 6 * 40).astype("float32").reshape(6, 40)}


def layers(count: int = 2, *, fused: bool = False) -> Plan:
    """Return a plan of several different kernels, with a matrix product between each two."""
    x = Builder(registry()).leaf(TensorType((6, 40), np.dtype("float32")), 0)
    y = x
    for i in range(count):
        y = ((y @ y.transpose() @ x) * 0.01).tanh().exp() * (0.1 * (i + 2)) + y.sin()
    graph = y.builder.graph([y.sum(), y])
    return make_plan(fuse(graph, 0, compiled=True) if fused else graph, Limits())


def bits(executor: NumPyExecutor, plan: Plan) -> list[bytes]:
    """Return the bytes of an executor's results."""
    return [array.tobytes() for array in executor.run(plan, FEED)]


def assert_right(result: list[Array], plan: Plan) -> None:
    """Compare with NumPy, step by step."""
    for array, reference in zip(result, NumPyExecutor().interpret(plan, FEED), strict=True):
        np.testing.assert_allclose(array, reference, rtol=1e-4, atol=1e-5)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the warnings in the log of kernels."""
    return [r.getMessage() for r in caplog.records if r.name == "gradserve.kernels" and r.levelno >= logging.WARNING]


def counted(monkeypatch: pytest.MonkeyPatch, instead: Callable[[str], bytes] | None = None) -> list[str]:
    """Record the texts that are compiled from now on."""
    texts: list[str] = []
    compiled = instead or kernels.machine_code

    def recording(text: str) -> bytes:
        texts.append(text)
        return compiled(text)

    monkeypatch.setattr(kernels, "machine_code", recording)
    return texts
