"""The recipes of convolution and of its adjoint: which kernels make them, for which sizes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Final, NamedTuple, TypeVar

from engine.microkernels.by_kernel import by_kernel
from engine.microkernels.columns import Axis
from engine.microkernels.correlation import Correlation, CorrelationWriter, Lying
from engine.microkernels.recipe import Phase, Recipe, aligned
from engine.microkernels.register_tile import lanes_for
from engine.microkernels.routine import Routine

T = TypeVar("T")

#: kernels that one adjoint may have: with its strides, they are as many as there are remainders
MOST_CLASSES: Final = 16
#: bytes that a thread may work in
MOST_OWN: Final = 1 << 22


class Tensor(NamedTuple):
    """How an operand or the result lies: extents and bytes to step along its axes, [outer, channels, three spatial]."""

    shape: tuple[int, ...]
    steps: tuple[int, ...]


class Placed(NamedTuple):
    """A convolution with windows on three axes: x, kernel and y, and one number for each axis."""

    dtype: str
    itemsize: int
    groups: int
    x: Tensor
    kernel: Tensor
    y: Tensor
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]


def convolution(of: Placed) -> Recipe | None:
    """y[n, o, p] = Σ x[n, c, p · stride + t · dilation − padding] · kernel[o, c, t]; None where kernels do not fit."""
    channels, features = of.x.shape[1] // of.groups, of.y.shape[1] // of.groups
    sizes = zip(of.y.shape[2:], of.kernel.shape[2:], of.x.shape[2:], of.stride, of.dilation, of.padding, strict=True)
    axes = _three(Axis(windows, taps, extent, s, d, -p) for windows, taps, extent, s, d, p in sizes)
    x, y = (_lying(t, n) for t, n in ((of.x, channels), (of.y, features)))
    k = Lying(of.kernel.steps[0], of.kernel.steps[0] * features, of.kernel.steps[1], _three(of.kernel.steps[2:]))
    found = Correlation(of.dtype, of.itemsize, of.x.shape[0], of.groups, channels, features, axes, x, k, y)
    if found.taps > found.windows:
        return _within(by_kernel(found))
    writer = CorrelationWriter(found)
    return _within(Recipe((writer.phase(),), own=writer.own))


def adjoint(of: Placed) -> Recipe | None:
    """y[n, o, p · stride + t · dilation − padding] += x[n, c, p] · kernel[c, o, t]; None where kernels do not fit.

    The result at positions of one remainder by the stride is a correlation with the taps that reach them. Beyond x it
    sees zeros, which times an infinite number of the kernel are no zeros: so that is looked for.
    """
    if math.prod(of.stride) > MOST_CLASSES:
        return None
    checks = _check(of)
    writers = [CorrelationWriter(each) for each in _classes(of)]
    own = max(writer.own for writer in writers)
    return _within(Recipe((checks, *(writer.phase() for writer in writers)), aligned(8), own, checked=True))


def _within(recipe: Recipe | None) -> Recipe | None:
    return recipe if recipe is not None and recipe.own <= MOST_OWN else None


def _lying(of: Tensor, channels: int) -> Lying:
    """As an operand or a result, `channels` of each group."""
    return Lying(of.steps[0], of.steps[1] * channels, of.steps[1], _three(of.steps[2:]))


def _three(numbers: Iterable[T]) -> tuple[T, T, T]:
    first, second, third = numbers
    return first, second, third


class _Residue(NamedTuple):
    """The positions of one remainder along an axis: the first, and the taps that reach them, as a correlation."""

    first: int
    tap: int
    tap_step: int
    axis: Axis


def _classes(of: Placed) -> Iterator[Correlation]:
    """A correlation for each remainder that there is."""
    channels, features = of.x.shape[1] // of.groups, of.y.shape[1] // of.groups
    x = _lying(of.x, channels)
    for residues in product(*(list(_residues(of, axis)) for axis in range(3))):
        steps = [s * t for s, t in zip(of.kernel.steps[2:], (r.tap_step for r in residues), strict=True)]
        start = sum(s * r.tap for s, r in zip(of.kernel.steps[2:], residues, strict=True))
        k = Lying(of.kernel.steps[1], of.kernel.steps[0] * channels, of.kernel.steps[0], _three(steps), start)
        apart = [s * stride for s, stride in zip(of.y.steps[2:], of.stride, strict=True)]
        begin = sum(s * r.first for s, r in zip(of.y.steps[2:], residues, strict=True))
        y = Lying(of.y.steps[0], of.y.steps[1] * features, of.y.steps[1], _three(apart), begin)
        axes = _three([residue.axis for residue in residues])
        yield Correlation(of.dtype, of.itemsize, of.x.shape[0], of.groups, channels, features, axes, x, k, y)


def _residues(of: Placed, axis: int) -> Iterator[_Residue]:
    stride, padding, dilation = of.stride[axis], of.padding[axis], of.dilation[axis]
    taps, extent, seen = of.kernel.shape[2 + axis], of.y.shape[2 + axis], of.x.shape[2 + axis]
    for first in range(min(stride, extent)):
        reaching = [t for t in range(taps) if (first + padding - t * dilation) % stride == 0]
        positions = -(-(extent - first) // stride)
        if not reaching:  # any tap will do, on nothing: that gives zeros
            yield _Residue(first, 0, 1, Axis(positions, 1, 0, 1, 1, 0))
            continue
        tap = reaching[0]
        tap_step = reaching[1] - tap if len(reaching) > 1 else 1
        start = (first + padding - tap * dilation) // stride
        moved = Axis(positions, len(reaching), seen, 1, -(dilation * tap_step // stride), start)
        yield _Residue(first, tap, tap_step, moved)


def _check(of: Placed) -> Phase:
    """Whether all numbers of the kernel are finite: x − x is 0 of those, and NaN of the others."""
    to = Routine(of.dtype, lanes_for(of.itemsize))
    with to.loop("%first", "%past"):
        kernel = to.place("operand", 1)
        outer, inner = of.kernel.shape[:4], of.kernel.shape[4]
        with to.loop(0, math.prod(outer), carried=[(to.vector, to.zero)]) as row:
            at = kernel
            for index, step in zip(to.unravelled(row.index, outer), of.kernel.steps, strict=False):
                at = to.at(at, to.mul(index, step))
            with to.loop(0, inner, to.lanes, carried=[(to.vector, row.carried[0])]) as tap:
                mask = to.between(0, to.sub(inner, tap.index))
                here = to.at(at, to.mul(tap.index, of.kernel.steps[4]))
                tap.carry = [
                    to.sum(tap.carried[0], to.difference_with_itself(to.gather(here, of.kernel.steps[4], mask)))
                ]
            row.carry = tap.carried
        to.store_whether_nan(to.halved(row.carried[0]), to.place("shared", 0))
    return to.phase(1, math.prod(of.kernel.shape))
