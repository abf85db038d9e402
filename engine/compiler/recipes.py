"""Recipes: which microkernels compute a node, by device and by geometry or op; None where the op is as quick itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from engine.codegen.kernels.array_functions import library
from engine.codegen.microkernels.axis_kernels import (
    as_channel_sums,
    casting,
    channel_sums,
    reversing,
    searching,
    substitution,
)
from engine.codegen.microkernels.convolution import DirectedConvolution, convolution
from engine.codegen.microkernels.indexing import PICKED_AT_ONCE, Adding, Picking, adding, picking
from engine.codegen.microkernels.pooling import avg_pool, max_pool, max_pool_back, max_pool_indices
from engine.codegen.microkernels.product import Product, is_for_blas, product
from engine.codegen.microkernels.recipe import Recipe
from engine.codegen.microkernels.routine import MOVED_AS
from engine.codegen.microkernels.ufunc_calls import SO_FAR, UfuncCall, adding_on, ufunc_calls
from engine.codegen.microkernels.windows import DirectedPool
from engine.compiler.geometry import Geometry, geometry_of, of_class
from engine.ir.op import Kernel
from engine.ir.tensor_type import FLOAT64, TensorType, has_loops
from engine.ops.elementwise.base import Cast, Elementwise, LibraryUfunc, PassThrough
from engine.ops.elementwise.erf import Erfinv
from engine.ops.elementwise.exponential import Pow, PowScalar
from engine.ops.index.gather import Gather, ScatterAdd
from engine.ops.linalg.lapack import is_for_lapack
from engine.ops.linalg.matrices import unchecked
from engine.ops.linalg.solve import Cholesky, Inv, Solve, TriangularSolve
from engine.ops.reduce.cumulative import CumSum
from engine.ops.reduce.extremes import ArgExtremum
from engine.ops.reduce.sums import Sum

#: elements of a plane that an int32 can number
_LARGEST: Final = 2**31 - 1
#: how many times longer NumPy takes for a tap than a kernel
_MORE_TAPS: Final = 8
#: elements from which a kernel of their shape is worth its compiling
_MANY: Final = 1 << 12


def convolution_recipe(directed: DirectedConvolution) -> Recipe | None:
    """Multiply the kernel by columns."""
    return convolution(directed) if has_loops(np.dtype(directed.of.dtype)) else None


def copy_recipe(_: Kernel, out: TensorType, x: TensorType) -> Recipe | None:
    """Copy a reversed axis; NumPy is as good at other copies."""
    if out.dtype.itemsize not in MOVED_AS or not x.ndim or x.strides[-1] != -x.dtype.itemsize:
        return None
    return reversing(x.dtype.itemsize, x.shape, x.strides)


def gather_recipe(
    _: Kernel, out: TensorType, x: TensorType, index: TensorType, *, axis: int, **_attrs: Any
) -> Recipe | None:
    """Read at vectors of indices, unless rows are short, or whole rows are read, along which an index is repeated."""
    of = _picking(out, x, index, axis)
    if of is None or of.index[-1] != of.index_bytes or of.shape[-1] < PICKED_AT_ONCE:
        return None
    return picking(of)


def body_gather_recipe(
    _: Kernel, out: TensorType, x: TensorType, index: TensorType, *, axis: int, **_attrs: Any
) -> Recipe | None:
    """Read at indices of whole rows and short ones, too."""
    of = _picking(out, x, index, axis)
    return None if of is None else picking(of)


def _picking(out: TensorType, x: TensorType, index: TensorType, axis: int) -> Picking | None:
    moved = [0 if i == axis else step for i, step in enumerate(x.strides)]
    shape, steps = out.shape, index.strides
    if axis and axis == out.ndim - 1 and shape[-1] == 1:  # one of each row: rows follow one another
        moved, shape, steps = moved[:-1], shape[:-1], steps[:-1]
    if out.dtype.itemsize not in MOVED_AS:
        return None
    extent, step = x.shape[axis], x.strides[axis]
    is_signed = index.dtype.kind == "i"
    return Picking(out.dtype.itemsize, shape, extent, step, tuple(moved), steps, index.dtype.itemsize, is_signed)


def scatter_recipe(
    _: Kernel, out: TensorType, x: TensorType, index: TensorType, updates: TensorType, *, axis: int, **_attrs: Any
) -> Recipe | None:
    """Add row by row, for floats that add up in their own dtype, if the axis is the last of several."""
    return body_scatter_recipe(_, out, x, index, updates, axis=axis) if 0 < axis == x.ndim - 1 else None


def body_scatter_recipe(
    _: Kernel, out: TensorType, x: TensorType, index: TensorType, updates: TensorType, *, axis: int, **_attrs: Any
) -> Recipe | None:
    """Add along any axis, to each element in the order of the index."""
    of = adding_of(out, x, index, updates, axis) if has_loops(out.dtype) else None
    return None if of is None else adding(of)


def adding_of(out: TensorType, x: TensorType, index: TensorType, updates: TensorType, axis: int) -> Adding | None:
    """Describe an addition along an axis; return None if an operand is cast, or not all rows are covered."""
    if not x.dtype == updates.dtype == out.dtype:
        return None
    order = [*(a for a in range(x.ndim) if a != axis), axis]
    *rows, extent = (x.shape[a] for a in order)
    *covered, count = (index.shape[a] for a in order)
    if covered != rows:
        return None
    lies, added, updated, made = (tuple(type.strides[a] for a in order) for type in (x, index, updates, out))
    bits, strides = (index.dtype.itemsize, index.dtype.kind == "i"), (lies, added, updated, made)
    return Adding(out.dtype.name, out.dtype.itemsize, tuple(rows), extent, count, *strides, *bits)


def pool_recipe(pool: DirectedPool) -> Recipe | None:
    """Search, sum or take the maximum of windows side by side.

    Large windows are slower than combining whole rows and then columns, unless places are searched for.
    """
    of, direction, given = pool
    is_representable = math.prod(of.extents) <= _LARGEST and of.is_addressable
    if not has_loops(np.dtype(of.dtype)) or not is_representable:
        return None
    if direction == "max_indices":
        return max_pool_indices(of)
    if math.prod(of.size) > _MORE_TAPS * sum(of.size):
        return None
    if given is not None:
        return max_pool_back(of, given)
    return max_pool(of) if direction == "max" else avg_pool(of)


def product_recipe(of: Product) -> Recipe | None:
    """Multiply in register tiles floats that are summed up in their own dtype, unless BLAS is quicker."""
    return product(of) if has_loops(np.dtype(of.dtype)) and not is_for_blas(of) else None


def sum_recipe(_: Kernel, _out: TensorType, x: TensorType, *, axes: tuple[int, ...], **_attrs: Any) -> Recipe | None:
    """Add up the axes before and behind the others; fused kernels add up axes that come last, or first."""
    if not has_loops(x.dtype) or x.size < _MANY:
        return None
    of = as_channel_sums(x.dtype.name, x.dtype.itemsize, x.shape, x.strides, axes)
    return of and channel_sums(of)


# Ops that have no scalar formula: machine code calls their ufuncs; and casts.


def ufunc_recipe(op: Elementwise, out: TensorType, *types: TensorType, **_attrs: Any) -> Recipe | None:
    """Call the op's ufunc, if nothing is cast."""
    if not op.ufunc or op.computes_by_itself:
        return None
    return ufunc_calls([UfuncCall(getattr(np, op.ufunc), tuple(range(len(types))))], out, types)


def power_recipe(_: Kernel, out: TensorType, *types: TensorType, exponent: float | None) -> Recipe | None:
    """Raise floats to the power of a float operand or a number."""
    if out.dtype.kind != "f":
        return None
    reads = tuple(range(len(types)))
    return ufunc_calls([UfuncCall(np.power, reads, exponent if len(types) == 1 else None)], out, types)


def erfinv_recipe(_: Kernel, out: TensorType, x: TensorType) -> Recipe | None:
    """Call SciPy's function of float64, and then restore the sign of a zero, as `erfinv_blocks` does."""
    if out.dtype != FLOAT64:
        return None
    return ufunc_calls([UfuncCall(library(np).erfinv, (0,)), UfuncCall(np.copysign, (SO_FAR, 0))], out, [x])


def library_recipe(op: LibraryUfunc, out: TensorType, *types: TensorType) -> Recipe | None:
    """Call SciPy's function of float64."""
    if out.dtype != FLOAT64:
        return None
    return ufunc_calls([UfuncCall(getattr(library(np), op.function), tuple(range(len(types))))], out, types)


def cast_recipe(_: Kernel, out: TensorType, x: TensorType, **_attrs: Any) -> Recipe | None:
    """Cast element by element."""
    return casting(out, x)


def search_recipe(op: ArgExtremum, _: TensorType, x: TensorType, *, axis: int, **_attrs: Any) -> Recipe | None:
    """Search one row after the other, however it lies."""
    return searching(x, axis, op.function)


def cholesky_recipe(_: Kernel, out: TensorType, x: TensorType) -> Recipe | None:
    """Factor small matrices, made symmetric first."""
    ufunc = unchecked("cholesky")
    if ufunc is None or out.dtype != FLOAT64 or is_for_lapack(x.shape):
        return None
    even = UfuncCall(np.add, (0, 0), turned=True), UfuncCall(np.multiply, (SO_FAR,), 0.5)
    return ufunc_calls([*even, UfuncCall(ufunc, (SO_FAR,), core=x.shape[-1:])], out, [x])


def triangle_recipe(
    _: Kernel, out: TensorType, a: TensorType, b: TensorType, *, lower: bool, transpose: bool
) -> Recipe | None:
    """Solve triangular systems of floats that are computed with in their own dtype."""
    if not has_loops(out.dtype) or not a.dtype == b.dtype == out.dtype:
        return None
    return substitution(out, a, b, lower=lower, transpose=transpose)


def running_recipe(_: Kernel, out: TensorType, x: TensorType, *, axis: int, **_attrs: Any) -> Recipe | None:
    """Add up running sums in the elements' own dtype."""
    return adding_on(out, x, axis)


def matrix_recipe(op: Kernel, out: TensorType, *types: TensorType) -> Recipe | None:
    """Solve or invert small matrices with NumPy's own functions of LAPACK, which work in doubles."""
    ufunc = unchecked(op.name)
    if ufunc is None or out.dtype != FLOAT64 or is_for_lapack(types[0].shape):
        return None
    n, m = out.shape[-2:]
    call = UfuncCall(ufunc, tuple(range(len(types))), core=(n, m) if len(types) > 1 else (n,))
    return ufunc_calls([call], out, types)


#: of an op, its result's type, its operands' and its attributes: the recipe; None where there is none, or no use in it
RecipeOf = Callable[..., Recipe | None]

#: device → kind of geometry → what makes the recipe of a node that is such; None where there is none, or no use in it
GEOMETRY_RECIPES: Final[Mapping[str, Mapping[type[Geometry], Callable[[Any], Recipe | None]]]] = MappingProxyType(
    {"cpu": {DirectedConvolution: convolution_recipe, DirectedPool: pool_recipe, Product: product_recipe}}
)
#: device → class of ops → what makes their recipes
RECIPES: Final[Mapping[str, Mapping[type[Kernel], RecipeOf]]] = MappingProxyType(
    {"cpu": {Gather: gather_recipe, PassThrough: copy_recipe, ScatterAdd: scatter_recipe, Sum: sum_recipe}}
)
#: those of what is as quick by itself, but for Python: in bodies of loops, where one such step slows all others
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
    """Find the recipe of a result on a device, of operands of these types, which lie as their strides say.

    If an op `makes_parts`, `out` may be a leading part of its result. Returns None if there are no such kernels, or the
    op is quicker by itself, and is not in a body.
    """
    by_geometry = GEOMETRY_RECIPES.get(device)
    geometry = by_geometry and geometry_of(op, out, *types, **attrs)
    if by_geometry and geometry:
        return by_geometry[type(geometry)](geometry)
    for tables in (RECIPES, BODY_RECIPES) if in_body else (RECIPES,):
        made_by = of_class(tables.get(device, {}), op)
        recipe = made_by and made_by(op, out, *types, **attrs)
        if recipe is not None:
            return recipe
    return None
