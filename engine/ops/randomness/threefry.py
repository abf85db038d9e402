"""Random words from Threefry, a function of a key and a counter: for whole arrays, and for single elements.

Threefry encrypts a 64-bit counter with a key of two words, and gives two words. There is no state: element i of a draw
is made from the counter i alone, so that a whole array, a block of it and a single element inside a fused kernel agree
bit for bit. J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from engine.codegen.kernels.block_program import ROUNDS_OF_FOUR, WordPair, threefry_2x32
from engine.ir.attributes import Attr
from engine.ir.graph import Value, shaped
from engine.ir.op import Array, KernelCall, Namespace, NoGradient, ResultTypes, View
from engine.ir.run_context import DeviceFunction, RunContext, copying
from engine.ir.sample import Sample
from engine.ir.tensor_type import FLOAT32, UINT32, DType, Shape, TensorType
from engine.ops.common.batching import BatchedAsIs
from engine.ops.common.numerics import NullaryOp
from engine.ops.elementwise.base import Elementwise

#: integer operations per pair of words: an addition, a rotation of three, an exclusive or; key words after every fourth
#: round
PAIR_OPERATIONS: Final = ROUNDS_OF_FOUR * (4 * 5 + 3)
#: pairs that are computed at a time on a CPU: they stay in the cache
_PAIRS_ON_CPU: Final = 1 << 13
#: on a GPU: enough that there are few launches
_PAIRS_ON_GPU: Final = 1 << 20
#: number of counters that fit into one word, as positive 32-bit integers
MOST_COUNTED: Final = 2**31
#: axes of extent 1 after those of the keys, for draws of words
_WORD_AXES = 1


def draw(run: RunContext, keys: Array, out: Array, write_block: Callable[[WordPair, Array], None]) -> None:
    """Have `write_block` fill each key's row of `out` from the pairs of the counters 0, 1, 2, ….

    keys are uint32 [n, 2], out is [n, m, …]. Element i of a row comes from the counter i, as words (i ≫ 32, i mod 2³²).
    `write_block` receives the words of a block, [rows, columns], and the block. The deadline is checked before each.
    """
    n, m = out.shape[:2]
    size = _pairs_at_once(run)
    rows, columns = max(1, size // max(m, 1)), min(m, size)
    for row, column in run.checked(_blocks(n, m, rows, columns)):
        block = out[row : row + rows, column : column + columns]
        indices = run.xp.arange(column, column + block.shape[1], dtype="int64")
        counter = (indices >> 32).astype("uint32"), indices.astype("uint32")
        key = keys[row : row + rows, None]
        write_block(threefry_2x32((key[..., 0], key[..., 1]), counter), block)


def _blocks(n: int, m: int, rows: int, columns: int) -> Iterator[tuple[int, int]]:
    if n and m:
        yield from ((row, column) for row in range(0, n, rows) for column in range(0, m, columns))


@DeviceFunction
def _pairs_at_once(_: RunContext) -> int:
    return _PAIRS_ON_GPU


@_pairs_at_once.on("cpu")
def _pairs_in_cache(_: RunContext) -> int:
    return _PAIRS_ON_CPU


def write_pairs(words: WordPair, out: Array) -> None:
    """Write both words: uint32 [..., 2]."""
    out[..., 0], out[..., 1] = words


def write_bits(words: WordPair, out: Array) -> None:
    """Write 32 bits: uint32."""
    out[...] = words[0] ^ words[1]


# Bits of one dtype as another: fused kernels read and write floats only, so words pass through them as bits of floats.


def bitcast(x: Value, dtype: DType) -> Value:
    """Append the bits of x as elements of a dtype.

    A narrower dtype adds a last axis, lowest bits first; for a wider one, the last axis becomes one element. A graph's
    output may not be such a view of a feed.
    """
    return x.builder.emit(_BITCAST, (x,), {"dtype": dtype})


class Bitcast(BatchedAsIs, View):
    """Bits of x as elements of another dtype, on little-endian machines."""

    name = "bitcast"
    internal = True
    reshapes = True
    samples: ClassVar[tuple[Sample, ...]] = ()
    operands: ClassVar[tuple[str, ...]] = ("x",)
    gradient: ClassVar[str] = "none: bits are constant"
    vjp = NoGradient("bits are constant")
    attrs: ClassVar[Mapping[str, Attr]] = {"dtype": Attr("dtype", doc="of the result")}

    def infer(self, x: TensorType, *, dtype: DType) -> ResultTypes:
        """Return x's shape, with one axis more or less if the widths differ."""
        if dtype.itemsize > x.dtype.itemsize:
            return TensorType(x.shape[:-1], dtype)
        ratio = x.dtype.itemsize // dtype.itemsize
        return TensorType(x.shape if ratio == 1 else (*x.shape, ratio), dtype)

    def view(self, xp: Namespace, x: Array, *, dtype: DType) -> Array:
        """View a dense array as another dtype."""
        if dtype.itemsize == x.itemsize:
            return x.view(dtype)
        if dtype.itemsize > x.itemsize:
            return x.view(dtype).reshape(x.shape[:-1])
        return x.reshape(*x.shape, 1).view(dtype)

    def bind(self, run: RunContext, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]) -> KernelCall:
        """Copy, since the operand is not dense."""
        ((destination, x),) = self.as_copies(run.xp, operands, out, attrs)
        return copying(run, x, destination)

    def as_copies(
        self, xp: Namespace, operands: Sequence[Array], out: Any, attrs: Mapping[str, Any]
    ) -> Sequence[tuple[Array, Array]]:
        """Return a single copy of the bits."""
        (x,) = operands
        return [(self.view(xp, out, dtype=x.dtype), x)]


_BITCAST = Bitcast()


# Random numbers one element at a time, for fused kernels. Their operands and results are floats, so that words and
# counters are carried as the bits of floats. No arithmetic is done on these floats: a kernel reads their bits, or
# writes them.


def can_count(shape: Shape) -> bool:
    """Whether a single word can count the elements of this shape, and there are any."""
    return 0 < math.prod(shape) <= MOST_COUNTED


def uniform_elements(keys: Value, shape: Shape, dtype: DType) -> Value:
    """Append uniform numbers [..., *shape] of keys uint32 [..., 2], as `random_uniform` does, if it `can_count`."""
    return _draw_elements(_UNIFORM, keys, shape, np.dtype(dtype))


def bits_elements(keys: Value, shape: Shape) -> Value:
    """Append bits uint32 [..., *shape] of keys uint32 [..., 2], as `random_bits` does, if it `can_count`."""
    return bitcast(_draw_elements(_BITS, keys, shape, FLOAT32), UINT32)


def split_elements(keys: Value, k: int) -> Value:
    """Append keys [..., k, 2] of keys uint32 [..., 2], as `random_split` does, if it `can_count` 2 · k.

    All words form one row, since rows of only two words would be short.
    """
    words = bitcast(_draw_elements(_WORDS, keys, (2 * k,), FLOAT32), UINT32)
    return shaped(words, (*words.shape[:-1], k, 2))


def fold_in_elements(keys: Value, numbers: Value) -> Value:
    """Append keys [..., 2] of keys uint32 [..., 2] and integers [...], as `random_fold_in` does."""
    wide = numbers if numbers.dtype.itemsize >= FLOAT32.itemsize else numbers.cast(dtype=np.dtype("int32"))
    carriers = bitcast(wide, FLOAT32)
    counters = (
        shaped(carriers, (*numbers.shape, 1))
        if carriers.ndim == numbers.ndim
        else _carried_word(carriers, 0, _WORD_AXES)
    )
    words = [_carried_word(bitcast(keys, FLOAT32), index, _WORD_AXES) for index in (0, 1)]
    return bitcast(keys.builder.emit(_WORDS, (*words, counters, _emit_counters(keys, (2,), 1, FLOAT32)), {}), UINT32)


def _draw_elements(op: DrawnElement, keys: Value, shape: Shape, dtype: DType) -> Value:
    words_in_dtype = keys
    if dtype != FLOAT32:
        # Put the words [..., 2] into the lower halves of wider ones, [..., 2, 2].
        words_in_dtype = keys.reshape(shape=(*keys.shape, 1)).pad(pad_width=(*[0] * (2 * keys.ndim + 1), 1))
    carriers = bitcast(words_in_dtype, dtype)
    words = [_carried_word(carriers, index, len(shape)) for index in (0, 1)]
    columns = shape[-1] if shape else 1
    # counters of the first elements of rows, and within a row; both small arrays unless there is a single row
    rows = _emit_counters(keys, (*shape[:-1], 1)[: len(shape)], columns, dtype)
    return keys.builder.emit(op, (*words, rows, _emit_counters(keys, (columns,) if shape else (), 1, dtype)), {})


def _carried_word(carriers: Value, index: int, ndim: int) -> Value:
    """Append one word of each key, copied if a kernel would have to read elements across the other words."""
    word = carriers.builder.emit(_WORD, (carriers,), {"index": index, "ndim": ndim})
    return word.identity() if carriers.ndim > 1 and not ndim else word


def _emit_counters(like: Value, shape: Shape, step: int, dtype: DType) -> Value:
    return like.builder.emit(_COUNTERS, (), {"shape": shape, "step": step, "dtype": dtype})


class CarriedWord(BatchedAsIs, View):
    """One word of each key or number, as its carrier: y = x[..., index], followed by `ndim` axes of extent 1."""

    name = "carried_word"
    internal = True
    samples: ClassVar[tuple[Sample, ...]] = ()
    operands: ClassVar[tuple[str, ...]] = ("x",)
    gradient: ClassVar[str] = "none: keys are constant"
    vjp = NoGradient("keys are constant")
    attrs: ClassVar[Mapping[str, Attr]] = {
        "index": Attr("int", doc="which word"),
        "ndim": Attr("int", doc="axes behind those of the keys"),
    }

    def infer(self, x: TensorType, *, index: int, ndim: int) -> ResultTypes:
        """Drop the last axis, and append axes of extent 1."""
        return x.with_shape((*x.shape[:-1], *(1,) * ndim))

    def view(self, xp: Namespace, x: Array, *, index: int, ndim: int) -> Array:
        """View word `index` of each key, followed by `ndim` axes of extent 1."""
        return x[(..., index, *[None] * ndim)]


class Counters(NullaryOp):
    """0, step, 2 · step, … in row-major order."""

    name = "counters"
    internal = True
    samples: ClassVar[tuple[Sample, ...]] = ()
    attrs: ClassVar[Mapping[str, Attr]] = {
        "shape": Attr("ints", doc="shape of the result"),
        "step": Attr("int", doc="from one to the next"),
        "dtype": Attr("dtype", doc="the float that carries them"),
    }

    def infer(self, *types: TensorType, shape: Shape, dtype: DType, **attrs: Any) -> ResultTypes:
        """Return the type that the attributes state."""
        return TensorType(shape, dtype)

    def forward(self, run: RunContext, *arrays: Array, out: Array, step: int, **attrs: Any) -> None:
        """Write integers of the floats' width in place of the floats."""
        dtype = f"u{out.dtype.itemsize}"
        out.view(dtype).reshape(-1)[...] = run.xp.arange(0, step * out.size, step, dtype=dtype)

    def workspace(self, out: TensorType, *types: Any, **attrs: Any) -> int:
        """Return the bytes of the range before it is copied."""
        return out.nbytes


class DrawnElement(Elementwise):
    """Base: an element made from the two words for the sum of two counters, under both words of a key."""

    internal = True
    samples: ClassVar[tuple[Sample, ...]] = ()
    operands: ClassVar[tuple[str, ...]] = ("first", "second", "row", "column")
    gradient: ClassVar[str] = "none: keys are constant"
    partials = vjp = NoGradient("keys are constant")
    cost = PAIR_OPERATIONS

    def result_dtype(self, *dtypes: DType, **attrs: Any) -> DType:
        """Return the dtype of the carriers."""
        return dtypes[0]


class UniformElement(DrawnElement):
    """Uniform number in [0, 1)."""

    name = "uniform_element"
    scalar = staticmethod(lambda first, second, row, column: first.threefry_uniform(second, row, column))


class BitsElement(DrawnElement):
    """Exclusive or of the two words, carried by a float32."""

    name = "bits_element"
    scalar = staticmethod(lambda first, second, row, column: first.threefry_bits(second, row, column))


class WordElement(DrawnElement):
    """Word number `column` of the words of the counters from `row` on, two per counter, carried by a float32."""

    name = "word_element"
    scalar = staticmethod(lambda first, second, row, column: first.threefry_word(second, row, column))


_WORD, _COUNTERS = CarriedWord(), Counters()
_UNIFORM, _BITS, _WORDS = UniformElement(), BitsElement(), WordElement()
