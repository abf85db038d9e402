"""Matrix products: recipes by cuBLASLt, and their calls, bound to addresses.

A product is made as its operands lie, or, in `tf32x3`, as three products of their parts.

Source of the three products: G. Henry, P. T. P. Tang, A. Heinecke, "Leveraging the bfloat16 artificial intelligence
datatype for higher-precision computations" (2019), with TF32, whose significands have 11 bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

from engine.codegen.microkernels.product import Matrices, Product
from engine.codegen.native.kernel_errors import KernelUnavailable
from engine.codegen.native.kernel_store import kernel_key
from engine.compiler.geometry import product_geometry
from engine.cuda.autotuning import NO_CHOICES, Candidate, Choices, Contest, StreamLaunch
from engine.cuda.card_recipe import CardPlace, CardRecipe, LaunchPhase, Phase, ProductPhase
from engine.cuda.cublaslt import CublasLt, Matmul, MatmulTerms, StoredProduct, compute_type, stored_products
from engine.cuda.cuda_text import cuda_definitions
from engine.cuda.cudnn_recipes import CardTerms
from engine.cuda.launch import Extent
from engine.ir.run_context import aligned
from engine.ir.run_report import IEEE
from engine.ir.tensor_type import FLOAT32, Strided, TensorType
from engine.ops.linalg.layouts import LaidProduct, operands_of

_A: Final = CardPlace("operand", 0)
_B: Final = CardPlace("operand", 1)
_C: Final = CardPlace("result", 0)
#: axes that the kernel which splits goes along, threads of a block, and the most blocks
_AXES: Final = 4
_WIDE: Final = 256
_MOST_BLOCKS: Final = 65535

#: x = big + small, both in TF32, each rounded to nearest; no number becomes infinite, and of one that is not finite
#: nothing is left. What sums of products with such numbers have come to is dropped: the product of big parts tells.
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
    """An axis of an operand, and the bytes between its elements."""

    extent: int
    step: int


class _Parts(NamedTuple):
    """An operand in two: how its parts lie, their bytes, and the axes that are gone through, the quickest one last."""

    lying: Matrices
    nbytes: int
    axes: list[_Axis]


def product_card_recipe(terms: CardTerms, of: Product) -> CardRecipe | None:
    """By cuBLASLt; None for what it does not multiply, cannot read, or cannot write as it is to lie."""
    if not stored_products(of):
        return None
    if terms.precision == "tf32x3" and of.dtype == "float32":
        found = _in_three(of)
        if found is not None and found.workspace <= terms.workspace:
            return found
    # Split or not, `tf32x3` is as exact as this at least.
    is_read_so = of.dtype == "float32" and terms.precision != "tf32x3"
    precision = terms.precision if is_read_so else IEEE
    return CardRecipe((ProductPhase(of, _A, _B, _C, precision=precision),), precision=precision)


def laid_products_card_recipe(
    terms: CardTerms, parts: Sequence[LaidProduct], out: TensorType, *types: TensorType
) -> CardRecipe | None:
    """Each part by cuBLASLt, to where it lies, its bias with it; None where one of them is not."""
    phases, found = list[Phase](), list[CardRecipe]()
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
        found.append(recipe)
    if len({recipe.precision for recipe in found}) > 1:
        return laid_products_card_recipe(terms._replace(precision=IEEE), parts, out, *types)
    text = next((recipe.text for recipe in found if recipe.text), "")
    return CardRecipe(tuple(phases), text, max(recipe.workspace for recipe in found), found[0].precision)


def _placed(phase: Phase, places: Mapping[CardPlace, CardPlace]) -> Any:
    """A phase of a product on other operands, into another result."""
    if isinstance(phase, ProductPhase):
        a, b, c = (places.get(place, place) for place in (phase.a, phase.b, phase.c))
        return phase._replace(a=a, b=b, c=c)
    assert isinstance(phase, LaunchPhase)
    return phase._replace(table=tuple(places.get(x, x) if isinstance(x, CardPlace) else x for x in phase.table))


def _in_three(of: Product) -> CardRecipe | None:
    """c = aₛ bₗ + aₗ bₛ + aₗ bₗ of large and small parts, the smallest first; None where there are too many axes."""
    a = _parts((*of.batch, of.rows, of.inner), of.a)
    b = _parts((*of.batch, of.inner, of.columns), of.b)
    c = _parts((*of.batch, of.rows, of.columns), of.c)
    if max(len(parts.axes) for parts in (a, b, c)) > _AXES:
        return None
    large_a, small_a, large_b, small_b, end = _places(a, b)
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
        LaunchPhase("keep_finite", *_threads(size), (_C, 0, 0, size, *_entries(c.axes))),
        last,
    )
    return CardRecipe(phases, SPLIT_TEXT, end, "tf32x3")


def _parts(extents: Sequence[int], lying: Matrices) -> _Parts:
    """Densely, in the order in which the operand lies; what is repeated along an axis is split once."""
    steps = (*lying.batch, lying.row, lying.column)
    there = [k for k, (extent, step) in enumerate(zip(extents, steps, strict=True)) if extent > 1 and step]
    found, nbytes, axes = [0] * len(steps), 4, list[_Axis]()
    for k in sorted(there, key=lambda k: steps[k]):
        found[k], nbytes = nbytes, nbytes * extents[k]
        inner = axes[0] if axes else None
        if inner is not None and steps[k] == inner.extent * inner.step:
            axes[0] = _Axis(inner.extent * extents[k], inner.step)
        else:
            axes.insert(0, _Axis(extents[k], steps[k]))
    *batch, row, column = found
    # A matrix of one row or column says how far the next one would be.
    return _Parts(Matrices(row or nbytes, column or 4, tuple(batch)), nbytes, axes)


def _places(a: _Parts, b: _Parts) -> tuple[CardPlace, CardPlace, CardPlace, CardPlace, int]:
    """Those of the large and the small part of each, and the bytes up to their end."""
    ends = [0]
    for parts in (a, a, b, b):
        ends.append(ends[-1] + aligned(parts.nbytes))
    first, second, third, fourth = (CardPlace("workspace", 0, end) for end in ends[:4])
    return first, second, third, fourth, ends[4]


def _split(parts: _Parts, of: CardPlace, large: CardPlace, small: CardPlace) -> LaunchPhase:
    table: tuple[int | CardPlace, ...] = (of, large, small, parts.nbytes // 4, *_entries(parts.axes))
    return LaunchPhase("split", *_threads(parts.nbytes // 4), table)


def _entries(axes: Sequence[_Axis]) -> list[int]:
    """Of a table: extents of so many axes as a kernel goes along, and elements to step along them."""
    whole = [_Axis(1, 0)] * (_AXES - len(axes)) + [*axes]
    return [*(axis.extent for axis in whole), *(axis.step // 4 for axis in whole)]


def _threads(items: int) -> tuple[Extent, Extent]:
    """A thread for each item, as far as there are blocks."""
    return (max(1, min(-(-items // _WIDE), _MOST_BLOCKS)), 1), (_WIDE, 1)


# Products bound to addresses of a card: each a call of cuBLASLt, or a few, by an algorithm that is chosen once.
#
# That is the first of the heuristics for what lies where it does; or one of these, where it was chosen for such a
# product whose operands begin at addresses that are as aligned as may be.

#: the alignment beyond which cuBLASLt makes no difference, in bytes
MOST_ALIGNED: Final = 256

#: where an array of addresses lies on the card, and what keeps it there
Uploaded = tuple[int, Any]


class ProductPlaces(NamedTuple):
    """Addresses of the first elements, and of as many numbers as c has columns, or 0."""

    a: int
    b: int
    c: int
    bias: int = 0


#: as aligned as may be, without a bias and with one
_ALIGNED: Final = {False: ProductPlaces(0, 0, 0), True: ProductPlaces(0, 0, 0, MOST_ALIGNED)}


class BoundMatmul(NamedTuple):
    """A call of cuBLASLt, and where its operands and its result lie, in the library's order."""

    matmul: Matmul
    first: int
    second: int
    result: int
    kept: Any = None

    def launch(self, workspace: int, stream: int) -> None:
        """Launch it on a stream. Raises CublasLtError."""
        self.matmul.launch(self.first, self.second, self.result, workspace, stream)


class ProductCalls:
    """Binding of products to addresses. What asks for the same shares the algorithm. Threads may share it."""

    def __init__(self, library: CublasLt, upload: Callable[[Sequence[int]], Uploaded], card: str = "") -> None:
        """`upload` puts addresses on the card, once and for all. Algorithms are chosen for cards of the kind `card`."""
        self._library, self._upload, self._card = library, upload, card
        self._made: WeakValueDictionary[tuple[MatmulTerms, bytes | None], Matmul] = WeakValueDictionary()

    def bound(
        self, phase: ProductPhase, places: ProductPlaces, workspace: int, choices: Choices = NO_CHOICES
    ) -> list[BoundMatmul]:
        """The calls that make a product within so many bytes of workspace. Raises KernelUnavailable."""
        reason = KernelUnavailable("the operands of a product lie so that cuBLASLt does not read them")
        for way in _ways(phase, places):
            try:
                chosen = self._chosen(way, phase, bool(places.bias), workspace, choices)
                return self._by(way, phase, places, workspace, chosen)
            except KernelUnavailable as error:
                reason = error
        raise reason

    def choose(self, phase: ProductPhase, workspace: int, choices: Choices) -> None:
        """Have an algorithm chosen for what `bound` would bind, wherever the operands lie."""
        aligned = _ALIGNED[phase.bias is not None]
        for way in _ways(phase, aligned):
            with suppress(KernelUnavailable):
                self._matmul(_terms(way, phase, aligned, workspace))
                self._chosen(way, phase, bool(aligned.bias), workspace, choices)
                return

    def _chosen(
        self, way: StoredProduct, phase: ProductPhase, has_bias: bool, workspace: int, choices: Choices
    ) -> bytes | None:
        """The code of the algorithm that is chosen, now, where choices are open."""
        terms = _terms(way, phase, _ALIGNED[has_bias], workspace)
        text, library = f"the quickest of {terms}", f"cublasLt {self._library.version}"
        key = kernel_key(text, system="cuda", processor=self._card, compiler=library)
        return choices.find(key, partial(self._contest, way, phase, terms))

    def _contest(self, way: StoredProduct, phase: ProductPhase, terms: MatmulTerms) -> Contest:
        """The algorithms that are proposed. Raises KernelUnavailable."""
        proposed, workspace = self._matmul(terms).proposed, terms.workspace
        codes = [each.algo.code for each in proposed]
        candidates = [Candidate(code, partial(self._on, way, phase, workspace, code)) for code in codes]
        needs = workspace if any(each.workspaceSize for each in proposed) else 0
        return Contest(candidates, (needs, *_sizes(way, phase, has_bias=bool(terms.bias))))

    def _on(
        self, way: StoredProduct, phase: ProductPhase, workspace: int, code: bytes, addresses: Sequence[int]
    ) -> StreamLaunch:
        """The launch of a product by one algorithm, in a workspace, on a, b, c and a bias, if there is one."""
        work, *operands = addresses
        calls = self._by(way, phase, ProductPlaces(*operands), workspace, code)

        def launch(stream: int) -> None:
            for call in calls:
                call.launch(work, stream)

        return launch

    def _by(
        self, way: StoredProduct, phase: ProductPhase, places: ProductPlaces, workspace: int, chosen: bytes | None
    ) -> list[BoundMatmul]:
        matmul, found = self._matmul(_terms(way, phase, places, workspace), chosen), _addresses(way, places)
        if not way.by_pointers:
            return [BoundMatmul(matmul, *each) for each in found]
        firsts, seconds, results = zip(*found, strict=True)
        array, kept = self._upload([*firsts, *seconds, *results])
        size = 8 * way.matrices
        return [BoundMatmul(matmul, array, array + size, array + 2 * size, kept)]

    def _matmul(self, terms: MatmulTerms, chosen: bytes | None = None) -> Matmul:
        found = self._made.get((terms, chosen))
        if found is None:
            found = self._made[terms, chosen] = Matmul(self._library, terms, chosen)
        return found


def _ways(phase: ProductPhase, places: ProductPlaces) -> list[StoredProduct]:
    """Those in which it is made; an epilogue, which adds a bias, takes no arrays of pointers."""
    found = stored_products(phase.of, widens=phase.widens)
    return [way for way in found if not (way.by_pointers and places.bias)]


def _itemsizes(phase: ProductPhase) -> tuple[int, int, int]:
    """Of the elements of the first, the second and the result, in the library's order."""
    size = phase.of.itemsize
    return size, size, FLOAT32.itemsize if phase.widens else size


def _addresses(way: StoredProduct, places: ProductPlaces) -> list[tuple[int, int, int]]:
    """Of each start, those of the first, the second and the result, in the library's order."""
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
    """Bytes from the beginning of a, of b, and of c to the end of the last of their matrices, and those of a bias."""
    matrices = 1 if way.by_pointers else way.matrices
    of_b, of_a, of_c = (
        # Of the last matrix, with what lies between its columns.
        size * ((matrices - 1) * x.offset + x.leading * (x.columns - 1) + x.rows)
        for x, size in zip((way.first, way.second, way.result), _itemsizes(phase), strict=True)
    )
    a, b, c = (max(starts) for starts in zip(*way.starts, strict=True))
    bias = [phase.of.columns * _itemsizes(phase)[2]] * has_bias
    return a + of_a, b + of_b, c + of_c, *bias
