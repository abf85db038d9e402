"""Convolution on a GPU: with cuDNN if it has a plan, else with columns (im2col), our own kernels, and products.

A convolution, its adjoint and its gradient with respect to the kernel are each one product per group. Its factors are
two of the kernel, the narrow tensor (one position per window), and the columns of the wide tensor:

    narrow = kernel · columns,   columns = kernelᵀ · narrow,   kernel = narrow · columnsᵀ

The columns are computed in chunks that fit the workspace: some images at a time, or else parts of one image. If an
image has few positions, or there are groups, the positions of several images are concatenated on a line, so that one
product covers them all; the narrow tensor is then packed in the same way, before or after the product. If no product
can read or write a tensor with its layout, the tensor is copied through the workspace.

float16 products accumulate in float32. Further sums, of columns over their taps and of chunks, stay in float32, so that
each element is rounded once.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar, Final, NamedTuple

import numpy as np

from engine.codegen.microkernels.convolution import ConvolutionGeometry, DirectedConvolution, Direction, TensorLayout
from engine.codegen.microkernels.product import MatrixLayout, Product
from engine.cuda.card_recipe import (
    CardPlace,
    CardRecipe,
    Move,
    Phase,
    ProductPhase,
    card_text,
    compute_dtype,
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

#: positions of an image below which several images are multiplied at once: about the width of a product's tile
_FEW_POSITIONS: Final = 128
#: maximum number of chunks of a convolution
_MAX_CHUNKS: Final = 256
#: alignment of the workspace's parts in bytes
_ALIGNMENT: Final = 256


def column_recipe(geometry: ConvolutionGeometry, direction: Direction, workspace: int) -> CardRecipe | None:
    """Build the recipe of a convolution with columns, in at most `workspace` bytes.

    `forward` and `adjoint` compute y from x and the kernel, operands 0 and 1; `by_kernel` computes the kernel from x
    and y. Return None if the workspace is too small, if 64 bits are too few for offsets, or if a tensor is empty.
    """
    writer = _WRITERS[direction](geometry, workspace)
    if 0 in (*geometry.x.shape, *geometry.kernel.shape, *geometry.y.shape) or not writer.is_addressable:
        return None
    return writer.recipe()


class _Matrix(NamedTuple):
    """Matrix for each group: the place of the first, and strides in bytes along rows, columns and groups."""

    place: CardPlace
    row: int
    column: int
    group: int

    @property
    def transposed(self) -> _Matrix:
        return self._replace(row=self.column, column=self.row)

    def offset_by(self, nbytes: int) -> _Matrix:
        return self._replace(place=_offset(self.place, nbytes))


class _ImageSteps(NamedTuple):
    """Images that are multiplied one by one: their number, and the bytes from one image to the next in a, b and c."""

    images: int
    a: int
    b: int
    c: int


class _Memory:
    """Bump allocator for the workspace, which records its peak."""

    def __init__(self) -> None:
        self.used = self.peak = 0

    def reserve(self, nbytes: int) -> CardPlace:
        start = self.used
        self.used += _rounded(nbytes)
        self.peak = max(self.peak, self.used)
        return CardPlace("workspace", 0, start)


class _Columns(ABC):
    """Base of the three directions. A subclass appends the phases of a chunk."""

    #: whether y, not x, is the wide tensor
    writes_wide: ClassVar[bool] = False

    def __init__(self, geometry: ConvolutionGeometry, workspace: int) -> None:
        self.geometry, self.workspace = geometry, workspace
        wide, narrow = self.wide, self.narrow = (
            (geometry.y, geometry.x) if self.writes_wide else (geometry.x, geometry.y)
        )
        self.x, self.kernel, self.y = CardPlace("operand", 0), CardPlace("operand", 1), CardPlace("result", 0)
        self.size, self.computed = geometry.itemsize, np.dtype(compute_dtype(geometry.dtype)).itemsize
        self.images, self.groups = wide.shape[0], geometry.groups
        self.depth, self.features = geometry.kernel.shape[1], geometry.kernel.shape[0] // geometry.groups
        self.windows = WindowPlacing(
            geometry.kernel.shape[2:], narrow.shape[2:], geometry.stride, geometry.padding, geometry.dilation
        )
        self.taps, self.places = math.prod(geometry.kernel.shape[2:]), math.prod(narrow.shape[2:])
        self.lines = self.depth * self.taps
        self.memory, self.phases = _Memory(), list[Phase]()

    @property
    def is_addressable(self) -> bool:
        moves = (self._narrow_move(self.images), self._kernel_move())
        return columns_are_addressable(self.windows, self.wide) and all(move.is_addressable for move in moves)

    def recipe(self) -> CardRecipe | None:
        if not self.append_phases() or self.memory.peak > self.workspace:
            return None
        kernels = COLUMN_KERNELS + move_kernels(5, ("move", "round_off"))
        is_wide = columns_are_wide(self.windows, self.wide) or self._narrow_move(self.images).is_wide
        is_wide |= self._kernel_move().is_wide
        launches = any(not isinstance(phase, ProductPhase) for phase in self.phases)
        text = card_text(self.geometry.dtype, COLUMN_ENTRIES, kernels, is_wide=is_wide) if launches else ""
        return CardRecipe(tuple(self.phases), text, self.memory.peak)

    @abstractmethod
    def append_phases(self) -> bool:
        """Append the phases. Return whether there was enough memory."""

    def joins(self, images: int, *, is_usable: bool) -> bool:
        """Return whether images share one product; `is_usable`: products support the narrow tensor's layout."""
        return images > 1 and (self.groups > 1 or self.places < _FEW_POSITIONS or not is_usable)

    def at_once(self, piece_bytes: int) -> int:
        """Return how many pieces of `piece_bytes`, in a few chunks, still fit the workspace."""
        return max(0, self.workspace - self.memory.used - 4 * _ALIGNMENT) // piece_bytes

    def image_chunks(self, image_bytes: int) -> list[range]:
        """Split images, each of which takes `image_bytes`, into chunks that fit; none if not even one image fits."""
        return _chunks(self.images, min(self.images, self.at_once(image_bytes)))

    def kernel_matrix(self, place: CardPlace) -> _Matrix | None:
        """View the kernel as features by lines; None if products do not support its layout."""
        step = _dense_step(self.geometry.kernel.shape[1:], self.geometry.kernel.steps[1:], self.size)
        first = self.geometry.kernel.steps[0]
        return _matrix(place, self.features, self.lines, first, step, first * self.features, self.size)

    def dense_kernel(self, place: CardPlace, size: int) -> _Matrix:
        """View a dense kernel, with elements of `size` bytes, as features by lines."""
        return _Matrix(place, self.lines * size, size, self.features * self.lines * size)

    def channel_matrix(self, tensor: TensorLayout, place: CardPlace, channels: int) -> _Matrix | None:
        """View an image of a tensor as channels by positions; None if products do not support its layout."""
        if tensor.steps[0] < 0:
            return None
        step = _dense_step(tensor.shape[2:], tensor.steps[2:], self.size)
        first = tensor.steps[1]
        return _matrix(place, channels, math.prod(tensor.shape[2:]), first, step, first * channels, self.size)

    def wide_as_columns(self, place: CardPlace) -> _Matrix | None:
        """View an image of the wide tensor as columns if it equals them: for adjacent 1 × 1 windows."""
        windows = zip(*self.windows, self.wide.shape[2:], strict=True)
        if any(
            taps > 1 or padding or (stride > 1 and n > 1) or n != extent
            for taps, n, stride, padding, _, extent in windows
        ):
            return None
        return self.channel_matrix(self.wide, place, self.depth)

    def line_matrix(self, place: CardPlace, size: int, images: int, places: int, rows: int) -> _Matrix:
        """View lines for each group; each line is the concatenation of several images' positions."""
        return _Matrix(place, images * places * size, size, rows * images * places * size)

    def lay(self, x: CardPlace, images: range, first: int, places: int, *, joined: bool) -> CardPlace:
        """Write the columns of some images, of all groups, and return their place."""
        lines = self.groups * self.lines
        columns = self.memory.reserve(lines * len(images) * places * self.size)
        steps = (len(images) * places, places) if joined else (places, lines * places)
        lines_of_chunk = ColumnLines(len(images), self.groups * self.depth, first, places, *steps)
        start = _offset(x, images.start * self.wide.steps[0])
        self.phases.append(lay_columns(self.windows, self.wide, lines_of_chunk, start, columns))
        return columns

    def multiply(
        self,
        sizes: tuple[int, int, int],
        a: _Matrix,
        b: _Matrix,
        c: _Matrix,
        several: _ImageSteps | None = None,
        groups: int = 0,
        *,
        adds: bool = False,
        widens: bool = False,
    ) -> None:
        """Append c = a · b with `sizes` rows, terms and columns, for each group, and for several images."""
        count, *image_steps = several or _ImageSteps(1, 0, 0, 0)
        groups = groups or self.groups
        axes = [(n, each) for n, each in ((count, image_steps), (groups, [m.group for m in (a, b, c)])) if n > 1]
        layouts = [MatrixLayout(m.row, m.column, tuple(each[k] for _, each in axes)) for k, m in enumerate((a, b, c))]
        product = Product(self.geometry.dtype, self.size, tuple(n for n, _ in axes), *sizes, *layouts)
        self.phases.append(ProductPhase(product, a.place, b.place, c.place, adds, widens=widens))

    def pack(self, kernel: str, move: Move, read: CardPlace, written: CardPlace) -> None:
        self.phases.append(move.phase(kernel, COLUMN_ENTRIES, read, written))

    def packed_narrow(self, place: CardPlace, images: range) -> CardPlace:
        move = self._narrow_move(len(images))
        packed = self.memory.reserve(move.items * self.size)
        self.pack("move", move, _offset(place, images.start * self.narrow.steps[0]), packed)
        return packed

    def unpack_narrow(self, lines: CardPlace, place: CardPlace, images: range) -> None:
        move = self._narrow_move(len(images))
        back = Move(move.extents, move.target, move.source)
        self.pack("move", back, lines, _offset(place, images.start * self.narrow.steps[0]))

    def packed_kernel(self, place: CardPlace) -> _Matrix:
        """View the kernel, or a dense copy of it if products do not support its layout."""
        matrix = self.kernel_matrix(place)
        if matrix is None:
            move = self._kernel_move()
            packed = self.memory.reserve(move.items * self.size)
            self.pack("move", move, place, packed)
            matrix = self.dense_kernel(packed, self.size)
        return matrix

    def unpack_kernel(self, kernel: str, read: CardPlace, place: CardPlace, size: int) -> None:
        """Copy a dense kernel, with elements of `size` bytes, to its place."""
        move = self._kernel_move()
        self.pack(kernel, Move(move.extents, _dense(move.extents, size), move.source), read, place)

    def _narrow_move(self, images: int) -> Move:
        _, channels, *positions = self.narrow.shape
        image, channel, *steps = self.narrow.steps
        extents = (channels, images, *positions)
        return Move(extents, (channel, image, *steps), _dense(extents, self.size))

    def _kernel_move(self) -> Move:
        return Move(
            self.geometry.kernel.shape, self.geometry.kernel.steps, _dense(self.geometry.kernel.shape, self.size)
        )


class _Forward(_Columns):
    """narrow = kernel · columns."""

    def append_phases(self) -> bool:
        kernel, y = self.packed_kernel(self.kernel), self.channel_matrix(self.narrow, self.y, self.features)
        columns = self.wide_as_columns(self.x)
        if columns and y and not (self.images > 1 and self.places < _FEW_POSITIONS):
            several = _ImageSteps(self.images, 0, self.wide.steps[0], self.narrow.steps[0])
            self.multiply((self.features, self.lines, self.places), kernel, columns, y, several)
            return True
        is_direct = y is not None and not self.joins(self.images, is_usable=True)
        image_bytes = (self.groups * self.lines + (0 if is_direct else self.narrow.shape[1])) * self.places * self.size
        chunks = self.image_chunks(image_bytes)
        for images in chunks:
            self._images(kernel, images, y)
        if chunks or y is None:
            return bool(chunks)
        return self._by_places(kernel, y)

    def _images(self, kernel: _Matrix, images: range, y: _Matrix | None) -> None:
        start, count = self.memory.used, len(images)
        joined = self.joins(count, is_usable=y is not None)
        columns = self.lay(self.x, images, 0, self.places, joined=joined)
        if y is not None and not joined:
            step = self.groups * self.lines * self.places * self.size
            b = self.line_matrix(columns, self.size, 1, self.places, self.lines)
            c = y.offset_by(images.start * self.narrow.steps[0])
            several = _ImageSteps(count, 0, step, self.narrow.steps[0])
            self.multiply((self.features, self.lines, self.places), kernel, b, c, several)
        else:
            result = self.memory.reserve(self.narrow.shape[1] * count * self.places * self.size)
            b, c = (
                self.line_matrix(place, self.size, count, self.places, rows)
                for place, rows in ((columns, self.lines), (result, self.features))
            )
            self.multiply((self.features, self.lines, count * self.places), kernel, b, c)
            self.unpack_narrow(result, self.y, images)
        self.memory.used = start

    def _by_places(self, kernel: _Matrix, y: _Matrix) -> bool:
        chunks = _chunks(self.places, self.at_once(self.groups * self.lines * self.size), self.images)
        start = self.memory.used
        for image in range(self.images if chunks else 0):
            for places in chunks:
                columns = self.lay(self.x, range(image, image + 1), places.start, len(places), joined=False)
                b = self.line_matrix(columns, self.size, 1, len(places), self.lines)
                c = y.offset_by(image * self.narrow.steps[0] + places.start * y.column)
                self.multiply((self.features, self.lines, len(places)), kernel, b, c)
                self.memory.used = start
        return bool(chunks)


class _Adjoint(_Columns):
    """columns = kernelᵀ · narrow, gathered into the wide tensor."""

    writes_wide = True

    def append_phases(self) -> bool:
        kernel, x = self.packed_kernel(self.kernel).transposed, self.channel_matrix(self.narrow, self.x, self.features)
        wide = self.wide_as_columns(self.y)
        if wide and x and not (self.images > 1 and self.places < _FEW_POSITIONS):
            several = _ImageSteps(self.images, 0, self.narrow.steps[0], self.wide.steps[0])
            self.multiply((self.lines, self.features, self.places), kernel, x, wide, several)
            return True
        is_direct = x is not None and not self.joins(self.images, is_usable=True)
        packed = 0 if is_direct else self.narrow.shape[1] * self.places * self.size
        chunks = self.image_chunks(self.groups * self.lines * self.places * self.computed + packed)
        for images in chunks:
            self._images(kernel, images, x)
        return bool(chunks) or self._by_channels(kernel, x)

    def _images(self, kernel: _Matrix, images: range, x: _Matrix | None) -> None:
        start, count = self.memory.used, len(images)
        joined = self.joins(count, is_usable=x is not None)
        b = self._narrow(images, x, joined=joined)
        columns = self.memory.reserve(self.groups * self.lines * count * self.places * self.computed)
        together = count if joined else 1
        c = self.line_matrix(columns, self.computed, together, self.places, self.lines)
        step = 0 if joined else self.groups * self.lines * self.places
        several = _ImageSteps(1 if joined else count, 0, self.narrow.steps[0], step * self.computed)
        sizes = self.lines, self.features, together * self.places
        self.multiply(sizes, kernel, b, c, several, widens=self.computed != self.size)
        steps = (count * self.places, self.places) if joined else (self.places, step)
        lines = ColumnLines(count, self.groups * self.depth, 0, self.places, *steps)
        self._gather(lines, columns, images.start * self.wide.steps[0])
        self.memory.used = start

    def _narrow(self, images: range, x: _Matrix | None, *, joined: bool) -> _Matrix:
        if x is not None and not joined:
            return x.offset_by(images.start * self.narrow.steps[0])
        return self.line_matrix(self.packed_narrow(self.x, images), self.size, len(images), self.places, self.features)

    def _by_channels(self, kernel: _Matrix, x: _Matrix | None) -> bool:
        """Append phases for some channels of one group of one image at a time."""
        channel_bytes = self.taps * self.places * self.computed
        packed = 0 if x is not None else self.narrow.shape[1] * self.places * self.size
        at_once = min(self.depth, max(0, self.at_once(1) - packed) // channel_bytes)
        chunks = _chunks(self.depth, at_once, self.images * self.groups)
        start = self.memory.used
        for image in range(self.images if chunks else 0):
            b = self._narrow(range(image, image + 1), x, joined=False)
            for group in range(self.groups):
                for channels in chunks:
                    self._channels(kernel, b, image, group, channels)
            self.memory.used = start
        return bool(chunks)

    def _channels(self, kernel: _Matrix, b: _Matrix, image: int, group: int, channels: range) -> None:
        start, lines = self.memory.used, len(channels) * self.taps
        a = kernel.offset_by(group * kernel.group + channels.start * self.taps * kernel.row)
        columns = self.memory.reserve(lines * self.places * self.computed)
        c = self.line_matrix(columns, self.computed, 1, self.places, lines)
        sizes = lines, self.features, self.places
        self.multiply(sizes, a, b.offset_by(group * b.group), c, groups=1, widens=self.computed != self.size)
        channel = group * self.depth + channels.start
        chunk = ColumnLines(1, len(channels), 0, self.places, self.places, 0)
        self._gather(chunk, columns, image * self.wide.steps[0] + channel * self.wide.steps[1])
        self.memory.used = start

    def _gather(self, lines: ColumnLines, columns: CardPlace, offset: int) -> None:
        self.phases.append(gather_columns(self.windows, self.wide, lines, columns, _offset(self.y, offset)))


class _ByKernel(_Columns):
    """kernel = narrow · columnsᵀ, summed over images: each chunk is added to the previous ones."""

    def __init__(self, geometry: ConvolutionGeometry, workspace: int) -> None:
        super().__init__(geometry, workspace)
        self.x, self.y, self.kernel = CardPlace("operand", 0), CardPlace("operand", 1), CardPlace("result", 0)

    def append_phases(self) -> bool:
        y, columns = self.channel_matrix(self.narrow, self.y, self.features), self.wide_as_columns(self.x)
        if columns and y and self.images == 1:
            self._prepare(1)
            self._multiply(self.places, y, columns.transposed)
            return True
        packed = 0 if y is not None and self.images == 1 else self.narrow.shape[1]
        image_bytes = (self.groups * self.lines + packed) * self.places * self.size
        chunks = _chunks(self.images, min(self.images, self._chunk_bytes() // image_bytes))
        if not chunks and y is not None:
            return self._by_places(y)
        self._prepare(len(chunks))
        for images in chunks:
            self._images(images, y)
        return bool(chunks)

    def _chunk_bytes(self) -> int:
        """Return the bytes for chunks, besides those of the sums."""
        return self.at_once(1) - _rounded(math.prod(self.geometry.kernel.shape) * self.computed)

    def _prepare(self, chunks: int) -> None:
        """Choose where the chunks are added up: in the kernel itself, or in the workspace, in at least float32."""
        self.chunks = self.remaining = chunks
        self.widens = self.computed != self.size and chunks > 1
        matrix = None if self.widens else self.kernel_matrix(self.kernel)
        self.is_direct = matrix is not None
        size = self.computed if self.widens else self.size
        self.sums = matrix or self.dense_kernel(self.memory.reserve(math.prod(self.geometry.kernel.shape) * size), size)
        self.base = self.memory.used

    def _images(self, images: range, y: _Matrix | None) -> None:
        count, start = len(images), images.start * self.narrow.steps[0]
        if y is not None and count == 1:
            a = y.offset_by(start)
        else:
            packed = self.packed_narrow(self.y, images)
            a = self.line_matrix(packed, self.size, count, self.places, self.features)
        columns = self.lay(self.x, images, 0, self.places, joined=True)
        b = self.line_matrix(columns, self.size, count, self.places, self.lines).transposed
        self._multiply(count * self.places, a, b)

    def _by_places(self, y: _Matrix) -> bool:
        position_bytes = self.groups * self.lines * self.size
        chunks = _chunks(self.places, min(self.places, self._chunk_bytes() // position_bytes), self.images)
        self._prepare(self.images * len(chunks))
        for image in range(self.images if chunks else 0):
            for places in chunks:
                columns = self.lay(self.x, range(image, image + 1), places.start, len(places), joined=False)
                a = y.offset_by(image * self.narrow.steps[0] + places.start * y.column)
                b = self.line_matrix(columns, self.size, 1, len(places), self.lines).transposed
                self._multiply(len(places), a, b)
        return bool(chunks)

    def _multiply(self, inner: int, a: _Matrix, b: _Matrix) -> None:
        """Multiply one chunk, and add it to the previous ones."""
        adds = self.remaining < self.chunks
        self.multiply((self.features, inner, self.lines), a, b, self.sums, adds=adds, widens=self.widens)
        self.remaining -= 1
        if not self.remaining and not self.is_direct:
            size = self.computed if self.widens else self.size
            self.unpack_kernel("round_off" if self.widens else "move", self.sums.place, self.kernel, size)
        self.memory.used = self.base


_WRITERS: Final[dict[Direction, type[_Forward | _Adjoint | _ByKernel]]] = {
    "forward": _Forward,
    "adjoint": _Adjoint,
    "by_kernel": _ByKernel,
}


def _offset(place: CardPlace, nbytes: int) -> CardPlace:
    return place._replace(offset=place.offset + nbytes)


def _rounded(nbytes: int) -> int:
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


def _chunks(count: int, at_once: int, times: int = 1) -> list[range]:
    """Split into about equal ranges of at most `at_once`.

    Return none if `at_once` is 0, or if `times` as many ranges would be too many.
    """
    chunks = -(-count // at_once) if at_once > 0 else 0
    if not 0 < chunks * times <= _MAX_CHUNKS:
        return []
    length = -(-count // chunks)
    return [range(start, min(start + length, count)) for start in range(0, count, length)]


def _dense(extents: Sequence[int], size: int) -> tuple[int, ...]:
    """Return the strides of a dense tensor, in bytes."""
    return tuple(math.prod(extents[axis + 1 :]) * size for axis in range(len(extents)))


def _dense_step(extents: Sequence[int], steps: Sequence[int], size: int) -> int | None:
    """Return the stride of all axes merged into one; None if they cannot be merged."""
    axes = [(extent, step) for extent, step in zip(extents, steps, strict=True) if extent > 1]
    if any(step != inner * extent for (_, step), (extent, inner) in pairwise(axes)):
        return None
    return axes[-1][1] if axes else size


def _matrix(
    place: CardPlace, rows: int, columns: int, row: int, column: int | None, group: int, size: int
) -> _Matrix | None:
    """Return a matrix if its rows or its columns are contiguous. An axis of extent 1 may have any stride."""
    if column is None:
        return None
    row = row if rows > 1 else columns * size if column == size else size
    column = column if columns > 1 else rows * size if row == size else size
    is_contiguous = (column == size and row >= columns * size) or (row == size and column >= rows * size)
    is_aligned = group >= 0 and not any(step % size for step in (row, column, group))
    return _Matrix(place, row, column, group) if is_contiguous and is_aligned else None


def convolution_card_recipe(terms: CardTerms, directed: DirectedConvolution) -> CardRecipe | None:
    """Build the recipe with cuDNN, else with columns. Both read float32 operands alike, as float32 or tf32."""
    geometry, direction = directed
    precision = convolution_precision(terms.precision) if geometry.dtype == "float32" else IEEE
    by_cudnn = terms.cudnn and terms.cudnn.convolutions.recipe(
        geometry,
        direction,
        precision=precision,
        deterministic=terms.deterministic,
        workspace=terms.workspace,
        choices=terms.choices,
    )
    recipe = by_cudnn or column_recipe(geometry, direction, terms.workspace)
    if recipe is None:
        return None
    phases = (
        phase._replace(precision=precision) if isinstance(phase, ProductPhase) else phase for phase in recipe.phases
    )
    return recipe._replace(phases=tuple(phases), precision=precision)
