"""Spectral decompositions: eigenvalues of symmetric matrices, and singular values, with their vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, ClassVar, Final

from engine.graph.attributes import Attr
from engine.graph.ir import Value
from engine.graph.op import Array, Narrowed, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Real, Sample
from engine.graph.tensor_type import TensorType
from engine.graph.truth import Truth
from engine.oplib.conjugates import adjoint
from engine.oplib.decomposition import Decomposition, chunk_workspace, operations, real_like
from engine.oplib.factors import chunks, factored, symmetric_part
from engine.oplib.lapack_work import lapack_bytes
from engine.oplib.matrices import square
from engine.oplib.spectrum import (
    DEGENERATE,
    hermitian_part,
    of_nothing,
    off_diagonal_gaps,
    scaled_columns,
    tolerance,
)
from engine.oplib.widening import wide

_ROOT: Final = 0.7071067811865476


class EighValues(Decomposition):
    """w alone, ascending: what is left of `eigh` where nobody reads vectors."""

    name = "eigh_values"
    internal = True
    several = True
    attrs: ClassVar[Mapping[str, Attr]] = {"degenerate": DEGENERATE}
    gradient: ClassVar[str] = "v diag(ḡw) vᴴ"

    def infer(self, x: TensorType, *, degenerate: str) -> ResultTypes:
        """[..., n]."""
        matrices = square(x)
        return (real_like(matrices.with_shape(matrices.shape[:-1])),)

    def forward(self, run: RunContext, x: Array, *, out: Sequence[Array], degenerate: str) -> None:
        """LAPACK's syevd or heevd, which then forms no vectors."""
        if out[0].size:
            for (part,), (w,) in chunks(run, [x], out):
                w[...] = factored(run, "eigvalsh", symmetric_part(part))[0]

    def vjp(self, g: Sequence[Value | None], y: Value, x: Value, *, degenerate: str) -> Sequence[Value | None]:
        """With the vectors."""
        return Eigh.vjp(_EIGH, (g[0], None), x.eigh(degenerate=degenerate), x, degenerate=degenerate)

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """The first result of `eigh`."""
        return [operands[0].eigh(**attrs).output(0)]

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """4 n³ / 3 for each matrix: its tridiagonal form."""
        return operations(types[0], 4 * types[0].size * types[0].shape[-1] // 3)

    def workspace(self, out: ResultTypes, x: TensorType, **attrs: Any) -> int:
        """A copy, its symmetric part, the results, and LAPACK's."""
        n = x.shape[-1]
        return chunk_workspace(x, 2 * n * n + 2 * n) + lapack_bytes("eigvalsh", x)


class Eigh(Decomposition):
    """w, v = the eigenvalues, ascending, and eigenvectors of (x + xᴴ) / 2: that is v diag(w) vᴴ, and vᴴ v = 1.

    x [batch…, n, n], w [batch…, n], real, v [batch…, n, n], a vector in each column. Two results, read through
    get_output.
    Where only eigenvalues are read, vectors are not computed, and the gradient of eigenvalues alone holds at equal
    ones, too, as long as the function treats these alike.

    Signs of vectors, and phases of complex ones, are as LAPACK leaves them: a function has a meaning only if it does
    not depend on them. Nor do single vectors of equal eigenvalues have one. Eigenvalues closer than 16 n ε ‖x‖ are
    taken for equal; the gradient of a function of v there is NaN, of that matrix alone; or, where `degenerate` is
    whole, right if the function depends on whole eigenspaces, as a projector does, and wrong else: v √w vᵀ does not,
    and is what `symmetric_function` is for. Second derivatives where a pair was left out are NaN, and so are those of
    equal eigenvalues alone. A matrix that holds an infinity or NaN, or for which LAPACK finds no answer, gives NaN for
    itself alone. Integers give float64; float16 is computed in a wider float, and rounded once.
    M. B. Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation (2008),
    section 3.1. PyTorch's and JAX's `linalg.eigh`, which take the lower triangle unless told to take both, and answer
    NaN, or what rounding makes of it, at equal eigenvalues.
    """

    name = "eigh"
    section = "eigh"
    several = True
    narrows = True
    attrs: ClassVar[Mapping[str, Attr]] = {"degenerate": DEGENERATE}
    gradient = "the symmetric part of v (diag(ḡw) + F ∘ vᴴ ḡv) vᴴ, Fᵢⱼ = 1 / (wⱼ − wᵢ), Fᵢᵢ = 0; no F where v is unread"
    samples = (
        Sample(Real(3, 3)),
        Sample(Real(2, 2, 2), degenerate="whole"),
        Sample(Real(1, 1, low=1)),
        Sample(Real(0, 0)),
        Sample(Real(0, 2, 2)),
    )
    truths = (
        Truth(
            operands=[[[2.0, 1.0], [1.0, 2.0]]],
            value=([1.0, 3.0], [[-_ROOT, _ROOT], [_ROOT, _ROOT]]),
            cotangent=([1.0, 10.0], [[0.0, 1.0], [0.0, 0.0]]),
            gradients=[[[5.5 + _ROOT / 4, 4.5], [4.5, 5.5 - _ROOT / 4]]],
            source="by hand: v diag(1, 10) vᵀ, and F = 1/2 where vᵀ ḡv has something beside the diagonal",
        ),
    )

    def infer(self, x: TensorType, *, degenerate: str) -> ResultTypes:
        """[..., n] and [..., n, n]. Raises ShapeMismatch."""
        matrices = square(x)
        return real_like(matrices.with_shape(matrices.shape[:-1])), matrices

    def forward(self, run: RunContext, x: Array, *, out: Sequence[Array], degenerate: str) -> None:
        """LAPACK's syevd or heevd."""
        if out[0].size:
            for (part,), results in chunks(run, [x], out):
                for y, found in zip(results, factored(run, "eigh", symmetric_part(part)), strict=True):
                    y[...] = found

    def narrowed(self, attrs: Mapping[str, Any], operands: int, read: Set[int]) -> Narrowed:
        """Eigenvalues alone, where vectors are unread."""
        return Narrowed(attrs, (0,), (0,), _VALUES) if read == {0} else Narrowed(attrs, (0,), (0, 1))

    def vjp(self, g: Sequence[Value | None], y: Value, x: Value, *, degenerate: str) -> Sequence[Value | None]:
        """Of eigenvalues, and of vectors by their components along others."""
        if not x.type.size:
            return (of_nothing(x, g),)
        if wide(x) is not x:
            y = wide(x).eigh(degenerate=degenerate)
        w, v = y.output(0), y.output(1)
        inner = None
        if g[1] is not None:
            gaps = off_diagonal_gaps(w, tolerance(w, x.shape[-1]), degenerate)
            inner = (gaps * (adjoint(v) @ wide(g[1]))) @ adjoint(v)
        if g[0] is not None:
            by_values = adjoint(scaled_columns(v, wide(g[0])))
            inner = by_values if inner is None else by_values + inner
        return (None if inner is None else hermitian_part(v @ inner),)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """9 n³ for each matrix."""
        return operations(types[0], 9 * types[0].size * types[0].shape[-1])

    def workspace(self, out: ResultTypes, x: TensorType, **attrs: Any) -> int:
        """A copy, its symmetric part, the results, and LAPACK's."""
        n = x.shape[-1]
        return chunk_workspace(x, 3 * n * n + 2 * n) + lapack_bytes("eigh", x)


_VALUES: Final = EighValues()
_EIGH: Final = Eigh()
