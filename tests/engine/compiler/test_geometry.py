"""Geometries of nodes: sizes and layouts of each op, checked against what the op computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from engine import registry
from engine.codegen.microkernels.convolution import ConvolutionGeometry, DirectedConvolution, TensorLayout
from engine.codegen.microkernels.product import MatrixLayout, Product
from engine.codegen.microkernels.windows import DirectedPool, PoolGeometry
from engine.compiler.geometry import Geometry, geometry_of
from engine.ir.op import Kernel
from engine.ir.run_context import RunContext
from engine.ir.tensor_type import Strided, TensorType
from engine.ops.conv.convolution import KERNEL_GRADIENT

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(22)
OPS = {**registry().ops, KERNEL_GRADIENT.name: KERNEL_GRADIENT}


def typed(shape: tuple[int, ...], dtype: str = "float32", strides: tuple[int, ...] | None = None) -> TensorType:
    dense = TensorType(shape, np.dtype(dtype))
    return dense if strides is None else Strided(dense, strides)


def geometry_for(op: str, types: Sequence[TensorType], attrs: dict[str, Any]) -> Geometry | None:
    """The geometry of an op with attributes as in a graph."""
    definition = OPS[op]
    assert isinstance(definition, Kernel)
    out = definition.infer(*types, **attrs)
    assert isinstance(out, TensorType)
    return geometry_of(definition, out, *types, **attrs)


ONE_AXIS: dict[str, Any] = {"stride": (2,), "padding": (1,), "dilation": (3,), "groups": 1}
PLACED: dict[str, Any] = {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2), "groups": 2}
X, Y, KERNEL = (2, 4, 5, 6), (2, 6, 3, 2), (6, 2, 3, 3)
THREE_AXES = {"stride": (1, 2, 1), "padding": (0, 1, 0), "dilation": (1, 1, 2)}


def in_three_axes(shape: tuple[int, ...], size: int = 4) -> TensorLayout:
    """The layout of a dense tensor of two spatial axes, with a unit axis in front."""
    a, b, c, d = shape
    return TensorLayout((a, b, 1, c, d), (b * c * d * size, c * d * size, 0, d * size, size))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_convolution_and_its_gradients_share_one_geometry(dtype: str) -> None:
    size = np.dtype(dtype).itemsize
    three = (in_three_axes(shape, size) for shape in (X, KERNEL, Y))
    geometry = ConvolutionGeometry(dtype, size, 2, *three, *THREE_AXES.values())  # type: ignore[arg-type]
    x, kernel, y = (typed(shape, dtype) for shape in (X, KERNEL, Y))
    assert geometry_for("conv2d", (x, kernel), PLACED) == DirectedConvolution(geometry, "forward")
    by_kernel = geometry_for("kernel_gradient", (x, y), {**PLACED, "taps": KERNEL[2:]})
    assert by_kernel == DirectedConvolution(geometry, "by_kernel")
    back = geometry_for("conv_transpose2d", (y, kernel), {**PLACED, "output_padding": (0, 0)})
    assert back == DirectedConvolution(geometry._replace(x=geometry.y, y=geometry.x), "adjoint")


def test_conv1d_has_unit_extra_axes() -> None:
    x, y = typed((2, 3, 9)), typed((2, 5, 3))
    directed = geometry_for("kernel_gradient", (x, y), {**ONE_AXIS, "taps": (2,)})
    assert isinstance(directed, DirectedConvolution)
    geometry = directed.geometry
    assert [t.shape for t in (geometry.x, geometry.kernel, geometry.y)] == [
        (2, 3, 1, 1, 9),
        (5, 3, 1, 1, 2),
        (2, 5, 1, 1, 3),
    ]
    assert (geometry.stride, geometry.padding, geometry.dilation) == ((1, 1, 2), (0, 0, 1), (1, 1, 3))


def test_geometry_has_strides_and_zero_for_unit_axes() -> None:
    x, kernel = typed((1, 2, 4, 5), strides=(999, 4, 40, 8)), typed((3, 2, 1, 2))
    directed = geometry_for("conv2d", (x, kernel), {**PLACED, "groups": 1, "padding": (0, 0)})
    assert isinstance(directed, DirectedConvolution)
    assert directed.geometry.x == TensorLayout((1, 2, 1, 4, 5), (0, 4, 0, 40, 8))
    assert directed.geometry.kernel == TensorLayout((3, 2, 1, 1, 2), (16, 8, 0, 0, 4))


def test_geometry_of_a_leading_part_of_a_result() -> None:
    x, kernel = typed(X), typed(KERNEL)
    part = Strided(typed((2, 6, 2, 1)), typed(Y).strides)
    op = registry().ops["conv2d"]
    assert isinstance(op, Kernel)
    directed = geometry_of(op, part, x, kernel, **PLACED)
    assert isinstance(directed, DirectedConvolution)
    assert (directed.geometry.y.shape, directed.geometry.y.steps) == ((2, 6, 1, 2, 1), (144, 24, 0, 8, 0))


def test_unit_batch_axes_of_a_matmul_have_zero_strides() -> None:
    """Missing batch axes too: a broadcast matrix is read again for every item."""
    a, b = typed((2, 1, 3, 5), "float64"), typed((4, 5, 7), "float64", (8, 32, 160))
    layouts = MatrixLayout(40, 8, (120, 0)), MatrixLayout(32, 160, (0, 8)), MatrixLayout(56, 8, (672, 168))
    assert geometry_for("matmul", (a, b), {}) == Product("float64", 8, (2, 4), 3, 5, 7, *layouts)


def test_pool_geometry_has_its_direction() -> None:
    x, attrs = typed((2, 3, 7, 6)), {"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 0)}
    geometry = PoolGeometry(
        "float32", 4, (2, 3), (7, 6), (4, 5), (3, 2), (2, 1), (1, 0), MatrixLayout(24, 4, (504, 168))
    )
    for op, direction in (("max_pool2d", "max"), ("max_pool2d_indices", "max_indices"), ("avg_pool2d", "avg")):
        assert geometry_for(op, (x,), attrs) == DirectedPool(geometry, direction)  # type: ignore[arg-type]
    g = typed((2, 3, 4, 5), strides=(12, 4, 0, 0))
    back = geometry_for("max_pool2d_back", (g, x), attrs)
    assert back == DirectedPool(geometry, "max_back", MatrixLayout(0, 0, (12, 4)))


WINDOWS = {"kernel_size": (2, 2), "stride": (2, 2), "padding": (0, 0)}


@pytest.mark.parametrize(
    ("op", "types", "attrs"),
    [
        ("exp", [typed((2, 3))], {}),
        ("matmul", [typed((2, 3), "int64"), typed((3, 2), "int64")], {}),
        ("matmul", [typed((2, 3), "float32"), typed((3, 2), "float64")], {}),
        ("conv2d", [typed(X, "int32"), typed(KERNEL, "int32")], PLACED),
        ("conv2d", [typed(X), typed(KERNEL, "float16")], PLACED),
        ("kernel_gradient", [typed(X), typed(Y, "float64")], {**PLACED, "taps": KERNEL[2:]}),
        ("conv_transpose2d", [typed(Y, "float16"), typed(KERNEL)], {**PLACED, "output_padding": (0, 0)}),
        ("max_pool2d", [typed((4, 4), "int32")], WINDOWS),
        ("avg_pool2d", [typed((4, 4), "int32")], WINDOWS),
        ("max_pool2d_back", [typed((2, 2), "float16"), typed((4, 4))], WINDOWS),
    ],
)
def test_other_ops_and_dtypes_have_no_geometry(op: str, types: list[TensorType], attrs: dict[str, Any]) -> None:
    assert geometry_for(op, types, attrs) is None


def read(memory: Array, layout: TensorLayout) -> Array:
    """View a tensor in memory by its steps."""
    return np.lib.stride_tricks.as_strided(memory, layout.shape, layout.steps)


@pytest.mark.parametrize("direction", ["forward", "adjoint", "by_kernel"])
def test_convolution_matches_its_geometry(direction: str) -> None:
    """Compare with a plain sum over images, channels of a group, positions and taps."""
    x, y, kernel = (RNG.normal(size=shape) for shape in (X, Y, KERNEL))
    op, operands, attrs = {
        "forward": ("conv2d", (x, kernel), PLACED),
        "adjoint": ("conv_transpose2d", (y, kernel), {**PLACED, "output_padding": (0, 0)}),
        "by_kernel": ("kernel_gradient", (x, y), {**PLACED, "taps": KERNEL[2:]}),
    }[direction]
    definition: Any = OPS[op]
    types = [TensorType.of(a) for a in operands]
    actual = np.zeros(definition.infer(*types, **attrs).shape)
    directed = geometry_for(op, types, attrs)
    assert isinstance(directed, DirectedConvolution)
    geometry = directed.geometry
    expected = actual.copy()
    arrays = {"forward": (x, kernel, expected), "adjoint": (y, kernel, expected), "by_kernel": (x, expected, y)}[
        direction
    ]
    first, taps, last = (read(a, t) for a, t in zip(arrays, (geometry.x, geometry.kernel, geometry.y), strict=True))
    wide, narrow = (last, first) if direction == "adjoint" else (first, last)
    channels, features = wide.shape[1] // geometry.groups, narrow.shape[1] // geometry.groups
    for n, o, c, *indices in np.ndindex(narrow.shape[0], narrow.shape[1], channels, *narrow.shape[2:], *taps.shape[2:]):
        position, tap = indices[:3], indices[3:]
        axes = zip(position, geometry.stride, tap, geometry.dilation, geometry.padding, strict=True)
        element = tuple(p * s + t * d - q for p, s, t, d, q in axes)
        if all(0 <= e < extent for e, extent in zip(element, wide.shape[2:], strict=True)):
            wide_index, narrow_index = (n, o // features * channels + c, *element), (n, o, *position)
            if direction == "forward":
                narrow[narrow_index] += wide[wide_index] * taps[(o, c, *tap)]
            elif direction == "adjoint":
                wide[wide_index] += narrow[narrow_index] * taps[(o, c, *tap)]
            else:
                taps[(o, c, *tap)] += wide[wide_index] * narrow[narrow_index]
    definition.forward(RunContext(np), *operands, out=actual, **attrs)
    np.testing.assert_allclose(actual, expected, 1e-12, 1e-12)
