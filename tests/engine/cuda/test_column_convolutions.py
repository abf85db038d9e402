"""Convolutions by columns (im2col), in all three directions, against NumPy in float64."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import registry
from engine.codegen.microkernels.convolution import ConvolutionGeometry, TensorLayout
from engine.cuda.card_recipe import CardRecipe, LaunchPhase, ProductPhase
from engine.cuda.column_convolutions import column_recipe
from engine.ir.run_context import RunContext
from engine.ops.conv.windows import Windows
from tests.engine.codegen.kernels import nvrtc
from tests.engine.codegen.kernels.c_compiler import COMPILER
from tests.engine.codegen.microkernels.layouts import lines
from tests.engine.cuda.running import Array, CardRun, compiled_for, run_card_recipe
from tests.sampling import together

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")

Direction = Literal["forward", "adjoint", "by_kernel"]
DIRECTIONS: tuple[Direction, ...] = ("forward", "adjoint", "by_kernel")
FLOATS = ("float16", "float32", "float64")
#: error bounds, relative to the sum of magnitudes
BOUNDS = {"float16": 2.0**-10, "float32": 1e-5, "float64": 1e-12}
PLENTY = 1 << 26


class Case(NamedTuple):
    """A wide tensor, a narrow one and a kernel; each direction computes one from the other two."""

    wide: Array
    narrow: Array
    kernel: Array
    windows: Windows
    groups: int = 1

    @property
    def rank(self) -> int:
        return self.kernel.ndim - 2

    def arrays(self, direction: Direction) -> tuple[Array, Array, Array]:
        """Both operands, and the tensor that is computed."""
        return {
            "forward": (self.wide, self.kernel, self.narrow),
            "adjoint": (self.narrow, self.kernel, self.wide),
            "by_kernel": (self.wide, self.narrow, self.kernel),
        }[direction]

    def geometry(self, direction: Direction, result: Array | None = None) -> ConvolutionGeometry:
        x, y = (self.wide, self.narrow) if direction != "adjoint" else (self.narrow, self.wide)
        tensors = {"x": x, "kernel": self.kernel, "y": y}
        tensors["kernel" if direction == "by_kernel" else "y"] = (
            np.empty(self.arrays(direction)[2].shape, self.kernel.dtype) if result is None else result
        )
        more = 3 - self.rank
        placing = self.windows.placing
        stride, padding, dilation = (
            (neutral,) * more + tuple(placing[name])
            for name, neutral in (("stride", 1), ("padding", 0), ("dilation", 1))
        )
        layouts = {name: _tensor(t, more) for name, t in tensors.items()}
        dtype = self.kernel.dtype
        return ConvolutionGeometry(
            dtype.name, dtype.itemsize, self.groups, **layouts, stride=stride, padding=padding, dilation=dilation
        )

    def recipe(self, direction: Direction, workspace: int = PLENTY) -> CardRecipe | None:
        return column_recipe(self.geometry(direction), direction, workspace)

    def computed(self, direction: Direction, workspace: int = PLENTY) -> Array:
        recipe = self.recipe(direction, workspace)
        assert recipe is not None
        assert recipe.workspace <= workspace
        *operands, target = self.arrays(direction)
        return run_card_recipe(recipe, self.kernel.dtype.name, operands, target.shape)

    def exact(self, direction: Direction, magnitudes: bool = False) -> Array:
        """Compute the result with NumPy in float64."""
        first, second, target = self.arrays(direction)
        a, b = (abs(x.astype(np.float64)) if magnitudes else x.astype(np.float64) for x in (first, second))
        if direction == "by_kernel":
            return _by_kernel(a, b, target.shape, self.windows, self.groups)
        op: Any = registry().ops[f"conv{'_transpose' * (direction == 'adjoint')}{max(2, self.rank)}d"]
        out, attrs = np.zeros(target.shape), {**self.windows.placing, "groups": self.groups}
        if direction == "adjoint":
            attrs["output_padding"] = None
        if self.rank == 1:
            a, b, out = (x[:, :, None] for x in (a, b, out))
            flat = {"stride": 1, "padding": 0, "dilation": 1}
            attrs |= {name: (flat[name], *attrs[name]) for name in flat}
        with np.errstate(invalid="ignore"):
            op.forward(RunContext(np), a, b, out=out, **attrs)
        return out.reshape(target.shape)

    def assert_near(self, direction: Direction, actual: Array) -> None:
        exact, scale = self.exact(direction), self.exact(direction, magnitudes=True)
        bound = BOUNDS[actual.dtype.name] * scale + (2.0**-24 if actual.dtype == np.float16 else 0)
        np.testing.assert_array_less(abs(actual - exact), bound + 1e-300)


def _tensor(x: Array, more: int) -> TensorLayout:
    steps = [0 if extent == 1 else step for extent, step in zip(x.shape, x.strides, strict=True)]
    return TensorLayout((*x.shape[:2], *[1] * more, *x.shape[2:]), (*steps[:2], *[0] * more, *steps[2:]))


def _by_kernel(wide: Array, narrow: Array, shape: tuple[int, ...], windows: Windows, groups: int) -> Array:
    """Compute the kernel's gradient tap by tap, from the definition, including the zeros of the padding."""
    padding = [(0, 0), (0, 0)]
    span = windows.span(narrow.shape[2:])
    padding += [(p, max(0, s - p - n)) for p, s, n in zip(windows.padding, span, wide.shape[2:], strict=True)]
    padded = np.pad(wide, padding)
    result = np.zeros(shape)
    features, depth = shape[0] // groups, shape[1]
    for tap in np.ndindex(shape[2:]):
        window = tuple(
            slice(t * d, t * d + (n - 1) * s + 1, s)
            for t, d, n, s in zip(tap, windows.dilation, narrow.shape[2:], windows.stride, strict=True)
        )
        for g in range(groups):
            x, y = (
                padded[(slice(None), slice(g * depth, (g + 1) * depth), *window)],
                narrow[:, g * features : (g + 1) * features],
            )
            axes = [0, *range(2, x.ndim)]
            result[(slice(g * features, (g + 1) * features), slice(None), *tap)] = np.tensordot(y, x, (axes, axes))
    return result


def case(
    images: int,
    depth: int,
    features: int,
    extents: tuple[int, ...],
    size: tuple[int, ...],
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    dtype: str = "float32",
    seed: int = 0,
) -> Case:
    each = [(n,) * len(size) if isinstance(n, int) else tuple(n) for n in (stride, padding, dilation)]
    windows = Windows(size, *each)
    random = np.random.default_rng(seed)

    def normal(*shape: int) -> Array:
        return random.normal(size=shape).astype(dtype)

    narrow = normal(images, features * groups, *windows.positions(extents))
    return Case(
        normal(images, depth * groups, *extents), narrow, normal(features * groups, depth, *size), windows, groups
    )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rank, some = draw(st.sampled_from((1, 2, 2, 3))), st.integers(1, 3)
    size = tuple(draw(st.integers(1, 5 if rank < 3 else 3)) for _ in range(rank))
    stride, dilation = (tuple(draw(some) for _ in size) for _ in range(2))
    padding = tuple(draw(st.integers(0, 7)) for _ in size)
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, size, strict=True)]
    extents = tuple(max(1, r - 2 * p) + draw(st.integers(0, 12 // rank)) for r, p in zip(reach, padding, strict=True))
    placing: dict[str, Any] = {"stride": stride, "padding": padding, "dilation": dilation}
    return case(
        draw(st.integers(1, 5)), draw(some), draw(some), extents, size, **placing,
        groups=draw(some), dtype=draw(st.sampled_from(FLOATS)), seed=draw(st.integers(0, 99)),
    )  # fmt: skip


SAMPLES = {
    "images by themselves": case(3, 3, 4, (16, 15), (3, 3), padding=1),
    "images at once": case(5, 8, 5, (5, 7), (3, 3), padding=1),
    "groups": case(3, 2, 3, (7, 8), (3, 2), groups=3),
    "depthwise": case(2, 1, 1, (9, 8), (3, 3), padding=1, groups=6),
    "two features of each channel": case(3, 1, 2, (9, 7), (3, 3), stride=2, padding=1, groups=5),
    "a point": case(3, 4, 5, (12, 12), (1, 1)),
    "points of few places": case(3, 4, 5, (3, 4), (1, 1)),
    "points in groups": case(3, 4, 5, (12, 12), (1, 1), groups=2),
    "every second point": case(2, 3, 4, (8, 9), (1, 1), stride=2),
    "one image of points": case(1, 3, 4, (8, 9), (1, 1)),
    "dilation": case(2, 3, 4, (17, 12), (3, 3), dilation=2, padding=2),
    "dilation and stride": case(2, 2, 3, (19, 17), (3, 4), dilation=(2, 3), stride=(4, 2), padding=(3, 1)),
    "far apart": case(2, 2, 3, (19, 17), (2, 2), stride=5),
    "large windows": case(4, 2, 3, (9, 9), (9, 9), padding=1),
    "much padding": case(2, 2, 3, (3, 4), (2, 2), padding=6, stride=3),
    "one axis": case(3, 4, 5, (40,), (5,), padding=2, stride=2),
    "three axes": case(2, 2, 3, (5, 6, 7), (2, 3, 3), stride=(1, 2, 1), padding=(1, 0, 2)),
    "one place": case(6, 3, 4, (3, 3), (3, 3)),
}  # fmt: skip
each_way = pytest.mark.parametrize("way", SAMPLES)
each_direction = pytest.mark.parametrize("direction", DIRECTIONS)


def in_dtype(sample: Case, dtype: str) -> Case:
    return sample._replace(**{name: getattr(sample, name).astype(dtype) for name in ("wide", "narrow", "kernel")})


@together
@each_direction
@each_way
@pytest.mark.parametrize("dtype", FLOATS)
def test_samples_match_numpy(way: str, direction: Direction, dtype: str) -> None:
    sample = in_dtype(SAMPLES[way], dtype)
    sample.assert_near(direction, sample.computed(direction))


@pytest.mark.slow
@each_direction
@settings(max_examples=60)
@given(data=st.data())
def test_random_convolutions_match_numpy(direction: Direction, data: st.DataObject) -> None:
    sample = data.draw(cases())
    sample.assert_near(direction, sample.computed(direction))


def least_workspace(sample: Case, direction: Direction) -> int:
    """About the smallest workspace for which there is a recipe."""
    low, high = 0, PLENTY
    while high - low > 64:
        middle = (low + high) // 2
        low, high = (low, middle) if sample.recipe(direction, middle) is not None else (middle, high)
    return high


@together
@pytest.mark.slow
@each_direction
@each_way
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_pieces_fit_any_workspace(way: str, direction: Direction, dtype: str) -> None:
    """A few images at a time, or parts of one."""
    sample = in_dtype(SAMPLES[way], dtype)
    whole = sample.recipe(direction)
    assert whole is not None
    smallest = least_workspace(sample, direction)
    for workspace in {smallest, (smallest + whole.workspace) // 2, whole.workspace - 64}:
        sample.assert_near(direction, sample.computed(direction, max(smallest, workspace)))


@each_direction
def test_less_workspace_means_more_pieces(direction: Direction) -> None:
    sample = SAMPLES["images at once"]
    recipes = [sample.recipe(direction, workspace) for workspace in (PLENTY, least_workspace(sample, direction))]
    some, more = (sum(isinstance(p, ProductPhase) for p in r.phases) for r in recipes if r is not None)
    assert some == 1 < more


@each_direction
@each_way
def test_operands_may_have_any_layout(way: str, direction: Direction) -> None:
    sample = in_dtype(SAMPLES[way], "float64")
    names = {"forward": ("wide", "kernel"), "adjoint": ("narrow", "kernel"), "by_kernel": ("wide", "narrow")}
    for name in names[direction]:
        x = getattr(sample, name)
        flipped = [np.ascontiguousarray(x[::-1])[::-1], np.ascontiguousarray(x[:, ::-1])[:, ::-1]]
        for strided in [*lines(x), *flipped]:
            moved = sample._replace(**{name: strided})
            moved.assert_near(direction, moved.computed(direction))


@each_direction
def test_result_may_have_any_layout(direction: Direction) -> None:
    sample = in_dtype(SAMPLES["images at once"], "float64")
    *operands, target = sample.arrays(direction)
    for result in lines(np.zeros(target.shape)):
        recipe = column_recipe(sample.geometry(direction, result), direction, PLENTY)
        assert recipe is not None
        CardRun(recipe, "float64", operands, result).run()
        sample.assert_near(direction, result)


@together
@pytest.mark.parametrize("value", [np.nan, np.inf])
@each_direction
@each_way
def test_nan_and_infinity_propagate_as_in_numpy(way: str, direction: Direction, value: float) -> None:
    sample = in_dtype(SAMPLES[way], "float64")
    names = {"forward": ("wide", "kernel"), "adjoint": ("narrow", "kernel"), "by_kernel": ("wide", "narrow")}
    for name in names[direction]:
        changed = getattr(sample, name).copy()
        changed.flat[[0, -1, changed.size // 2]] = value
        special = sample._replace(**{name: changed})
        with np.errstate(invalid="ignore"):
            exact, actual = special.exact(direction), special.computed(direction)
        np.testing.assert_array_equal(np.isnan(actual), np.isnan(exact))
        np.testing.assert_array_equal(np.isinf(actual), np.isinf(exact))


def test_float16_is_rounded_once() -> None:
    """Partial sums stay in float32: here they leave the range of float16 and return."""
    large = np.full((2, 1, 16, 16), 300, np.float16)
    opposite = large * np.array([1, -1], np.float16).reshape(2, 1, 1, 1)
    sample = case(2, 1, 1, (16, 16), (1, 1), dtype="float16")._replace(wide=opposite, narrow=large)
    workspace = least_workspace(sample, "by_kernel")
    recipe = sample.recipe("by_kernel", workspace)
    assert recipe is not None
    assert sum(isinstance(p, ProductPhase) for p in recipe.phases) > 1
    np.testing.assert_array_equal(sample.computed("by_kernel", workspace), np.zeros((1, 1, 1, 1)))


def test_pointwise_convolution_is_one_product_without_a_copy() -> None:
    for direction in ("forward", "adjoint"):
        recipe = SAMPLES["points in groups"].recipe(direction)  # type: ignore[arg-type]
        assert recipe is not None
        (phase,) = recipe.phases
        assert isinstance(phase, ProductPhase)
        assert phase.product.batch == (3, 2)
        assert recipe.workspace == 0


def test_unsupported_convolution_has_no_recipe() -> None:
    sample = SAMPLES["images at once"]
    for direction in DIRECTIONS:
        assert sample.recipe(direction, 0) is None
    empty = sample._replace(wide=sample.wide[:0], narrow=sample.narrow[:0])
    assert empty.recipe("by_kernel") is None
    geometry = sample.geometry("forward")
    assert column_recipe(geometry._replace(stride=(1, 2**61, 1)), "forward", PLENTY) is None


def test_large_sizes_use_64_bit_counters() -> None:
    """The wide kernels are forced here for small sizes."""
    for direction in DIRECTIONS:
        sample = in_dtype(SAMPLES["dilation and stride"], "float64")
        with patch("engine.cuda.column_convolutions.columns_are_wide", return_value=True):
            recipe = sample.recipe(direction)
            assert recipe is not None
            assert "typedef long long S" in recipe.text
            sample.assert_near(direction, sample.computed(direction))


needs_nvrtc = pytest.mark.skipif(nvrtc.library() is None, reason="the wheel nvidia-cuda-nvrtc is not installed")


@pytest.mark.slow
@needs_nvrtc
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_nvrtc_compiles_the_kernels(dtype: str, architecture: str) -> None:
    for wide in (False, True):
        with patch("engine.cuda.column_convolutions.columns_are_wide", return_value=wide):
            recipe = in_dtype(SAMPLES["groups"], dtype).recipe("forward")
        assert recipe is not None
        assert any(isinstance(phase, LaunchPhase) for phase in recipe.phases)
        assert compiled_for(recipe.text, architecture).startswith(b"\x7fELF")
