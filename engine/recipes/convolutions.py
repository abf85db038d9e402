"""Recipes of convolution and of its adjoint: as products of the kernel and columns."""

from __future__ import annotations

from typing import Any

from engine.graph.dtypes import has_loops
from engine.graph.tensor_type import TensorType
from engine.microkernels.convolution import ConvolutionGeometry, Tensor, adjoint, convolution
from engine.microkernels.recipe import Recipe
from engine.oplib.convolution import Convolution


def convolution_recipe(op: Convolution, out: TensorType, *types: TensorType, **attrs: Any) -> Recipe | None:
    """As a product of the kernel and columns."""
    placed = _on_three_axes(op.rank, out, *types, **attrs)
    return placed and convolution(placed)


def transposed_recipe(op: Convolution, out: TensorType, *types: TensorType, **attrs: Any) -> Recipe | None:
    """As correlations, one for each remainder by the stride."""
    placed = _on_three_axes(op.rank, out, *types, **attrs)
    return placed and adjoint(placed)


def _on_three_axes(
    rank: int,
    out: TensorType,
    x: TensorType,
    kernel: TensorType,
    *,
    groups: int,
    output_padding: Any = None,  # noqa: ARG001 - is in the type of out
    **spatial: Any,
) -> ConvolutionGeometry | None:
    """The convolution as kernels are written for it; None for dtypes that have none."""
    if not has_loops(x.dtype) or not x.dtype == kernel.dtype == out.dtype:
        return None
    more = 3 - rank
    stride, padding, dilation = (
        (neutral,) * more + tuple(spatial[name]) for name, neutral in (("stride", 1), ("padding", 0), ("dilation", 1))
    )
    seen, taps, given = (_with_axes(t, more) for t in (x, kernel, out))
    return ConvolutionGeometry(x.dtype.name, x.dtype.itemsize, groups, seen, taps, given, stride, padding, dilation)


def _with_axes(x: TensorType, more: int) -> Tensor:
    """[outer, channels, …] with `more` axes of extent 1 in front of the others. What has one entry is not stepped."""
    steps = [0 if extent == 1 else step for extent, step in zip(x.shape, x.strides, strict=True)]
    shape = (*x.shape[:2], *[1] * more, *x.shape[2:])
    return Tensor(shape, (*steps[:2], *[0] * more, *steps[2:]))
