"""Attention on a GPU: products, with full score matrices in the workspace, and kernels between them; or cuDNN.

The workspace bounds how many score matrices are computed at a time, so the leading axes are processed in stretches.
Forward, scores = q kᵀ is a product, a kernel computes the softmax of each row, and y = softmax · v is a product.
Backward, the scores and the cotangents of their softmax, g vᵀ, are products. A kernel then recomputes the softmax from
the saved logarithms, and computes the cotangents of the scores. Both are zero if the key is masked for its query.

float16 attention runs only with cuDNN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product as combinations
from typing import Any, Final, NamedTuple

import numpy as np

from engine.codegen.microkernels.axis_kernels import batch_type, broadcast_strides
from engine.codegen.microkernels.product import MatrixLayout, Product
from engine.cuda.card_recipe import (
    CardPlace,
    CardPlaceKind,
    CardRecipe,
    Phase,
    ProductPhase,
    card_text,
    is_wide,
    launch_items,
)
from engine.cuda.cublaslt import stored_products
from engine.cuda.cuda_text import WARP
from engine.cuda.cudnn_recipes import CardTerms, attention_shape
from engine.ir.run_context import aligned
from engine.ir.run_report import IEEE, Precision
from engine.ir.tensor_type import FLOAT32, FLOAT64, Shape, TensorType
from engine.ops.nn.attention_tiles import batch_axes

#: maximum number of stretches
_MAX_STRETCHES: Final = 64
#: entries of the kernels' tables
_ENTRIES: Final = 9
#: exponential and logarithm functions of a dtype, in CUDA and C
_FUNCTIONS: Final = {"float32": ("expf", "logf"), "float64": ("exp", "log")}
#: softmax of a row of scores up to its last visible key, and its gradient. If a score is NaN, so is the whole row
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
    """Build the recipe of y and the logarithms of the rows' sums, from q, k and v.

    Return None for a mask, or if the workspace is too small. y is written with the strides of its type.
    """
    if len(types) != len(("q", "k", "v")) or not out[1].is_dense:
        return None
    return _Attention(terms, types, out, scale, causal).recipe(1, _Stretch.forward)


def attention_gradients_recipe(
    terms: CardTerms, out: Sequence[TensorType], *types: TensorType, scale: float, causal: bool
) -> CardRecipe | None:
    """Build the recipe of dq, dk and dv, from q, k, v, the logarithms, δ and the cotangent of y.

    Return None for a mask, if the workspace is too small, or if the logarithms or δ are not dense. The results are
    written with the strides of their types.
    """
    if len(types) != len(("q", "k", "v", "lse", "delta", "g")):
        return None
    lead = batch_axes(*types)
    if not all(type.is_dense and type.shape[:-2] == lead for type in types[3:5]):
        return None
    return _Attention(terms, types, out, scale, causal).recipe(2, _Stretch.backward)


class _UnsupportedLayout(Exception):
    """cuBLASLt does not support these matrices' layouts."""


class _Matrices(NamedTuple):
    """Matrices along the leading axes of a stretch: address of the first, rows and columns, and strides."""

    place: CardPlace
    rows: int
    columns: int
    layout: MatrixLayout

    @property
    def transposed(self) -> _Matrices:
        layout = self.layout._replace(row=self.layout.column, column=self.layout.row)
        return _Matrices(self.place, self.columns, self.rows, layout)


class _Attention:
    """Operands and results of attention, for all stretches."""

    def __init__(
        self, terms: CardTerms, types: Sequence[TensorType], results: Sequence[TensorType], scale: float, causal: bool
    ) -> None:
        self.terms, self.types, self.results, self.causal = terms, types, results, causal
        self.dtype = types[0].dtype
        self.lead: Shape = batch_axes(*types)
        self.queries, self.keys = types[0].shape[-2], types[1].shape[-2]
        self.scale = int(np.array(scale, self.dtype).view(f"i{self.dtype.itemsize}"))
        precision = terms.precision if terms.precision != "tf32x3" else IEEE
        self.precision: Precision = precision if self.dtype == FLOAT32 else IEEE

    @property
    def score_bytes(self) -> int:
        return self.queries * self.keys * self.dtype.itemsize

    def recipe(self, matrices: int, phases: Callable[[_Stretch], Iterator[Phase]]) -> CardRecipe | None:
        """Build the recipe of all stretches, run one after the other, with `matrices` score matrices per entry."""
        if self.dtype not in (FLOAT32, FLOAT64) or not math.prod((*self.lead, self.score_bytes)):
            return None
        stretches = [*self._stretches(matrices)]
        if not 0 < len(stretches) <= _MAX_STRETCHES:
            return None
        try:
            all_phases = [phase for stretch in stretches for phase in phases(stretch)]
        except _UnsupportedLayout:
            return None
        exp, log = _FUNCTIONS[self.dtype.name]
        max_entries = max(stretch.entries for stretch in stretches)
        counts_are_wide = is_wide(max_entries * self.queries * max(self.keys, WARP))
        text = card_text(self.dtype.name, _ENTRIES, _KERNELS.format(exp=exp, log=log), is_wide=counts_are_wide)
        return CardRecipe(tuple(all_phases), text, matrices * aligned(max_entries * self.score_bytes), self.precision)

    def _stretches(self, matrices: int) -> Iterator[_Stretch]:
        """Yield stretches: some entries of one axis and all later axes, for each index of the earlier axes.

        Yield nothing if the workspace is too small.
        """
        max_matrices = self.terms.workspace // matrices // aligned(1) * aligned(1) // self.score_bytes
        if max_matrices and not self.lead:
            yield _Stretch(self, (), ())
        entries_after = [math.prod(self.lead[axis + 1 :]) for axis in range(len(self.lead))]
        axis = next((axis for axis, entries in enumerate(entries_after) if entries <= max_matrices), None)
        if axis is None:
            return
        step, extent = max_matrices // entries_after[axis], self.lead[axis]
        for index in combinations(*map(range, self.lead[:axis])):
            for first in range(0, extent, step):
                yield _Stretch(self, (*index, first), (min(step, extent - first), *self.lead[axis + 1 :]))


class _Stretch:
    """Part of the leading axes: the index of its first entry, and its extents along the last of these axes."""

    def __init__(self, attention: _Attention, first: Shape, extents: Shape) -> None:
        self._attention, self._first, self._extents = attention, first, extents
        self.entries = math.prod(extents)

    def forward(self) -> Iterator[Phase]:
        attention = self._attention
        q, k, v = (self._operand(number) for number in range(3))
        scores = self._scores(0)
        yield self._product(q, k.transposed, scores)
        rows = self.entries * attention.queries
        yield launch_items("softmax_rows", rows * WARP, _ENTRIES, *self._table(scores, self._rows("result", 1), 0))
        yield self._product(scores, v, self._result(0))

    def backward(self) -> Iterator[Phase]:
        attention = self._attention
        q, k, v, g = (self._operand(number) for number in (0, 1, 2, 5))
        scores, gradients = self._scores(0), self._scores(1)
        yield self._product(q, k.transposed, scores)
        yield self._product(g, v.transposed, gradients)
        table = self._table(scores, self._rows("operand", 3), self._rows("operand", 4), gradients.place)
        yield launch_items("score_gradients", self.entries * attention.queries * attention.keys, _ENTRIES, *table)
        yield self._product(gradients, k, self._result(0))
        yield self._product(gradients.transposed, q, self._result(1))
        yield self._product(scores.transposed, g, self._result(2))

    def _table(
        self, scores: _Matrices, lse: CardPlace, delta: CardPlace | int, gradients: CardPlace | int = 0
    ) -> tuple[CardPlace | int, ...]:
        attention = self._attention
        sizes = (
            self.entries * attention.queries,
            attention.keys,
            attention.queries,
            int(attention.causal),
            attention.scale,
        )
        return (scores.place, lse, delta, *sizes, gradients)

    def _product(self, a: _Matrices, b: _Matrices, c: _Matrices) -> ProductPhase:
        """Return the phase of a product. Raises _Refused."""
        dtype = self._attention.dtype
        matrices = a.layout, b.layout, c.layout
        product = Product(dtype.name, dtype.itemsize, self._extents, a.rows, a.columns, b.columns, *matrices)
        if not stored_products(product):
            raise _UnsupportedLayout
        return ProductPhase(product, a.place, b.place, c.place, precision=self._attention.precision)

    def _operand(self, number: int) -> _Matrices:
        return self._placed(CardPlace("operand", number), self._attention.types[number])

    def _result(self, number: int) -> _Matrices:
        return self._placed(CardPlace("result", number), self._attention.results[number])

    def _placed(self, first: CardPlace, type: TensorType) -> _Matrices:
        """Return this stretch of a tensor that begins at `first`; leading axes that the tensor lacks are broadcast."""
        steps = broadcast_strides(self._attention.lead, batch_type(type))
        offset = sum(k * step for k, step in zip(self._first, steps, strict=False))
        (rows, columns), (row, column) = type.shape[-2:], type.strides[-2:]
        layout = MatrixLayout(row, column, steps[len(steps) - len(self._extents) :])
        return _Matrices(first._replace(offset=offset), rows, columns, layout)

    def _scores(self, number: int) -> _Matrices:
        attention = self._attention
        type = TensorType((*self._extents, attention.queries, attention.keys), attention.dtype)
        offset = number * aligned(self.entries * attention.score_bytes)
        *steps, row, column = type.strides
        return _Matrices(
            CardPlace("workspace", 0, offset),
            attention.queries,
            attention.keys,
            MatrixLayout(row, column, tuple(steps)),
        )

    def _rows(self, kind: CardPlaceKind, number: int) -> CardPlace:
        """Return the place of this stretch in a dense tensor of one element per row."""
        steps = TensorType((*self._attention.lead, self._attention.queries), self._attention.dtype).strides[:-1]
        return CardPlace(kind, number, sum(k * step for k, step in zip(self._first, steps, strict=False)))


def rows_card_recipe(terms: CardTerms, _: Any, *types: TensorType, **attrs: Any) -> CardRecipe | None:
    """Build cuDNN's recipe of float16 attention, from q, k and v."""
    shape = attention_shape(*types[:3], **attrs)
    if shape is None or terms.cudnn is None:
        return None
    return terms.cudnn.attention.rows(
        shape, deterministic=terms.deterministic, workspace=terms.workspace, may_plan=terms.may_wait
    )


def gradients_card_recipe(terms: CardTerms, _: Any, *types: TensorType, **attrs: Any) -> CardRecipe | None:
    """Build cuDNN's recipe of the gradients, from q, k, v and the dense y, logarithms and cotangent."""
    shape = attention_shape(*types[:3], **attrs)
    if shape is None or terms.cudnn is None or not all(type.is_dense for type in types[3:]):
        return None
    return terms.cudnn.attention.gradients(
        shape, deterministic=terms.deterministic, workspace=terms.workspace, may_plan=terms.may_wait
    )
