"""Kernels of convolutions, their adjoints and their gradients: accurate for all sizes and layouts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.codegen.microkernels import convolution as by_kernel
from engine.codegen.microkernels import correlation, register_tile
from engine.codegen.microkernels.recipe import Recipe
from engine.codegen.microkernels.register_tile import Vectors
from engine.codegen.native.machine_code import host_processor
from engine.compiler.recipes import recipe_for
from engine.ir.run_context import RunContext
from engine.ir.tensor_type import Strided, TensorType
from engine.ops import registry
from engine.ops.conv.convolution import KERNEL_GRADIENT
from engine.ops.conv.windows import Windows
from tests.engine.codegen.microkernels.layouts import lines
from tests.engine.codegen.microkernels.running import AVX2, Array, run_recipe

pytest.importorskip("llvmlite")

FLOATS = ("float32", "float64")


OPS: dict[str, Any] = {**registry().ops, KERNEL_GRADIENT.name: KERNEL_GRADIENT}


class Case(NamedTuple):
    """An op on an image and a kernel, or on an image and the gradient of its convolution."""

    op: str
    x: Array
    kernel: Array
    attrs: dict[str, Any]

    @property
    def out(self) -> TensorType:
        result_type = self._op.infer(*map(TensorType.of, (self.x, self.kernel)), **self.attrs)
        assert isinstance(result_type, TensorType)
        return result_type

    @property
    def _op(self) -> Any:
        return OPS[self.op]

    def recipe(self, part: tuple[int, ...] = ()) -> Recipe | None:
        """Build the recipe of the result, or of the part of it whose last extents are `part`."""
        out, types = self.out, [Strided(TensorType.of(x), x.strides) for x in (self.x, self.kernel)]
        if part:
            out = Strided(out.with_shape((*out.shape[:2], *part)), out.strides)
        recipe: Recipe | None = recipe_for(self._op, "cpu", out, *types, **self.attrs)
        return recipe

    def run(self, part: tuple[int, ...] = (), *, backwards: bool = False, **how: Any) -> Array:
        """Run the recipe; with `backwards`, item by item from the last to the first of each phase."""
        recipe = self.recipe(part)
        assert recipe is not None
        order = (lambda count: reversed(range(count))) if backwards else None
        return run_recipe(recipe, (self.x, self.kernel), self.out.shape, self.x.dtype, order=order, **how)

    def exact(self) -> Array:
        """Compute the result with NumPy in float64."""
        return self._forward(self.x.astype(np.float64), self.kernel.astype(np.float64))

    def magnitude(self) -> Array:
        """Compute the sums of the absolute values of the products."""
        return self._forward(abs(self.x.astype(np.float64)), abs(self.kernel.astype(np.float64)))

    def _forward(self, x: Array, kernel: Array) -> Array:
        out = np.zeros(self.out.shape)
        self._op.forward(RunContext(np), x, kernel, out=out, **self.attrs)
        return out

    def assert_near(self, actual: Array) -> None:
        """Assert errors within 2n·ε·Σ|x||k|: kernel and reference sum n products (Higham 2002, §3.1)."""
        n = self.kernel.size
        np.testing.assert_array_less(
            abs(actual - self.exact()), 2 * n * np.finfo(self.x.dtype).eps * self.magnitude() + 1e-300
        )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rank = draw(st.sampled_from((2, 2, 3)))
    some = st.integers(1, 3)
    groups = draw(st.sampled_from((1, 1, 2, 3)))
    size = [draw(st.integers(1, 7 if rank == 2 else 3)) for _ in range(rank)]
    attrs: dict[str, Any] = {
        "stride": tuple(draw(some) for _ in size),
        "padding": tuple(draw(st.integers(0, 3)) for _ in size),
        "dilation": tuple(draw(st.integers(1, 2)) for _ in size),
        "groups": groups,
    }
    channels, features = draw(st.integers(1, 4)), draw(st.integers(1, 9))
    reach = [d * (k - 1) + 1 for d, k in zip(attrs["dilation"], size, strict=True)]
    more = [draw(st.integers(0, 20 if rank == 2 else 5)) for _ in size]
    op = draw(st.sampled_from(("conv", "conv_transpose", "kernel_gradient")))
    if op != "conv_transpose":
        extents = [max(1, r - 2 * p) + m for r, p, m in zip(reach, attrs["padding"], more, strict=True)]
        kernel = features * groups, channels, *size
    else:
        extents = [1 + max(0, 2 * p - r + 1) + m // 2 for r, p, m in zip(reach, attrs["padding"], more, strict=True)]
        kernel = channels * groups, features, *size
        attrs["output_padding"] = (0,) * rank
    random = np.random.default_rng(draw(st.integers(0, 99)))
    dtype = draw(st.sampled_from(FLOATS))
    x = random.normal(size=(draw(some), channels * groups, *extents)).astype(dtype)
    if op == "kernel_gradient":
        return gradient(x, features * groups, tuple(size), **attrs)
    return Case(f"{op}{rank}d", x, random.normal(size=kernel).astype(dtype), attrs)


def gradient(x: Array, features: int, taps: tuple[int, ...], **attrs: Any) -> Case:
    """Build a gradient with respect to a kernel of these features and taps."""
    positions = Windows(taps, *(attrs[name] for name in ("stride", "padding", "dilation"))).positions(x.shape[2:])
    g = np.random.default_rng(9).normal(size=(len(x), features, *positions)).astype(x.dtype)
    return Case("kernel_gradient", x, g, {**attrs, "taps": taps})


def gradient2d(
    x: Array,
    features: int,
    taps: tuple[int, int],
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
) -> Case:
    spatial = {"stride": (stride,) * 2, "padding": (padding,) * 2, "dilation": (dilation,) * 2}
    return gradient(x, features, taps, **spatial, groups=groups)


def conv2d(x: Array, kernel: Array, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1) -> Case:
    spatial = {"stride": (stride,) * 2, "padding": (padding,) * 2, "dilation": (dilation,) * 2}
    return Case("conv2d", x, kernel, {**spatial, "groups": groups})


def normal(*shape: int, dtype: str = "float32") -> Array:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(dtype)


#: one case for each way of computing a result
WAYS = {
    "panels of one image": conv2d(normal(2, 3, 16, 24), normal(5, 3, 3, 3), padding=1),
    "panels of many images": conv2d(normal(5, 8, 5, 7), normal(9, 8, 3, 3), padding=1),
    "every second column": conv2d(normal(2, 3, 17, 40), normal(5, 3, 3, 3), stride=2, padding=1),
    "every third column": conv2d(normal(2, 3, 17, 40), normal(5, 3, 3, 3), stride=3, padding=2),
    "wide kernels": conv2d(normal(1, 2, 4, 60), normal(3, 2, 2, 12), padding=1),
    "single channels": conv2d(normal(3, 6, 9, 37), normal(6, 1, 3, 3), padding=1, groups=6),
    "two features of each channel": conv2d(normal(3, 5, 9, 7), normal(10, 1, 3, 3), padding=1, stride=2, groups=5),
    "by a kernel": conv2d(normal(3, 4, 9, 9).swapaxes(0, 1), normal(3, 5, 9, 9).swapaxes(0, 1), padding=1),
    "by a kernel, of many images": conv2d(normal(40, 2, 9, 9), normal(5, 2, 9, 9), padding=1, dilation=1),
    "by kernels of single channels": conv2d(normal(1, 12, 9, 37), normal(4, 3, 9, 37), padding=1, groups=4),
    "a gradient by a kernel": gradient2d(normal(4, 3, 9, 9), 5, (3, 3), padding=1),
    "a gradient by a kernel, in groups": gradient2d(normal(4, 6, 8, 9), 10, (3, 2), padding=1, groups=2, dilation=2),
    "a gradient by a kernel, of which a rest is not seen": gradient2d(
        normal(3, 4, 12, 14), 7, (3, 3), stride=2, padding=1
    ),
    "a gradient by a kernel, of few positions": gradient2d(normal(6, 5, 7, 7), 4, (5, 5), groups=1),
    "a gradient by kernels of single channels": gradient2d(
        normal(3, 6, 9, 20), 6, (3, 3), padding=1, stride=2, groups=6
    ),
    "an adjoint": Case(
        "conv_transpose2d",
        normal(2, 4, 6, 7),
        normal(4, 3, 3, 3),
        {"stride": (2, 2), "padding": (1, 1), "dilation": (1, 1), "groups": 1, "output_padding": (1, 1)},
    ),
}
each_way = pytest.mark.parametrize("way", WAYS)


@pytest.mark.slow
@given(case=cases())
@settings(max_examples=30)
def test_convolutions_are_accurate(case: Case) -> None:
    """Reversed items give the same bits."""
    actual = case.run()
    case.assert_near(actual)
    assert case.run(backwards=True).tobytes() == actual.tobytes()


@each_way
def test_every_way_is_accurate_in_both_dtypes(way: str) -> None:
    for dtype in FLOATS:
        case = WAYS[way]._replace(x=WAYS[way].x.astype(dtype), kernel=WAYS[way].kernel.astype(dtype))
        case.assert_near(case.run())


@each_way
def test_threads_do_not_change_bits(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.codegen.microkernels.recipe.WORTH_THREADS", 0)
    alone = WAYS[way].run()
    assert all(WAYS[way].run(threads=threads).tobytes() == alone.tobytes() for threads in (2, 3))


@each_way
def test_images_in_any_layout(way: str) -> None:
    case = WAYS[way]
    for x in lines(case.x):
        moved = case._replace(x=x)
        moved.assert_near(moved.run())


@each_way
def test_kernels_in_any_layout(way: str) -> None:
    case = WAYS[way]
    for kernel in lines(case.kernel):
        moved = case._replace(kernel=kernel)
        if moved.recipe() is None:  # taps that are not contiguous, by a kernel
            assert "by a kernel" in way
            continue
        moved.assert_near(moved.run())


@each_way
def test_split_sums_give_the_same_bits(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = WAYS[way].run()
    monkeypatch.setattr(correlation, "PANEL_ROWS", 10)
    cut = WAYS[way].run()
    assert cut.tobytes() == whole.tobytes()
    monkeypatch.setattr(by_kernel, "TAPS_AT_ONCE", 16)
    assert WAYS[way].run().tobytes() == whole.tobytes()


@each_way
def test_smaller_vectors_give_the_same_bits(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if "+avx2" not in host_processor()[1].split(","):
        pytest.skip("this processor has no AVX2")
    usual = WAYS[way].run()
    monkeypatch.setattr(register_tile, "vectors", lambda: Vectors(32, 16))
    assert WAYS[way].run(processor=AVX2).tobytes() == usual.tobytes()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@each_way
def test_nan_and_infinity_match_numpy(way: str, value: float) -> None:
    """Numbers near every edge of the image do not leak into other rows or windows."""
    case = WAYS[way]
    middle = (0, 0, case.x.shape[2] // 2, 2 * case.x.shape[3] // 3)
    for place in ((0, 0, 0, 0), (-1, -1, -1, -1), (0, -1, 2, 3), middle):
        x = case.x.copy()
        x[place] = value
        changed = case._replace(x=x)
        with np.errstate(invalid="ignore"):
            exact = changed.exact()
        actual = changed.run()
        np.testing.assert_array_equal(np.isnan(actual), np.isnan(exact))
        np.testing.assert_array_equal(np.isinf(actual), np.isinf(exact))


def test_adjoint_with_a_nonfinite_kernel_is_left_to_numpy() -> None:
    """Its kernels multiply by zeros around the image, which the definition leaves out."""
    case = WAYS["an adjoint"]
    recipe = case.recipe()
    assert recipe is not None
    assert recipe.checked
    case.assert_near(case.run())
    for value in (np.inf, -np.inf, np.nan):
        for place in ((0, 0, 0, 0), (-1, -1, -1, -1)):
            kernel = case.kernel.copy()
            kernel[place] = value
            assert np.isnan(case._replace(kernel=kernel).run()).all()


@pytest.mark.parametrize("part", [(2, 3), (1, 1), (3, 1), (1, 3)])
def test_leading_part_can_be_computed_alone(part: tuple[int, int]) -> None:
    for way in ("by a kernel", "by a kernel, of many images", "panels of one image", "an adjoint"):
        case = WAYS[way]
        actual = case.run(part)[..., : part[0], : part[1]]
        np.testing.assert_allclose(actual, case.exact()[..., : part[0], : part[1]], rtol=1e-4, atol=1e-5)


def test_float16_and_large_strides_are_left_to_numpy() -> None:
    x, kernel = np.zeros((1, 1, 4, 4), np.float16), np.zeros((1, 1, 2, 2), np.float16)
    assert conv2d(x, kernel).recipe() is None
    many = Case(
        "conv_transpose2d", normal(1, 1, 2, 2), normal(1, 1, 2, 2), {**WAYS["an adjoint"].attrs, "stride": (5, 5)}
    )
    assert many.recipe() is None


@pytest.mark.parametrize(
    ("extents", "attrs"),
    [
        ((5, 7), {"stride": (1, 2**57)}),
        ((5, 7), {"stride": (2**62, 1), "padding": (1, 1)}),
        ((5, 7), {"stride": (2**62, 1), "padding": (2**61, 1)}),
        ((1, 2**30), {"stride": (1, 2**27)}),
        ((1, 2**30), {"dilation": (1, 2**27)}),
    ],
)
def test_kernels_with_overflowing_offsets_are_not_written(extents: tuple[int, int], attrs: dict[str, Any]) -> None:
    """Offsets of lanes are 32 bits wide; canonical attributes cannot exceed the other offsets."""
    op, unit = registry().ops["conv2d"], {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1}
    x, kernel = (TensorType((1, 1, *shape), np.dtype("float32")) for shape in (extents, (1, 3)))
    out = op.infer(x, kernel, **{**unit, **attrs})
    assert recipe_for(op, "cpu", out, x, kernel, **{**unit, **attrs}) is None  # type: ignore[arg-type]


def test_gradient_of_a_single_window_with_a_huge_stride() -> None:
    """The stride has no effect: its canonical form is the smallest with which no second window fits."""
    x = normal(2, 3, 5, 9)
    windows = {"stride": (2**40, 2**57), "padding": (0, 0), "dilation": (1, 1), "groups": 1}
    case = gradient(x, 4, (3, 3), **windows)
    case.assert_near(case.run())
