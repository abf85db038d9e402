"""Attention on a GPU: products, with whole matrices of scores in the workspace, and kernels between them; or cuDNN.

The workspace bounds how many matrices are computed at a time: a stretch of the leading axes. Forward, scores = q kᵀ is
a product, a kernel takes the softmax row by row, and y = softmax · v is a product. Backward, the scores and the
cotangents of their softmax, g vᵀ, are products; a kernel computes the softmax again from the logarithms that were kept,
and the cotangents of the scores. If a key is hidden from its query, both are zero.

Attention in float16 is left to cuDNN alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product as combinations
from typing import Any, Final, NamedTuple

import numpy as np

from engine.codegen.microkernels.axis_kernels import steps_over, without_matrices
from engine.codegen.microkernels.product import Matrices, Product
from engine.cuda.card_recipe import (
    CardPlace,
    CardPlaceKind,
    CardRecipe,
    Phase,
    ProductPhase,
    by_items,
    card_text,
    is_wide,
)
from engine.cuda.cublaslt import stored_products
from engine.cuda.cuda_text import WARP
from engine.cuda.cudnn_recipes import CardTerms, attention_shape
from engine.ir.run_context import aligned
from engine.ir.run_report import IEEE, Precision
from engine.ir.tensor_type import FLOAT32, FLOAT64, Shape, TensorType
from engine.ops.nn.attention_tiles import batch_axes

#: stretches that the leading axes may be cut into
_MOST_STRETCHES: Final = 64
#: entries of the kernels' tables
_ENTRIES: Final = 9
#: exponential and logarithm of a dtype, in CUDA and C
_FUNCTIONS: Final = {"float32": ("expf", "logf"), "float64": ("exp", "log")}
#: softmax of a row of scores up to its last key, and its way back. If a score is NaN, so is the whole row
_KERNELS: Final = """\
#ifndef __CUDACC_RTC__
F {exp}(F); F {log}(F);
#endif
#define LAST_KEY(row) (table[6] && (row) % (N)table[5] + 1 < keys ? (row) % (N)table[5] + 1 : keys)
KERNEL softmax_rows(GIVEN) {{
const long long* const table = TABLE;
const N rows = table[3], keys = table[4], lane = THREAD_X % 32, warps = GRID_X * (N)WIDE / 32;
const F scale = FROM_BITS((I)table[7]);
for (N row = (BLOCK_X * (N)WIDE + THREAD_X) / 32; row < rows; row += warps) {{
F* const scores = (F*)table[0] + row * (long long)keys;
const N past = LAST_KEY(row);
F largest = -INFINITE, sum = 0;
for (N key = lane; key < past; key += 32) {{
const F score = scores[key] * scale;
if (score > largest) largest = score;
}}
#pragma unroll
for (int h = 16; h; h /= 2) {{ const F above = FROM_ABOVE(largest, h, 32); if (above > largest) largest = above; }}
largest = FROM_FIRST(largest, 32);
for (N key = lane; key < past; key += 32) sum += scores[key] = {exp}(scores[key] * scale - largest);
#pragma unroll
for (int h = 16; h; h /= 2) {{ const F above = FROM_ABOVE(sum, h, 32); sum += above; }}
sum = FROM_FIRST(sum, 32);
for (N key = lane; key < keys; key += 32) scores[key] = key < past ? scores[key] / sum : 0;
if (lane == 0) ((F*)table[1])[row] = largest + {log}(sum);
}}
}}
KERNEL score_gradients(GIVEN) {{
const long long* const table = TABLE;
const N rows = table[3], keys = table[4];
const F scale = FROM_BITS((I)table[7]);
F* const scores = (F*)table[0]; F* const gradients = (F*)table[8];
EACH_ITEM(item, (long long)rows * keys) {{
const N row = item / keys, is_seen = item % keys < LAST_KEY(row);
const F found = is_seen ? {exp}(scores[item] * scale - ((const F*)table[1])[row]) : 0;
gradients[item] = is_seen ? found * (gradients[item] - ((const F*)table[2])[row]) * scale : 0;
scores[item] = found;
}}
}}
"""


def attention_rows_recipe(
    terms: CardTerms, out: Sequence[TensorType], *types: TensorType, scale: float, causal: bool
) -> CardRecipe | None:
    """Make the recipe of y and the logarithms of the rows' sums, from q, k and v; None with a mask, or without room.

    y lies as its type says.
    """
    if len(types) != len(("q", "k", "v")) or not out[1].is_dense:
        return None
    return _Attention(terms, types, out, scale, causal).recipe(1, _Stretch.forth)


def attention_gradients_recipe(
    terms: CardTerms, out: Sequence[TensorType], *types: TensorType, scale: float, causal: bool
) -> CardRecipe | None:
    """Make the recipe of dq, dk and dv, from q, k, v, the logarithms, δ and the cotangent of y.

    None with a mask, without room, or if logarithms and δ are not dense. The results lie as their types say.
    """
    if len(types) != len(("q", "k", "v", "lse", "delta", "g")):
        return None
    lead = batch_axes(*types)
    if not all(type.is_dense and type.shape[:-2] == lead for type in types[3:5]):
        return None
    return _Attention(terms, types, out, scale, causal).recipe(2, _Stretch.back)


class _Refused(Exception):
    """Failure: cuBLASLt does not multiply these matrices as they lie."""


class _Place(NamedTuple):
    """Matrices along the leading axes of a stretch: the place of the first, rows and columns, and strides."""

    at: CardPlace
    rows: int
    columns: int
    lying: Matrices

    @property
    def turned(self) -> _Place:
        lying = self.lying._replace(row=self.lying.column, column=self.lying.row)
        return _Place(self.at, self.columns, self.rows, lying)


class _Attention:
    """Operands and results of attention, for all of its stretches."""

    def __init__(
        self, terms: CardTerms, types: Sequence[TensorType], results: Sequence[TensorType], scale: float, causal: bool
    ) -> None:
        self.terms, self.types, self.results, self.causal = terms, types, results, causal
        self.dtype = types[0].dtype
        self.lead: Shape = batch_axes(*types)
        self.queries, self.keys = types[0].shape[-2], types[1].shape[-2]
        self.scale = int(np.array(scale, self.dtype).view(f"i{self.dtype.itemsize}"))
        read = terms.precision if terms.precision != "tf32x3" else IEEE
        self.precision: Precision = read if self.dtype == FLOAT32 else IEEE

    @property
    def matrix_bytes(self) -> int:
        return self.queries * self.keys * self.dtype.itemsize

    def recipe(self, matrices: int, phases: Callable[[_Stretch], Iterator[Phase]]) -> CardRecipe | None:
        """Make the recipe of all stretches, which work in so many `matrices` for each entry, one after the other."""
        if self.dtype not in (FLOAT32, FLOAT64) or not math.prod((*self.lead, self.matrix_bytes)):
            return None
        stretches = [*self._stretches(matrices)]
        if not 0 < len(stretches) <= _MOST_STRETCHES:
            return None
        try:
            every = [phase for stretch in stretches for phase in phases(stretch)]
        except _Refused:
            return None
        exp, log = _FUNCTIONS[self.dtype.name]
        most = max(stretch.entries for stretch in stretches)
        wide = is_wide(most * self.queries * max(self.keys, WARP))
        text = card_text(self.dtype.name, _ENTRIES, _KERNELS.format(exp=exp, log=log), is_wide=wide)
        return CardRecipe(tuple(every), text, matrices * aligned(most * self.matrix_bytes), self.precision)

    def _stretches(self, matrices: int) -> Iterator[_Stretch]:
        """Yield some entries of one axis and all axes behind it, at each index of those before; none without room."""
        fitting = self.terms.workspace // matrices // aligned(1) * aligned(1) // self.matrix_bytes
        if fitting and not self.lead:
            yield _Stretch(self, (), ())
        behind = [math.prod(self.lead[axis + 1 :]) for axis in range(len(self.lead))]
        axis = next((axis for axis, entries in enumerate(behind) if entries <= fitting), None)
        if axis is None:
            return
        step, extent = fitting // behind[axis], self.lead[axis]
        for at in combinations(*map(range, self.lead[:axis])):
            for first in range(0, extent, step):
                yield _Stretch(self, (*at, first), (min(step, extent - first), *self.lead[axis + 1 :]))


class _Stretch:
    """Part of the leading axes: its first entry, and its extents along the last ones of them."""

    def __init__(self, of: _Attention, first: Shape, extents: Shape) -> None:
        self._of, self._first, self._extents = of, first, extents
        self.entries = math.prod(extents)

    def forth(self) -> Iterator[Phase]:
        of = self._of
        q, k, v = (self._operand(number) for number in range(3))
        scores = self._scores(0)
        yield self._product(q, k.turned, scores)
        rows = self.entries * of.queries
        yield by_items("softmax_rows", rows * WARP, _ENTRIES, *self._table(scores, self._rows("result", 1), 0))
        yield self._product(scores, v, self._result(0))

    def back(self) -> Iterator[Phase]:
        of = self._of
        q, k, v, g = (self._operand(number) for number in (0, 1, 2, 5))
        scores, gradients = self._scores(0), self._scores(1)
        yield self._product(q, k.turned, scores)
        yield self._product(g, v.turned, gradients)
        table = self._table(scores, self._rows("operand", 3), self._rows("operand", 4), gradients.at)
        yield by_items("score_gradients", self.entries * of.queries * of.keys, _ENTRIES, *table)
        yield self._product(gradients, k, self._result(0))
        yield self._product(gradients.turned, q, self._result(1))
        yield self._product(scores.turned, g, self._result(2))

    def _table(
        self, scores: _Place, lse: CardPlace, delta: CardPlace | int, gradients: CardPlace | int = 0
    ) -> tuple[CardPlace | int, ...]:
        of = self._of
        sizes = self.entries * of.queries, of.keys, of.queries, int(of.causal), of.scale
        return (scores.at, lse, delta, *sizes, gradients)

    def _product(self, a: _Place, b: _Place, c: _Place) -> ProductPhase:
        """Raises _Refused."""
        number = self._of.dtype
        matrices = a.lying, b.lying, c.lying
        of = Product(number.name, number.itemsize, self._extents, a.rows, a.columns, b.columns, *matrices)
        if not stored_products(of):
            raise _Refused
        return ProductPhase(of, a.at, b.at, c.at, precision=self._of.precision)

    def _operand(self, number: int) -> _Place:
        return self._placed(CardPlace("operand", number), self._of.types[number])

    def _result(self, number: int) -> _Place:
        return self._placed(CardPlace("result", number), self._of.results[number])

    def _placed(self, first: CardPlace, type: TensorType) -> _Place:
        """Find the stretch of a tensor that begins at `first`; along leading axes that it lacks, it is repeated."""
        steps = steps_over(self._of.lead, without_matrices(type))
        at = sum(k * step for k, step in zip(self._first, steps, strict=False))
        (rows, columns), (row, column) = type.shape[-2:], type.strides[-2:]
        lying = Matrices(row, column, steps[len(steps) - len(self._extents) :])
        return _Place(first._replace(offset=at), rows, columns, lying)

    def _scores(self, number: int) -> _Place:
        of = self._of
        type = TensorType((*self._extents, of.queries, of.keys), of.dtype)
        at = number * aligned(self.entries * of.matrix_bytes)
        *steps, row, column = type.strides
        return _Place(CardPlace("workspace", 0, at), of.queries, of.keys, Matrices(row, column, tuple(steps)))

    def _rows(self, kind: CardPlaceKind, number: int) -> CardPlace:
        """Place the stretch of a dense tensor of one number a row."""
        steps = TensorType((*self._of.lead, self._of.queries), self._of.dtype).strides[:-1]
        return CardPlace(kind, number, sum(k * step for k, step in zip(self._first, steps, strict=False)))


def rows_card_recipe(terms: CardTerms, _: Any, *types: TensorType, **attrs: Any) -> CardRecipe | None:
    """Make cuDNN's recipe of attention in float16, from q, k and v."""
    of = attention_shape(*types[:3], **attrs)
    if of is None or terms.cudnn is None:
        return None
    return terms.cudnn.attention.rows(
        of, deterministic=terms.deterministic, workspace=terms.workspace, may_plan=terms.may_wait
    )


def gradients_card_recipe(terms: CardTerms, _: Any, *types: TensorType, **attrs: Any) -> CardRecipe | None:
    """Make cuDNN's recipe of its gradients, from q, k, v and the dense y, logarithms and cotangent."""
    of = attention_shape(*types[:3], **attrs)
    if of is None or terms.cudnn is None or not all(type.is_dense for type in types[3:]):
        return None
    return terms.cudnn.attention.gradients(
        of, deterministic=terms.deterministic, workspace=terms.workspace, may_plan=terms.may_wait
    )
