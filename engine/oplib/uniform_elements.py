"""Uniform random numbers an element at a time, so that loops have them: words and counters carried by floats, as bits.

Operands of a loop are floats. Nothing here computes with such a float; a loop reads its bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from engine.graph.attributes import Attr
from engine.graph.ir import Value
from engine.graph.op import Array, NoGradient, Op, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Sample
from engine.graph.tensor_type import DType, Shape, TensorType
from engine.oplib.elementwise import Elementwise
from engine.oplib.source import Source
from engine.oplib.threefry import PAIR_OPERATIONS

#: counters that fit one word, and that positive integers of 32 bits have
MOST_COUNTED = 2**31
_CARRIER = Attr("dtype", doc="the float that carries it")


def uniform_elements(keys: Value, shape: Shape, dtype: DType) -> Value:
    """Uniform numbers [..., *shape] of keys uint32 [..., 2]: what `random_uniform` draws, of at most MOST_COUNTED."""
    builder = keys.builder
    words = [
        builder.emit(_WORD, (keys,), {"index": index, "ndim": len(shape), "dtype": np.dtype(dtype)}) for index in (0, 1)
    ]
    row, column = (builder.emit(_COUNTERS, (), {**said, "dtype": np.dtype(dtype)}) for said in _counters(shape))
    return builder.emit(_UNIFORM, (*words, row, column), {})


def _counters(shape: Shape) -> tuple[dict[str, Any], dict[str, Any]]:
    """The counters of the first elements of rows, and those within a row: small, but where there is a single row."""
    columns = shape[-1] if shape else 1
    return {"shape": (*shape[:-1], 1)[: len(shape)], "step": columns}, {"shape": (columns,) if shape else (), "step": 1}


class KeyWord(Op):
    """One word of each key, with `ndim` unit axes behind those of the keys."""

    name = "key_word"
    internal = True
    samples: ClassVar[tuple[Sample, ...]] = ()
    operands: ClassVar[tuple[str, ...]] = ("key",)
    gradient: ClassVar[str] = "none: keys are constant"
    vjp = NoGradient("keys are constant")
    attrs: ClassVar[Mapping[str, Attr]] = {
        "index": Attr("int", doc="which word"),
        "ndim": Attr("int", doc="axes behind those of the keys"),
        "dtype": _CARRIER,
    }

    def infer(self, key: TensorType, *, index: int, ndim: int, dtype: DType) -> ResultTypes:
        """The keys' axes without the last, and unit axes."""
        return TensorType((*key.shape[:-1], *(1,) * ndim), dtype)

    def batch(self, mapped: Sequence[bool], key: Value, **attrs: Any) -> Value:
        """Of more keys."""
        return key.builder.emit(self, (key,), attrs)

    def forward(self, run: RunContext, key: Array, *, out: Array, index: int, **attrs: Any) -> None:
        """Integers of the floats' width, in their place."""
        out.view(f"u{out.dtype.itemsize}")[...] = key[..., index].reshape(out.shape)


class Counters(Source):
    """0, step, 2 · step, … in row-major order."""

    name = "counters"
    internal = True
    samples: ClassVar[tuple[Sample, ...]] = ()
    attrs: ClassVar[Mapping[str, Attr]] = {
        "shape": Attr("ints", doc="the result's shape"),
        "step": Attr("int", doc="from one to the next"),
        "dtype": _CARRIER,
    }

    def infer(self, *types: TensorType, shape: Shape, dtype: DType, **attrs: Any) -> ResultTypes:
        """As the attributes say."""
        return TensorType(shape, dtype)

    def forward(self, run: RunContext, *arrays: Array, out: Array, step: int, **attrs: Any) -> None:
        """Integers of the floats' width, in their place."""
        dtype = f"u{out.dtype.itemsize}"
        out.view(dtype).reshape(-1)[...] = run.xp.arange(0, step * out.size, step, dtype=dtype)

    def workspace(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """The range, before it is copied."""
        assert isinstance(out, TensorType)
        return out.nbytes


class UniformElement(Elementwise):
    """A uniform number for each sum of two counters, under both words of a key."""

    name = "uniform_element"
    internal = True
    samples: ClassVar[tuple[Sample, ...]] = ()
    operands: ClassVar[tuple[str, ...]] = ("first", "second", "row", "column")
    gradient: ClassVar[str] = "none: keys are constant"
    partials = vjp = NoGradient("keys are constant")
    scalar = staticmethod(lambda first, second, row, column: first.threefry_uniform(second, row, column))
    cost = PAIR_OPERATIONS

    def result_dtype(self, *dtypes: DType, **attrs: Any) -> DType:
        """The carriers' own."""
        return dtypes[0]


_WORD, _COUNTERS, _UNIFORM = KeyWord(), Counters(), UniformElement()
