"""Random words by Threefry, from a key and counters: of whole arrays, and an element at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from engine.codegen.kernels.block_program import ROUNDS_OF_FOUR, WordPair, mixed
from engine.ir.attributes import Attr
from engine.ir.graph import Value, shaped
from engine.ir.op import Array, KernelCall, Namespace, NoGradient, ResultTypes, View
from engine.ir.run_context import DeviceFunction, RunContext, copying
from engine.ir.sample import Sample
from engine.ir.tensor_type import FLOAT32, UINT32, DType, Shape, TensorType
from engine.ops.common.batching import BatchedAsIs
from engine.ops.common.numerics import Source
from engine.ops.elementwise.base import Elementwise

#: integer operations for each pair of words: an addition, a rotation of three, an exclusive or; every fourth time, keys
PAIR_OPERATIONS: Final = ROUNDS_OF_FOUR * (4 * 5 + 3)
#: pairs that are made at a time: they stay in the cache
_PAIRS: Final = 1 << 13
#: on a card: launches are few
_PAIRS_ON_CARD: Final = 1 << 20
#: counters that fit one word, and that positive integers of 32 bits have
MOST_COUNTED: Final = 2**31
#: axes of extent 1 that what is drawn as words has behind those of the keys
_ALONG = 1


def draw(run: RunContext, keys: Array, out: Array, write_block: Callable[[WordPair, Array], None]) -> None:
    """Let `write_block` make each key's row of `out` from the pairs of the counters 0, 1, 2, ….

    keys are uint32 [n, 2], out [n, m, …]; element i of a row is that of the counter i, as words (i ≫ 32, i mod 2³²).
    `write_block` is given the words of a block, [rows, columns], and the block. Looks at the deadline before each.
    """
    n, m = out.shape[:2]
    size = _pairs_at_once(run)
    rows, columns = max(1, size // max(m, 1)), min(m, size)
    for row, column in run.through(_blocks(n, m, rows, columns)):
        block = out[row : row + rows, column : column + columns]
        place = run.xp.arange(column, column + block.shape[1], dtype="int64")
        counter = (place >> 32).astype("uint32"), place.astype("uint32")
        key = keys[row : row + rows, None]
        write_block(mixed((key[..., 0], key[..., 1]), counter), block)


def _blocks(n: int, m: int, rows: int, columns: int) -> Iterator[tuple[int, int]]:
    if n and m:
        yield from ((row, column) for row in range(0, n, rows) for column in range(0, m, columns))


@DeviceFunction
def _pairs_at_once(_: RunContext) -> int:
    return _PAIRS_ON_CARD


@_pairs_at_once.on("cpu")
def _pairs_in_cache(_: RunContext) -> int:
    return _PAIRS


def write_pairs(words: WordPair, out: Array) -> None:
    """Both words: uint32 [..., 2]."""
    out[..., 0], out[..., 1] = words


def write_bits(words: WordPair, out: Array) -> None:
    """32 bits: uint32."""
    out[...] = words[0] ^ words[1]


# The same bits as another dtype: what loops read and write, whose operands are floats, and what lies in memory.


def bitcast(x: Value, dtype: DType) -> Value:
    """The bits of x as elements of a dtype.

    Of a narrower one, there is one more axis behind the others, the lowest bits first; of a wider one, the last axis is
    one element of it. An output of a graph may not be a feed that is seen so.
    """
    return x.builder.emit(_BITCAST, (x,), {"dtype": dtype})


class Bitcast(BatchedAsIs, View):
    """x's bits as elements of another dtype, on machines whose lowest byte comes first."""

    name = "bitcast"
    internal = True
    reshapes = True
    samples: ClassVar[tuple[Sample, ...]] = ()
    operands: ClassVar[tuple[str, ...]] = ("x",)
    gradient: ClassVar[str] = "none: bits are constant"
    vjp = NoGradient("bits are constant")
    attrs: ClassVar[Mapping[str, Attr]] = {"dtype": Attr("dtype", doc="of the result")}

    def infer(self, x: TensorType, *, dtype: DType) -> ResultTypes:
        """x's shape, with one more axis, or one less, where the widths differ."""
        if dtype.itemsize > x.dtype.itemsize:
            return TensorType(x.shape[:-1], dtype)
        each = x.dtype.itemsize // dtype.itemsize
        return TensorType(x.shape if each == 1 else (*x.shape, each), dtype)

    def view(self, xp: Namespace, x: Array, *, dtype: DType) -> Array:
        """View a dense array as another dtype."""
        if dtype.itemsize == x.itemsize:
            return x.view(dtype)
        if dtype.itemsize > x.itemsize:
            return x.view(dtype).reshape(x.shape[:-1])
        return x.reshape(*x.shape, 1).view(dtype)

    def bind(self, run: RunContext, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]) -> KernelCall:
        """The copy, of what is not dense."""
        ((place, x),) = self.as_copies(run.xp, operands, out, attrs)
        return copying(run, x, place)

    def as_copies(
        self, xp: Namespace, operands: Sequence[Array], out: Any, attrs: Mapping[str, Any]
    ) -> Sequence[tuple[Array, Array]]:
        """One, of the bits as they are."""
        (x,) = operands
        return [(self.view(xp, out, dtype=x.dtype), x)]


_BITCAST = Bitcast()


# Random numbers an element at a time, so that loops have them: words and counters carried by floats, as bits.
#
# Operands and results of a loop are floats. Nothing here computes with such a float; a loop reads its bits, or writes
# them.


def can_count(shape: Shape) -> bool:
    """Whether one word counts so many elements, and there are any."""
    return 0 < math.prod(shape) <= MOST_COUNTED


def uniform_elements(keys: Value, shape: Shape, dtype: DType) -> Value:
    """Uniform numbers [..., *shape] of keys uint32 [..., 2]: what `random_uniform` draws, where it `can_count`."""
    return _drawn(_UNIFORM, keys, shape, np.dtype(dtype))


def bits_elements(keys: Value, shape: Shape) -> Value:
    """Bits uint32 [..., *shape] of keys uint32 [..., 2]: what `random_bits` draws, where it `can_count`."""
    return bitcast(_drawn(_BITS, keys, shape, FLOAT32), UINT32)


def split_elements(keys: Value, k: int) -> Value:
    """Keys [..., k, 2] of keys uint32 [..., 2]: what `random_split` gives, where it `can_count` 2 · k.

    Word by word, in one row, so that there is more of it than two words.
    """
    words = bitcast(_drawn(_WORDS, keys, (2 * k,), FLOAT32), UINT32)
    return shaped(words, (*words.shape[:-1], k, 2))


def folded_elements(keys: Value, numbers: Value) -> Value:
    """Keys [..., 2] of keys uint32 [..., 2] and integers [...]: what `random_fold_in` gives."""
    wide = numbers if numbers.dtype.itemsize >= FLOAT32.itemsize else numbers.cast(dtype=np.dtype("int32"))
    carried = bitcast(wide, FLOAT32)
    counters = shaped(carried, (*numbers.shape, 1)) if carried.ndim == numbers.ndim else _word(carried, 0, _ALONG)
    words = [_word(bitcast(keys, FLOAT32), index, _ALONG) for index in (0, 1)]
    return bitcast(keys.builder.emit(_WORDS, (*words, counters, _counted(keys, (2,), 1, FLOAT32)), {}), UINT32)


def _drawn(op: DrawnElement, keys: Value, shape: Shape, dtype: DType) -> Value:
    wide = keys
    if dtype != FLOAT32:
        # Words [..., 2] as the lower halves of wider ones, [..., 2, 2].
        wide = keys.reshape(shape=(*keys.shape, 1)).pad(pad_width=(*[0] * (2 * keys.ndim + 1), 1))
    carried = bitcast(wide, dtype)
    words = [_word(carried, index, len(shape)) for index in (0, 1)]
    columns = shape[-1] if shape else 1
    # the counters of the first elements of rows, and those within a row: small, but where there is a single row
    rows = _counted(keys, (*shape[:-1], 1)[: len(shape)], columns, dtype)
    return keys.builder.emit(op, (*words, rows, _counted(keys, (columns,) if shape else (), 1, dtype)), {})


def _word(carried: Value, index: int, ndim: int) -> Value:
    """One word of each, copied where elements of a loop would have to be read across the others."""
    word = carried.builder.emit(_WORD, (carried,), {"index": index, "ndim": ndim})
    return word.identity() if carried.ndim > 1 and not ndim else word


def _counted(beside: Value, shape: Shape, step: int, dtype: DType) -> Value:
    return beside.builder.emit(_COUNTERS, (), {"shape": shape, "step": step, "dtype": dtype})


class CarriedWord(BatchedAsIs, View):
    """One word of each key, or number, as its carrier: y = x[..., index], with `ndim` unit axes behind the others."""

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
        """The axes without the last, and unit axes."""
        return x.with_shape((*x.shape[:-1], *(1,) * ndim))

    def view(self, xp: Namespace, x: Array, *, index: int, ndim: int) -> Array:
        """View word `index` of each key, with `ndim` axes of extent 1 behind."""
        return x[(..., index, *[None] * ndim)]


class Counters(Source):
    """0, step, 2 · step, … in row-major order."""

    name = "counters"
    internal = True
    samples: ClassVar[tuple[Sample, ...]] = ()
    attrs: ClassVar[Mapping[str, Attr]] = {
        "shape": Attr("ints", doc="the result's shape"),
        "step": Attr("int", doc="from one to the next"),
        "dtype": Attr("dtype", doc="the float that carries them"),
    }

    def infer(self, *types: TensorType, shape: Shape, dtype: DType, **attrs: Any) -> ResultTypes:
        """Return the type that the attributes state."""
        return TensorType(shape, dtype)

    def forward(self, run: RunContext, *arrays: Array, out: Array, step: int, **attrs: Any) -> None:
        """Integers of the floats' width, in their place."""
        dtype = f"u{out.dtype.itemsize}"
        out.view(dtype).reshape(-1)[...] = run.xp.arange(0, step * out.size, step, dtype=dtype)

    def workspace(self, out: TensorType, *types: Any, **attrs: Any) -> int:
        """The range, before it is copied."""
        return out.nbytes


class DrawnElement(Elementwise):
    """Base: what is made of the pair of words for the sum of two counters, under both words of a key."""

    internal = True
    samples: ClassVar[tuple[Sample, ...]] = ()
    operands: ClassVar[tuple[str, ...]] = ("first", "second", "row", "column")
    gradient: ClassVar[str] = "none: keys are constant"
    partials = vjp = NoGradient("keys are constant")
    cost = PAIR_OPERATIONS

    def result_dtype(self, *dtypes: DType, **attrs: Any) -> DType:
        """The carriers' own."""
        return dtypes[0]


class UniformElement(DrawnElement):
    """A uniform number."""

    name = "uniform_element"
    scalar = staticmethod(lambda first, second, row, column: first.threefry_uniform(second, row, column))


class BitsElement(DrawnElement):
    """The exclusive or of the words, carried by a float32."""

    name = "bits_element"
    scalar = staticmethod(lambda first, second, row, column: first.threefry_bits(second, row, column))


class WordElement(DrawnElement):
    """The word `column` of those that counters from `row` on make, two each, carried by a float32."""

    name = "word_element"
    scalar = staticmethod(lambda first, second, row, column: first.threefry_word(second, row, column))


_WORD, _COUNTERS = CarriedWord(), Counters()
_UNIFORM, _BITS, _WORDS = UniformElement(), BitsElement(), WordElement()
