"""Recipes: the microkernels that compute a node, by device and by geometry or op.

A function that makes a recipe returns None if the op's NumPy implementation is as fast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from engine.codegen.kernels.array_functions import library
from engine.codegen.microkernels.axis_kernels import (
    arg_extremum,
    as_channel_sums,
    cast,
    channel_sums,
    reversed_copy,
    substitution,
)
from engine.codegen.microkernels.convolution import DirectedConvolution, convolution
from engine.codegen.microkernels.indexing import PICKED_AT_ONCE, GatherGeometry, ScatterAddGeometry, gather, scatter_add
from engine.codegen.microkernels.pooling import avg_pool, max_pool, max_pool_back, max_pool_indices
from engine.codegen.microkernels.product import Product, prefers_blas, product_kernel
from engine.codegen.microkernels.recipe import Recipe
from engine.codegen.microkernels.routine import MOVED_AS
from engine.codegen.microkernels.ufunc_calls import SO_FAR, UfuncCall, running_sums, ufunc_calls
from engine.codegen.microkernels.windows import DirectedPool
from engine.compiler.geometry import Geometry, geometry_of, lookup_by_class
from engine.ir.op import Kernel
from engine.ir.tensor_type import FLOAT64, TensorType, has_kernels
from engine.ops.elementwise.base import Cast, Elementwise, LibraryUfunc, PassThrough
from engine.ops.elementwise.erf import Erfinv
from engine.ops.elementwise.exponential import Pow, PowScalar
from engine.ops.index.gather import Gather, ScatterAdd
from engine.ops.linalg.lapack import is_for_lapack
from engine.ops.linalg.matrices import unchecked_gufunc
from engine.ops.linalg.solve import Cholesky, Inv, Solve, TriangularSolve
from engine.ops.reduce.cumulative import CumSum
from engine.ops.reduce.extremes import ArgExtremum
from engine.ops.reduce.sums import Sum

#: maximum elements of a plane, whose indices are int32
_LARGEST: Final = 2**31 - 1
#: ratio of the times that NumPy and a kernel take for one tap of a window
_MORE_TAPS: Final = 8
#: elements from which a kernel for their shape is worth compiling
_MANY: Final = 1 << 12


def convolution_recipe(directed: DirectedConvolution) -> Recipe | None:
    """Multiply the kernel by columns of windows."""
    return convolution(directed) if has_kernels(np.dtype(directed.geometry.dtype)) else None


def copy_recipe(_: Kernel, out: TensorType, x: TensorType) -> Recipe | None:
    """Copy with the last axis reversed; NumPy is as fast at other copies."""
    if out.dtype.itemsize not in MOVED_AS or not x.ndim or x.strides[-1] != -x.dtype.itemsize:
        return None
    return reversed_copy(x.dtype.itemsize, x.shape, x.strides)


def gather_recipe(
    _: Kernel, out: TensorType, x: TensorType, index: TensorType, *, axis: int, **_attrs: Any
) -> Recipe | None:
    """Read at vectors of indices, which must be contiguous along rows, and rows must be long.

    If whole rows are read, the index is broadcast along them, and NumPy is as fast.
    """
    geometry = _picking(out, x, index, axis)
    if geometry is None or geometry.index[-1] != geometry.index_bytes or geometry.shape[-1] < PICKED_AT_ONCE:
        return None
    return gather(geometry)


def body_gather_recipe(
    _: Kernel, out: TensorType, x: TensorType, index: TensorType, *, axis: int, **_attrs: Any
) -> Recipe | None:
    """Read at indices, including short rows and whole rows."""
    geometry = _picking(out, x, index, axis)
    return None if geometry is None else gather(geometry)


def _picking(out: TensorType, x: TensorType, index: TensorType, axis: int) -> GatherGeometry | None:
    other_strides = [0 if i == axis else stride for i, stride in enumerate(x.strides)]
    shape, index_strides = out.shape, index.strides
    if axis and axis == out.ndim - 1 and shape[-1] == 1:  # one element per row: one long row
        other_strides, shape, index_strides = other_strides[:-1], shape[:-1], index_strides[:-1]
    if out.dtype.itemsize not in MOVED_AS:
        return None
    extent, stride = x.shape[axis], x.strides[axis]
    is_signed = index.dtype.kind == "i"
    return GatherGeometry(
        out.dtype.itemsize, shape, extent, stride, tuple(other_strides), index_strides, index.dtype.itemsize, is_signed
    )


def scatter_recipe(
    _: Kernel, out: TensorType, x: TensorType, index: TensorType, updates: TensorType, *, axis: int, **_attrs: Any
) -> Recipe | None:
    """Add row by row, if the axis is the last of several, for floats that are summed in their own dtype."""
    return body_scatter_recipe(_, out, x, index, updates, axis=axis) if 0 < axis == x.ndim - 1 else None


def body_scatter_recipe(
    _: Kernel, out: TensorType, x: TensorType, index: TensorType, updates: TensorType, *, axis: int, **_attrs: Any
) -> Recipe | None:
    """Add along any axis, for each element in the order of the index."""
    geometry = addition_geometry(out, x, index, updates, axis) if has_kernels(out.dtype) else None
    return None if geometry is None else scatter_add(geometry)


def addition_geometry(
    out: TensorType, x: TensorType, index: TensorType, updates: TensorType, axis: int
) -> ScatterAddGeometry | None:
    """Return the geometry of an addition along an axis; None if an operand is cast, or if some rows have no updates."""
    if not x.dtype == updates.dtype == out.dtype:
        return None
    order = [*(a for a in range(x.ndim) if a != axis), axis]
    *rows, extent = (x.shape[a] for a in order)
    *covered, count = (index.shape[a] for a in order)
    if covered != rows:
        return None
    x_strides, index_strides, update_strides, out_strides = (
        tuple(type.strides[a] for a in order) for type in (x, index, updates, out)
    )
    # Strides of each array with the axis last, as the kernel goes along it in its inner loop.
    index_format, strides = (
        (index.dtype.itemsize, index.dtype.kind == "i"),
        (x_strides, index_strides, update_strides, out_strides),
    )
    return ScatterAddGeometry(out.dtype.name, out.dtype.itemsize, tuple(rows), extent, count, *strides, *index_format)


def pool_recipe(pool: DirectedPool) -> Recipe | None:
    """Compute windows in parallel lanes: their maximum, its position, their average, or the gradient.

    NumPy is faster for large windows, since it reduces whole rows and then columns, unless positions are searched for.
    """
    geometry, direction, gradient_planes = pool
    is_representable = math.prod(geometry.extents) <= _LARGEST and geometry.is_addressable
    if not has_kernels(np.dtype(geometry.dtype)) or not is_representable:
        return None
    if direction == "max_indices":
        return max_pool_indices(geometry)
    # NumPy reduces rows and then columns: its work grows with the sum of the window's extents, not their product.
    if math.prod(geometry.size) > _MORE_TAPS * sum(geometry.size):
        return None
    if gradient_planes is not None:
        return max_pool_back(geometry, gradient_planes)
    return max_pool(geometry) if direction == "max" else avg_pool(geometry)


def product_recipe(geometry: Product) -> Recipe | None:
    """Multiply in register tiles, for floats that are summed in their own dtype, unless BLAS is faster."""
    return product_kernel(geometry) if has_kernels(np.dtype(geometry.dtype)) and not prefers_blas(geometry) else None


def sum_recipe(_: Kernel, _out: TensorType, x: TensorType, *, axes: tuple[int, ...], **_attrs: Any) -> Recipe | None:
    """Sum over axes before and behind others; fused kernels handle trailing axes and leading axes."""
    if not has_kernels(x.dtype) or x.size < _MANY:
        return None
    geometry = as_channel_sums(x.dtype.name, x.dtype.itemsize, x.shape, x.strides, axes)
    return geometry and channel_sums(geometry)


# Ops without a scalar formula, whose ufuncs are called from machine code, and casts.


def ufunc_recipe(op: Elementwise, out: TensorType, *types: TensorType, **_attrs: Any) -> Recipe | None:
    """Call the op's ufunc, if it needs no cast."""
    if not op.ufunc or op.has_own_implementation:
        return None
    return ufunc_calls([UfuncCall(getattr(np, op.ufunc), tuple(range(len(types))))], out, types)


def power_recipe(_: Kernel, out: TensorType, *types: TensorType, exponent: float | None) -> Recipe | None:
    """Raise floats to the power of a float operand or attribute."""
    if out.dtype.kind != "f":
        return None
    reads = tuple(range(len(types)))
    return ufunc_calls([UfuncCall(np.power, reads, exponent if len(types) == 1 else None)], out, types)


def erfinv_recipe(_: Kernel, out: TensorType, x: TensorType) -> Recipe | None:
    """Call SciPy's float64 function, then restore the sign of zero, as `erfinv_blocks` does."""
    if out.dtype != FLOAT64:
        return None
    return ufunc_calls([UfuncCall(library(np).erfinv, (0,)), UfuncCall(np.copysign, (SO_FAR, 0))], out, [x])


def library_recipe(op: LibraryUfunc, out: TensorType, *types: TensorType) -> Recipe | None:
    """Call SciPy's float64 function."""
    if out.dtype != FLOAT64:
        return None
    return ufunc_calls([UfuncCall(getattr(library(np), op.function), tuple(range(len(types))))], out, types)


def cast_recipe(_: Kernel, out: TensorType, x: TensorType, **_attrs: Any) -> Recipe | None:
    """Cast element by element."""
    return cast(out, x)


def search_recipe(op: ArgExtremum, _: TensorType, x: TensorType, *, axis: int, **_attrs: Any) -> Recipe | None:
    """Search row by row, at any strides."""
    return arg_extremum(x, axis, op.function)


def cholesky_recipe(_: Kernel, out: TensorType, x: TensorType) -> Recipe | None:
    """Factor small matrices after making them symmetric."""
    ufunc = unchecked_gufunc("cholesky")
    if ufunc is None or out.dtype != FLOAT64 or is_for_lapack(x.shape):
        return None
    # (x + xᵀ) / 2, as the op's NumPy implementation computes it.
    symmetrize = UfuncCall(np.add, (0, 0), transposed=True), UfuncCall(np.multiply, (SO_FAR,), 0.5)
    return ufunc_calls([*symmetrize, UfuncCall(ufunc, (SO_FAR,), core=x.shape[-1:])], out, [x])


def triangle_recipe(
    _: Kernel, out: TensorType, a: TensorType, b: TensorType, *, lower: bool, transpose: bool
) -> Recipe | None:
    """Solve triangular systems of floats that are computed in their own dtype."""
    if not has_kernels(out.dtype) or not a.dtype == b.dtype == out.dtype:
        return None
    return substitution(out, a, b, lower=lower, transpose=transpose)


def running_recipe(_: Kernel, out: TensorType, x: TensorType, *, axis: int, **_attrs: Any) -> Recipe | None:
    """Compute cumulative sums in the dtype of the elements."""
    return running_sums(out, x, axis)


def matrix_recipe(op: Kernel, out: TensorType, *types: TensorType) -> Recipe | None:
    """Solve or invert small float64 matrices with NumPy's own LAPACK ufuncs."""
    ufunc = unchecked_gufunc(op.name)
    if ufunc is None or out.dtype != FLOAT64 or is_for_lapack(types[0].shape):
        return None
    n, m = out.shape[-2:]
    call = UfuncCall(ufunc, tuple(range(len(types))), core=(n, m) if len(types) > 1 else (n,))
    return ufunc_calls([call], out, types)


#: function of an op, its result type, operand types and attributes; returns None if there is no recipe that pays off
RecipeOf = Callable[..., Recipe | None]

#: device → kind of geometry → function that makes the recipe, or None if there is no recipe that pays off
GEOMETRY_RECIPES: Final[Mapping[str, Mapping[type[Geometry], Callable[[Any], Recipe | None]]]] = MappingProxyType(
    {"cpu": {DirectedConvolution: convolution_recipe, DirectedPool: pool_recipe, Product: product_recipe}}
)
#: device → class of op → function that makes the recipe
RECIPES: Final[Mapping[str, Mapping[type[Kernel], RecipeOf]]] = MappingProxyType(
    {"cpu": {Gather: gather_recipe, PassThrough: copy_recipe, ScatterAdd: scatter_recipe, Sum: sum_recipe}}
)
#: further recipes in bodies of loops, for ops that NumPy computes as fast, but where a step in Python stops native code
BODY_RECIPES: Final[Mapping[str, Mapping[type[Kernel], RecipeOf]]] = MappingProxyType(
    {
        "cpu": {
            ArgExtremum: search_recipe,
            Cast: cast_recipe,
            Cholesky: cholesky_recipe,
            CumSum: running_recipe,
            Elementwise: ufunc_recipe,
            Erfinv: erfinv_recipe,
            Gather: body_gather_recipe,
            Inv: matrix_recipe,
            LibraryUfunc: library_recipe,
            Pow: power_recipe,
            PowScalar: power_recipe,
            ScatterAdd: body_scatter_recipe,
            Solve: matrix_recipe,
            TriangularSolve: triangle_recipe,
        }
    }
)


def recipe_for(
    op: Kernel, device: str, out: TensorType, *types: Any, in_body: bool = False, **attrs: Any
) -> Recipe | None:
    """Return the recipe of a node on a device, for operands of these types and strides.

    If an op `supports_partial_results`, `out` may be a leading part of its result. Return None if there is no recipe,
    or if the op is faster without one and not in a body.
    """
    by_geometry = GEOMETRY_RECIPES.get(device)
    geometry = by_geometry and geometry_of(op, out, *types, **attrs)
    if by_geometry and geometry:
        return by_geometry[type(geometry)](geometry)
    # Recipes that pay off anywhere come first; those for bodies may cover the same ops with fewer conditions.
    for tables in (RECIPES, BODY_RECIPES) if in_body else (RECIPES,):
        make_recipe = lookup_by_class(tables.get(device, {}), op)
        recipe = make_recipe and make_recipe(op, out, *types, **attrs)
        if recipe is not None:
            return recipe
    return None
