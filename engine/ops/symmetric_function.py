"""Functions of symmetric matrices, by their eigenvalues."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from engine.graph.attributes import REQUIRED, Attr
from engine.graph.dtypes import REALS
from engine.graph.ir import Value
from engine.graph.op import Array, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Real, Sample
from engine.graph.tensor_type import TensorType
from engine.graph.truth import Truth
from engine.oplib.decomposition import Decomposition, chunk_workspace
from engine.oplib.factors import chunks, factored, symmetric_part
from engine.oplib.lapack_work import lapack_bytes
from engine.oplib.matrices import square
from engine.oplib.spectrum import hermitian_part
from engine.oplib.symmetric_slope import function_slope
from engine.oplib.widening import wide, widened


class SymmetricFunction(Decomposition):
    """y = v f(diag w) vᵀ, a function of the symmetric part (x + xᵀ) / 2 = v diag(w) vᵀ of square matrices.

    f is the square root, its reciprocal, the logarithm or the exponential, of eigenvalues. The gradient is by divided
    differences, which have a limit where eigenvalues meet: it is exact at equal ones, and so is the second, where
    v f vᵀ written with `eigh` has none. A matrix with an eigenvalue at which f is not finite, as log at 0 or below,
    gives NaN for itself alone, and so does one that holds an infinity or NaN, or for which LAPACK finds no answer.
    Integers give float64; float16 is computed in a wider float, and rounded once.
    N. J. Higham, Functions of Matrices (2008), theorem 3.11 of Daleckii and Krein. SciPy's `sqrtm`, `logm` and `expm`
    of symmetric matrices; PyTorch and JAX have none whose gradient holds at equal eigenvalues, but for exp.
    """

    name = "symmetric_function"
    section = "symmetric_function"
    attrs: ClassVar[Mapping[str, Attr]] = {
        "function": Attr(
            "string",
            REQUIRED,
            "the function of eigenvalues; rsqrt is 1 / sqrt",
            choices=("sqrt", "rsqrt", "log", "exp"),
        )
    }
    dtypes = REALS
    gradient = "v (D ∘ (vᵀ (g + gᵀ) v / 2)) vᵀ, Dᵢⱼ = (f(wᵢ) − f(wⱼ)) / (wᵢ − wⱼ), f′(wᵢ) where wᵢ = wⱼ"
    samples = (
        *(Sample(Real(3, 3, low=-1, high=1, diagonal=4), function=f) for f in ("sqrt", "rsqrt", "log", "exp")),
        Sample(Real(2, 2, 2, low=-1, high=1, diagonal=4), function="sqrt"),
        Sample(Real(1, 1, low=1), function="log"),
        Sample(Real(0, 0), function="exp"),
        Sample(Real(0, 2, 2), function="rsqrt"),
    )
    truths = (
        *(
            Truth(
                operands=[[[2.5, 1.5], [1.5, 2.5]]],
                attrs={"function": f},
                value=[[(low + high) / 2, (high - low) / 2], [(high - low) / 2, (low + high) / 2]],
                cotangent=[[1.0, 0.0], [0.0, -1.0]],
                gradients=[[[(high - low) / 3, 0.0], [0.0, (low - high) / 3]]],
                source="by hand: eigenvalues 1 and 4 along (1, −1) and (1, 1), between which g goes",
            )
            for f, low, high in (
                ("sqrt", 1.0, 2.0),
                ("rsqrt", 1.0, 0.5),
                ("log", 0.0, math.log(4.0)),
                ("exp", math.e, math.exp(4.0)),
            )
        ),
        *(
            Truth(
                operands=[[[4.0, 0.0], [0.0, 4.0]]],
                attrs={"function": f},
                value=[[y, 0.0], [0.0, y]],
                cotangent=[[1.0, 3.0], [5.0, 7.0]],
                gradients=[[[slope, 4 * slope], [4 * slope, 7 * slope]]],
                source="by hand: f′ everywhere",
            )
            for f, y, slope in (
                ("sqrt", 2.0, 0.25),
                ("rsqrt", 0.5, -0.0625),
                ("log", math.log(4.0), 0.25),
                ("exp", math.exp(4.0), math.exp(4.0)),
            )
        ),
    )

    def infer(self, x: TensorType, *, function: str) -> ResultTypes:
        """That of x, in float64 what is not float. Raises ShapeMismatch."""
        return square(x)

    def forward(self, run: RunContext, x: Array, *, out: Array, function: str) -> None:
        """LAPACK's syevd, and a product. An eigenvalue of which f is not finite makes NaN."""
        xp = run.xp
        if out.size:
            for (part,), (y,) in chunks(run, [x], [out]):
                w, v = factored(run, "eigh", symmetric_part(part))
                values = 1 / xp.sqrt(w) if function == "rsqrt" else getattr(xp, function)(w)
                values = xp.where(xp.isfinite(values), values, np.nan)
                y[...] = (v * values[..., None, :]) @ v.swapaxes(-1, -2)

    def vjp(self, g: Value, y: Value, x: Value, *, function: str) -> Sequence[Value | None]:
        """Of the symmetric part of both."""
        y, x = widened(self, y, (x,), {"function": function})
        return (function_slope(hermitian_part(x), y, hermitian_part(wide(g)), function),)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """9 n³ for eigenvectors, and a product."""
        return 11 * types[0].size * types[0].shape[-1]

    def workspace(self, out: ResultTypes, x: TensorType, **attrs: Any) -> int:
        """A copy, its symmetric part, vectors, these times values, their product, and LAPACK's."""
        n = x.shape[-1]
        return chunk_workspace(x, 4 * n * n + 2 * n) + lapack_bytes("eigh", x)
