"""Ops that have no scalar formula: machine code calls their ufuncs; and casts."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.graph.dtypes import has_loops
from engine.graph.op import Kernel
from engine.graph.tensor_type import FLOAT64, TensorType
from engine.loops.special import library
from engine.microkernels.casting import casting
from engine.microkernels.recipe import Recipe
from engine.microkernels.running_sums import adding_on
from engine.microkernels.searching import searching
from engine.microkernels.substitution import substitution
from engine.microkernels.ufunc_calls import SO_FAR, UfuncCall, ufunc_calls
from engine.oplib.elementwise import Elementwise
from engine.oplib.lapack import is_for_lapack
from engine.oplib.library_function import LibraryUfunc
from engine.oplib.matrices import unchecked
from engine.ops.max_min import ArgExtremum


def ufunc_recipe(op: Elementwise, out: TensorType, *types: TensorType, **attrs: Any) -> Recipe | None:  # noqa: ARG001 - as in the table
    """The op's ufunc, where nothing is cast."""
    if not op.ufunc or op.computes_by_itself:
        return None
    return ufunc_calls([UfuncCall(getattr(np, op.ufunc), tuple(range(len(types))))], out, types)


def power_recipe(_: Kernel, out: TensorType, *types: TensorType, exponent: float | None) -> Recipe | None:
    """Powers of floats, by a float operand or a number."""
    if out.dtype.kind != "f":
        return None
    reads = tuple(range(len(types)))
    return ufunc_calls([UfuncCall(np.power, reads, exponent if len(types) == 1 else None)], out, types)


def erfinv_recipe(_: Kernel, out: TensorType, x: TensorType) -> Recipe | None:
    """SciPy's, and then the sign that this loses of a zero, as `erfinv_blocks`: in float64, which that computes in."""
    if out.dtype != FLOAT64:
        return None
    return ufunc_calls([UfuncCall(library(np).erfinv, (0,)), UfuncCall(np.copysign, (SO_FAR, 0))], out, [x])


def library_recipe(op: LibraryUfunc, out: TensorType, *types: TensorType) -> Recipe | None:
    """SciPy's, in float64, which that computes in."""
    if out.dtype != FLOAT64:
        return None
    return ufunc_calls([UfuncCall(getattr(library(np), op.function), tuple(range(len(types))))], out, types)


def cast_recipe(_: Kernel, out: TensorType, x: TensorType, **attrs: Any) -> Recipe | None:  # noqa: ARG001 - is in the type of out
    """Element by element."""
    return casting(out, x)


def search_recipe(op: ArgExtremum, _: TensorType, x: TensorType, *, axis: int, **attrs: Any) -> Recipe | None:  # noqa: ARG001 - of the op
    """One row after the other, however it lies."""
    return searching(x, axis, op.function)


def cholesky_recipe(_: Kernel, out: TensorType, x: TensorType) -> Recipe | None:
    """Factors of small matrices, made symmetric first."""
    ufunc = unchecked("cholesky")
    if ufunc is None or out.dtype != FLOAT64 or is_for_lapack(x.shape):
        return None
    even = UfuncCall(np.add, (0, 0), turned=True), UfuncCall(np.multiply, (SO_FAR,), 0.5)
    return ufunc_calls([*even, UfuncCall(ufunc, (SO_FAR,), core=x.shape[-1:])], out, [x])


def triangle_recipe(
    _: Kernel, out: TensorType, a: TensorType, b: TensorType, *, lower: bool, transpose: bool
) -> Recipe | None:
    """Triangular solves of floats that are computed with in their own dtype."""
    if not has_loops(out.dtype) or not a.dtype == b.dtype == out.dtype:
        return None
    return substitution(out, a, b, lower=lower, transpose=transpose)


def running_recipe(
    _: Kernel,
    out: TensorType,
    x: TensorType,
    *,
    axis: int,
    **attrs: Any,  # noqa: ARG001 - of the op
) -> Recipe | None:
    """Running sums in the elements' own dtype."""
    return adding_on(out, x, axis)


def matrix_recipe(op: Kernel, out: TensorType, *types: TensorType) -> Recipe | None:
    """Solve or invert small matrices with NumPy's own functions of LAPACK, which work in doubles."""
    ufunc = unchecked(op.name)
    if ufunc is None or out.dtype != FLOAT64 or is_for_lapack(types[0].shape):
        return None
    n, m = out.shape[-2:]
    call = UfuncCall(ufunc, tuple(range(len(types))), core=(n, m) if len(types) > 1 else (n,))
    return ufunc_calls([call], out, types)
