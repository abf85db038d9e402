"""Random numbers: pure functions of a key. A key gives the same numbers always and everywhere, also in a batch.

Keys are two words of 32 bits. New keys are split off, or folded in from numbers. Draws match `jax.random` bit for bit,
for a JAX with `jax_threefry_partitionable`, its default.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

import numpy as np

from engine.codegen.kernels.block_program import WordPair, threefry_2x32, wide_bits, write_uniform
from engine.ir.attributes import Attr
from engine.ir.graph import Value
from engine.ir.op import Array, Composite, Definition, NoGradient, Op, ResultTypes, wrong_dtype
from engine.ir.run_context import RunContext
from engine.ir.sample import Ints, Real, Sample, Truth, Words
from engine.ir.tensor_type import INT64, INTEGERS, UINT32, DType, HostArray, Shape, TensorType, normalise_axis
from engine.ops.common import batching
from engine.ops.common.numerics import require_shape
from engine.ops.index.slice import slice_axis
from engine.ops.randomness import threefry
from engine.ops.randomness.threefry import (
    bitcast,
    bits_elements,
    can_count,
    fold_in_elements,
    split_elements,
    uniform_elements,
)
from engine.ops.reduce.extremes import require_elements

#: first opset with these ops
_SINCE = 2
_KEY = ("uint32",)
_FLOATS = ("float32", "float64")
_SHAPE = Attr("ints", doc="shape of the result", minimum=0)
_DTYPE = Attr("dtype", doc="dtype of the result", choices=_FLOATS)
_BY_KEYS = NoGradient("keys are constant")
#: numbers of short rows sorted in one call: they stay in the cache
_SORTED_NUMBERS = 1 << 13

_JAX = "jax.random of JAX 0.10.2"
_RANDOM123 = "the known answers of Random123"
#: reasons for the shapes of operands, for messages
_SHAPE_REASONS = {"key": "a key is two words", "seed": "a seed is one number", "number": "it is one number"}


def _words(*words: int) -> HostArray:
    return np.array(words, UINT32)


#: key of the seed 42
_42 = _words(0, 42)


def _three_numbers(*numbers: float) -> tuple[Truth]:
    """Build the truth of three numbers that JAX draws."""
    return (Truth(operands=(_42,), attrs={"shape": [3], "dtype": "float64"}, value=[*numbers], source=_JAX),)


@cache
def _batched_op(op: type[RandomOp], batches: int) -> RandomOp:
    """Return the op for operands with `batches` leading batch axes."""
    return op(batches)


class RandomOp(Op):
    """Base of ops on keys or seeds. In a batch, each key or seed is used on its own."""

    section = "draws"
    gradient: ClassVar[str] = "none: keys are constant"
    since: ClassVar[int] = _SINCE
    vjp = _BY_KEYS
    dtypes: ClassVar[tuple[str, ...]] = _KEY
    operands: ClassVar[tuple[str, ...]] = ("key",)

    def __init__(self, batches: int = 0) -> None:
        """Make the op for `batches` leading batch axes of each operand; with any, it is internal."""
        self.batches = batches
        self.internal = batches > 0  # type: ignore[misc]  # set on the instance, though a class attribute for all other ops

    def batch(self, mapped: Sequence[bool], *operands: Value, **attrs: Any) -> Value:
        """Emit the op for one more leading axis of all operands."""
        expanded = batching.expand(mapped, operands)
        return expanded[0].builder.emit(_batched_op(type(self), self.batches + 1), expanded, attrs)

    def lead(self, type: TensorType, shape: Shape, i: int, name: str) -> Shape:
        """Return the batch axes of operand `i`, the rest of which must have this shape. Raises ShapeMismatch."""
        require_shape(type.with_shape(type.shape[self.batches :]), shape, i, name, _SHAPE_REASONS[name])
        return type.shape[: self.batches]


class WithKey(Definition):
    """Base of ops on a key and another operand of other dtypes."""

    section = "draws"
    #: dtypes of the operand beside the key
    others: ClassVar[tuple[str, ...]]

    def check_operands(self, types: Sequence[ResultTypes]) -> None:
        """Check each operand against its own dtypes. Raises OperandCount, DtypeMismatch."""
        self.check_count(len(types))
        for i, (type, dtypes) in enumerate(zip(types, (_KEY, self.others), strict=True)):
            if isinstance(type, TensorType) and type.dtype.name not in dtypes:
                raise wrong_dtype(self.operand_name(i), i, dtypes, type)


class RandomKey(RandomOp):
    """key = (seed ≫ 32, seed mod 2³²): uint32 [2] from an int64 []. Equals `jax.random.key_data(jax.random.key(seed))`.

    PyTorch's `manual_seed` starts a different sequence, and has state.
    """

    name = "random_key"
    operands = ("seed",)
    dtypes = ("int64",)
    samples = (Sample(Ints(low=0, high=2**40)),)
    truths = (
        Truth(operands=(-7,), value=_words(4294967295, 4294967289), source=_JAX),
        Truth(operands=(2**33 + 5,), value=_words(2, 5), source=_JAX),
    )

    def infer(self, seed: TensorType) -> ResultTypes:
        """Return the type of two words. Raises ShapeMismatch."""
        return TensorType((*self.lead(seed, (), 0, "seed"), 2), UINT32)

    def forward(self, run: RunContext, seed: Array, *, out: Array) -> None:
        """Write the upper word, sign-extended for a negative seed, and the lower one."""
        out[..., 0] = seed >> 32
        out[..., 1] = seed

    def workspace(self, out: ResultTypes, seed: TensorType) -> int:
        """Return the bytes of the shifted upper words."""
        return seed.nbytes

    def as_elementwise(self, seed: Value) -> Value:
        """Swap the two words of the seed: in memory the lower one comes first."""
        words = bitcast(seed, UINT32)
        lower, upper = (slice_axis(words, words.ndim - 1, i, i + 1) for i in range(2))
        return upper.cat(lower, axis=words.ndim - 1)


class Drawn(RandomOp):
    """Base: one element for each counter, made from the two words of the key and the counter."""

    write_block: ClassVar[Any]
    #: extents of each counter's result
    width: ClassVar[Shape] = ()

    def drawn_shape(self, **attrs: Any) -> Shape:
        """Return the shape of the draw from one key."""
        shape: Shape = attrs["shape"]
        return shape

    def drawn_dtype(self, **attrs: Any) -> DType:
        """Return the dtype of the draw."""
        dtype: DType = attrs["dtype"]
        return dtype

    def infer(self, key: TensorType, **attrs: Any) -> ResultTypes:
        """Return the type of the requested shape. Raises ShapeMismatch."""
        lead = self.lead(key, (2,), 0, "key")
        return TensorType((*lead, *self.drawn_shape(**attrs), *self.width), self.drawn_dtype(**attrs))

    def forward(self, run: RunContext, key: Array, *, out: Array, **attrs: Any) -> None:
        """Draw block by block."""
        keys = key.reshape(-1, 2)
        count = math.prod(self.drawn_shape(**attrs))
        threefry.draw(run, keys, out.reshape(len(keys), count, *self.width), type(self).write_block)

    def flops(self, out: TensorType, key: TensorType, **attrs: Any) -> int:
        """Return the operations of the rounds for each pair."""
        return threefry.PAIR_OPERATIONS * (out.size // math.prod(self.width))


class RandomSplit(Drawn):
    """keys = k new keys [k, 2], each with its own sequence: the words of counters 0 … k−1. Equals `jax.random.split`.

    PyTorch has no keys; use one `Generator` for each.
    """

    name = "random_split"
    attrs: ClassVar[Mapping[str, Attr]] = {"k": Attr("int", doc="number of keys", minimum=0)}
    samples = (Sample(Words(2), k=3), Sample(Words(2), k=0))
    truths = (
        Truth(
            operands=(_42,),
            attrs={"k": 3},
            value=np.stack(
                [_words(1832780943, 270669613), _words(64467757, 2916123636), _words(2465931498, 255383827)]
            ),
            source=_JAX,
        ),
    )
    write_block = staticmethod(threefry.write_pairs)
    width = (2,)

    def drawn_shape(self, **attrs: Any) -> Shape:
        """Return [k]."""
        return (attrs["k"],)

    def drawn_dtype(self, **attrs: Any) -> DType:
        """Return the dtype of words."""
        return UINT32

    def as_elementwise(self, key: Value, *, k: int) -> Value | None:
        """Draw element by element, if one word can count the elements."""
        return split_elements(key, k) if can_count((k, 2)) else None


class RandomBits(Drawn):
    """y = 32 random bits per element: the exclusive or of both words of counter i, row-major. Equals `jax.random.bits`.

    PyTorch's `randint` uses a different generator.
    """

    name = "random_bits"
    attrs: ClassVar[Mapping[str, Attr]] = {
        "shape": _SHAPE,
        "dtype": Attr("dtype", UINT32, "dtype of the result", choices=_KEY),
    }
    samples = (
        Sample(Words(2), shape=[2, 3], dtype="uint32"),
        Sample(Words(2), shape=[]),
        Sample(Words(2), shape=[0, 2]),
    )
    truths = (
        Truth(
            operands=(_42,),
            attrs={"shape": [2, 3]},
            value=np.stack([_words(2098992034, 2919706841, 2646866425), _words(2409546199, 1935504149, 2516274904)]),
            source=_JAX,
        ),
        Truth(
            operands=(_words(0, 0),), attrs={"shape": []}, value=_words(0x6B200159 ^ 0x99BA4EFE)[0], source=_RANDOM123
        ),
    )
    write_block = staticmethod(threefry.write_bits)

    def as_elementwise(self, key: Value, *, shape: Shape, dtype: DType) -> Value | None:
        """Draw element by element, if one word can count the elements."""
        return bits_elements(key, shape) if can_count(shape) else None


class RandomUniform(Drawn):
    """y = uniform numbers in [0, 1): 23 random bits (for float64, 52) over 2²³ (2⁵²). Equals `jax.random.uniform`.

    PyTorch's `rand` uses a different generator.
    """

    name = "random_uniform"
    attrs: ClassVar[Mapping[str, Attr]] = {"shape": _SHAPE, "dtype": _DTYPE}
    samples = (
        Sample(Words(2), shape=[2, 3], dtype="float64"),
        Sample(Words(2), shape=[], dtype="float32"),
        Sample(Words(2), shape=[3, 0], dtype="float64"),
    )
    truths = _three_numbers(0.4267275666499091, 0.015010069515314584, 0.5741444178995352)
    write_block = staticmethod(write_uniform)

    def as_elementwise(self, key: Value, *, shape: Shape, dtype: DType) -> Value | None:
        """Draw element by element, if one word can count the elements."""
        return uniform_elements(key, shape, dtype) if can_count(shape) else None


class RandomPermutation(RandomOp):
    """y = 0 … k−1 in random order, int64 [k]: a stable argsort of k random unsigned 64-bit numbers.

    `jax.random.permutation` uses a different algorithm, and PyTorch's `randperm` a different generator.
    """

    name = "random_permutation"
    is_captured = False
    attrs: ClassVar[Mapping[str, Attr]] = {"k": Attr("int", doc="number of elements", minimum=0)}
    samples = (Sample(Words(2), k=5), Sample(Words(2), k=0))
    truths = (
        Truth(operands=(_42,), attrs={"k": 6}, value=[1, 0, 2, 5, 4, 3], source="a stable argsort of JAX's 64 bits"),
    )

    def infer(self, key: TensorType, *, k: int) -> ResultTypes:
        """Return the type int64 [k]. Raises ShapeMismatch."""
        return TensorType((*self.lead(key, (2,), 0, "key"), k), INT64)

    def forward(self, run: RunContext, key: Array, *, out: Array, k: int) -> None:
        """Draw words into the result's memory, and sort by them."""
        keys = key.reshape(-1, 2)
        rows = out.reshape(len(keys), k).view("uint64")
        threefry.draw(run, keys, rows, _write_wide)
        step = _rows_at_once(k)
        for start in run.checked(range(0, len(rows) if k else 0, step)):
            chunk = rows[start : start + step]
            chunk[...] = run.xp.argsort(chunk, axis=-1, kind="stable")

    def flops(self, out: TensorType, key: TensorType, *, k: int) -> int:
        """Return the operations of the draws, and log₂ k comparisons for each number."""
        return out.size * (threefry.PAIR_OPERATIONS + max(k - 1, 0).bit_length())

    def workspace(self, out: TensorType, key: TensorType, *, k: int) -> int:
        """Return the bytes of the order of rows sorted at once, and of half a row for merging."""
        return 8 * min(out.size, k * _rows_at_once(k)) + 8 * (k // 2)


def _rows_at_once(k: int) -> int:
    """Return how many rows of k numbers one call sorts: enough short ones that the call's overhead is small."""
    return max(1, _SORTED_NUMBERS // max(k, 1))


def _write_wide(words: WordPair, out: Array) -> None:
    out[...] = wide_bits(words)


class RandomFoldIn(WithKey, RandomOp):
    """key = a new key [2] for each number: the words of counter (0, number mod 2³²). Equals `jax.random.fold_in`.

    PyTorch has no keys; use one `Generator` for each.
    """

    name = "random_fold_in"
    operands = ("key", "number")
    dtypes = others = INTEGERS
    samples = (Sample(Words(2), Ints(low=0, high=9)), Sample(Words(2), Ints(low=-3, high=0)))
    truths = (
        Truth(operands=(_42, 7), value=_words(2547012911, 1371500959), source=_JAX),
        Truth(operands=(_42, -3), value=_words(3870250634, 4275682102), source=_JAX),
    )

    def infer(self, key: TensorType, number: TensorType) -> ResultTypes:
        """Return the type of a key. Raises ShapeMismatch."""
        self.lead(number, (), 1, "number")
        return TensorType((*self.lead(key, (2,), 0, "key"), 2), UINT32)

    def forward(self, run: RunContext, key: Array, number: Array, *, out: Array) -> None:
        """Compute one pair for each key."""
        keys, low = key.reshape(-1, 2), number.reshape(-1).astype("uint32")
        words = threefry_2x32((keys[:, 0], keys[:, 1]), (run.xp.zeros_like(low), low))
        threefry.write_pairs(words, out.reshape(-1, 2))

    def flops(self, out: ResultTypes, *types: TensorType) -> int:
        """Return the operations of the rounds for each pair."""
        return threefry.PAIR_OPERATIONS * types[1].size

    def workspace(self, out: ResultTypes, key: TensorType, number: TensorType) -> int:
        """Return the bytes of the counters' words, the key's third word, the mixed pair, and a rotated word."""
        return 6 * 4 * number.size

    def as_elementwise(self, key: Value, number: Value) -> Value | None:
        """Fold element by element, unless there are none."""
        return fold_in_elements(key, number) if number.type.size else None


class RandomFormula(Composite):
    """Base of distributions that are formulas of uniform numbers."""

    section = "draws"
    operands: ClassVar[tuple[str, ...]] = ("key",)
    attrs: ClassVar[Mapping[str, Attr]] = {"shape": _SHAPE, "dtype": _DTYPE}
    since: ClassVar[int] = _SINCE
    dtypes = _KEY
    gradient: ClassVar[str] = "none: keys are constant; to get gradients for loc and scale, write loc + scale · y"
    vjp = _BY_KEYS
    samples: ClassVar[tuple[Sample, ...]] = (
        Sample(Words(2), shape=[2, 3], dtype="float64"),
        Sample(Words(2), shape=[], dtype="float32"),
    )

    def infer(self, key: TensorType, *, shape: Shape, dtype: DType) -> ResultTypes:
        """Return the type of the requested shape. Raises ShapeMismatch."""
        require_shape(key, (2,), 0, "key", _SHAPE_REASONS["key"])
        return TensorType(shape, dtype)


class RandomNormal(RandomFormula):
    """y = √2 · erfinv(u), u uniform in (−1, 1): standard normal numbers. Equals `jax.random.normal` to 32 ulp.

    PyTorch's `randn` uses a different generator.
    """

    name = "random_normal"
    truths = _three_numbers(-0.18471174528191162, -2.169824560397754, 0.18693555179382582)

    def compose(self, key: Value, *, shape: Shape, dtype: DType) -> Value:
        """Map u to the numbers after −1: 2 · uniform is exact."""
        after_minus_one = float(np.nextafter(dtype.type(-1), dtype.type(0)))
        return (key.random_uniform(shape=shape, dtype=dtype) * 2.0 + after_minus_one).erfinv() * math.sqrt(2)


class RandomExponential(RandomFormula):
    """y = −log1p(−u), u uniform in [0, 1): exponential numbers with mean 1. Equals `jax.random.exponential`.

    PyTorch's `exponential_` uses a different generator.
    """

    name = "random_exponential"
    truths = _three_numbers(0.5563942243855916, 0.015123860720489336, 0.8536549993431988)

    def compose(self, key: Value, *, shape: Shape, dtype: DType) -> Value:
        """Apply the formula; 1 − u is never 0."""
        return -(-key.random_uniform(shape=shape, dtype=dtype)).log1p()


class RandomGumbel(RandomFormula):
    """y = −log(−log u), u uniform in [0, 1), with 0 replaced by the smallest normal number. Equals `jax.random.gumbel`.

    PyTorch's `distributions.Gumbel` uses a different generator.
    """

    name = "random_gumbel"
    truths = _three_numbers(0.16062720630382138, -1.4348544993307841, 0.5890136500161952)

    def compose(self, key: Value, *, shape: Shape, dtype: DType) -> Value:
        """Apply the formula. Only 0 is affected by the clamp: all other draws are larger."""
        smallest_normal = float(np.finfo(dtype).tiny)
        return -(-key.random_uniform(shape=shape, dtype=dtype).clamp(min=smallest_normal).log()).log()


class RandomBernoulli(WithKey, Composite):
    """y = uniform < p, of p's shape: true with probability p. The uniform numbers have p's dtype.

    Equals `jax.random.bernoulli`. PyTorch's `bernoulli` returns floats and uses a different generator.
    """

    name = "random_bernoulli"
    operands = ("key", "p")
    since = _SINCE
    others = _FLOATS
    dtypes = (*_KEY, *_FLOATS)
    gradient = "none: the result is bool"
    vjp = NoGradient("truth values are constant")
    samples = (Sample(Words(2), Real(2, 3, low=0, high=1)), Sample(Words(2), Real(low=0, high=1)))
    truths = (Truth(operands=(_42, [0.3, 0.5, 0.9]), value=[False, True, True], source=_JAX),)

    def infer(self, key: TensorType, p: TensorType) -> ResultTypes:
        """Return the type bool of p's shape. Raises ShapeMismatch."""
        require_shape(key, (2,), 0, "key", _SHAPE_REASONS["key"])
        return p.with_dtype("bool")

    def compose(self, key: Value, p: Value) -> Value:
        """Compare in p's dtype."""
        return key.random_uniform(shape=p.shape, dtype=p.dtype) < p


class RandomCategorical(WithKey, Composite):
    """y = argmax(logits + gumbel) along `axis`, int64: i with probability proportional to exp(logits[i]).

    Equals `jax.random.categorical`. PyTorch's `multinomial` takes weights and uses a different generator.
    """

    name = "random_categorical"
    operands = ("key", "logits")
    since = _SINCE
    attrs: ClassVar[Mapping[str, Attr]] = {"axis": Attr("int", -1, "axis of the categories")}
    others = _FLOATS
    dtypes = (*_KEY, *_FLOATS)
    gradient = "none: positions are whole numbers"
    vjp = NoGradient("positions are constant")
    samples = (Sample(Words(2), Real(2, 3)), Sample(Words(2), Real(4, 2), axis=0))
    truths = (Truth(operands=(_42, [[0.0, 1.0, 2.0], [2.0, 0.0, -1.0]]), value=[2, 0], source=_JAX),)

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Count the axis from the front. Raises BadAttribute."""
        return {"axis": normalise_axis(attrs["axis"], types[1].ndim)}

    def infer(self, key: TensorType, logits: TensorType, *, axis: int) -> ResultTypes:
        """Return logits' shape without the axis. Raises ShapeMismatch."""
        require_shape(key, (2,), 0, "key", _SHAPE_REASONS["key"])
        require_elements(logits, (axis,))
        return TensorType((*logits.shape[:axis], *logits.shape[axis + 1 :]), INT64)

    def compose(self, key: Value, logits: Value, *, axis: int) -> Value:
        """Add Gumbel noise of logits' dtype, and take the argmax."""
        noise = key.random_gumbel(shape=logits.shape, dtype=logits.dtype)
        return (logits + noise).argmax(axis=axis)
