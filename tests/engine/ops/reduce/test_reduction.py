"""Reductions: their axes and shapes are NumPy's, each of a batch is reduced by itself, and g comes back whole."""

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


def test_axes_are_sorted_and_counted_from_the_front() -> None:
    assert SUM.canonical({"axes": (-1, 0), "keepdims": True}, X) == {"axes": (0, 2), "keepdims": True}
    assert SUM.canonical({"axes": None, "keepdims": False}, X)["axes"] == (0, 1, 2)
    assert SUM.canonical({"axes": None, "keepdims": False}, X.with_shape(()))["axes"] == ()
    for wrong in ((3,), (-4,), (1, -2)):
        with pytest.raises(EngineError):
            SUM.canonical({"axes": wrong, "keepdims": False}, X)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axes", AXES, ids=str)
def test_the_shape_is_numpy_s(axes: tuple[int, ...], keepdims: bool) -> None:
    wanted = np.zeros(X.shape).sum(axis=axes, keepdims=keepdims)
    assert SUM.infer(X, axes=axes, keepdims=keepdims) == TensorType.of(np.asarray(wanted))


def test_each_element_that_is_read_is_work() -> None:
    assert ANY.flops(X.with_shape((2,)), X) == 24


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axes", AXES[1:], ids=str)
def test_each_of_a_batch_is_reduced_by_itself(axes: tuple[int, ...], keepdims: bool) -> None:
    x = RNG.normal(size=(5, *X.shape))
    found = come_to(lambda v: SUM.batch((True,), v, axes=axes, keepdims=keepdims), x)
    np.testing.assert_allclose(found, [each.sum(axes, keepdims=keepdims) for each in x], 1e-12)


@pytest.mark.parametrize("name", ["sum", "max", "mean", "prod"])
def test_a_batch_of_scalars_is_not_reduced_to_one(name: str) -> None:
    """No axes would mean all of them."""
    op = registry().ops[name]
    assert isinstance(op, Reduction)
    x = RNG.normal(size=5)
    attrs: dict[str, Any] = {"keepdims": False}
    np.testing.assert_array_equal(come_to(lambda v: op.batch((True,), v, axes=(), **attrs), x), x)


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("axes", AXES, ids=str)
def test_g_comes_back_to_every_element(axes: tuple[int, ...], kept: bool) -> None:
    """It is the adjoint: Σ sum(x) · g = Σ x · back(g)."""
    x = RNG.normal(size=X.shape)
    y = x.sum(axes, keepdims=kept)
    g = RNG.normal(size=y.shape)
    found = come_to(lambda by, v: broadcast_back(by, v, axes), g, x)
    assert found.shape == x.shape
    assert float((y * g).sum()) == pytest.approx(float((x * found).sum()))
    assert come_to(lambda by, v: restore_axes(by, v, axes), g, x).shape == x.sum(axes, keepdims=True).shape


def test_what_was_kept_is_left_as_it_is() -> None:
    def write(g: Value, x: Value) -> list[Value]:
        assert restore_axes(g, x, (1,)) is g
        return [g]

    written(write, np.ones((2, 1, 4)), np.ones((2, 3, 4)))
