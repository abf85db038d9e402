"""Convolution on one and three spatial axes: against loops, and against conv2d."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from engine import Builder, Limits, TensorType, registry
from engine.autodiff.vjp import vjp_or_zeros
from engine.autodiff.vmap import vmap
from engine.compiler.plan import make_plan
from engine.ir.passes import optimise
from engine.ops.conv import im2col as convolution_layout
from engine.ops.conv.convolution import placing_attrs, transposed_placing_attrs
from tests.engine.ops.convolutions import RNG, Axis, Index, Setting, check
from tests.engine.ops.run import EXECUTOR, Array, error, grads, run
from tests.sampling import together

AXES = [
    axis for axis in (Axis(*v) for v in product((1, 2, 5), (1, 2, 3), (1, 2, 3), (0, 1), (1, 2))) if axis.spare >= 0
]


@together
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("axis", AXES, ids=str)
def test_window_placements_on_one_axis(axis: Axis, groups: int) -> None:
    check(Setting((axis,), groups=groups, depth=groups, features=3 - groups))


@pytest.mark.parametrize("number", range(len(AXES)))
def test_windows_on_three_axes(number: int) -> None:
    axes = tuple(AXES[(number * step + step) % len(AXES)] for step in (1, 7, 11))
    check(Setting(axes, images=1 + number % 2, depth=1 + number % 3 // 2, features=1, groups=1 + number % 5 // 3))


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("counts", list(product((0, 1, 2), (0, 2), (0, 1), (1, 3))), ids=str)
def test_few_or_zero_images_channels_and_features(rank: int, counts: tuple[int, int, int, int]) -> None:
    check(Setting((Axis(4, 2, 2, 1), Axis(2), Axis(0, 1, 1, 1))[:rank], *counts))


SHAPES = [
    (Axis(9, 2, 1, 1, 2),),
    (Axis(6, 5),),
    (Axis(3, 2), Axis(1), Axis(5, 2, 1, 1)),
    (Axis(1), Axis(4, 3, 1, 1), Axis(3, 2)),
    (Axis(3, 3), Axis(3, 2), Axis(2, 2)),
    (Axis(4), Axis(1), Axis(3)),
    (Axis(1), Axis(7)),
]


@pytest.mark.parametrize("axes", SHAPES, ids=str)
@pytest.mark.parametrize(("chunk", "least"), [(1, 1), (150, 1), (400, 2), (400, 256), (1500, 4), (5000, 1)])
def test_results_do_not_depend_on_chunk_size(
    monkeypatch: pytest.MonkeyPatch, axes: tuple[Axis, ...], chunk: int, least: int
) -> None:
    monkeypatch.setattr(convolution_layout, "CHUNK_BYTES", chunk)
    monkeypatch.setattr(convolution_layout, "LEAST_WINDOWS", least)
    check(Setting(axes, images=3, depth=2, features=2, groups=3))
    check(Setting(axes, images=3, depth=1, features=2, groups=1))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_attributes_have_one_number_per_axis(rank: int) -> None:
    stated = {name: (a.kind, a.default, a.minimum) for name, a in transposed_placing_attrs(rank).items()}
    ones, zeros = ("ints", (1,) * rank, 1), ("ints", (0,) * rank, 0)
    spatial = {"stride": ones, "padding": zeros, "dilation": ones, "output_padding": zeros}
    assert stated == {**spatial, "groups": ("int", 1, 1)}
    assert registry().ops[f"conv{rank}d"].attrs == placing_attrs(rank)
    assert rank == 1 or registry().ops[f"conv_transpose{rank}d"].attrs == transposed_placing_attrs(rank)


@pytest.mark.parametrize("name", ["conv2d", "conv_transpose2d"])
@pytest.mark.parametrize(
    ("mapped", "groups", "shape", "together"),
    [
        ({0}, 2, (6, 4, 3, 3), 2),
        ({1}, 1, (2, 12, 3, 3), 1),
        ({1}, 2, (2, 12, 3, 3), 6),
        ({0, 1}, 1, (2, 12, 3, 3), 3),
    ],
    ids=str,
)
def test_vmap_extends_images_features_or_groups(
    name: str, mapped: set[int], groups: int, shape: Index, together: int
) -> None:
    """Three examples, with two images and four features each: into groups only if nothing else is possible."""
    builder = Builder(registry())
    shapes = (2, 4, 3, 3), (4, 4 // groups, 1, 1)
    x, kernel = (builder.leaf(TensorType(s, np.dtype("float64")), i) for i, s in enumerate(shapes))
    graph = builder.graph([getattr(x, name)(kernel, groups=groups)])
    actual = [node for node in vmap(graph, mapped, 3).nodes if node.op.name == name]
    assert [(node.type.shape, node.attrs["groups"]) for node in actual] == [(shape, together)]


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_operands_of_any_memory_layout(rank: int) -> None:
    """Transposed, and repeated along an axis, as in graphs."""
    shape, size = (2, 4, 5, 4, 3)[: rank + 2], (4, 4, 2, 2, 1)[: rank + 2]
    x, kernel = RNG.normal(size=shape), RNG.normal(size=size)
    builder = Builder(registry())
    plain = [builder.leaf(TensorType.of(a), i) for i, a in enumerate((x, kernel))]
    order = (*range(1, rank + 2), 0)
    inverse = (rank + 1, *range(rank + 1))
    transposed = [v.transpose(axes=order).identity().transpose(axes=inverse) for v in plain]
    repeated = plain[1].sum(axes=(2,), keepdims=True).broadcast_to(shape=size)
    for name in [f"conv{rank}d", *([f"conv_transpose{rank}d"] if rank > 1 else [])]:
        ys = [getattr(a, name)(b) for a in (plain[0], transposed[0]) for b in (plain[1], transposed[1])]
        wide = [getattr(plain[0], name)(b) for b in (repeated, repeated.identity())]
        actual = EXECUTOR.run(make_plan(optimise(builder.graph([*ys, *wide])), Limits()), {0: x, 1: kernel})
        for y in actual[1:4]:
            np.testing.assert_allclose(y, actual[0], 1e-13, 1e-13)
        np.testing.assert_allclose(actual[4], actual[5], 1e-13, 1e-13)


def test_conv1d_is_conv2d_of_one_row() -> None:
    x, kernel, bias = RNG.normal(size=(2, 4, 9)), RNG.normal(size=(6, 2, 3)), RNG.normal(size=6)
    flat = run("conv1d", x, kernel, bias, stride=[2], padding=[1], dilation=[2], groups=2)
    tall = run(
        "conv2d", x[..., None], kernel[..., None], bias, stride=[2, 1], padding=[1, 0], dilation=[2, 1], groups=2
    )
    np.testing.assert_allclose(flat, tall[..., 0], 1e-13, 1e-13)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_bias_is_added_to_each_feature(rank: int) -> None:
    x, kernel = RNG.normal(size=(2, 3, *[4] * rank)), RNG.normal(size=(3, 3, *[2] * rank))
    bias = np.array([10.0, -1.0, 0.5])
    for name in [f"conv{rank}d", *([f"conv_transpose{rank}d"] if rank > 1 else [])]:
        value, (_, _, db) = grads(name, x, kernel, bias)
        np.testing.assert_allclose(value, run(name, x, kernel) + bias.reshape(3, *[1] * rank))
        np.testing.assert_allclose(db, [value.size / 3] * 3)


def quadratic(name: str, arrays: Sequence[Array], direction: Sequence[Array], **attrs: Any) -> list[Array]:
    """Return the loss Σ y², its slope and its second derivative along a direction."""
    builder = Builder(registry())
    xs = [builder.leaf(TensorType.of(a), i) for i, a in enumerate(arrays)]
    y = getattr(xs[0], name)(*xs[1:], **attrs)
    loss = y.square().sum()
    first = vjp_or_zeros(builder, [(loss, loss.full_like(1.0))], xs)
    slope = sum((g * builder.constant(d)).sum() for g, d in zip(first, direction, strict=True))
    second = vjp_or_zeros(builder, [(slope, slope.full_like(1.0))], xs)
    curvature = sum((g * builder.constant(d)).sum() for g, d in zip(second, direction, strict=True))
    plan = make_plan(optimise(builder.graph([loss, slope, curvature])), Limits())
    return EXECUTOR.run(plan, dict(enumerate(arrays)))


@pytest.mark.parametrize(
    ("name", "shapes", "attrs"),
    [
        ("conv1d", ((2, 4, 7), (2, 2, 3), (2,)), {"stride": (2,), "padding": (1,), "dilation": (2,), "groups": 2}),
        ("conv3d", ((1, 2, 3, 4, 3), (2, 2, 2, 2, 2)), {"stride": (1, 2, 1), "padding": (1, 0, 1)}),
        ("conv_transpose3d", ((1, 2, 2, 3, 2), (2, 1, 2, 1, 2)), {"stride": (2, 1, 2), "output_padding": (1, 0, 0)}),
    ],
)
def test_second_derivative_along_a_line_matches_a_polynomial(
    name: str, shapes: Sequence[Index], attrs: dict[str, Any]
) -> None:
    """Along a line the loss is a polynomial p of degree 4: p″(0) from p at five points, without truncation error."""
    arrays, direction = ([RNG.normal(size=s) for s in shapes] for _ in range(2))
    _, slope, curvature = quadratic(name, arrays, direction, **attrs)
    points = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    moved = [[a + t * d for a, d in zip(arrays, direction, strict=True)] for t in points]
    losses = [float(np.sum(np.square(run(name, *point, **attrs)))) for point in moved]
    p = np.polynomial.Polynomial.fit(points, losses, 4).convert()
    np.testing.assert_allclose(slope, p.coef[1], 1e-9)
    np.testing.assert_allclose(curvature, 2 * p.coef[2], 1e-9)


def test_huge_stride_and_dilation_without_effect() -> None:
    x, kernel = RNG.normal(size=(1, 1, 2)), RNG.normal(size=(1, 1, 1))
    value, (dx, dk) = grads("conv1d", x, kernel, stride=[2**63 - 1], dilation=[2**62])
    np.testing.assert_allclose(value, x[:, :, :1] * kernel)
    np.testing.assert_allclose(dx[0, 0], [kernel[0, 0, 0], 0])
    np.testing.assert_allclose(dk, x[:, :, :1])


def test_dtypes_and_accumulation_match_conv2d() -> None:
    for rank in (1, 3):
        ones = [1] * rank
        x, kernel = np.full((1, 4096, *ones), 1, "float16"), np.full((1, 4096, *ones), 1.001, "float16")
        actual = run(f"conv{rank}d", x, kernel)
        assert actual.dtype == np.float16
        assert actual == np.float16(4096 * float(kernel.flat[0]))
        integers = run(f"conv{rank}d", np.full((1, 1, *ones), 200, "uint8"), np.full((1, 1, *ones), 300, "int32"))
        assert (integers.dtype, integers.item()) == (np.int32, 60_000)


LINE, BLOCK = np.ones((2, 4, 5)), np.ones((2, 4, 5, 5, 5))
WRONG = [
    ("conv1d", (LINE[0], np.ones((6, 4, 3))), {}, "shape_mismatch",
     "operand 0 (x) must have rank 3, [n, channels, w], but has shape [4, 5]"),
    ("conv1d", (LINE, np.ones((6, 4, 3, 3))), {}, "shape_mismatch",
     "operand 1 (kernel) must have rank 3, [features, channels / groups, kw], but has shape [6, 4, 3, 3]"),
    ("conv1d", (LINE, np.ones((6, 4, 3))), {"stride": [1, 1]}, "bad_attribute",
     "attribute stride must hold one number for the spatial axis, but is [1, 1]"),
    ("conv1d", (LINE, np.ones((6, 4, 8))), {"padding": [1]}, "shape_mismatch",
     "the windows span [8], more than the extents [7] of operand 0 (x) with its padding"),
    ("conv1d", (LINE, np.ones((6, 2, 3))), {}, "shape_mismatch",
     "operand 1 (kernel) must have extent 4 on axis 1 (4 channels in 1 group), but has shape [6, 2, 3]"),
    ("conv1d", (LINE, np.ones((6, 4, 3)), np.ones(5)), {}, "shape_mismatch",
     "operand 2 (bias) must have shape [6], one number for each feature, but has shape [5]"),
    ("conv3d", (BLOCK[0], np.ones((6, 4, 3, 3, 3))), {}, "shape_mismatch",
     "operand 0 (x) must have rank 5, [n, channels, d, h, w], but has shape [4, 5, 5, 5]"),
    ("conv3d", (BLOCK, np.ones((6, 4, 3, 3))), {}, "shape_mismatch",
     "operand 1 (kernel) must have rank 5, [features, channels / groups, kd, kh, kw], but has shape [6, 4, 3, 3]"),
    ("conv3d", (BLOCK, np.ones((6, 4, 3, 3, 3))), {"dilation": [1, 1]}, "bad_attribute",
     "attribute dilation must hold one number for each of the 3 spatial axes, but is [1, 1]"),
    ("conv3d", (BLOCK, np.ones((6, 1, 3, 3, 3))), {"groups": 4}, "bad_attribute",
     "attribute groups must be a divisor of 6, the number of features, axis 0 of the kernel, but is 4"),
    ("conv_transpose3d", (BLOCK, np.ones((4, 2, 3, 3))), {}, "shape_mismatch",
     "operand 1 (kernel) must have rank 5, [channels, features / groups, kd, kh, kw], but has shape [4, 2, 3, 3]"),
    ("conv_transpose3d", (BLOCK, np.ones((4, 2, 3, 3, 3)), np.ones(4)), {}, "shape_mismatch",
     "operand 2 (bias) must have shape [2], one number for each feature, but has shape [4]"),
    ("conv_transpose3d", (BLOCK, np.ones((4, 2, 3, 3, 3))), {"output_padding": [0, 1, 0]}, "bad_attribute",
     "attribute output_padding must be below [1, 1, 1], the larger of stride and dilation, but is [0, 1, 0]"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "operands", "attrs", "code", "sentence"), WRONG)
def test_invalid_operands_are_refused(
    name: str, operands: tuple[Array, ...], attrs: dict[str, Any], code: str, sentence: str
) -> None:
    refused = error(name, *operands, **attrs)
    assert (refused.code, refused.detail) == (code, f"node {len(operands)} ({name}): {sentence}")


HUGE = 2**40


@pytest.mark.parametrize(
    ("name", "attrs"),
    [
        ("conv1d", {"padding": [HUGE]}),
        ("conv3d", {"padding": [HUGE, 0, 0]}),
        ("conv_transpose3d", {"stride": [1, HUGE, 1]}),
    ],
)
def test_over_budget_is_refused_before_allocation(name: str, attrs: dict[str, Any]) -> None:
    x = LINE if name == "conv1d" else BLOCK
    assert error(name, x, np.ones((4, 4, *[3] * (x.ndim - 2))), **attrs).code == "over_budget"
