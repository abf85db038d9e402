"""The base class of elementwise ops: NumPy's dtypes, masks that select, and the adjoint of broadcasting."""

from __future__ import annotations

import numpy as np
import pytest

from engine import registry
from engine.codegen.kernels.program import KernelBuilder, Level
from engine.ir.errors import DtypeMismatch
from engine.ir.run_context import RunContext
from engine.ir.tensor_type import TensorType
from engine.ops.elementwise.base import Elementwise, bind_ufunc, scale, unbroadcast
from tests.engine.ops.values import come_to, written

G = np.random.default_rng(8).normal(size=(2, 3, 4))


def op(name: str) -> Elementwise:
    definition = registry().ops[name]
    assert isinstance(definition, Elementwise)
    return definition


@pytest.mark.parametrize("a", ["bool", "int8", "uint8", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("b", ["bool", "int32", "float16", "float64"])
def test_dtypes_match_numpy(a: str, b: str) -> None:
    types = [TensorType((2, 1), np.dtype(a)), TensorType((3,), np.dtype(b))]
    assert op("add").infer(*types) == TensorType((2, 3), (np.ones(1, a) + np.ones(1, b)).dtype)


def test_dtype_without_a_numpy_loop_is_refused() -> None:
    with pytest.raises(DtypeMismatch, match="bool"):
        op("neg").infer(TensorType((2,), np.dtype("bool")))


@pytest.mark.parametrize("shape", [(2, 3, 4), (3, 4), (4,), (), (1, 3, 1), (2, 1, 4), (1, 1, 1)])
def test_unbroadcast_is_the_adjoint_of_broadcasting(shape: tuple[int, ...]) -> None:
    """Σ g · broadcast(x) = Σ unbroadcast(g) · x."""
    x = np.random.default_rng(9).normal(size=shape)
    actual = come_to(unbroadcast, G, x)
    assert actual.shape == shape
    np.testing.assert_allclose(np.sum(actual * x), np.sum(G * x), 1e-12)


def test_masks_drop_infinite_cotangents() -> None:
    g, partial = np.array([1.0, np.inf, np.nan]), np.array([True, False, False])
    np.testing.assert_array_equal(come_to(scale, g, partial), [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(come_to(scale, g[:1], np.array([3.0])), [3.0])
    (same, half), _ = written(lambda g: [scale(g, 1), scale(g, 0.5)], g)
    assert same.node.is_leaf
    assert not half.node.is_leaf


@pytest.mark.parametrize("name", ["maximum", "minimum", "add", "power"])
def test_bind_ufunc(name: str) -> None:
    out = np.empty(2)
    function, arguments = bind_ufunc(getattr(np, name), [np.array([1.0, 5.0]), np.array([2.0, 3.0])], out)
    function(*arguments)
    np.testing.assert_array_equal(out, getattr(np, name)([1.0, 5.0], [2.0, 3.0]))


@pytest.mark.parametrize("size", [3, 5000])
@pytest.mark.parametrize("name", ["exp", "softplus", "sigmoid", "mod", "add"])
def test_bind_and_fill_compute_the_same(name: str, size: int) -> None:
    each = op(name)
    operands = [np.random.default_rng(k).uniform(0.5, 2, size) for k in range(len(each.operands))]
    attrs = {key: attr.default for key, attr in each.attrs.items()}
    filled, bound = np.empty(size), np.empty(size)
    host = RunContext(np)
    each.fill(host, operands, filled, attrs)
    function, arguments = each.bind(host, operands, bound, attrs)
    function(*arguments)
    assert filled.tobytes() == bound.tobytes()
    assert each.is_fusible(TensorType.of(filled), *map(TensorType.of, operands), **attrs)
    assert not each.is_fusible(TensorType.of(filled), *(TensorType.of(x.astype("int64")) for x in operands), **attrs)


def test_scalar_formulas_and_own_kernels() -> None:
    builder = KernelBuilder("float64")
    x = builder.load(Level.ELEMENT)
    assert op("asin").write_scalar([x], {}) is None
    assert op("exp").write_scalar([x], {}) is not None
    float64 = np.dtype("float64")
    for name, own in (("add", False), ("asin", False), ("square", False), ("sigmoid", True)):
        each = op(name)
        kernel = each._kernel([float64] * len(each.operands), float64, {})
        assert (kernel is not None) is own
