"""Products bound to addresses of a card: each a call of cuBLASLt, or a few, by an algorithm that is chosen once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

from engine.cards.card_recipe import ProductPhase
from engine.cards.cublaslt import CublasLt, Matmul, MatmulTerms
from engine.cards.products import StoredProduct, compute_type, stored_products
from engine.graph.tensor_type import FLOAT32
from engine.native.kernel_errors import KernelUnavailable

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

    def __init__(self, library: CublasLt, upload: Callable[[Sequence[int]], Uploaded]) -> None:
        """`upload` puts addresses on the card, once and for all."""
        self._library, self._upload = library, upload
        self._made: WeakValueDictionary[MatmulTerms, Matmul] = WeakValueDictionary()

    def bound(self, phase: ProductPhase, places: ProductPlaces, workspace: int) -> list[BoundMatmul]:
        """The calls that make a product within so many bytes of workspace. Raises KernelUnavailable."""
        reason = KernelUnavailable("the operands of a product lie so that cuBLASLt does not read them")
        for way in stored_products(phase.of, widens=phase.widens):
            if way.by_pointers and places.bias:
                continue  # an epilogue takes no arrays of pointers
            try:
                return self._by(way, phase, places, workspace)
            except KernelUnavailable as error:
                reason = error
        raise reason

    def _by(self, way: StoredProduct, phase: ProductPhase, places: ProductPlaces, workspace: int) -> list[BoundMatmul]:
        found = [(places.b + b, places.a + a, places.c + c) for a, b, c in way.starts]
        firsts, seconds, results = zip(*found, strict=True)
        sizes = phase.of.itemsize, phase.of.itemsize, FLOAT32.itemsize if phase.widens else phase.of.itemsize
        stored = zip((way.first, way.second, way.result), sizes, strict=True)
        steps = [0 if way.by_pointers else x.offset * size for x, size in stored]
        placed = zip(steps, (firsts, seconds, results), strict=True)
        alignments = [math.gcd(MOST_ALIGNED, step, *each) for step, each in placed]
        terms = MatmulTerms(
            phase.of.dtype,
            compute_type(phase.of.dtype, phase.precision),
            *(way.first, way.second, way.result, way.matrices, way.by_pointers, phase.adds),
            (alignments[0], alignments[1], alignments[2]),
            *(places.bias, workspace, phase.widens),
        )
        matmul = self._matmul(terms)
        if not way.by_pointers:
            return [BoundMatmul(matmul, *each) for each in found]
        array, kept = self._upload([*firsts, *seconds, *results])
        size = 8 * way.matrices
        return [BoundMatmul(matmul, array, array + size, array + 2 * size, kept)]

    def _matmul(self, terms: MatmulTerms) -> Matmul:
        found = self._made.get(terms)
        if found is None:
            found = self._made[terms] = Matmul(self._library, terms)
        return found
