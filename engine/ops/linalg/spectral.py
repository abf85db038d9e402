"""Spectral decompositions: eigenvalues of symmetric matrices, and singular values, with their vectors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from typing import Any, ClassVar, Final

from engine.ir.attributes import Attr
from engine.ir.graph import Value, adjoint
from engine.ir.op import Array, Narrowed, ResultTypes
from engine.ir.run_context import RunContext
from engine.ir.sample import Real, Sample, Truth
from engine.ir.tensor_type import Shape, TensorType
from engine.ops.common.numerics import upcast
from engine.ops.linalg.lapack import lapack_bytes
from engine.ops.linalg.matrices import (
    DEGENERATE,
    Decomposition,
    chunk_workspace,
    chunks,
    column,
    empty_gradient,
    factorize,
    hermitian_part,
    inverse_gaps,
    matrix_type,
    off_diagonal_gaps,
    real_flops,
    real_like,
    row,
    scaled_columns,
    square,
    symmetric_part,
    tolerance,
)

_ROOT: Final = 0.7071067811865476


class EighValues(Decomposition):
    """w alone, ascending: the form of `eigh` if no result but the eigenvalues is read."""

    name = "eigh_values"
    internal = True
    several = True
    attrs: ClassVar[Mapping[str, Attr]] = {"degenerate": DEGENERATE}
    gradient: ClassVar[str] = "v diag(ḡw) vᴴ"

    def infer(self, x: TensorType, *, degenerate: str) -> ResultTypes:
        """Return the type [..., n]."""
        matrices = square(x)
        return (real_like(matrices.with_shape(matrices.shape[:-1])),)

    def forward(self, run: RunContext, x: Array, *, out: Sequence[Array], degenerate: str) -> None:
        """Run LAPACK's syevd or heevd, which then compute no vectors."""
        if out[0].size:
            for (chunk,), (w,) in chunks(run, [x], out):
                w[...] = factorize(run, "eigvalsh", symmetric_part(chunk))[0]

    def vjp(self, g: Sequence[Value | None], y: Value, x: Value, *, degenerate: str) -> Sequence[Value | None]:
        """Compute the vectors after all, and apply the rule of `eigh`."""
        return Eigh.vjp(_EIGH, (g[0], None), x.eigh(degenerate=degenerate), x, degenerate=degenerate)

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """Return the first result of `eigh`."""
        return [operands[0].eigh(**attrs).output(0)]

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Return 4 n³ / 3 for each matrix, the cost of its tridiagonal form."""
        return real_flops(types[0], 4 * types[0].size * types[0].shape[-1] // 3)

    def workspace(self, out: ResultTypes, x: TensorType, **attrs: Any) -> int:
        """Return the bytes of a copy, its symmetric part, the results, and LAPACK's."""
        n = x.shape[-1]
        return chunk_workspace(x, 2 * n * n + 2 * n) + lapack_bytes("eigvalsh", x)


class Eigh(Decomposition):
    """w, v = the eigenvalues, ascending, and eigenvectors of (x + xᴴ) / 2 = v diag(w) vᴴ, with vᴴ v = 1.

    x [batch…, n, n], w [batch…, n], real, v [batch…, n, n], one vector per column. If you read only eigenvalues,
    vectors are not computed. The gradient of eigenvalues alone is valid at equal ones, too, if your function treats
    these alike.

    LAPACK chooses the signs of vectors, and the phases of complex ones. Use v only in functions that depend neither on
    them nor on single vectors of equal eigenvalues.

    Eigenvalues closer than 16 n ε ‖x‖ count as equal. For a matrix with equal eigenvalues, the gradient of a function
    of v is NaN. If `degenerate` is whole, the pair is left out instead. That is correct if the function depends on
    whole eigenspaces only, as a projector does, and wrong otherwise. For v √w vᵀ, which does not, use
    `symmetric_function`. Second derivatives are NaN if a pair was left out, and also for eigenvalues alone if some are
    equal.

    A matrix with an infinity or NaN, or for which LAPACK does not converge, gives NaN; the other matrices of the batch
    are unaffected. Integers give float64; float16 is computed in a wider float and rounded once.

    PyTorch: `linalg.eigh`, which reads the lower triangle by default. JAX: `linalg.eigh`, which symmetrizes its input
    by default. At equal eigenvalues, their gradients are NaN or rounding noise. M. B. Giles, Collected matrix
    derivative results for forward and reverse mode algorithmic differentiation (2008), section 3.1.
    """

    name = "eigh"
    section = "eigh"
    several = True
    narrows = True
    attrs: ClassVar[Mapping[str, Attr]] = {"degenerate": DEGENERATE}
    gradient = "the symmetric part of v (diag(ḡw) + F ∘ vᴴ ḡv) vᴴ, Fᵢⱼ = 1 / (wⱼ − wᵢ), Fᵢᵢ = 0; no F if v is unread"
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
        """Return the types [..., n] and [..., n, n]. Raises ShapeMismatch."""
        matrices = square(x)
        return real_like(matrices.with_shape(matrices.shape[:-1])), matrices

    def forward(self, run: RunContext, x: Array, *, out: Sequence[Array], degenerate: str) -> None:
        """Run LAPACK's syevd or heevd."""
        if out[0].size:
            for (chunk,), results in chunks(run, [x], out):
                for y, factor in zip(results, factorize(run, "eigh", symmetric_part(chunk)), strict=True):
                    y[...] = factor

    def narrowed(self, attrs: Mapping[str, Any], operands: int, read: Set[int]) -> Narrowed:
        """Compute eigenvalues alone if the vectors are not read."""
        return Narrowed(attrs, (0,), (0,), _EIGENVALUES) if read == {0} else Narrowed(attrs, (0,), (0, 1))

    def vjp(self, g: Sequence[Value | None], y: Value, x: Value, *, degenerate: str) -> Sequence[Value | None]:
        """Differentiate the eigenvalues, and the vectors by their components along the other vectors."""
        if not x.type.size:
            return (empty_gradient(x, g),)
        if upcast(x) is not x:
            y = upcast(x).eigh(degenerate=degenerate)
        w, v = y.output(0), y.output(1)
        inner = None
        if g[1] is not None:
            gaps = off_diagonal_gaps(w, tolerance(w, x.shape[-1]), degenerate)
            inner = (gaps * (adjoint(v) @ upcast(g[1]))) @ adjoint(v)
        if g[0] is not None:
            from_values = adjoint(scaled_columns(v, upcast(g[0])))
            inner = from_values if inner is None else from_values + inner
        return (None if inner is None else hermitian_part(v @ inner),)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Return 9 n³ for each matrix."""
        return real_flops(types[0], 9 * types[0].size * types[0].shape[-1])

    def workspace(self, out: ResultTypes, x: TensorType, **attrs: Any) -> int:
        """Return the bytes of a copy, its symmetric part, the results, and LAPACK's."""
        n = x.shape[-1]
        return chunk_workspace(x, 3 * n * n + 2 * n) + lapack_bytes("eigh", x)


_EIGENVALUES: Final = EighValues()
_EIGH: Final = Eigh()


class SingularValues(Decomposition):
    """s alone, descending: the form of `svd` if no result but the singular values is read."""

    name = "singular_values"
    internal = True
    several = True
    attrs: ClassVar[Mapping[str, Attr]] = {"degenerate": DEGENERATE}
    gradient: ClassVar[str] = "u diag(ḡs) vh"

    def infer(self, x: TensorType, *, degenerate: str) -> ResultTypes:
        """Return the type [..., k]."""
        x = matrix_type(x)
        return (real_like(x.with_shape((*x.shape[:-2], min(x.shape[-2:])))),)

    def forward(self, run: RunContext, x: Array, *, out: Sequence[Array], degenerate: str) -> None:
        """Run LAPACK's gesdd, which then computes no vectors."""
        if out[0].size:
            for (chunk,), (s,) in chunks(run, [x], out):
                s[...] = factorize(run, "svdvals", chunk)[0]

    def vjp(self, g: Sequence[Value | None], y: Value, x: Value, *, degenerate: str) -> Sequence[Value | None]:
        """Compute the vectors after all, and apply the rule of `svd`."""
        return SVD.vjp(_SVD, (None, g[0], None), x.svd(degenerate=degenerate), x, degenerate=degenerate)

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """Return the second result of `svd`."""
        return [operands[0].svd(**attrs).output(1)]

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Return 4 m n k − 4 k³ / 3 for each matrix, the cost of its bidiagonal form."""
        count, m, n, k = _extents(types[0].shape)
        return real_flops(types[0], count * (4 * m * n * k - 4 * k**3 // 3))

    def workspace(self, out: ResultTypes, x: TensorType, **attrs: Any) -> int:
        """Return the bytes of a copy, the results, and LAPACK's."""
        _, m, n, k = _extents(x.shape)
        return chunk_workspace(x, m * n + 2 * k) + lapack_bytes("svdvals", x)


class SVD(Decomposition):
    """u, s, vh with x = u diag(s) vh: s ≥ 0 descending, the columns of u and rows of vh orthonormal; reduced form.

    x [batch…, m, n], u [batch…, m, k], s [batch…, k], real, vh [batch…, k, n], k = min(m, n). If you read only s,
    vectors are not computed. The gradient of s alone is valid at equal values, too, if your function treats these
    alike.

    LAPACK chooses the signs, or for complex vectors the phases, of each column of u together with the row of vh. Use u
    and vh only in functions that do not depend on them.

    Singular values closer than 16 n ε ‖x‖, with n the larger extent, count as equal, and smaller ones count as 0. A
    value of 0 gets no gradient, like `abs` at 0. For a matrix with equal or zero values, the gradient of a function of
    u or vh is NaN. If `degenerate` is whole, such pairs are left out instead. That is correct if the function depends
    on whole spaces of vectors only, as a projector and u vh do, and wrong otherwise. Second derivatives are NaN if a
    pair was left out, and also for s alone if values are equal.

    A matrix with an infinity or NaN, or for which LAPACK does not converge, gives NaN; the other matrices of the batch
    are unaffected. Integers give float64; float16 is computed in a wider float and rounded once.

    PyTorch: `linalg.svd` with full_matrices false. JAX: `linalg.svd`. At a 0, both use whichever vectors LAPACK
    returned. J. Townsend, Differentiating the singular value decomposition (2016), with 1 / (sⱼ² − sᵢ²) in its partial
    fractions; Z.-Q. Wan, S.-X. Zhang, arXiv:1909.02659 (2019), on phases.
    """

    name = "svd"
    section = "svd"
    several = True
    narrows = True
    attrs: ClassVar[Mapping[str, Attr]] = {"degenerate": DEGENERATE}
    gradient = (
        "u (diag(ḡs) + (F ∘ (P + Q) + G ∘ (P − Q)) / 2) vh, plus (1 − u uᴴ) ḡu s⁻¹ vh and u s⁻¹ ḡvh (1 − v vᴴ); "
        "P, Q = uᴴ ḡu, vh ḡvhᴴ minus their adjoints, Fᵢⱼ = 1 / (sⱼ − sᵢ), Gᵢⱼ = 1 / (sⱼ + sᵢ)"
    )
    samples = (
        Sample(Real(3, 3)),
        Sample(Real(2, 4, 2), degenerate="whole"),
        Sample(Real(2, 3)),
        Sample(Real(1, 1, low=1)),
        Sample(Real(0, 2)),
        Sample(Real(0, 2, 2)),
    )
    truths = (
        Truth(
            operands=[[[0.0, 2.0], [-3.0, 0.0]]],
            value=([[0.0, 1.0], [1.0, 0.0]], [3.0, 2.0], [[-1.0, 0.0], [0.0, 1.0]]),
            cotangent=([[1.0, 2.0], [3.0, 4.0]], [10.0, 100.0], [[0.0, 5.0], [0.0, 0.0]]),
            gradients=[[[-0.2, 100.0], [-10.0, 1.8]]],
            source="by hand: how xᵀ x turns its eigenvectors where x has ε on its diagonal, and u = x v / s",
        ),
    )

    def infer(self, x: TensorType, *, degenerate: str) -> ResultTypes:
        """Return the types [..., m, k], [..., k] and [..., k, n]. Raises ShapeMismatch."""
        x = matrix_type(x)
        *lead, m, n = x.shape
        k = min(m, n)
        return x.with_shape((*lead, m, k)), real_like(x.with_shape((*lead, k))), x.with_shape((*lead, k, n))

    def forward(self, run: RunContext, x: Array, *, out: Sequence[Array], degenerate: str) -> None:
        """Run LAPACK's gesdd."""
        if out[1].size:
            for (chunk,), results in chunks(run, [x], out):
                for y, factor in zip(results, factorize(run, "svd", chunk), strict=True):
                    y[...] = factor

    def narrowed(self, attrs: Mapping[str, Any], operands: int, read: Set[int]) -> Narrowed:
        """Compute singular values alone if the vectors are not read."""
        return Narrowed(attrs, (0,), (1,), _SINGULAR_VALUES) if read == {1} else Narrowed(attrs, (0,), (0, 1, 2))

    def vjp(self, g: Sequence[Value | None], y: Value, x: Value, *, degenerate: str) -> Sequence[Value | None]:
        """Sum the terms of the singular values and of the vectors."""
        if not x.type.size:
            return (empty_gradient(x, g),)
        if upcast(x) is not x:
            y = upcast(x).svd(degenerate=degenerate)
        u, s, vh = (y.output(i) for i in range(3))
        u_cotangent, s_cotangent, vh_cotangent = (None if cotangent is None else upcast(cotangent) for cotangent in g)
        within = tolerance(s, max(x.shape[-2:]))
        terms = []
        if s_cotangent is not None:
            nonzero = (s > within).where(s_cotangent, 0.0)
            terms.append(scaled_columns(u, nonzero) @ vh)
        if u_cotangent is not None or vh_cotangent is not None:
            terms += _vector_terms(u, s, vh, u_cotangent, vh_cotangent, within, degenerate)
        return (sum(terms[1:], start=terms[0]) if terms else None,)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Return 4 m n k + 21 k³ for each matrix: 25 n³ for a square one."""
        count, m, n, k = _extents(types[0].shape)
        return real_flops(types[0], count * (4 * m * n * k + 21 * k**3))

    def workspace(self, out: ResultTypes, x: TensorType, **attrs: Any) -> int:
        """Return the bytes of a copy, the results, and LAPACK's."""
        _, m, n, k = _extents(x.shape)
        return chunk_workspace(x, m * n + (m + n) * k + 2 * k) + lapack_bytes("svd", x)


def _vector_terms(
    u: Value, s: Value, vh: Value, u_cotangent: Value | None, vh_cotangent: Value | None, within: Value, degenerate: str
) -> list[Value]:
    """Return the terms of x's cotangent that come from those of u and vh, at least one of which is given.

    The first term lies inside the spaces of u and v. A thin u or vh has a complement too, into which its vectors can
    move.
    """
    u_components = None if u_cotangent is None else adjoint(u) @ u_cotangent
    v_components = None if vh_cotangent is None else vh @ adjoint(vh_cotangent)
    terms = [u @ _inner(s, u_components, v_components, within, degenerate) @ vh]
    is_zero = s <= within
    inverse = inverse_gaps(s, is_zero, degenerate)
    if u_cotangent is not None and u_components is not None and u.shape[-2] > u.shape[-1]:
        terms.append(scaled_columns(u_cotangent - u @ u_components, inverse) @ vh)
    if vh_cotangent is not None and v_components is not None and vh.shape[-1] > vh.shape[-2]:
        terms.append(scaled_columns(u, inverse) @ (vh_cotangent - adjoint(v_components) @ vh))
    return terms


def _inner(s: Value, u_components: Value | None, v_components: Value | None, within: Value, degenerate: str) -> Value:
    """Compute (F ∘ (P + Q) + G ∘ (P − Q)) / 2. For complex matrices the diagonal of G accounts for the phases."""
    p, q = (None if x is None else x - adjoint(x) for x in (u_components, v_components))
    sums = (row(s) + column(s)) * 0.5
    over_sums = inverse_gaps(sums, sums <= column(within), degenerate) * 0.25
    over_gaps = off_diagonal_gaps(s, within, degenerate) * 0.5
    if q is None:
        assert p is not None
        return (over_gaps + over_sums) * p
    if p is None:
        return (over_gaps - over_sums) * q
    return over_gaps * (p + q) + over_sums * (p - q)


def _extents(shape: Shape) -> tuple[int, int, int, int]:
    """Return the number of matrices, and their m, n and k."""
    *lead, m, n = shape
    return math.prod(lead), m, n, min(m, n)


_SINGULAR_VALUES: Final = SingularValues()
_SVD: Final = SVD()
