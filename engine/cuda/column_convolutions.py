"""Convolution on a GPU: by cuDNN, if it has a plan, else by columns (im2col), kernels of our own, and products.

A convolution, its adjoint and its gradient with respect to the kernel are each one product for each group, of two of
the kernel, the narrow tensor (one position a window) and the columns of the wide tensor:

    narrow = kernel · columns,   columns = kernelᵀ · narrow,   kernel = narrow · columnsᵀ

The columns are made in chunks that fit the workspace: some images at a time, else parts of one image. If an image has
few places, or there are groups, the places of several images lie one after the other on a line, so that one product
takes them all; then the narrow tensor is packed in the same way, before or after. A tensor whose layout no product can
read or write is copied by way of the workspace.

float16 is multiplied with sums in float32. Further sums, of columns over their taps and of chunks, stay in float32, so
that each number is rounded once.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar, Final, NamedTuple

import numpy as np

from engine.codegen.microkernels.convolution import ConvolutionGeometry, DirectedConvolution, Direction, Tensor
from engine.codegen.microkernels.product import Matrices, Product
from engine.cuda.card_recipe import (
    CardPlace,
    CardRecipe,
    Move,
    Phase,
    ProductPhase,
    card_text,
    computed_in,
    move_kernels,
)
from engine.cuda.columns import (
    COLUMN_ENTRIES,
    COLUMN_KERNELS,
    ColumnLines,
    WindowPlacing,
    columns_are_addressable,
    columns_are_wide,
    gather_columns,
    lay_columns,
)
from engine.cuda.cudnn_recipes import CardTerms, convolution_precision
from engine.ir.run_report import IEEE

#: places of an image below which several images are multiplied at once: about the width of a tile of a product
_FEW_PLACES: Final = 128
#: chunks that a convolution may be cut into
_MOST_CHUNKS: Final = 256
#: alignment of parts of the workspace
_ALIGNMENT: Final = 256


def column_recipe(of: ConvolutionGeometry, direction: Direction, workspace: int) -> CardRecipe | None:
    """Make the recipe of a convolution by columns, in at most so many bytes of workspace.

    `forward` and `adjoint` compute y from x and the kernel, operands 0 and 1; `by_kernel` computes the kernel from x
    and y. None if the workspace is too small, 64 bits are too few for offsets, or a tensor is empty.
    """
    writer = _WRITERS[direction](of, workspace)
    if 0 in (*of.x.shape, *of.kernel.shape, *of.y.shape) or not writer.is_addressable:
        return None
    return writer.recipe()


class _Lying(NamedTuple):
    """A matrix for each group: the place of the first, and strides in bytes along rows, columns and groups."""

    place: CardPlace
    row: int
    column: int
    group: int

    @property
    def turned(self) -> _Lying:
        return self._replace(row=self.column, column=self.row)

    def at(self, nbytes: int) -> _Lying:
        return self._replace(place=_moved(self.place, nbytes))


class _Several(NamedTuple):
    """Images that are multiplied one by one: their number, and the bytes from one to the next of each matrix."""

    images: int
    a: int
    b: int
    c: int


class _Memory:
    """Workspace that is given out piece by piece, and the most that was used."""

    def __init__(self) -> None:
        self.used = self.most = 0

    def reserve(self, nbytes: int) -> CardPlace:
        start = self.used
        self.used += _rounded(nbytes)
        self.most = max(self.most, self.used)
        return CardPlace("workspace", 0, start)


class _Columns(ABC):
    """Base of the three directions. A subclass appends the phases of a chunk."""

    #: whether y is the wide tensor, and not x
    writes_wide: ClassVar[bool] = False

    def __init__(self, of: ConvolutionGeometry, workspace: int) -> None:
        self.of, self.workspace = of, workspace
        wide, narrow = self.wide, self.narrow = (of.y, of.x) if self.writes_wide else (of.x, of.y)
        self.x, self.kernel, self.y = CardPlace("operand", 0), CardPlace("operand", 1), CardPlace("result", 0)
        self.size, self.computed = of.itemsize, np.dtype(computed_in(of.dtype)).itemsize
        self.images, self.groups = wide.shape[0], of.groups
        self.depth, self.features = of.kernel.shape[1], of.kernel.shape[0] // of.groups
        self.windows = WindowPlacing(of.kernel.shape[2:], narrow.shape[2:], of.stride, of.padding, of.dilation)
        self.taps, self.places = math.prod(of.kernel.shape[2:]), math.prod(narrow.shape[2:])
        self.lines = self.depth * self.taps
        self.memory, self.phases = _Memory(), list[Phase]()

    @property
    def is_addressable(self) -> bool:
        moves = (self._narrow_move(self.images), self._kernel_move())
        return columns_are_addressable(self.windows, self.wide) and all(move.is_addressable for move in moves)

    def recipe(self) -> CardRecipe | None:
        if not self.append_phases() or self.memory.most > self.workspace:
            return None
        kernels = COLUMN_KERNELS + move_kernels(5, ("move", "round_off"))
        is_wide = columns_are_wide(self.windows, self.wide) or self._narrow_move(self.images).is_wide
        is_wide |= self._kernel_move().is_wide
        launches = any(not isinstance(phase, ProductPhase) for phase in self.phases)
        text = card_text(self.of.dtype, COLUMN_ENTRIES, kernels, is_wide=is_wide) if launches else ""
        return CardRecipe(tuple(self.phases), text, self.memory.most)

    @abstractmethod
    def append_phases(self) -> bool:
        """Append the phases. Returns whether there was memory for them."""

    def joins(self, images: int, *, lies: bool) -> bool:
        """Whether so many images are multiplied at once; `lies`: products can use the narrow tensor as it lies."""
        return images > 1 and (self.groups > 1 or self.places < _FEW_PLACES or not lies)

    def at_once(self, each: int) -> int:
        """Count how many times so many bytes, in a few chunks, still fit the workspace."""
        return max(0, self.workspace - self.memory.used - 4 * _ALIGNMENT) // each

    def image_chunks(self, each: int) -> list[range]:
        """Split images, each of which takes so many bytes, in chunks that fit; none if not even one image fits."""
        return _chunks(self.images, min(self.images, self.at_once(each)))

    def kernel_lying(self, place: CardPlace) -> _Lying | None:
        """View the kernel as features by lines; None if no product can use it as it lies."""
        step = _dense_step(self.of.kernel.shape[1:], self.of.kernel.steps[1:], self.size)
        first = self.of.kernel.steps[0]
        return _lying(place, self.features, self.lines, first, step, first * self.features, self.size)

    def dense_kernel(self, place: CardPlace, size: int) -> _Lying:
        """View a dense kernel, of elements of so many bytes, as features by lines."""
        return _Lying(place, self.lines * size, size, self.features * self.lines * size)

    def channels_lying(self, of: Tensor, place: CardPlace, channels: int) -> _Lying | None:
        """View an image of a tensor as channels by places; None if no product can use it as it lies."""
        if of.steps[0] < 0:
            return None
        step = _dense_step(of.shape[2:], of.steps[2:], self.size)
        first = of.steps[1]
        return _lying(place, channels, math.prod(of.shape[2:]), first, step, first * channels, self.size)

    def wide_as_columns(self, place: CardPlace) -> _Lying | None:
        """View an image of the wide tensor as columns, if it equals them: of 1 × 1 windows side by side."""
        windows = zip(*self.windows, self.wide.shape[2:], strict=True)
        if any(
            taps > 1 or padding or (stride > 1 and n > 1) or n != extent
            for taps, n, stride, padding, _, extent in windows
        ):
            return None
        return self.channels_lying(self.wide, place, self.depth)

    def line_matrix(self, place: CardPlace, size: int, images: int, places: int, rows: int) -> _Lying:
        """View lines for each group, along which places of images lie one after the other."""
        return _Lying(place, images * places * size, size, rows * images * places * size)

    def lay(self, x: CardPlace, images: range, first: int, places: int, *, joined: bool) -> CardPlace:
        """Lay the columns of some images, of all groups, and return their place."""
        lines = self.groups * self.lines
        to = self.memory.reserve(lines * len(images) * places * self.size)
        steps = (len(images) * places, places) if joined else (places, lines * places)
        of = ColumnLines(len(images), self.groups * self.depth, first, places, *steps)
        start = _moved(x, images.start * self.wide.steps[0])
        self.phases.append(lay_columns(self.windows, self.wide, of, start, to))
        return to

    def multiply(
        self,
        sizes: tuple[int, int, int],
        a: _Lying,
        b: _Lying,
        c: _Lying,
        several: _Several | None = None,
        groups: int = 0,
        *,
        adds: bool = False,
        widens: bool = False,
    ) -> None:
        """Multiply: c = a · b of so many rows, terms and columns, for each group, and for several images."""
        count, *apart = several or _Several(1, 0, 0, 0)
        groups = groups or self.groups
        axes = [(n, each) for n, each in ((count, apart), (groups, [m.group for m in (a, b, c)])) if n > 1]
        lies = [Matrices(m.row, m.column, tuple(each[k] for _, each in axes)) for k, m in enumerate((a, b, c))]
        of = Product(self.of.dtype, self.size, tuple(n for n, _ in axes), *sizes, *lies)
        self.phases.append(ProductPhase(of, a.place, b.place, c.place, adds, widens=widens))

    def pack(self, kernel: str, move: Move, read: CardPlace, written: CardPlace) -> None:
        self.phases.append(move.phase(kernel, COLUMN_ENTRIES, read, written))

    def packed_narrow(self, place: CardPlace, images: range) -> CardPlace:
        move = self._narrow_move(len(images))
        to = self.memory.reserve(move.items * self.size)
        self.pack("move", move, _moved(place, images.start * self.narrow.steps[0]), to)
        return to

    def settle_narrow(self, lines: CardPlace, place: CardPlace, images: range) -> None:
        move = self._narrow_move(len(images))
        turned = Move(move.extents, move.target, move.source)
        self.pack("move", turned, lines, _moved(place, images.start * self.narrow.steps[0]))

    def packed_kernel(self, place: CardPlace) -> _Lying:
        """View the kernel, or a dense copy of it if no product can use it as it lies."""
        lying = self.kernel_lying(place)
        if lying is None:
            move = self._kernel_move()
            to = self.memory.reserve(move.items * self.size)
            self.pack("move", move, place, to)
            lying = self.dense_kernel(to, self.size)
        return lying

    def settle_kernel(self, kernel: str, read: CardPlace, place: CardPlace, size: int) -> None:
        """Copy a dense kernel, of elements of so many bytes, to its place."""
        move = self._kernel_move()
        self.pack(kernel, Move(move.extents, _dense(move.extents, size), move.source), read, place)

    def _narrow_move(self, images: int) -> Move:
        _, channels, *positions = self.narrow.shape
        image, channel, *steps = self.narrow.steps
        extents = (channels, images, *positions)
        return Move(extents, (channel, image, *steps), _dense(extents, self.size))

    def _kernel_move(self) -> Move:
        return Move(self.of.kernel.shape, self.of.kernel.steps, _dense(self.of.kernel.shape, self.size))


class _Forward(_Columns):
    """narrow = kernel · columns."""

    def append_phases(self) -> bool:
        kernel, y = self.packed_kernel(self.kernel), self.channels_lying(self.narrow, self.y, self.features)
        columns = self.wide_as_columns(self.x)
        if columns and y and not (self.images > 1 and self.places < _FEW_PLACES):
            several = _Several(self.images, 0, self.wide.steps[0], self.narrow.steps[0])
            self.multiply((self.features, self.lines, self.places), kernel, columns, y, several)
            return True
        lies = y is not None and not self.joins(self.images, lies=True)
        each = (self.groups * self.lines + (0 if lies else self.narrow.shape[1])) * self.places * self.size
        chunks = self.image_chunks(each)
        for images in chunks:
            self._images(kernel, images, y)
        if chunks or y is None:
            return bool(chunks)
        return self._by_places(kernel, y)

    def _images(self, kernel: _Lying, images: range, y: _Lying | None) -> None:
        start, count = self.memory.used, len(images)
        joined = self.joins(count, lies=y is not None)
        columns = self.lay(self.x, images, 0, self.places, joined=joined)
        if y is not None and not joined:
            step = self.groups * self.lines * self.places * self.size
            b = self.line_matrix(columns, self.size, 1, self.places, self.lines)
            c = y.at(images.start * self.narrow.steps[0])
            several = _Several(count, 0, step, self.narrow.steps[0])
            self.multiply((self.features, self.lines, self.places), kernel, b, c, several)
        else:
            to = self.memory.reserve(self.narrow.shape[1] * count * self.places * self.size)
            b, c = (
                self.line_matrix(place, self.size, count, self.places, rows)
                for place, rows in ((columns, self.lines), (to, self.features))
            )
            self.multiply((self.features, self.lines, count * self.places), kernel, b, c)
            self.settle_narrow(to, self.y, images)
        self.memory.used = start

    def _by_places(self, kernel: _Lying, y: _Lying) -> bool:
        chunks = _chunks(self.places, self.at_once(self.groups * self.lines * self.size), self.images)
        start = self.memory.used
        for image in range(self.images if chunks else 0):
            for places in chunks:
                columns = self.lay(self.x, range(image, image + 1), places.start, len(places), joined=False)
                b = self.line_matrix(columns, self.size, 1, len(places), self.lines)
                c = y.at(image * self.narrow.steps[0] + places.start * y.column)
                self.multiply((self.features, self.lines, len(places)), kernel, b, c)
                self.memory.used = start
        return bool(chunks)


class _Adjoint(_Columns):
    """columns = kernelᵀ · narrow, gathered into the wide tensor."""

    writes_wide = True

    def append_phases(self) -> bool:
        kernel, x = self.packed_kernel(self.kernel).turned, self.channels_lying(self.narrow, self.x, self.features)
        wide = self.wide_as_columns(self.y)
        if wide and x and not (self.images > 1 and self.places < _FEW_PLACES):
            several = _Several(self.images, 0, self.narrow.steps[0], self.wide.steps[0])
            self.multiply((self.lines, self.features, self.places), kernel, x, wide, several)
            return True
        lies = x is not None and not self.joins(self.images, lies=True)
        packed = 0 if lies else self.narrow.shape[1] * self.places * self.size
        chunks = self.image_chunks(self.groups * self.lines * self.places * self.computed + packed)
        for images in chunks:
            self._images(kernel, images, x)
        return bool(chunks) or self._by_channels(kernel, x)

    def _images(self, kernel: _Lying, images: range, x: _Lying | None) -> None:
        start, count = self.memory.used, len(images)
        joined = self.joins(count, lies=x is not None)
        b = self._narrow(images, x, joined=joined)
        columns = self.memory.reserve(self.groups * self.lines * count * self.places * self.computed)
        together = count if joined else 1
        c = self.line_matrix(columns, self.computed, together, self.places, self.lines)
        step = 0 if joined else self.groups * self.lines * self.places
        several = _Several(1 if joined else count, 0, self.narrow.steps[0], step * self.computed)
        sizes = self.lines, self.features, together * self.places
        self.multiply(sizes, kernel, b, c, several, widens=self.computed != self.size)
        steps = (count * self.places, self.places) if joined else (self.places, step)
        lines = ColumnLines(count, self.groups * self.depth, 0, self.places, *steps)
        self._gather(lines, columns, images.start * self.wide.steps[0])
        self.memory.used = start

    def _narrow(self, images: range, x: _Lying | None, *, joined: bool) -> _Lying:
        if x is not None and not joined:
            return x.at(images.start * self.narrow.steps[0])
        return self.line_matrix(self.packed_narrow(self.x, images), self.size, len(images), self.places, self.features)

    def _by_channels(self, kernel: _Lying, x: _Lying | None) -> bool:
        """Append phases for some channels of one group of one image at a time."""
        each = self.taps * self.places * self.computed
        packed = 0 if x is not None else self.narrow.shape[1] * self.places * self.size
        at_once = min(self.depth, max(0, self.at_once(1) - packed) // each)
        chunks = _chunks(self.depth, at_once, self.images * self.groups)
        start = self.memory.used
        for image in range(self.images if chunks else 0):
            b = self._narrow(range(image, image + 1), x, joined=False)
            for group in range(self.groups):
                for channels in chunks:
                    self._channels(kernel, b, image, group, channels)
            self.memory.used = start
        return bool(chunks)

    def _channels(self, kernel: _Lying, b: _Lying, image: int, group: int, channels: range) -> None:
        start, lines = self.memory.used, len(channels) * self.taps
        a = kernel.at(group * kernel.group + channels.start * self.taps * kernel.row)
        columns = self.memory.reserve(lines * self.places * self.computed)
        c = self.line_matrix(columns, self.computed, 1, self.places, lines)
        sizes = lines, self.features, self.places
        self.multiply(sizes, a, b.at(group * b.group), c, groups=1, widens=self.computed != self.size)
        channel = group * self.depth + channels.start
        of = ColumnLines(1, len(channels), 0, self.places, self.places, 0)
        self._gather(of, columns, image * self.wide.steps[0] + channel * self.wide.steps[1])
        self.memory.used = start

    def _gather(self, lines: ColumnLines, columns: CardPlace, offset: int) -> None:
        self.phases.append(gather_columns(self.windows, self.wide, lines, columns, _moved(self.y, offset)))


class _ByKernel(_Columns):
    """kernel = narrow · columnsᵀ, summed over images: chunks are added to those before."""

    def __init__(self, of: ConvolutionGeometry, workspace: int) -> None:
        super().__init__(of, workspace)
        self.x, self.y, self.kernel = CardPlace("operand", 0), CardPlace("operand", 1), CardPlace("result", 0)

    def append_phases(self) -> bool:
        y, columns = self.channels_lying(self.narrow, self.y, self.features), self.wide_as_columns(self.x)
        if columns and y and self.images == 1:
            self._prepare(1)
            self._multiply(self.places, y, columns.turned)
            return True
        packed = 0 if y is not None and self.images == 1 else self.narrow.shape[1]
        each = (self.groups * self.lines + packed) * self.places * self.size
        chunks = _chunks(self.images, min(self.images, self._left() // each))
        if not chunks and y is not None:
            return self._by_places(y)
        self._prepare(len(chunks))
        for images in chunks:
            self._images(images, y)
        return bool(chunks)

    def _left(self) -> int:
        """Count the bytes for chunks, beside the sums."""
        return self.at_once(1) - _rounded(math.prod(self.of.kernel.shape) * self.computed)

    def _prepare(self, chunks: int) -> None:
        """Choose where so many chunks are added up: in the kernel itself, or in the workspace, in float32 at least."""
        self.chunks = self.left = chunks
        self.widens = self.computed != self.size and chunks > 1
        lying = None if self.widens else self.kernel_lying(self.kernel)
        self.is_direct = lying is not None
        size = self.computed if self.widens else self.size
        self.sums = lying or self.dense_kernel(self.memory.reserve(math.prod(self.of.kernel.shape) * size), size)
        self.base = self.memory.used

    def _images(self, images: range, y: _Lying | None) -> None:
        count, start = len(images), images.start * self.narrow.steps[0]
        if y is not None and count == 1:
            a = y.at(start)
        else:
            packed = self.packed_narrow(self.y, images)
            a = self.line_matrix(packed, self.size, count, self.places, self.features)
        columns = self.lay(self.x, images, 0, self.places, joined=True)
        b = self.line_matrix(columns, self.size, count, self.places, self.lines).turned
        self._multiply(count * self.places, a, b)

    def _by_places(self, y: _Lying) -> bool:
        each = self.groups * self.lines * self.size
        chunks = _chunks(self.places, min(self.places, self._left() // each), self.images)
        self._prepare(self.images * len(chunks))
        for image in range(self.images if chunks else 0):
            for places in chunks:
                columns = self.lay(self.x, range(image, image + 1), places.start, len(places), joined=False)
                a = y.at(image * self.narrow.steps[0] + places.start * y.column)
                b = self.line_matrix(columns, self.size, 1, len(places), self.lines).turned
                self._multiply(len(places), a, b)
        return bool(chunks)

    def _multiply(self, inner: int, a: _Lying, b: _Lying) -> None:
        """Multiply one chunk, and add it to those before."""
        adds = self.left < self.chunks
        self.multiply((self.features, inner, self.lines), a, b, self.sums, adds=adds, widens=self.widens)
        self.left -= 1
        if not self.left and not self.is_direct:
            size = self.computed if self.widens else self.size
            self.settle_kernel("round_off" if self.widens else "move", self.sums.place, self.kernel, size)
        self.memory.used = self.base


_WRITERS: Final[dict[Direction, type[_Forward | _Adjoint | _ByKernel]]] = {
    "forward": _Forward,
    "adjoint": _Adjoint,
    "by_kernel": _ByKernel,
}


def _moved(place: CardPlace, nbytes: int) -> CardPlace:
    return place._replace(offset=place.offset + nbytes)


def _rounded(nbytes: int) -> int:
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


def _chunks(count: int, at_once: int, times: int = 1) -> list[range]:
    """Split into about equal ranges of at most `at_once`; none if that is 0, or `times` as many are too many."""
    chunks = -(-count // at_once) if at_once > 0 else 0
    if not 0 < chunks * times <= _MOST_CHUNKS:
        return []
    each = -(-count // chunks)
    return [range(start, min(start + each, count)) for start in range(0, count, each)]


def _dense(extents: Sequence[int], size: int) -> tuple[int, ...]:
    """Strides of a dense tensor, in bytes."""
    return tuple(math.prod(extents[axis + 1 :]) * size for axis in range(len(extents)))


def _dense_step(extents: Sequence[int], steps: Sequence[int], size: int) -> int | None:
    """Find the stride of all axes taken as one; None if they do not lie in one another."""
    axes = [(extent, step) for extent, step in zip(extents, steps, strict=True) if extent > 1]
    if any(step != inner * extent for (_, step), (extent, inner) in pairwise(axes)):
        return None
    return axes[-1][1] if axes else size


def _lying(
    place: CardPlace, rows: int, columns: int, row: int, column: int | None, group: int, size: int
) -> _Lying | None:
    """Make a matrix, if it is dense along its rows or its columns. An axis of one entry has any stride."""
    if column is None:
        return None
    row = row if rows > 1 else columns * size if column == size else size
    column = column if columns > 1 else rows * size if row == size else size
    lies = (column == size and row >= columns * size) or (row == size and column >= rows * size)
    fits = group >= 0 and not any(step % size for step in (row, column, group))
    return _Lying(place, row, column, group) if lies and fits else None


def convolution_card_recipe(terms: CardTerms, directed: DirectedConvolution) -> CardRecipe | None:
    """Make the recipe by cuDNN, else by columns, with float32 operands in the same precision: float32 or tf32."""
    of, direction = directed
    precision = convolution_precision(terms.precision) if of.dtype == "float32" else IEEE
    by_cudnn = terms.cudnn and terms.cudnn.convolutions.recipe(
        of,
        direction,
        precision=precision,
        deterministic=terms.deterministic,
        workspace=terms.workspace,
        choices=terms.choices,
    )
    recipe = by_cudnn or column_recipe(of, direction, terms.workspace)
    if recipe is None:
        return None
    phases = (
        phase._replace(precision=precision) if isinstance(phase, ProductPhase) else phase for phase in recipe.phases
    )
    return recipe._replace(phases=tuple(phases), precision=precision)
