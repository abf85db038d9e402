"""Products and results laid out in memory as their readers want them.

What follows a product in a graph is often its heads moved beside one another, a bias, or a concatenation with others:
copies, for a library that writes at strides. Of float16 a product adds up, and its bias is added, in float32.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from engine.ir.graph import inverse
from engine.ir.op import Array, Kernel, Namespace, ResultTypes
from engine.ir.run_context import RunContext
from engine.ir.tensor_type import DTYPES, Shape, Strided, TensorType
from engine.ops.common.numerics import accumulator
from engine.ops.linalg.matmul import is_readable


class LaidProduct(NamedTuple):
    """A product a @ b of this shape: elements of the result before its first, and to step along each of its axes.

    With `has_bias`, as many numbers as it has columns are added to its rows.
    """

    shape: Shape
    offset: int
    strides: Shape
    has_bias: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class LaidProducts(Kernel):
    """Products of matrices as the `parts` of one dense tensor of `type`, which they fill.

    Operands are a and b of each part, and behind them its bias, where it has one. No op of the opset: one is made for
    each node, in plans for cards.
    """

    type: TensorType
    parts: Sequence[LaidProduct]

    name = "laid_products"
    operands = ("x...",)
    internal = True

    def infer(self, *types: Any, **attrs: Any) -> ResultTypes:
        """`type`."""
        return self.type

    def forward(self, run: RunContext, *arrays: Array, out: Array, **attrs: Any) -> None:
        """BLAS, and a copy of each product to where it is to lie, unless that is dense."""
        for part, (a, b, *bias) in operands_of(self.parts):
            steps = tuple(step * out.itemsize for step in part.strides)
            to = run.xp.lib.stride_tricks.as_strided(out.reshape(-1)[part.offset :], part.shape, steps)
            product = _multiply(run.xp, arrays[a], arrays[b], to if self._is_in_place(part) else None, out=out)
            for i in bias:
                product += arrays[i].reshape(-1)
            if product is not to:
                to[...] = product

    def flops(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """Count the products, and a sum for each element that a bias is added to."""
        return sum(
            math.prod(part.shape) * (2 * types[numbers[0]].shape[-1] + part.has_bias)
            for part, numbers in operands_of(self.parts)
        )

    def workspace(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """Count the largest part: its product, if that is copied, and copies of operands that BLAS cannot read."""
        dtype, found = accumulator(out), 0
        for part, (a, b, *_) in operands_of(self.parts):
            copies = sum(types[i].size for i in (a, b) if not is_readable(types[i], dtype))
            product = 0 if self._is_in_place(part) else math.prod(part.shape)
            found = max(found, dtype.itemsize * (product + copies))
        return found

    def _is_in_place(self, part: LaidProduct) -> bool:
        """Whether BLAS may write it where it lies."""
        dense = TensorType(part.shape, self.type.dtype)
        lying = Strided(dense, [step * dense.dtype.itemsize for step in part.strides])
        return accumulator(dense) == dense.dtype and lying.is_dense


def operands_of(parts: Sequence[LaidProduct]) -> Iterator[tuple[LaidProduct, tuple[int, ...]]]:
    """Each part, and the numbers of its operands: of a and b, and of its bias, where it has one."""
    first = 0
    for part in parts:
        count = 2 + part.has_bias
        yield part, tuple(range(first, first + count))
        first += count


def _multiply(xp: Namespace, a: Array, b: Array, to: Array | None, *, out: Array) -> Array:
    """a @ b, in the dtype that products of `out`'s add up in: `to`, or a new array."""
    dtype = accumulator(out)
    x, y = (x if is_readable(x, dtype) else xp.ascontiguousarray(x, dtype=dtype) for x in (a, b))
    return xp.matmul(x, y, out=to) if to is not None else xp.matmul(x, y)


@dataclass(frozen=True, eq=False, repr=False)
class LaidResults(Kernel):
    """`op`, of several results, which writes wherever it is told: axis j of result k is axis `orders[k][j]` of its own.

    No op of the opset: one is made for each node, in plans for cards.
    """

    op: Kernel
    orders: tuple[Shape, ...]

    name = "laid_results"
    operands = ("x...",)
    several = True
    internal = True
    dtypes = DTYPES

    def __post_init__(self) -> None:
        # Which attributes there are is stated by a class, elsewhere.
        object.__setattr__(self, "attrs", self.op.attrs)

    def infer(self, *types: Any, **attrs: Any) -> ResultTypes:
        """Return the types of the op, with their axes in order."""
        found = self.op.infer(*types, **attrs)
        assert isinstance(found, tuple)
        return self.turned(found)

    def turned(self, types: Sequence[TensorType]) -> tuple[TensorType, ...]:
        """Types of the op's results with their axes in order."""
        each = zip(types, self.orders, strict=True)
        return tuple(type.with_shape([type.shape[a] for a in order]) for type, order in each)

    def forward(self, run: RunContext, *arrays: Array, out: tuple[Array, ...], **attrs: Any) -> None:
        """Run the op on views."""
        turned = (array.transpose(inverse(order)) for array, order in zip(out, self.orders, strict=True))
        self.op.forward(run, *arrays, out=tuple(turned), **attrs)

    def flops(self, out: Any, *types: Any, **attrs: Any) -> int:
        """Return the FLOPs of the op."""
        return self.op.flops(self.lying(out), *types, **attrs)

    def workspace(self, out: Any, *types: Any, **attrs: Any) -> int:
        """Return the workspace of the op."""
        return self.op.workspace(self.lying(out), *types, **attrs)

    def lying(self, out: Sequence[TensorType]) -> tuple[TensorType, ...]:
        """The types of the op's own results, as they lie."""
        each = zip(out, map(inverse, self.orders), strict=True)
        return tuple(
            Strided(type.with_shape([type.shape[a] for a in order]), [type.strides[a] for a in order])
            for type, order in each
        )
