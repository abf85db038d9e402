"""The inference cache: bounded, exact about numbers that compare equal, and without errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Builder, EngineError, Limits, OverBudget, TensorType, Value, registry
from engine.ir import graph as graphs
from engine.ir.graph import inferred, work
from engine.ir.tensor_type import Strided

F = TensorType((2, 3), np.dtype("float64"))
OPS = registry().ops


@pytest.fixture(autouse=True)
def cached_entries(monkeypatch: pytest.MonkeyPatch) -> dict[Any, Any]:
    """An empty cache."""
    entries: dict[Any, Any] = {}
    monkeypatch.setattr(inferred, "entries", entries)
    return entries


def leaf(type: TensorType = F) -> Value:
    return Builder(registry()).leaf(type, 0)


def bits(number: Any) -> tuple[type, bytes]:
    return type(number), np.asarray(number).tobytes()


NUMBERS = [0.0, -0.0, 1.0, 1, True, 0, False, np.nan, -np.nan, np.inf, 0.5]


@pytest.mark.parametrize("order", [NUMBERS, NUMBERS[::-1]], ids=["forwards", "backwards"])
def test_numbers_that_compare_equal_are_distinguished(order: list[Any]) -> None:
    for number in order:
        attrs = inferred(OPS["add_scalar"], (F,), {"scalar": number}).attrs
        if number == number:  # noqa: PLR0124 - one NaN may stand for another
            assert bits(attrs["scalar"]) == bits(number)
        else:
            assert np.isnan(attrs["scalar"])


def test_numpy_and_python_numbers_are_distinguished() -> None:
    for number in (1.5, np.float64(1.5), np.float32(1.5)):
        assert type(inferred(OPS["add_scalar"], (F,), {"scalar": number}).attrs["scalar"]) is type(number)


def test_signed_zeros_are_distinguished() -> None:
    x = leaf()
    filled = [x.builder.full((), fill, "float32") for fill in (0.0, -0.0)]
    assert [np.signbit(v.node.attrs["fill"]) for v in filled] == [False, True]


def test_bool_and_int_attributes_are_distinguished() -> None:
    with_keepdims = leaf().sum(axes=(0,), keepdims=True).type.shape
    assert (with_keepdims, leaf().sum(axes=(1,), keepdims=True).type.shape) == ((1, 3), (2, 1))


def test_equal_nodes_share_inferred_types_and_attributes() -> None:
    one, other = leaf().sum(axes=(-1,)), leaf(TensorType((2, 3), np.dtype("float64"))).sum(axes=(-1,))
    assert one.node.types is other.node.types
    assert one.node.attrs is other.node.attrs
    assert one.node.attrs == {"axes": (1,), "keepdims": False}


def test_errors_are_raised_every_time() -> None:
    for _ in range(2):
        with pytest.raises(EngineError, match="axes must be between"):
            leaf().sum(axes=(5,))


def test_limits_apply_to_cached_inferences() -> None:
    large = 1 << 20
    leaf(TensorType((1,), F.dtype)).broadcast_to(shape=(large,))
    with pytest.raises(OverBudget):
        Builder(registry(), Limits(bytes=large)).leaf(TensorType((1,), F.dtype), 0).broadcast_to(shape=(large,))


def test_inference_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "MOST_CACHED", 10)
    x = leaf()
    for i in range(100):
        assert x.mul_scalar(scalar=float(i)).node.attrs["scalar"] == i
        assert 0 < len(inferred) <= 10


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.builder.constant(np.zeros(3)),
        lambda x: x.reshape(shape=(1,) * 100 + (6,)),
        lambda x: x.cat(*[x] * 100, axis=0),
        lambda x: x.split(sizes=(1, 1), axis=0),
        lambda x: x.builder.emit(OPS["einsum"], [x], {"equation": "ij -> " + " " * 100 + "i"}),
    ],
    ids=["a tensor", "a long list", "many operands", "several results", "a long text"],
)
def test_large_inferences_are_not_cached(write: Any, cached_entries: dict[Any, Any]) -> None:
    x = Builder(registry(), Limits(rank=1000)).leaf(F, 0)
    write(x)
    assert not {number[0].name for number in cached_entries} & {"constant", "reshape", "cat", "split", "einsum"}


def test_cached_work_depends_on_strides() -> None:
    """The same types, one of them strided: NumPy copies it before it multiplies."""
    out, dense = TensorType((64, 64), F.dtype), TensorType((64, 64), F.dtype)
    spread = Strided(dense, (0, 8))
    workspaces = [work(OPS["matmul"], (out, a, dense), {}).workspace for a in (dense, spread, dense, spread)]
    assert workspaces == [OPS["matmul"].workspace(out, a, dense) for a in (dense, spread)] * 2
    assert workspaces[0] != workspaces[1]
