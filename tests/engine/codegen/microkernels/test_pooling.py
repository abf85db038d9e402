"""Kernels of pools have the bits of NumPy, for all windows and all numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from engine import TensorType, registry
from engine.codegen.kernels.compiled import WORTH_THREADS
from engine.codegen.microkernels import register_tile
from engine.codegen.microkernels.recipe import Recipe
from engine.codegen.microkernels.register_tile import Vectors, lanes_for
from engine.codegen.native.machine_code import host_processor
from engine.compiler.recipes import recipe_for
from engine.ir.op import Kernel
from engine.ir.run_context import RunContext
from engine.ir.tensor_type import Strided
from tests.engine.codegen.microkernels.products import LIES, Lie, with_layout
from tests.engine.codegen.microkernels.running import AVX2, Array, bits, run_recipe
from tests.engine.guarded import guarded

pytest.importorskip("llvmlite")

POOLS = ("max_pool2d", "max_pool2d_indices", "avg_pool2d", "max_pool2d_back")
FLOATS = ("float32", "float64")
#: numbers that a comparison, a sum or a mask may get wrong, and ties
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 2.0, np.inf, -np.inf, np.nan])


class Case(NamedTuple):
    """A pool of operands with its attributes."""

    name: str
    operands: tuple[Array, ...]
    attrs: dict[str, Any]

    @property
    def op(self) -> Kernel:
        """The op of this name."""
        op = registry().ops[self.name]
        assert isinstance(op, Kernel)
        return op

    @property
    def type(self) -> TensorType:
        """The type of the result."""
        result_type = self.op.infer(*map(TensorType.of, self.operands), **self.attrs)
        assert isinstance(result_type, TensorType)
        return result_type

    def recipe(self) -> Recipe | None:
        """Build the recipe for the layouts of the operands."""
        types = [Strided(TensorType.of(x), x.strides) for x in self.operands]
        recipe: Recipe | None = recipe_for(self.op, "cpu", self.type, *types, **self.attrs)
        return recipe

    def computed(self, **how: Any) -> Array:
        """Compute the result with the kernels."""
        recipe = self.recipe()
        assert recipe is not None
        return run_recipe(recipe, self.operands, self.type.shape, self.type.dtype, **how)

    def expected(self) -> Array:
        """Compute the result with NumPy."""
        out = np.empty(self.type.shape, self.type.dtype)
        with np.errstate(all="ignore"):
            self.op.forward(RunContext(np), *self.operands, out=out, **self.attrs)
        return out


def case(name: str, x: Array, lie: Lie = "dense", seed: int = 0, **attrs: Any) -> Case:
    """Build a pool of x, with a random cotangent if the op takes one; all operands have this layout."""
    op = registry().ops[name]
    attrs = op.canonical({"stride": None, "padding": (0, 0), **attrs}, TensorType.of(x))
    operands: tuple[Array, ...] = (x if lie == "dense" else with_layout(x, lie),)
    if name == "max_pool2d_back":
        pooled = registry().ops["max_pool2d"].infer(TensorType.of(x), **attrs)
        assert isinstance(pooled, TensorType)
        cotangent = np.random.default_rng(seed).normal(size=pooled.shape).astype(x.dtype)
        operands = (with_layout(cotangent, lie), *operands)
    return Case(name, operands, attrs)


@st.composite
def cases(draw: Any, names: tuple[str, ...] = POOLS) -> Case:
    batch, height = draw(st.lists(st.integers(1, 3), max_size=2)), draw(st.integers(1, 20))
    width = draw(st.one_of(st.integers(1, 20), st.integers(20, 180)))
    size = draw(st.integers(1, min(height, 9))), draw(st.integers(1, min(width, 20)))
    attrs = {
        "kernel_size": size,
        "stride": (draw(st.integers(1, 5)), draw(st.integers(1, 5))),
        "padding": tuple(draw(st.integers(0, k // 2)) for k in size),
    }
    seed = draw(st.integers(0, 2**16))
    random, shape = np.random.default_rng(seed), (*batch, height, width)
    x = random.choice(SPECIAL, shape) if draw(st.booleans()) else random.normal(size=shape)
    x = x.astype(draw(st.sampled_from(FLOATS)))
    return case(draw(st.sampled_from(names)), x, draw(st.sampled_from(LIES)), seed, **attrs)


def backwards(items: int) -> list[int]:
    return list(reversed(range(items)))


@pytest.mark.slow
@pytest.mark.parametrize("name", POOLS)
@settings(max_examples=40)
@given(data=st.data())
def test_pools_match_numpy_bitwise(name: str, data: st.DataObject) -> None:
    """Reversed items give the same bits."""
    drawn = data.draw(cases((name,)))
    assume(drawn.recipe() is not None)
    actual = drawn.computed()
    assert bits(actual) == bits(drawn.expected())
    assert bits(drawn.computed(order=backwards)) == bits(actual)


@pytest.mark.parametrize("kernel_size", [(1, 1), (1, 2), (2, 1), (2, 2), (3, 4), (3, 12)], ids=str)
@pytest.mark.parametrize("is_padded", [(False, False), (True, False), (False, True)])
def test_means_of_negative_zeros_have_the_sign_of_numpy(
    kernel_size: tuple[int, int], is_padded: tuple[bool, bool]
) -> None:
    padding = tuple(k // 2 if padded else 0 for k, padded in zip(kernel_size, is_padded, strict=True))
    for shape in (kernel_size, (7, 40)):
        pool = case("avg_pool2d", np.full(shape, -0.0), kernel_size=kernel_size, padding=padding)
        assert bits(pool.computed()) == bits(pool.expected())


@pytest.mark.slow
@pytest.mark.parametrize("there", [Vectors(32, 16), Vectors(16, 32)])
@settings(max_examples=40)
@given(data=st.data())
def test_shorter_vectors_give_the_same_bits(there: Vectors, data: st.DataObject) -> None:
    if "+avx2" not in host_processor()[1].split(","):
        pytest.skip("this processor has no AVX2")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(register_tile, "vectors", lambda: there)
        drawn = data.draw(cases())
        assume(drawn.recipe() is not None)
        assert bits(drawn.computed(processor=AVX2)) == bits(drawn.expected())


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("kernel_size", "stride"),
    [((2, 2), (2, 2)), ((3, 3), (1, 1)), ((1, 1), (2, 3)), ((2, 7), (1, 4)), ((9, 17), (1, 2)), ((3, 40), (3, 5))],
)
def test_no_read_outside_the_operands(
    name: str, dtype: str, kernel_size: tuple[int, int], stride: tuple[int, int]
) -> None:
    """Planes end at unreadable memory, with padding and without."""
    x = np.random.default_rng(0).normal(size=(2, 9, 41)).astype(dtype)
    for padding in ((0, 0), (kernel_size[0] // 2, kernel_size[1] // 2)):
        pool = case(name, x, kernel_size=kernel_size, stride=stride, padding=padding)
        if pool.recipe() is None:  # gradients with strides wider than vectors are left to NumPy
            assert name == "max_pool2d_back"
            assert stride[1] > lanes_for(x.itemsize)
            continue
        for at_end in (False, True):
            operands = tuple(guarded(operand, at_end) for operand in pool.operands)
            assert bits(pool._replace(operands=operands).computed()) == bits(pool.expected())


@pytest.mark.parametrize("name", POOLS)
def test_broadcast_operand_is_read_in_place(name: str) -> None:
    pool = case(name, np.random.default_rng(1).normal(size=(3, 6, 8)).astype("float32"), kernel_size=(2, 2))
    operands = tuple(np.broadcast_to(x[:1, :, :1], x.shape) for x in pool.operands)
    broadcast = pool._replace(operands=operands)
    assert bits(broadcast.computed()) == bits(broadcast.expected())


@pytest.mark.parametrize("name", POOLS)
def test_threads_do_not_change_bits(name: str) -> None:
    """Pools that are large enough to be shared: by planes if there are many, else by rows."""
    for shape, least in (((40, 250, 210), 40), ((2, 1050, 1000), 1050)):
        pool = case(name, np.random.default_rng(2).choice(SPECIAL, shape).astype("float32"), kernel_size=(2, 2))
        recipe = pool.recipe()
        assert recipe
        assert all(phase.items >= least and phase.work >= WORTH_THREADS for phase in recipe.phases)
        assert pool.computed(threads=3).tobytes() == pool.computed().tobytes()


@pytest.mark.parametrize("dtype", FLOATS)
def test_first_nan_is_the_maximum_and_padding_never_is(dtype: str) -> None:
    x = np.array([[[1, np.nan, 5, np.inf], [np.nan, np.inf, 7, np.inf]]], dtype)
    assert case("max_pool2d_indices", x, kernel_size=(2, 2)).computed().tolist() == [[[1, 3]]]
    np.testing.assert_array_equal(case("max_pool2d", x, kernel_size=(2, 2)).computed(), [[[np.nan, np.inf]]])
    low = np.full((3, 3), -np.inf, dtype)
    indices = case("max_pool2d_indices", low, kernel_size=(2, 2), stride=(2, 2), padding=(1, 1)).computed()
    assert indices.tolist() == [[0, 1], [3, 4]]


@pytest.mark.parametrize("dtype", FLOATS)
def test_gradient_goes_to_one_element_of_each_window(dtype: str) -> None:
    """Infinities and NaN, too, go to no other element."""
    pool = case("max_pool2d_back", np.zeros((1, 4, 6), dtype), kernel_size=(2, 2))
    pool.operands[0][...] = [[[np.inf, np.nan, -0.0], [1, -np.inf, 2]]]
    expected = np.zeros((1, 4, 6))
    expected[0, ::2, ::2] = pool.operands[0]
    np.testing.assert_array_equal(pool.computed(), expected)


@pytest.mark.parametrize(
    ("name", "dtype", "kernel_size", "reason"),
    [
        ("max_pool2d", "float16", (2, 2), "has no kernels"),
        ("avg_pool2d", "int32", (2, 2), "has no kernels"),
        ("max_pool2d_back", "float16", (2, 2), "has no kernels"),
        ("max_pool2d", "float32", (40, 40), "is quicker by rows and columns"),
        ("avg_pool2d", "float32", (40, 40), "is quicker by rows and columns"),
        ("max_pool2d_back", "float32", (40, 40), "is quicker by rows and columns"),
    ],
)
def test_cases_without_a_recipe(name: str, dtype: str, kernel_size: tuple[int, int], reason: str) -> None:
    assert case(name, np.ones((40, 40), dtype), kernel_size=kernel_size).recipe() is None, reason


def test_single_window_with_a_huge_stride() -> None:
    for name in POOLS:
        pool = case(name, np.ones((1, 3)), kernel_size=(1, 2), stride=(2**62, 2**62))
        assert bits(pool.computed()) == bits(pool.expected())
