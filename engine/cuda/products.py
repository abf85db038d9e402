"""Matrix products: recipes with cuBLASLt, and their calls, bound to addresses.

A product reads its operands with their strides. In `tf32x3` it is made of three TF32 products, whose operands are split
into a large and a small part: c = aₛ bₗ + aₗ bₛ + aₗ bₗ. A bound product is one call of cuBLASLt, or a few, with the
first algorithm of its heuristics, or with one chosen by timing on fully aligned operands.

Source of the three products: G. Henry, P. T. P. Tang, A. Heinecke, "Leveraging the bfloat16 artificial intelligence
datatype for higher-precision computations" (2019), applied to TF32, whose significands have 11 bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

from engine.codegen.microkernels.product import MatrixLayout, Product
from engine.codegen.native.machine_code import KernelUnavailable, kernel_key
from engine.compiler.geometry import product_geometry
from engine.cuda.autotuning import NO_CHOICES, Candidate, Choices, Contest, StreamLaunch
from engine.cuda.card_recipe import CardPlace, CardRecipe, LaunchPhase, Phase, ProductPhase, launch_items
from engine.cuda.cublaslt import CublasLt, Matmul, MatmulTerms, StoredProduct, compute_type, stored_products
from engine.cuda.cuda_text import cuda_definitions
from engine.cuda.cudnn_recipes import CardTerms
from engine.ir.run_context import aligned
from engine.ir.run_report import IEEE
from engine.ir.tensor_type import FLOAT32, Strided, TensorType
from engine.ops.linalg.layouts import StridedProduct, operand_numbers

_A: Final = CardPlace("operand", 0)
_B: Final = CardPlace("operand", 1)
_C: Final = CardPlace("result", 0)
#: number of axes of the split kernel
_AXES: Final = 4
#: alignment in bytes beyond which cuBLASLt makes no difference
MAX_ALIGNMENT: Final = 256

#: x = big + small, both in TF32, each rounded to nearest. No finite number becomes infinite, and the small part of an
#: infinite number is 0. `keep_finite` clears non-finite sums of the small products, so that the big product decides
SPLIT_KERNELS: Final = """\
DEVICE F in_tf32(F x) {
const I bits = BITS(x), exponents = 0x7f800000;
if ((bits & exponents) == exponents) return x;
const I nearest = (I)((U)bits + 0xfffU + ((U)bits >> 13 & 1U)) & ~0x1fff;
return FROM_BITS((nearest & exponents) == exponents ? bits & ~0x1fff : nearest);
}
DEVICE long long place(long long item, const long long* const table) {
long long at = 0;
for (int axis = 3; axis >= 0; axis--) { at += item % table[4 + axis] * table[8 + axis]; item /= table[4 + axis]; }
return at;
}
KERNEL split(GIVEN) {
const long long* const table = TABLE;
const F* const RESTRICT x = (const F*)table[0];
F* const RESTRICT bigs = (F*)table[1];
F* const RESTRICT smalls = (F*)table[2];
const long long count = table[3], step = GRID_X * (long long)WIDE;
for (long long i = BLOCK_X * (long long)WIDE + THREAD_X; i < count; i += step) {
const long long at = place(i, table);
const F big = in_tf32(x[at]), rest = x[at] - big, small = in_tf32(rest);
const int adds_up = ABS(big + small) < INFINITE;
bigs[i] = big;
smalls[i] = adds_up ? small : ABS(big) < INFINITE ? FROM_BITS(BITS(rest) & ~0x1fff) : 0;
}
}
KERNEL keep_finite(GIVEN) {
const long long* const table = TABLE;
F* const RESTRICT x = (F*)table[0];
const long long count = table[3], step = GRID_X * (long long)WIDE;
for (long long i = BLOCK_X * (long long)WIDE + THREAD_X; i < count; i += step) {
const long long at = place(i, table);
if (!(ABS(x[at]) < INFINITE)) x[at] = 0;
}
}
"""
_ENTRIES: Final = 4 + 2 * _AXES
SPLIT_TEXT: Final = cuda_definitions("float32") + f"struct Table {{ long long at[{_ENTRIES}]; }};\n" + SPLIT_KERNELS


class _Axis(NamedTuple):
    """Axis of an operand, with its stride in bytes."""

    extent: int
    step: int


class _Parts(NamedTuple):
    """Split operand: the layout of its parts, their bytes, and the operand's axes, the fastest varying one last."""

    layout: MatrixLayout
    nbytes: int
    axes: list[_Axis]


def product_card_recipe(terms: CardTerms, product: Product) -> CardRecipe | None:
    """Build the recipe of a product; None if cuBLASLt does not support its dtype or its layouts."""
    if not stored_products(product):
        return None
    if terms.precision == "tf32x3" and product.dtype == "float32":
        recipe = _tf32x3_recipe(product)
        if recipe is not None and recipe.workspace <= terms.workspace:
            return recipe
    # without room to split, `tf32x3` uses float32, which is at least as exact
    reads_terms_precision = product.dtype == "float32" and terms.precision != "tf32x3"
    precision = terms.precision if reads_terms_precision else IEEE
    return CardRecipe((ProductPhase(product, _A, _B, _C, precision=precision),), precision=precision)


def laid_products_card_recipe(
    terms: CardTerms, parts: Sequence[StridedProduct], out: TensorType, *types: TensorType
) -> CardRecipe | None:
    """Build the recipe of products, each with its bias, into parts of one result; None if cuBLASLt cannot."""
    phases, recipes = list[Phase](), list[CardRecipe]()
    for part, numbers in operand_numbers(parts):
        result_type = Strided(out.with_shape(part.shape), [step * out.dtype.itemsize for step in part.strides])
        geometry = product_geometry(result_type, *(types[i] for i in numbers[:2]))
        recipe = geometry and product_card_recipe(terms, geometry)
        if recipe is None or (part.has_bias and not types[numbers[2]].is_dense):
            return None
        places = {_A: CardPlace("operand", numbers[0]), _B: CardPlace("operand", numbers[1])}
        places[_C] = CardPlace("result", 0, part.offset * out.dtype.itemsize)
        part_phases = [_replaced_places(phase, places) for phase in recipe.phases]
        if part.has_bias:
            part_phases[-1] = part_phases[-1]._replace(bias=CardPlace("operand", numbers[2]))
        phases += part_phases
        recipes.append(recipe)
    if len({recipe.precision for recipe in recipes}) > 1:
        return laid_products_card_recipe(terms._replace(precision=IEEE), parts, out, *types)
    text = next((recipe.text for recipe in recipes if recipe.text), "")
    return CardRecipe(tuple(phases), text, max(recipe.workspace for recipe in recipes), recipes[0].precision)


def _replaced_places(phase: Phase, places: Mapping[CardPlace, CardPlace]) -> Any:
    """Return a phase of a product on other operands and another result."""
    if isinstance(phase, ProductPhase):
        a, b, c = (places.get(place, place) for place in (phase.a, phase.b, phase.c))
        return phase._replace(a=a, b=b, c=c)
    assert isinstance(phase, LaunchPhase)
    return phase._replace(table=tuple(places.get(x, x) if isinstance(x, CardPlace) else x for x in phase.table))


def _tf32x3_recipe(product: Product) -> CardRecipe | None:
    """Build the recipe of c = aₛ bₗ + aₗ bₛ + aₗ bₗ from large and small parts; None if there are too many axes."""
    a = _parts((*product.batch, product.rows, product.inner), product.a)
    b = _parts((*product.batch, product.inner, product.columns), product.b)
    c = _parts((*product.batch, product.rows, product.columns), product.c)
    if max(len(parts.axes) for parts in (a, b, c)) > _AXES:
        return None
    *ends, end = accumulate((aligned(parts.nbytes) for parts in (a, a, b, b)), initial=0)
    large_a, small_a, large_b, small_b = (CardPlace("workspace", 0, start) for start in ends)
    split = product._replace(a=a.layout, b=b.layout)
    size = math.prod((*product.batch, product.rows, product.columns))
    first, second, last = (
        ProductPhase(split, x, y, _C, adds, precision="tf32")
        for x, y, adds in ((small_a, large_b, False), (large_a, small_b, True), (large_a, large_b, True))
    )
    phases = (
        _split(a, _A, large_a, small_a),
        _split(b, _B, large_b, small_b),
        first,
        second,
        # If an operand has an infinity, the small products may be NaN (∞ · 0). Clear them, so that the last one
        # decides.
        launch_items("keep_finite", size, _ENTRIES, _C, 0, 0, size, *_axis_entries(c.axes)),
        last,
    )
    return CardRecipe(phases, SPLIT_TEXT, end, "tf32x3")


def _parts(extents: Sequence[int], layout: MatrixLayout) -> _Parts:
    """Lay out the parts densely, with the operand's order of axes; repeated elements (stride 0) are split only once."""
    steps = (*layout.batch, layout.row, layout.column)
    stepped = [k for k, (extent, step) in enumerate(zip(extents, steps, strict=True)) if extent > 1 and step]
    strides, nbytes, axes = [0] * len(steps), 4, list[_Axis]()
    for k in sorted(stepped, key=lambda k: steps[k]):
        strides[k], nbytes = nbytes, nbytes * extents[k]
        inner = axes[0] if axes else None
        if inner is not None and steps[k] == inner.extent * inner.step:
            axes[0] = _Axis(inner.extent * extents[k], inner.step)
        else:
            axes.insert(0, _Axis(extents[k], steps[k]))
    *batch, row, column = strides
    # If there is a single row or column, use the stride that a second one would have.
    return _Parts(MatrixLayout(row or nbytes, column or 4, tuple(batch)), nbytes, axes)


def _split(parts: _Parts, operand: CardPlace, large: CardPlace, small: CardPlace) -> LaunchPhase:
    items = parts.nbytes // 4
    return launch_items("split", items, _ENTRIES, operand, large, small, items, *_axis_entries(parts.axes))


def _axis_entries(axes: Sequence[_Axis]) -> list[int]:
    """Return the table entries of axes: extents, and strides in elements."""
    padded = [_Axis(1, 0)] * (_AXES - len(axes)) + [*axes]
    return [*(axis.extent for axis in padded), *(axis.step // 4 for axis in padded)]


#: address of an array of addresses on the GPU, and the owner of its memory
Uploaded = tuple[int, Any]


class ProductPlaces(NamedTuple):
    """Addresses of the first elements of a, b and c, and of a bias with one element per column of c, or 0."""

    a: int
    b: int
    c: int
    bias: int = 0


#: fully aligned places, without and with a bias
_ALIGNED: Final = {False: ProductPlaces(0, 0, 0), True: ProductPlaces(0, 0, 0, MAX_ALIGNMENT)}


class BoundMatmul(NamedTuple):
    """Call of cuBLASLt, with the addresses of operands and result in the library's order."""

    matmul: Matmul
    first: int
    second: int
    result: int
    owner: Any = None

    def launch(self, workspace: int, stream: int) -> None:
        """Launch the product on a stream. Raises CublasLtError."""
        self.matmul.launch(self.first, self.second, self.result, workspace, stream)


class ProductCalls:
    """Binder of products to addresses. Products with the same terms share an algorithm. Thread-safe."""

    def __init__(self, library: CublasLt, upload: Callable[[Sequence[int]], Uploaded], card: str = "") -> None:
        """`upload` copies addresses to the GPU. Algorithms are chosen for GPUs of the kind `card`."""
        self._library, self._upload, self._card = library, upload, card
        self._matmuls: WeakValueDictionary[tuple[MatmulTerms, bytes | None], Matmul] = WeakValueDictionary()

    def bound(
        self, phase: ProductPhase, places: ProductPlaces, workspace: int, choices: Choices = NO_CHOICES
    ) -> list[BoundMatmul]:
        """Return the calls of a product with at most `workspace` bytes of workspace. Raises KernelUnavailable."""
        reason = KernelUnavailable("the operands of a product lie so that cuBLASLt does not read them")
        for stored in _stored_products(phase, places):
            try:
                chosen = self._choose_code(stored, phase, bool(places.bias), workspace, choices)
                return self._bind(stored, phase, places, workspace, chosen)
            except KernelUnavailable as error:
                reason = error
        raise reason

    def choose(self, phase: ProductPhase, workspace: int, choices: Choices) -> None:
        """Choose an algorithm for a product that `bound` will bind later, whatever the addresses of its operands."""
        aligned = _ALIGNED[phase.bias is not None]
        for stored in _stored_products(phase, aligned):
            with suppress(KernelUnavailable):
                self._matmul(_terms(stored, phase, aligned, workspace))
                self._choose_code(stored, phase, bool(aligned.bias), workspace, choices)
                return

    def _choose_code(
        self, stored: StoredProduct, phase: ProductPhase, has_bias: bool, workspace: int, choices: Choices
    ) -> bytes | None:
        """Return the code of the chosen algorithm, which is timed now if choices are open."""
        terms = _terms(stored, phase, _ALIGNED[has_bias], workspace)
        text, library = f"the quickest of {terms}", f"cublasLt {self._library.version}"
        key = kernel_key(text, system="cuda", processor=self._card, compiler=library)
        return choices.find(key, partial(self._contest, stored, phase, terms))

    def _contest(self, stored: StoredProduct, phase: ProductPhase, terms: MatmulTerms) -> Contest:
        """Return candidates for the proposed algorithms. Raises KernelUnavailable."""
        proposed, workspace = self._matmul(terms).proposed, terms.workspace
        codes = [each.algo.code for each in proposed]
        candidates = [Candidate(code, partial(self._bind_candidate, stored, phase, workspace, code)) for code in codes]
        needed_workspace = workspace if any(each.workspaceSize for each in proposed) else 0
        return Contest(candidates, (needed_workspace, *_sizes(stored, phase, has_bias=bool(terms.bias))))

    def _bind_candidate(
        self, stored: StoredProduct, phase: ProductPhase, workspace: int, code: bytes, addresses: Sequence[int]
    ) -> StreamLaunch:
        """Bind the launch of a product with one algorithm to a workspace, a, b, c and a bias, if there is one."""
        work, *operands = addresses
        calls = self._bind(stored, phase, ProductPlaces(*operands), workspace, code)

        def launch(stream: int) -> None:
            for call in calls:
                call.launch(work, stream)

        return launch

    def _bind(
        self, stored: StoredProduct, phase: ProductPhase, places: ProductPlaces, workspace: int, chosen: bytes | None
    ) -> list[BoundMatmul]:
        matmul, addresses = self._matmul(_terms(stored, phase, places, workspace), chosen), _addresses(stored, places)
        if not stored.by_pointers:
            return [BoundMatmul(matmul, *each) for each in addresses]
        firsts, seconds, results = zip(*addresses, strict=True)
        array, owner = self._upload([*firsts, *seconds, *results])
        size = 8 * stored.matrices
        return [BoundMatmul(matmul, array, array + size, array + 2 * size, owner)]

    def _matmul(self, terms: MatmulTerms, chosen: bytes | None = None) -> Matmul:
        matmul = self._matmuls.get((terms, chosen))
        if matmul is None:
            matmul = self._matmuls[terms, chosen] = Matmul(self._library, terms, chosen)
        return matmul


def _stored_products(phase: ProductPhase, places: ProductPlaces) -> list[StoredProduct]:
    """Return the ways to store a product. The epilogue that adds a bias does not support arrays of pointers."""
    products = stored_products(phase.product, widens=phase.widens)
    return [stored for stored in products if not (stored.by_pointers and places.bias)]


def _itemsizes(phase: ProductPhase) -> tuple[int, int, int]:
    """Return the bytes of an element of the first operand, the second and the result, in the library's order."""
    size = phase.product.itemsize
    return size, size, FLOAT32.itemsize if phase.widens else size


def _addresses(stored: StoredProduct, places: ProductPlaces) -> list[tuple[int, int, int]]:
    """Return the addresses of the first operand, the second and the result at each start, in the library's order."""
    return [(places.b + b, places.a + a, places.c + c) for a, b, c in stored.starts]


def _terms(stored: StoredProduct, phase: ProductPhase, places: ProductPlaces, workspace: int) -> MatmulTerms:
    matrices = zip((stored.first, stored.second, stored.result), _itemsizes(phase), strict=True)
    steps = [0 if stored.by_pointers else x.offset * size for x, size in matrices]
    operands = zip(steps, zip(*_addresses(stored, places), strict=True), strict=True)
    alignments = [math.gcd(MAX_ALIGNMENT, step, *each) for step, each in operands]
    return MatmulTerms(
        phase.product.dtype,
        compute_type(phase.product.dtype, phase.precision),
        *(stored.first, stored.second, stored.result, stored.matrices, stored.by_pointers, phase.adds),
        (alignments[0], alignments[1], alignments[2]),
        *(places.bias, workspace, phase.widens),
    )


def _sizes(stored: StoredProduct, phase: ProductPhase, *, has_bias: bool) -> tuple[int, ...]:
    """Return the bytes of a, b and c, from the first matrix to the end of the last, and of a bias."""
    matrices = 1 if stored.by_pointers else stored.matrices
    of_b, of_a, of_c = (
        # including the gaps between the columns of the last matrix
        size * ((matrices - 1) * x.offset + x.leading * (x.columns - 1) + x.rows)
        for x, size in zip((stored.first, stored.second, stored.result), _itemsizes(phase), strict=True)
    )
    a, b, c = (max(starts) for starts in zip(*stored.starts, strict=True))
    bias = [phase.product.columns * _itemsizes(phase)[2]] * has_bias
    return a + of_a, b + of_b, c + of_c, *bias
