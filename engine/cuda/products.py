"""Matrix products: recipes by cuBLASLt, and their calls, bound to addresses.

A product reads its operands as they lie. In `tf32x3` it is made of three TF32 products, whose operands are split in a
large and a small part: c = aₛ bₗ + aₗ bₛ + aₗ bₗ. A bound product is one call of cuBLASLt, or a few, with the first
algorithm of the heuristics, or with one that was chosen by timing for operands at fully aligned addresses.

Source of the three products: G. Henry, P. T. P. Tang, A. Heinecke, "Leveraging the bfloat16 artificial intelligence
datatype for higher-precision computations" (2019), with TF32, whose significands have 11 bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

from engine.codegen.microkernels.product import Matrices, Product
from engine.codegen.native.machine_code import KernelUnavailable, kernel_key
from engine.compiler.geometry import product_geometry
from engine.cuda.autotuning import NO_CHOICES, Candidate, Choices, Contest, StreamLaunch
from engine.cuda.card_recipe import CardPlace, CardRecipe, LaunchPhase, Phase, ProductPhase, by_items
from engine.cuda.cublaslt import CublasLt, Matmul, MatmulTerms, StoredProduct, compute_type, stored_products
from engine.cuda.cuda_text import cuda_definitions
from engine.cuda.cudnn_recipes import CardTerms
from engine.ir.run_context import aligned
from engine.ir.run_report import IEEE
from engine.ir.tensor_type import FLOAT32, Strided, TensorType
from engine.ops.linalg.layouts import LaidProduct, operands_of

_A: Final = CardPlace("operand", 0)
_B: Final = CardPlace("operand", 1)
_C: Final = CardPlace("result", 0)
#: axes of the kernel that splits
_AXES: Final = 4
#: the alignment beyond which cuBLASLt makes no difference, in bytes
MOST_ALIGNED: Final = 256

#: x = big + small, both in TF32, each rounded to nearest. No finite number becomes infinite, and the small part of an
#: infinite one is 0. `keep_finite` clears sums that are not finite: the product of the big parts decides
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
    """An axis of an operand, with its stride in bytes."""

    extent: int
    step: int


class _Parts(NamedTuple):
    """An operand that is split: the layout of its parts, their bytes, and its axes, the quickest one last."""

    lying: Matrices
    nbytes: int
    axes: list[_Axis]


def product_card_recipe(terms: CardTerms, of: Product) -> CardRecipe | None:
    """Make the recipe of a product; None if cuBLASLt does not multiply its dtype, or its matrices as they lie."""
    if not stored_products(of):
        return None
    if terms.precision == "tf32x3" and of.dtype == "float32":
        recipe = _in_three(of)
        if recipe is not None and recipe.workspace <= terms.workspace:
            return recipe
    # without room to split, `tf32x3` reads float32, which is as exact at least
    is_read_so = of.dtype == "float32" and terms.precision != "tf32x3"
    precision = terms.precision if is_read_so else IEEE
    return CardRecipe((ProductPhase(of, _A, _B, _C, precision=precision),), precision=precision)


def laid_products_card_recipe(
    terms: CardTerms, parts: Sequence[LaidProduct], out: TensorType, *types: TensorType
) -> CardRecipe | None:
    """Make the recipe of parts, each with its bias, where they lie; None if cuBLASLt cannot make one of them."""
    phases, recipes = list[Phase](), list[CardRecipe]()
    for part, numbers in operands_of(parts):
        lying = Strided(out.with_shape(part.shape), [step * out.dtype.itemsize for step in part.strides])
        geometry = product_geometry(lying, *(types[i] for i in numbers[:2]))
        recipe = geometry and product_card_recipe(terms, geometry)
        if recipe is None or (part.has_bias and not types[numbers[2]].is_dense):
            return None
        places = {_A: CardPlace("operand", numbers[0]), _B: CardPlace("operand", numbers[1])}
        places[_C] = CardPlace("result", 0, part.offset * out.dtype.itemsize)
        placed = [_placed(phase, places) for phase in recipe.phases]
        if part.has_bias:
            placed[-1] = placed[-1]._replace(bias=CardPlace("operand", numbers[2]))
        phases += placed
        recipes.append(recipe)
    if len({recipe.precision for recipe in recipes}) > 1:
        return laid_products_card_recipe(terms._replace(precision=IEEE), parts, out, *types)
    text = next((recipe.text for recipe in recipes if recipe.text), "")
    return CardRecipe(tuple(phases), text, max(recipe.workspace for recipe in recipes), recipes[0].precision)


def _placed(phase: Phase, places: Mapping[CardPlace, CardPlace]) -> Any:
    """Put a phase of a product on other operands, and into another result."""
    if isinstance(phase, ProductPhase):
        a, b, c = (places.get(place, place) for place in (phase.a, phase.b, phase.c))
        return phase._replace(a=a, b=b, c=c)
    assert isinstance(phase, LaunchPhase)
    return phase._replace(table=tuple(places.get(x, x) if isinstance(x, CardPlace) else x for x in phase.table))


def _in_three(of: Product) -> CardRecipe | None:
    """Make c = aₛ bₗ + aₗ bₛ + aₗ bₗ of large and small parts; None if there are too many axes."""
    a = _parts((*of.batch, of.rows, of.inner), of.a)
    b = _parts((*of.batch, of.inner, of.columns), of.b)
    c = _parts((*of.batch, of.rows, of.columns), of.c)
    if max(len(parts.axes) for parts in (a, b, c)) > _AXES:
        return None
    *ends, end = accumulate((aligned(parts.nbytes) for parts in (a, a, b, b)), initial=0)
    large_a, small_a, large_b, small_b = (CardPlace("workspace", 0, start) for start in ends)
    split = of._replace(a=a.lying, b=b.lying)
    size = math.prod((*of.batch, of.rows, of.columns))
    first, second, last = (
        ProductPhase(split, x, y, _C, adds, precision="tf32")
        for x, y, adds in ((small_a, large_b, False), (large_a, small_b, True), (large_a, large_b, True))
    )
    phases = (
        _split(a, _A, large_a, small_a),
        _split(b, _B, large_b, small_b),
        first,
        second,
        by_items("keep_finite", size, _ENTRIES, _C, 0, 0, size, *_axis_entries(c.axes)),
        last,
    )
    return CardRecipe(phases, SPLIT_TEXT, end, "tf32x3")


def _parts(extents: Sequence[int], lying: Matrices) -> _Parts:
    """Lay parts densely, in the order in which the operand lies; repeated elements are split once."""
    steps = (*lying.batch, lying.row, lying.column)
    moving = [k for k, (extent, step) in enumerate(zip(extents, steps, strict=True)) if extent > 1 and step]
    strides, nbytes, axes = [0] * len(steps), 4, list[_Axis]()
    for k in sorted(moving, key=lambda k: steps[k]):
        strides[k], nbytes = nbytes, nbytes * extents[k]
        inner = axes[0] if axes else None
        if inner is not None and steps[k] == inner.extent * inner.step:
            axes[0] = _Axis(inner.extent * extents[k], inner.step)
        else:
            axes.insert(0, _Axis(extents[k], steps[k]))
    *batch, row, column = strides
    # A matrix of one row or column has the stride to where a next one would be.
    return _Parts(Matrices(row or nbytes, column or 4, tuple(batch)), nbytes, axes)


def _split(parts: _Parts, of: CardPlace, large: CardPlace, small: CardPlace) -> LaunchPhase:
    items = parts.nbytes // 4
    return by_items("split", items, _ENTRIES, of, large, small, items, *_axis_entries(parts.axes))


def _axis_entries(axes: Sequence[_Axis]) -> list[int]:
    """List the table's entries of axes: extents, and strides in elements."""
    whole = [_Axis(1, 0)] * (_AXES - len(axes)) + [*axes]
    return [*(axis.extent for axis in whole), *(axis.step // 4 for axis in whole)]


#: address of an array of addresses on the card, and the owner of its memory
Uploaded = tuple[int, Any]


class ProductPlaces(NamedTuple):
    """Addresses of the first elements of a, b and c, and of a bias, one number a column of c, or 0."""

    a: int
    b: int
    c: int
    bias: int = 0


#: fully aligned places, without a bias and with one
_ALIGNED: Final = {False: ProductPlaces(0, 0, 0), True: ProductPlaces(0, 0, 0, MOST_ALIGNED)}


class BoundMatmul(NamedTuple):
    """A call of cuBLASLt, with the addresses of operands and result in the library's order."""

    matmul: Matmul
    first: int
    second: int
    result: int
    kept: Any = None

    def launch(self, workspace: int, stream: int) -> None:
        """Launch it on a stream. Raises CublasLtError."""
        self.matmul.launch(self.first, self.second, self.result, workspace, stream)


class ProductCalls:
    """Binder of products to addresses. Products of the same terms share an algorithm. Threads may share it."""

    def __init__(self, library: CublasLt, upload: Callable[[Sequence[int]], Uploaded], card: str = "") -> None:
        """`upload` copies addresses to the card. Algorithms are chosen for cards of the kind `card`."""
        self._library, self._upload, self._card = library, upload, card
        self._made: WeakValueDictionary[tuple[MatmulTerms, bytes | None], Matmul] = WeakValueDictionary()

    def bound(
        self, phase: ProductPhase, places: ProductPlaces, workspace: int, choices: Choices = NO_CHOICES
    ) -> list[BoundMatmul]:
        """Make the calls of a product within so many bytes of workspace. Raises KernelUnavailable."""
        reason = KernelUnavailable("the operands of a product lie so that cuBLASLt does not read them")
        for way in _ways(phase, places):
            try:
                chosen = self._chosen(way, phase, bool(places.bias), workspace, choices)
                return self._by(way, phase, places, workspace, chosen)
            except KernelUnavailable as error:
                reason = error
        raise reason

    def choose(self, phase: ProductPhase, workspace: int, choices: Choices) -> None:
        """Choose an algorithm for a product that `bound` will bind, wherever its operands lie."""
        aligned = _ALIGNED[phase.bias is not None]
        for way in _ways(phase, aligned):
            with suppress(KernelUnavailable):
                self._matmul(_terms(way, phase, aligned, workspace))
                self._chosen(way, phase, bool(aligned.bias), workspace, choices)
                return

    def _chosen(
        self, way: StoredProduct, phase: ProductPhase, has_bias: bool, workspace: int, choices: Choices
    ) -> bytes | None:
        """Find the code of the chosen algorithm, timed now if choices are open."""
        terms = _terms(way, phase, _ALIGNED[has_bias], workspace)
        text, library = f"the quickest of {terms}", f"cublasLt {self._library.version}"
        key = kernel_key(text, system="cuda", processor=self._card, compiler=library)
        return choices.find(key, partial(self._contest, way, phase, terms))

    def _contest(self, way: StoredProduct, phase: ProductPhase, terms: MatmulTerms) -> Contest:
        """Make candidates of the proposed algorithms. Raises KernelUnavailable."""
        proposed, workspace = self._matmul(terms).proposed, terms.workspace
        codes = [each.algo.code for each in proposed]
        candidates = [Candidate(code, partial(self._on, way, phase, workspace, code)) for code in codes]
        needs = workspace if any(each.workspaceSize for each in proposed) else 0
        return Contest(candidates, (needs, *_sizes(way, phase, has_bias=bool(terms.bias))))

    def _on(
        self, way: StoredProduct, phase: ProductPhase, workspace: int, code: bytes, addresses: Sequence[int]
    ) -> StreamLaunch:
        """Bind the launch of a product by one algorithm to a workspace, a, b, c and a bias, if there is one."""
        work, *operands = addresses
        calls = self._by(way, phase, ProductPlaces(*operands), workspace, code)

        def launch(stream: int) -> None:
            for call in calls:
                call.launch(work, stream)

        return launch

    def _by(
        self, way: StoredProduct, phase: ProductPhase, places: ProductPlaces, workspace: int, chosen: bytes | None
    ) -> list[BoundMatmul]:
        matmul, addresses = self._matmul(_terms(way, phase, places, workspace), chosen), _addresses(way, places)
        if not way.by_pointers:
            return [BoundMatmul(matmul, *each) for each in addresses]
        firsts, seconds, results = zip(*addresses, strict=True)
        array, kept = self._upload([*firsts, *seconds, *results])
        size = 8 * way.matrices
        return [BoundMatmul(matmul, array, array + size, array + 2 * size, kept)]

    def _matmul(self, terms: MatmulTerms, chosen: bytes | None = None) -> Matmul:
        matmul = self._made.get((terms, chosen))
        if matmul is None:
            matmul = self._made[terms, chosen] = Matmul(self._library, terms, chosen)
        return matmul


def _ways(phase: ProductPhase, places: ProductPlaces) -> list[StoredProduct]:
    """List the ways to make a product; an epilogue, which adds a bias, takes no arrays of pointers."""
    ways = stored_products(phase.of, widens=phase.widens)
    return [way for way in ways if not (way.by_pointers and places.bias)]


def _itemsizes(phase: ProductPhase) -> tuple[int, int, int]:
    """Bytes of an element of the first, the second and the result, in the library's order."""
    size = phase.of.itemsize
    return size, size, FLOAT32.itemsize if phase.widens else size


def _addresses(way: StoredProduct, places: ProductPlaces) -> list[tuple[int, int, int]]:
    """Addresses of the first, the second and the result at each start, in the library's order."""
    return [(places.b + b, places.a + a, places.c + c) for a, b, c in way.starts]


def _terms(way: StoredProduct, phase: ProductPhase, places: ProductPlaces, workspace: int) -> MatmulTerms:
    stored = zip((way.first, way.second, way.result), _itemsizes(phase), strict=True)
    steps = [0 if way.by_pointers else x.offset * size for x, size in stored]
    placed = zip(steps, zip(*_addresses(way, places), strict=True), strict=True)
    alignments = [math.gcd(MOST_ALIGNED, step, *each) for step, each in placed]
    return MatmulTerms(
        phase.of.dtype,
        compute_type(phase.of.dtype, phase.precision),
        *(way.first, way.second, way.result, way.matrices, way.by_pointers, phase.adds),
        (alignments[0], alignments[1], alignments[2]),
        *(places.bias, workspace, phase.widens),
    )


def _sizes(way: StoredProduct, phase: ProductPhase, *, has_bias: bool) -> tuple[int, ...]:
    """Bytes of a, b and c, from the first matrix to the end of the last, and of a bias."""
    matrices = 1 if way.by_pointers else way.matrices
    of_b, of_a, of_c = (
        # with the gaps between the columns of the last matrix
        size * ((matrices - 1) * x.offset + x.leading * (x.columns - 1) + x.rows)
        for x, size in zip((way.first, way.second, way.result), _itemsizes(phase), strict=True)
    )
    a, b, c = (max(starts) for starts in zip(*way.starts, strict=True))
    bias = [phase.of.columns * _itemsizes(phase)[2]] * has_bias
    return a + of_a, b + of_b, c + of_c, *bias
