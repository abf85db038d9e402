"""Matrix products and Einstein summation."""

from __future__ import annotations

import math
import string
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from engine.ir.attributes import Attr
from engine.ir.errors import BadAttribute, ShapeMismatch, counted, printable
from engine.ir.graph import Value, adjoint, permute, shaped
from engine.ir.op import Array, Composite, KernelCall, Op, ResultTypes
from engine.ir.run_context import RunContext
from engine.ir.sample import Ints, Real, Sample
from engine.ir.tensor_type import DTYPES, DType, Shape, TensorType, broadcast, promote, show_shape
from engine.ops.common import batching
from engine.ops.common.numerics import accumulation_buffer_bytes, accumulator, upcast
from engine.ops.elementwise.base import unbroadcast

MOST_OPERANDS = 32
LETTERS = frozenset(string.ascii_letters)


def product_type(a: TensorType, b: TensorType) -> TensorType:
    """Return the type of a @ b. Raises ShapeMismatch."""
    _check_rank(0, "a", a)
    _check_rank(1, "b", b)
    _check_inner(a.shape, b.shape)
    return TensorType(product_shape(a.shape, b.shape), promote(a.dtype, b.dtype))


def product_shape(a: Shape, b: Shape) -> Shape:
    """Return the shape of a @ b for operands whose inner extents agree. Raises ShapeMismatch for their batch axes."""
    columns = b[-1:] if len(b) > 1 else ()
    return (*_batches(a, b), *a[-2:-1], *columns)


def is_readable(x: Array | TensorType, dtype: DType) -> bool:
    """Whether BLAS can read x: right dtype, one of the last two axes contiguous, strides positive.

    NumPy multiplies other layouts (broadcast, flipped, strided on both axes) in a loop that is 100 times slower.
    """
    strides = x.strides[-2:]
    return bool(x.dtype == dtype and dtype.itemsize in strides and min(strides) > 0)


def _check_rank(i: int, name: str, x: TensorType) -> None:
    if not x.ndim:
        expected = "at least 1 axis"
        raise ShapeMismatch(
            f"operand {i} ({name}) must have {expected}, but is 0-d", operand=i, expected=expected, got="0 axes"
        )


def _check_inner(a: Shape, b: Shape) -> None:
    axis = -2 if len(b) > 1 else -1
    if a[-1] != b[axis]:
        expected, received = f"extent {a[-1]} at axis {axis}", show_shape(b)
        raise ShapeMismatch(
            f"operand 1 (b) must have {expected}, as operand 0 (a) of shape {show_shape(a)} ends in {a[-1]}, "
            f"but has shape {received}",
            operand=1,
            expected=expected,
            got=received,
        )


def _batches(a: Shape, b: Shape) -> Shape:
    try:
        return broadcast(a[:-2], b[:-2])
    except ShapeMismatch:
        raise ShapeMismatch(
            f"operand 1 (b) must have batch axes that broadcast with operand 0 (a) of shape {show_shape(a)}, "
            f"but has shape {show_shape(b)}",
            operand=1,
            expected=f"batch axes that broadcast with {show_shape(a[:-2])}",
            got=show_shape(b[:-2]),
        ) from None


class MatMul(Op):
    """y = a @ b, as in NumPy: y[…, i, j] = Σₖ a[…, i, k] · b[…, k, j]; the leading axes broadcast.

    A 1-d operand is a row on the left and a column on the right; that axis is dropped from the result. float16
    accumulates in float32. Integers and bool are multiplied in their own dtype, as in NumPy.
    """

    is_product = True
    name = "matmul"
    section = "matmul"
    aliases = {"MatMulOp": "born", "MatMul": "born, cjc, minima", "BatchMatMulOp": "born", "BatchMatMul": "born"}
    operands = ("a", "b")
    dtypes = DTYPES
    gradient = "da = g @ bᴴ, db = aᴴ @ g, summed over batch axes that were broadcast"
    samples = (
        Sample(Real(2, 3), Real(3, 4)),
        Sample(Real(3), Real(3)),
        Sample(Real(3), Real(3, 2)),
        Sample(Real(2, 3), Real(3)),
        Sample(Real(2, 2, 3), Real(3, 4)),
        Sample(Real(2, 3), Real(2, 3, 4)),
        Sample(Real(2, 1, 2, 3), Real(3, 3, 2)),
        Sample(Real(3), Real(2, 3, 4)),
        Sample(Real(2, 2, 3), Real(3)),
        Sample(Real(2, 0), Real(0, 3)),
        Sample(Ints(2, 3, high=5), Ints(3, 2, high=5)),
    )

    def infer(self, a: TensorType, b: TensorType) -> ResultTypes:
        """Return NumPy's shape and dtype. Raises ShapeMismatch."""
        return product_type(a, b)

    def compose(self, a: Value, b: Value) -> Value | None:
        """Turn 1-d operands into matrices, and many matrices times one into one tall matrix times it."""
        columns = b if b.ndim > 1 else b.reshape(shape=(*b.shape, 1))
        flat = a.ndim == 1 or columns.ndim == 2
        rows = shaped(a, (math.prod(a.shape[:-1]), a.shape[-1])) if flat else a
        if rows is a and columns is b:
            return None
        return shaped(rows.matmul(columns), product_shape(a.shape, b.shape))

    def forward(self, run: RunContext, a: Array, b: Array, *, out: Array) -> None:
        """Multiply with BLAS if it supports the dtype."""
        xp = run.xp
        dtype = accumulator(out)
        operands = [x if is_readable(x, dtype) else xp.ascontiguousarray(x, dtype=dtype) for x in (a, b)]
        if dtype == out.dtype:
            xp.matmul(*operands, out=out)
        else:
            out[...] = xp.matmul(*operands)

    def bind(self, run: RunContext, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]) -> KernelCall:
        """Bind BLAS itself if it can read the operands and write the result."""
        dtype = accumulator(out)
        if dtype == out.dtype and all(is_readable(x, dtype) for x in operands):
            return run.xp.matmul, (*operands, out)
        return super().bind(run, operands, out, attrs)

    def vjp(self, g: Value, y: Value, a: Value, b: Value) -> Sequence[Value | None]:
        """Apply the textbook rule for matrices; `compose` leaves no 1-d operands."""
        return unbroadcast(g @ adjoint(b), a), unbroadcast(adjoint(a) @ g, b)

    def batch(self, mapped: Sequence[bool], *operands: Value) -> Value:
        """Align the ranks; N is then one more batch axis."""
        a, b = batching.align(mapped, operands)
        return a @ b

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Return 2 m n k for each pair of matrices: a multiplication and an addition."""
        return 2 * super().flops(out) * types[0].shape[-1]

    def workspace(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """Return the bytes of operands copied for BLAS, and of a float32 result if `out` is float16."""
        dtype = accumulator(out)
        copies = sum(x.size for x in types if not is_readable(x, dtype))
        return dtype.itemsize * copies + accumulation_buffer_bytes(out)


class Einsum(Composite):
    """y[output letters] = Σ a[letters] · b[letters] · … over all letters that are not in the output.

    For two operands, `equation` looks like "ab,bc->ac": a letter (a–z, A–Z) for each axis, a comma between operands,
    and after the arrow the axes of the result. Each letter has one extent and appears at most once in each operand. An
    ellipsis or an implicit output is not allowed; spaces are ignored. The number of operands is 1 to 32. The result has
    the common dtype of the operands, as in NumPy.

    Operands are multiplied in pairs, each time the pair with the fewest multiplications, so that no step costs more
    than the equation evaluated as one loop (greedy order, as in numpy.einsum_path).
    """

    name = "einsum"
    section = "einsum"
    promotes_operands = True
    operands = ("a", "b...")
    dtypes = DTYPES
    attrs = {"equation": Attr("string", doc="letters of each operand, then -> and the letters of the result")}
    gradient = "for each operand, the einsum of g with the other operands"
    samples = (
        Sample(Real(2, 3), Real(3, 4), equation="ab,bc->ac"),
        Sample(Real(2, 3), equation="ij -> ji"),
        Sample(Real(2, 3), equation="ij->"),
        Sample(Real(3), equation="i->i"),
        Sample(Real(2, 3, 2), Real(4, 2, 2), equation="bij,kbj->ikb"),
        Sample(Real(2), Real(3), equation="i,j->ji"),
        Sample(Real(3), Real(3), equation="i,i->i"),
        Sample(Real(), Real(3), equation=",i->i"),
        Sample(Real(2, 3), Real(3, 2), Real(2, 2), equation="ij,jk,kl->il"),
        Sample(Real(2, 3), Real(2, 4), equation="ij,ik->i"),
        Sample(Real(0, 3), Real(3, 2), equation="ij,jk->ik"),
        Sample(Ints(2, 3, high=5), Ints(3, high=5), equation="ij,j->i"),
    )

    @property
    def arity(self) -> tuple[int, float]:
        """One to 32 operands."""
        return 1, MOST_OPERANDS

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Remove spaces."""
        return {"equation": attrs["equation"].replace(" ", "")}

    def infer(self, *types: TensorType, equation: str) -> ResultTypes:
        """Look up the extents of the output's letters. Raises BadAttribute, ShapeMismatch."""
        terms, output = parse_equation(equation, len(types))
        extents = _extents(terms, types)
        return TensorType(tuple(extents[letter] for letter in output), promote(*(t.dtype for t in types)))

    def compose(self, *operands: Value, equation: str) -> Value:
        """Sum over letters that only one operand has, contract pair by pair, then order the axes."""
        terms, output = parse_equation(equation, len(operands))
        dtype = promote(*(x.dtype for x in operands))
        factors = [Factor(upcast(_in_dtype(x, dtype)), term) for x, term in zip(operands, terms, strict=True)]
        uses = Counter("".join(terms))
        shared = {letter for letter in uses if uses[letter] > 1}.union(output)
        product = _contract_all([f.sum_to(shared) for f in factors], output)
        return _in_dtype(product.reorder(output), dtype)


@dataclass(frozen=True, slots=True)
class Factor:
    """Operand, or product of operands: a tensor and the letters of its axes."""

    value: Value
    letters: str

    @property
    def extents(self) -> dict[str, int]:
        """Extent of each letter."""
        return dict(zip(self.letters, self.value.shape, strict=True))

    def reorder(self, letters: str) -> Value:
        """Return the tensor with its axes in this order."""
        return permute(self.value, [self.letters.index(letter) for letter in letters])

    def sum_to(self, remaining: Set[str]) -> Factor:
        """Sum over the letters that are not in `remaining`."""
        axes = tuple(i for i, letter in enumerate(self.letters) if letter not in remaining)
        letters = "".join(letter for letter in self.letters if letter in remaining)
        return Factor(self.value.sum(axes=axes), letters) if axes else self

    def group_axes(self, *groups: str) -> Value:
        """Return the tensor with one axis for each group of letters, of extent 1 for an empty group."""
        extents = self.extents
        return shaped(self.reorder("".join(groups)), [math.prod(extents[letter] for letter in g) for g in groups])

    def expand_axes(self, letters: str) -> Value:
        """Return the tensor with one axis for each of these letters, of extent 1 for letters it does not have."""
        own = "".join(letter for letter in letters if letter in self.letters)
        return shaped(self.reorder(own), [self.extents.get(letter, 1) for letter in letters])


def _contract_all(factors: list[Factor], output: str) -> Factor:
    """Contract factors pair by pair, each time the pair with the fewest multiplications."""
    while len(factors) > 1:
        extents = [f.extents for f in factors]
        pairs = combinations(range(len(factors)), 2)
        i, j = min(pairs, key=lambda pair: math.prod((extents[pair[0]] | extents[pair[1]]).values()))
        others = [f for k, f in enumerate(factors) if k not in (i, j)]
        needed = set(output).union(*(f.letters for f in others))
        factors = [*others, _contract(factors[i], factors[j], needed)]
    return factors[0]


def _contract(a: Factor, b: Factor, needed: Set[str]) -> Factor:
    """Multiply two factors as a batch of matrix products, summing over shared letters that are not `needed`."""
    batch = "".join(letter for letter in a.letters if letter in b.letters and letter in needed)
    inner = "".join(letter for letter in a.letters if letter in b.letters and letter not in needed)
    rows = "".join(letter for letter in a.letters if letter not in b.letters)
    columns = "".join(letter for letter in b.letters if letter not in a.letters)
    letters, extents = batch + rows + columns, a.extents | b.extents
    if not inner:
        return Factor(a.expand_axes(letters) * b.expand_axes(letters), letters)
    lead = (batch,) if batch else ()
    product = a.group_axes(*lead, rows, inner) @ b.group_axes(*lead, inner, columns)
    return Factor(shaped(product, [extents[letter] for letter in letters]), letters)


def _in_dtype(x: Value, dtype: DType) -> Value:
    return x if x.dtype == dtype else x.cast(dtype=dtype)


def parse_equation(equation: str, count: int) -> tuple[list[str], str]:
    """Return the letters of each of `count` operands, and those of the result. Raises BadAttribute."""
    inputs, arrow, output = equation.partition("->")
    terms = inputs.split(",")
    written = set(inputs) - {","}
    rules = (
        ("." not in equation, "name every axis: an ellipsis is not allowed"),
        (bool(arrow), "give the letters of the result after ->"),
        (written.union(output) <= LETTERS, "contain only letters a–z and A–Z, commas between operands and one ->"),
        (len(terms) == count, f"name {counted(count, 'operand')}"),
        (all(len(set(t)) == len(t) for t in terms), "not repeat a letter within an operand"),
        (len(set(output)) == len(output), "not repeat a letter in the result"),
        (written >= set(output), "use only letters of the operands in the result"),
    )
    for holds, requirement in rules:
        if not holds:
            excerpt = printable(equation)
            raise BadAttribute(
                f"attribute equation must {requirement}, but is “{excerpt}”",
                attribute="equation",
                expected=requirement,
                got=excerpt,
            )
    return terms, output


def _extents(terms: Sequence[str], types: Sequence[TensorType]) -> Mapping[str, int]:
    """Map each letter to its extent. Raises ShapeMismatch."""
    extents: dict[str, int] = {}
    for i, (term, type) in enumerate(zip(terms, types, strict=True)):
        if type.ndim != len(term):
            raise _mismatch(i, term, counted(len(term), "axis", "axes"), type)
        for letter, extent in zip(term, type.shape, strict=True):
            if extents.setdefault(letter, extent) != extent:
                raise _mismatch(i, term, f"extent {extents[letter]} for {letter}, as in an earlier operand", type)
    return extents


def _mismatch(i: int, term: str, expected: str, type: TensorType) -> ShapeMismatch:
    received = show_shape(type.shape)
    return ShapeMismatch(
        f"operand {i}, “{printable(term)}”, must have {expected}, but has shape {received}",
        operand=i,
        expected=expected,
        got=received,
    )
