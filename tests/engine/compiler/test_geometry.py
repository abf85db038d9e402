"""Geometries of nodes: each op's sizes and layouts, and that the op computes what its geometry says."""

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


def asked(op: str, types: Sequence[TensorType], attrs: dict[str, Any]) -> Geometry | None:
    """Of an op whose attributes are as they stand in a graph."""
    definition = OPS[op]
    assert isinstance(definition, Kernel)
    out = definition.infer(*types, **attrs)
    assert isinstance(out, TensorType)
    return geometry_of(definition, out, *types, **attrs)


ONE_AXIS: dict[str, Any] = {"stride": (2,), "padding": (1,), "dilation": (3,), "groups": 1}
PLACED: dict[str, Any] = {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2), "groups": 2}
X, Y, KERNEL = (2, 4, 5, 6), (2, 6, 3, 2), (6, 2, 3, 3)
ON_THREE = {"stride": (1, 2, 1), "padding": (0, 1, 0), "dilation": (1, 1, 2)}


def on_three(shape: tuple[int, ...], size: int = 4) -> TensorLayout:
    """A dense tensor of two spatial axes, with one in front."""
    a, b, c, d = shape
    return TensorLayout((a, b, 1, c, d), (b * c * d * size, c * d * size, 0, d * size, size))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_convolution_is_one_geometry_whichever_of_the_three_is_made(dtype: str) -> None:
    size = np.dtype(dtype).itemsize
    three = (on_three(shape, size) for shape in (X, KERNEL, Y))
    of = ConvolutionGeometry(dtype, size, 2, *three, *ON_THREE.values())  # type: ignore[arg-type]
    x, kernel, y = (typed(shape, dtype) for shape in (X, KERNEL, Y))
    assert asked("conv2d", (x, kernel), PLACED) == DirectedConvolution(of, "forward")
    by_kernel = asked("kernel_gradient", (x, y), {**PLACED, "taps": KERNEL[2:]})
    assert by_kernel == DirectedConvolution(of, "by_kernel")
    back = asked("conv_transpose2d", (y, kernel), {**PLACED, "output_padding": (0, 0)})
    assert back == DirectedConvolution(of._replace(x=of.y, y=of.x), "adjoint")


def test_of_one_axis_the_others_have_one_element() -> None:
    x, y = typed((2, 3, 9)), typed((2, 5, 3))
    found = asked("kernel_gradient", (x, y), {**ONE_AXIS, "taps": (2,)})
    assert isinstance(found, DirectedConvolution)
    of = found.geometry
    assert [t.shape for t in (of.x, of.kernel, of.y)] == [(2, 3, 1, 1, 9), (5, 3, 1, 1, 2), (2, 5, 1, 1, 3)]
    assert (of.stride, of.padding, of.dilation) == ((1, 1, 2), (0, 0, 1), (1, 1, 3))


def test_operands_lie_as_their_strides_say_and_what_has_one_entry_is_not_stepped() -> None:
    x, kernel = typed((1, 2, 4, 5), strides=(999, 4, 40, 8)), typed((3, 2, 1, 2))
    found = asked("conv2d", (x, kernel), {**PLACED, "groups": 1, "padding": (0, 0)})
    assert isinstance(found, DirectedConvolution)
    assert found.geometry.x == TensorLayout((1, 2, 1, 4, 5), (0, 4, 0, 40, 8))
    assert found.geometry.kernel == TensorLayout((3, 2, 1, 1, 2), (16, 8, 0, 0, 4))


def test_of_a_result_it_may_be_the_leading_part() -> None:
    x, kernel = typed(X), typed(KERNEL)
    part = Strided(typed((2, 6, 2, 1)), typed(Y).strides)
    op = registry().ops["conv2d"]
    assert isinstance(op, Kernel)
    found = geometry_of(op, part, x, kernel, **PLACED)
    assert isinstance(found, DirectedConvolution)
    assert (found.geometry.y.shape, found.geometry.y.steps) == ((2, 6, 1, 2, 1), (144, 24, 0, 8, 0))


def test_a_product_s_batch_axes_of_one_entry_are_not_stepped_along() -> None:
    """Nor those that an operand lacks: the same matrix is read for all that it is broadcast to."""
    a, b = typed((2, 1, 3, 5), "float64"), typed((4, 5, 7), "float64", (8, 32, 160))
    lying = MatrixLayout(40, 8, (120, 0)), MatrixLayout(32, 160, (0, 8)), MatrixLayout(56, 8, (672, 168))
    assert asked("matmul", (a, b), {}) == Product("float64", 8, (2, 4), 3, 5, 7, *lying)


def test_pools_say_which_of_their_results_is_made() -> None:
    x, attrs = typed((2, 3, 7, 6)), {"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 0)}
    of = PoolGeometry("float32", 4, (2, 3), (7, 6), (4, 5), (3, 2), (2, 1), (1, 0), MatrixLayout(24, 4, (504, 168)))
    for op, direction in (("max_pool2d", "max"), ("max_pool2d_indices", "max_indices"), ("avg_pool2d", "avg")):
        assert asked(op, (x,), attrs) == DirectedPool(of, direction)  # type: ignore[arg-type]
    g = typed((2, 3, 4, 5), strides=(12, 4, 0, 0))
    back = asked("max_pool2d_back", (g, x), attrs)
    assert back == DirectedPool(of, "max_back", MatrixLayout(0, 0, (12, 4)))


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
def test_others_have_none_nor_have_other_dtypes(op: str, types: list[TensorType], attrs: dict[str, Any]) -> None:
    assert asked(op, types, attrs) is None


def read(memory: Array, of: TensorLayout) -> Array:
    """A tensor in memory, as its steps say."""
    return np.lib.stride_tricks.as_strided(memory, of.shape, of.steps)


@pytest.mark.parametrize("direction", ["forward", "adjoint", "by_kernel"])
def test_the_op_computes_what_its_geometry_says(direction: str) -> None:
    """By the sum over images, channels of a group, positions and taps, of which each has a place in all three."""
    x, y, kernel = (RNG.normal(size=shape) for shape in (X, Y, KERNEL))
    op, operands, attrs = {
        "forward": ("conv2d", (x, kernel), PLACED),
        "adjoint": ("conv_transpose2d", (y, kernel), {**PLACED, "output_padding": (0, 0)}),
        "by_kernel": ("kernel_gradient", (x, y), {**PLACED, "taps": KERNEL[2:]}),
    }[direction]
    definition: Any = OPS[op]
    types = [TensorType.of(a) for a in operands]
    found = np.zeros(definition.infer(*types, **attrs).shape)
    directed = asked(op, types, attrs)
    assert isinstance(directed, DirectedConvolution)
    of = directed.geometry
    made = found.copy()
    arrays = {"forward": (x, kernel, made), "adjoint": (y, kernel, made), "by_kernel": (x, made, y)}[direction]
    first, taps, last = (read(a, t) for a, t in zip(arrays, (of.x, of.kernel, of.y), strict=True))
    wide, narrow = (last, first) if direction == "adjoint" else (first, last)
    channels, features = wide.shape[1] // of.groups, narrow.shape[1] // of.groups
    for n, o, c, *where in np.ndindex(narrow.shape[0], narrow.shape[1], channels, *narrow.shape[2:], *taps.shape[2:]):
        position, tap = where[:3], where[3:]
        at = zip(position, of.stride, tap, of.dilation, of.padding, strict=True)
        element = tuple(p * s + t * d - q for p, s, t, d, q in at)
        if all(0 <= e < extent for e, extent in zip(element, wide.shape[2:], strict=True)):
            here, there = (n, o // features * channels + c, *element), (n, o, *position)
            if direction == "forward":
                narrow[there] += wide[here] * taps[(o, c, *tap)]
            elif direction == "adjoint":
                wide[here] += narrow[there] * taps[(o, c, *tap)]
            else:
                taps[(o, c, *tap)] += wide[here] * narrow[there]
    definition.forward(RunContext(np), *operands, out=found, **attrs)
    np.testing.assert_allclose(found, made, 1e-12, 1e-12)
