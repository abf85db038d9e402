"""Products and results written directly in the memory layout that their readers need.

A product in a graph is often followed by a transpose that merges attention heads, a bias, or a concatenation. A library
that writes with strides makes all of these copies unnecessary. float16 products and their bias accumulate in float32.
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


class StridedProduct(NamedTuple):
    """Product a @ b of this shape, with its offset and the stride of each axis in the result, in elements.

    With `has_bias`, a vector with one number per column is added to each row.
    """

    shape: Shape
    offset: int
    strides: Shape
    has_bias: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class StridedProducts(Kernel):
    """Matrix products that are the `parts` of one dense tensor of `type`, and together fill it.

    The operands are a and b of each part, followed by its bias if it has one. Not an op of the opset: each node gets
    its own instance, in plans for GPUs.
    """

    type: TensorType
    parts: Sequence[StridedProduct]

    name = "laid_products"
    operands = ("x...",)
    internal = True
    is_product = True

    def infer(self, *types: Any, **attrs: Any) -> ResultTypes:
        """Return `type`."""
        return self.type

    def forward(self, run: RunContext, *arrays: Array, out: Array, **attrs: Any) -> None:
        """Multiply with BLAS, and copy each product to its place unless BLAS can write there."""
        for part, (a, b, *bias) in operand_numbers(self.parts):
            strides = tuple(step * out.itemsize for step in part.strides)
            destination = run.xp.lib.stride_tricks.as_strided(out.reshape(-1)[part.offset :], part.shape, strides)
            product = _multiply(run.xp, arrays[a], arrays[b], destination if self._is_in_place(part) else None, out=out)
            for i in bias:
                product += arrays[i].reshape(-1)
            if product is not destination:
                destination[...] = product

    def flops(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """Count the products, and one addition per element with a bias."""
        return sum(
            math.prod(part.shape) * (2 * types[numbers[0]].shape[-1] + part.has_bias)
            for part, numbers in operand_numbers(self.parts)
        )

    def workspace(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """Return the bytes of the largest part: its product, if that is copied, and operands copied for BLAS."""
        dtype, largest = accumulator(out), 0
        for part, (a, b, *_) in operand_numbers(self.parts):
            copies = sum(types[i].size for i in (a, b) if not is_readable(types[i], dtype))
            product = 0 if self._is_in_place(part) else math.prod(part.shape)
            largest = max(largest, dtype.itemsize * (product + copies))
        return largest

    def _is_in_place(self, part: StridedProduct) -> bool:
        """Whether BLAS can write the product to its place."""
        dense = TensorType(part.shape, self.type.dtype)
        strided = Strided(dense, [step * dense.dtype.itemsize for step in part.strides])
        return accumulator(dense) == dense.dtype and strided.is_dense


def operand_numbers(parts: Sequence[StridedProduct]) -> Iterator[tuple[StridedProduct, tuple[int, ...]]]:
    """Yield each part with the operand numbers of a, b, and its bias if it has one."""
    first = 0
    for part in parts:
        count = 2 + part.has_bias
        yield part, tuple(range(first, first + count))
        first += count


def _multiply(xp: Namespace, a: Array, b: Array, destination: Array | None, *, out: Array) -> Array:
    """Compute a @ b in the dtype that products of `out`'s dtype accumulate in, into `destination` or a new array."""
    dtype = accumulator(out)
    x, y = (x if is_readable(x, dtype) else xp.ascontiguousarray(x, dtype=dtype) for x in (a, b))
    return xp.matmul(x, y, out=destination) if destination is not None else xp.matmul(x, y)


@dataclass(frozen=True, eq=False, repr=False)
class PermutedResults(Kernel):
    """`op`, of several results, writing to permuted layouts: axis j of result k is axis `orders[k][j]` of the op's.

    Not an op of the opset: each node gets its own instance, in plans for GPUs.
    """

    op: Kernel
    orders: tuple[Shape, ...]

    name = "laid_results"
    operands = ("x...",)
    several = True
    internal = True
    dtypes = DTYPES

    def __post_init__(self) -> None:
        # Other ops declare their attributes on the class; these come from the wrapped op.
        object.__setattr__(self, "attrs", self.op.attrs)

    def infer(self, *types: Any, **attrs: Any) -> ResultTypes:
        """Return the types of the op's results, with their axes permuted."""
        types_of_op = self.op.infer(*types, **attrs)
        assert isinstance(types_of_op, tuple)
        return self.permuted_types(types_of_op)

    def permuted_types(self, types: Sequence[TensorType]) -> tuple[TensorType, ...]:
        """Return the types of the op's results with their axes permuted."""
        pairs = zip(types, self.orders, strict=True)
        return tuple(type.with_shape([type.shape[a] for a in order]) for type, order in pairs)

    def forward(self, run: RunContext, *arrays: Array, out: tuple[Array, ...], **attrs: Any) -> None:
        """Run the op on transposed views of the results."""
        views = (array.transpose(inverse(order)) for array, order in zip(out, self.orders, strict=True))
        self.op.forward(run, *arrays, out=tuple(views), **attrs)

    def flops(self, out: Any, *types: Any, **attrs: Any) -> int:
        """Return the FLOPs of the op."""
        return self.op.flops(self.inner_types(out), *types, **attrs)

    def workspace(self, out: Any, *types: Any, **attrs: Any) -> int:
        """Return the workspace of the op."""
        return self.op.workspace(self.inner_types(out), *types, **attrs)

    def inner_types(self, out: Sequence[TensorType]) -> tuple[TensorType, ...]:
        """Return the types of the op's own results, with their strides in these layouts."""
        pairs = zip(out, map(inverse, self.orders), strict=True)
        return tuple(
            Strided(type.with_shape([type.shape[a] for a in order]), [type.strides[a] for a in order])
            for type, order in pairs
        )
