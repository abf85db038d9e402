"""Geometries of nodes: sizes and strides of products, convolutions and pools, from which their kernels are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeVar

from engine.codegen.microkernels.convolution import ConvolutionGeometry, DirectedConvolution, TensorLayout
from engine.codegen.microkernels.product import MatrixLayout, Product
from engine.codegen.microkernels.windows import DirectedPool, PoolDirection, PoolGeometry
from engine.ir.op import Kernel
from engine.ir.tensor_type import Shape, TensorType
from engine.ops.conv.convolution import Correlation, KernelGradient, TransposedConvolution
from engine.ops.conv.pooling import AvgPool2D, MaxPool2D, MaxPool2DBack, MaxPool2DIndices, pool_windows
from engine.ops.conv.windows import Windows
from engine.ops.linalg.matmul import MatMul

_Entry = TypeVar("_Entry")
#: sizes, and strides of the operands and the result
Geometry = Product | DirectedConvolution | DirectedPool
#: function of a node's result type, operand types and attributes; returns None for dtypes without kernels
GeometryOf = Callable[..., Geometry | None]


def lookup_by_class(table: Mapping[type[Kernel], _Entry], op: Kernel) -> _Entry | None:
    """Return the entry for the class of an op, or for its nearest base class in the table, or None."""
    return next((table[base] for base in type(op).__mro__ if base in table), None)


def geometry_of(op: Kernel, out: TensorType, *types: Any, **attrs: Any) -> Geometry | None:
    """Return the geometry of a node if it is a product, convolution or pool of floats of one dtype, else None.

    The strides of `types` are those of the operands. If an op `supports_partial_results`, `out` may be a leading part
    of its result.
    """
    make_geometry = lookup_by_class(GEOMETRIES, op)
    return make_geometry and make_geometry(out, *types, **attrs)


def product_geometry(out: TensorType, a: TensorType, b: TensorType) -> Product | None:
    """Return the geometry of a matrix product with these types and strides, or None for dtypes without kernels."""
    if not _are_alike(out, a, b):
        return None
    (inner, columns), itemsize = b.shape[-2:], out.dtype.itemsize
    layouts = [_broadcast(x, out.ndim) for x in (a, b, out)]
    return Product(out.dtype.name, itemsize, out.shape[:-2], a.shape[-2], inner, columns, *layouts)


def _broadcast(x: TensorType, rank: int) -> MatrixLayout:
    """Return the strides of an operand's matrices, with 0 for broadcast batch axes."""
    # Extent 1 may be broadcast, and needs no stride otherwise.
    steps = [0 if extent == 1 else step for extent, step in zip(x.shape[:-2], x.strides[:-2], strict=True)]
    row, column = x.strides[-2:]
    return MatrixLayout(row, column, (0,) * (rank - x.ndim) + tuple(steps))


def _forward(out: TensorType, x: TensorType, kernel: TensorType, **attrs: Any) -> DirectedConvolution | None:
    geometry = _convolution(x, kernel, out, **attrs)
    return geometry and DirectedConvolution(geometry, "forward")


def _adjoint(
    out: TensorType,
    x: TensorType,
    kernel: TensorType,
    *,
    output_padding: Shape,  # noqa: ARG001 - determined by the type of out
    **attrs: Any,
) -> DirectedConvolution | None:
    geometry = _convolution(x, kernel, out, **attrs)
    return geometry and DirectedConvolution(geometry, "adjoint")


def _by_kernel(
    out: TensorType,
    wide: TensorType,
    narrow: TensorType,
    *,
    taps: Shape,  # noqa: ARG001 - determined by the type of out
    **attrs: Any,
) -> DirectedConvolution | None:
    # The gradient relates the same three tensors as the forward convolution does, with the kernel as the result.
    geometry = _convolution(wide, out, narrow, **attrs)
    return geometry and DirectedConvolution(geometry, "by_kernel")


def _convolution(
    x: TensorType, kernel: TensorType, y: TensorType, *, groups: int, **spatial: Any
) -> ConvolutionGeometry | None:
    """Return the geometry of a convolution over three spatial axes, or None for dtypes without kernels."""
    if not _are_alike(x, kernel, y):
        return None
    windows = Windows(kernel.shape[2:], **spatial).on_axes(3)
    images, taps, results = map(_on_three_axes, (x, kernel, y))
    window_args = windows.stride, windows.padding, windows.dilation
    return ConvolutionGeometry(x.dtype.name, x.dtype.itemsize, groups, images, taps, results, *window_args)


def _on_three_axes(x: TensorType) -> TensorLayout:
    """Insert axes of extent 1 before the spatial ones in [outer, channels, …]. Axes of extent 1 have stride 0."""
    steps = [0 if extent == 1 else step for extent, step in zip(x.shape, x.strides, strict=True)]
    missing = 5 - x.ndim
    return TensorLayout((*x.shape[:2], *[1] * missing, *x.shape[2:]), (*steps[:2], *[0] * missing, *steps[2:]))


def _pooled(direction: PoolDirection, out: TensorType, x: TensorType, **attrs: Any) -> DirectedPool | None:
    """Return the geometry of a pool with one result per window."""
    return DirectedPool(_pool(out, x, **attrs), direction) if _are_alike(x) else None


def _max_back(_: TensorType, g: TensorType, x: TensorType, **attrs: Any) -> DirectedPool | None:
    return DirectedPool(_pool(g, x, **attrs), "max_back", _planes(g)) if _are_alike(g, x) else None


def _pool(pooled: TensorType, x: TensorType, **attrs: Any) -> PoolGeometry:
    """Return the geometry of the windows over x, with one number of `pooled` per window."""
    windows, positions = pool_windows(**attrs), _pair(pooled.shape[-2:])
    extents, size, stride, padding = map(_pair, (x.shape[-2:], windows.size, windows.stride, windows.padding))
    batch = x.shape[:-2]
    return PoolGeometry(x.dtype.name, x.dtype.itemsize, batch, extents, positions, size, stride, padding, _planes(x))


def _planes(x: TensorType) -> MatrixLayout:
    row, column = x.strides[-2:]
    return MatrixLayout(row, column, x.strides[:-2])


def _pair(numbers: Shape) -> tuple[int, int]:
    first, second = numbers
    return first, second


def _are_alike(*types: TensorType) -> bool:
    """Whether all are floats of the same dtype."""
    first = types[0]
    return first.is_float and all(type.dtype == first.dtype for type in types)


#: class of op → function that makes the geometry of its nodes
GEOMETRIES: Final[Mapping[type[Kernel], GeometryOf]] = MappingProxyType(
    {
        AvgPool2D: partial(_pooled, "avg"),
        Correlation: _forward,
        KernelGradient: _by_kernel,
        MatMul: product_geometry,
        MaxPool2D: partial(_pooled, "max"),
        MaxPool2DBack: _max_back,
        MaxPool2DIndices: partial(_pooled, "max_indices"),
        TransposedConvolution: _adjoint,
    }
)
