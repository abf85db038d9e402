"""Reductions: axes and shapes match NumPy, batches reduce each example, and cotangents are broadcast back."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from engine import registry
from engine.ir.errors import EngineError
from engine.ir.graph import Value
from engine.ir.tensor_type import TensorType
from engine.ops.reduce.sums import AnyTrue, Reduction, Sum, broadcast_back, restore_axes
from tests.engine.ops.values import come_to, written

RNG = np.random.default_rng(18)
SUM, ANY = cast("Sum", registry().ops["sum"]), cast("AnyTrue", registry().ops["any"])
X = TensorType((2, 3, 4), np.dtype("float64"))
AXES = [(), (0,), (1,), (0, 2), (0, 1, 2)]


def test_axes_are_sorted_and_non_negative() -> None:
    assert SUM.canonical({"axes": (-1, 0), "keepdims": True}, X) == {"axes": (0, 2), "keepdims": True}
    assert SUM.canonical({"axes": None, "keepdims": False}, X)["axes"] == (0, 1, 2)
    assert SUM.canonical({"axes": None, "keepdims": False}, X.with_shape(()))["axes"] == ()
    for wrong in ((3,), (-4,), (1, -2)):
        with pytest.raises(EngineError):
            SUM.canonical({"axes": wrong, "keepdims": False}, X)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axes", AXES, ids=str)
def test_shape_matches_numpy(axes: tuple[int, ...], keepdims: bool) -> None:
    expected = np.zeros(X.shape).sum(axis=axes, keepdims=keepdims)
    assert SUM.infer(X, axes=axes, keepdims=keepdims) == TensorType.of(np.asarray(expected))


def test_flops_count_the_elements_read() -> None:
    assert ANY.flops(X.with_shape((2,)), X) == 24


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axes", AXES[1:], ids=str)
def test_batch_reduces_each_example(axes: tuple[int, ...], keepdims: bool) -> None:
    x = RNG.normal(size=(5, *X.shape))
    actual = come_to(lambda v: SUM.batch((True,), v, axes=axes, keepdims=keepdims), x)
    np.testing.assert_allclose(actual, [each.sum(axes, keepdims=keepdims) for each in x], 1e-12)


@pytest.mark.parametrize("name", ["sum", "max", "mean", "prod"])
def test_batch_of_scalars_is_not_reduced(name: str) -> None:
    """An empty list of axes must not mean all of them."""
    op = registry().ops[name]
    assert isinstance(op, Reduction)
    x = RNG.normal(size=5)
    attrs: dict[str, Any] = {"keepdims": False}
    np.testing.assert_array_equal(come_to(lambda v: op.batch((True,), v, axes=(), **attrs), x), x)


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("axes", AXES, ids=str)
def test_broadcast_back_is_the_adjoint(axes: tuple[int, ...], kept: bool) -> None:
    """Σ sum(x) · g = Σ x · broadcast_back(g)."""
    x = RNG.normal(size=X.shape)
    y = x.sum(axes, keepdims=kept)
    g = RNG.normal(size=y.shape)
    actual = come_to(lambda grad, v: broadcast_back(grad, v, axes), g, x)
    assert actual.shape == x.shape
    assert float((y * g).sum()) == pytest.approx(float((x * actual).sum()))
    assert come_to(lambda grad, v: restore_axes(grad, v, axes), g, x).shape == x.sum(axes, keepdims=True).shape


def test_restore_axes_leaves_kept_axes_unchanged() -> None:
    def write(g: Value, x: Value) -> list[Value]:
        assert restore_axes(g, x, (1,)) is g
        return [g]

    written(write, np.ones((2, 1, 4)), np.ones((2, 3, 4)))
