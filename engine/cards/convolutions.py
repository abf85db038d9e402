"""Convolutions by cuDNN: a recipe of a geometry in one of three directions, where it has a plan for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from engine.cards.candidates import NO_CHOICES, Choices
from engine.cards.card_recipe import CardPlace, CardRecipe, ClearPhase, CudnnPhase, Phase
from engine.cards.cudnn_library import CudnnLibrary
from engine.cards.cudnn_plans import CudnnPlans, PlanRequest
from engine.graph.dtypes import FLOATS
from engine.graph.precision import IEEE, PRECISIONS, Precision
from engine.microkernels.convolution import ConvolutionGeometry, Direction, Tensor

#: the numbers of the tensors in a graph: images, which windows lie in; the kernel; and one value for each window
_WIDE, _KERNEL, _NARROW = 1, 2, 3
#: engines with these read their operands, or add, in less than was asked for; sums by transforms lose digits
_INEXACT: Final = ("DOWN_CONVERT_INPUTS", "REDUCED_PRECISION_REDUCTION", "WINOGRAD", "FFT")
#: float32 in tensor cores is TF32; float16 is exact there
_NOT_IEEE: Final = ("TENSOR_CORE", *_INEXACT)


def convolution_precision(asked: Precision) -> Precision:
    """How float32 operands are read where `asked` is allowed: float32 or tf32, whichever is no less exact."""
    return IEEE if PRECISIONS.index(asked) < PRECISIONS.index("tf32") else "tf32"


class CudnnConvolutions:
    """Recipes of convolutions by one card's cuDNN. Threads may share it."""

    def __init__(self, plans: CudnnPlans) -> None:
        self._plans = plans

    def recipe(
        self,
        of: ConvolutionGeometry,
        direction: Direction,
        *,
        precision: Precision,
        deterministic: bool,
        workspace: int,
        choices: Choices = NO_CHOICES,
    ) -> CardRecipe | None:
        """One plan, and zeros where no window lies; None where cuDNN has none that works in `workspace` bytes.

        `precision` is what was asked for. In a `deterministic` one no engine is noted to add in an order of chance.
        Which plan it is, `choices` say.
        """
        placed = _placed(of, direction) if of.dtype in FLOATS else None
        if placed is None:
            return None
        is_ieee = of.dtype == IEEE == convolution_precision(precision)
        without = _NOT_IEEE if is_ieee else _INEXACT
        notes = (*without, "NONDETERMINISTIC") if deterministic else without
        text, state = f"{direction} {of.dtype} {placed}", partial(_graph, placed, direction, of.dtype)
        request = PlanRequest(text, state, notes, workspace, _sizes(placed, of.itemsize))
        plan = self._plans.find(request, choices=choices)
        if plan is None:
            return None
        phases: list[Phase] = [CudnnPhase(plan, _places(direction), CardPlace("workspace"))]
        if direction == "adjoint" and math.prod(placed.wide.shape) != math.prod(of.y.shape):
            # The result, which is dense, reaches beyond what the plan writes.
            phases.insert(0, ClearPhase(CardPlace("result"), math.prod(of.y.shape) * of.itemsize))
        return CardRecipe(tuple(phases), workspace=plan.workspace)


class _Lying(NamedTuple):
    """Extents and elements to step along the axes [outer, channels, 2 or 3 spatial]."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Placed(NamedTuple):
    """A convolution as cuDNN is asked for it, groups by the channels of the kernel, and zeros around the images."""

    wide: _Lying
    kernel: _Lying
    narrow: _Lying
    stride: tuple[int, ...]
    before: tuple[int, ...]
    behind: tuple[int, ...]
    dilation: tuple[int, ...]


def _sizes(of: _Placed, itemsize: int) -> tuple[tuple[int, int], ...]:
    """Bytes from the first element to the end of the last one, of each tensor."""
    reached = (1 + sum((n - 1) * step for n, step in zip(*lying, strict=True)) for lying in of[:3])
    return tuple((number, itemsize * n) for number, n in zip((_WIDE, _KERNEL, _NARROW), reached, strict=True))


def _placed(of: ConvolutionGeometry, direction: Direction) -> _Placed | None:
    """None where it has no elements, or something that cuDNN has no word for."""
    wide, narrow = (of.y, of.x) if direction == "adjoint" else (of.x, of.y)
    axes = zip(wide.shape[2:], of.kernel.shape[2:], narrow.shape[2:], of.stride, of.padding, of.dilation, strict=True)
    within, behind = zip(*(_reached(*axis) for axis in axes), strict=True)
    seen = Tensor((*wide.shape[:2], *within), wide.steps)
    tensors = [_lying(tensor, of.itemsize) for tensor in (seen, of.kernel, narrow)]
    if min(*of.padding, *behind) < 0 or None in tensors:
        return None
    # An axis on which nothing moves is one too many: cuDNN has two, or three.
    first = int(all(t.shape[2] == 1 for t in (seen, of.kernel, narrow)) and not of.padding[0])
    images, kernel, values = (
        _Lying(*(part[:2] + part[2 + first :] for part in lying)) for lying in tensors if lying is not None
    )
    numbers = (each[first:] for each in (of.stride, of.padding, behind, of.dilation))
    return _Placed(images, kernel, values, *numbers)


def _reached(extent: int, taps: int, windows: int, stride: int, padding: int, dilation: int) -> tuple[int, int]:
    """Of an axis of the images, how much cuDNN is shown, and the zeros behind that.

    It wants as many windows as fit. Where there are fewer, what lies behind the last of them is left out.
    """
    end = (windows - 1) * stride + dilation * (taps - 1) + 1 - padding
    if extent + padding - end < stride:
        return extent, padding
    return min(extent, end), max(0, end - extent)


def _lying(of: Tensor, itemsize: int) -> _Lying | None:
    """In elements; an axis of one entry has the step that it has in a dense tensor.

    None where there are no elements, and for steps that are backward, none, or no whole elements.
    """
    if min(of.shape) < 1:
        return None
    strides: list[int] = []
    dense = 1
    for extent, step in zip(reversed(of.shape), reversed(of.steps), strict=True):
        stride, rest = divmod(step, itemsize)
        if extent > 1 and (stride < 1 or rest):
            return None
        strides.insert(0, stride if extent > 1 else dense)
        dense = strides[0] * extent
    return _Lying(of.shape, tuple(strides))


def _graph(of: _Placed, direction: Direction, dtype: str, cudnn: CudnnLibrary) -> Any:
    graph = cudnn.graph(dtype)
    given = {"forward": (_WIDE, _KERNEL), "adjoint": (_NARROW, _KERNEL), "by_kernel": (_NARROW, _WIDE)}[direction]
    lying = {_WIDE: of.wide, _KERNEL: of.kernel, _NARROW: of.narrow}
    first, second = (
        graph.tensor(dim=list(lying[n].shape), stride=list(lying[n].strides), data_type=cudnn.element(dtype), uid=n)
        for n in given
    )
    placing: dict[str, Sequence[int]] = {
        "pre_padding": list(of.before),
        "post_padding": list(of.behind),
        "stride": list(of.stride),
        "dilation": list(of.dilation),
    }
    if direction == "forward":
        result = graph.conv_fprop(image=first, weight=second, **placing)
    elif direction == "adjoint":
        result = graph.conv_dgrad(loss=first, filter=second, **placing)
    else:
        result = graph.conv_wgrad(loss=first, image=second, **placing)
    (number,) = lying.keys() - set(given)
    result.set_output(True).set_data_type(cudnn.element(dtype)).set_uid(number)
    result.set_dim(list(lying[number].shape)).set_stride(list(lying[number].strides))
    return graph


def _places(direction: Direction) -> tuple[tuple[int, CardPlace], ...]:
    """Where the tensors of a graph lie: of an op, operands are in the order of the geometry, without the result."""
    result = CardPlace("result")
    first, second = CardPlace("operand", 0), CardPlace("operand", 1)
    if direction == "forward":
        return (_WIDE, first), (_KERNEL, second), (_NARROW, result)
    if direction == "adjoint":
        return (_NARROW, first), (_KERNEL, second), (_WIDE, result)
    return (_WIDE, first), (_NARROW, second), (_KERNEL, result)
