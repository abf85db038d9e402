"""Products bound to addresses of a card: each a call of cuBLASLt, or a few, by an algorithm that is chosen once.

That is the first of the heuristics for what lies where it does; or one of these, where it was chosen for such a
product whose operands begin at addresses that are as aligned as may be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

from engine.cards.candidates import NO_CHOICES, Candidate, Choices, Contest, StreamLaunch
from engine.cards.card_recipe import ProductPhase
from engine.cards.cublaslt import CublasLt, Matmul, MatmulTerms
from engine.cards.products import StoredProduct, compute_type, stored_products
from engine.graph.tensor_type import FLOAT32
from engine.native.kernel_errors import KernelUnavailable
from engine.native.kernel_store import kernel_key

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
