"""Whole powers of a matrix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from engine.graph.attributes import Attr
from engine.graph.dtypes import DTYPES
from engine.graph.ir import Value
from engine.graph.op import Composite, ResultTypes
from engine.graph.sample import Real, Sample
from engine.graph.tensor_type import TensorType, to_average
from engine.graph.truth import Truth
from engine.oplib.matrices import square
from engine.oplib.spectrum import identity_like
from engine.oplib.widening import wide


class MatrixPower(Composite):
    """y = xᵏ, the product of k square matrices x, on the last two axes; x⁰ = 1, and x⁻ᵏ the power of the inverse.

    By squares: some 2 log₂ k products. A negative power of a singular matrix is NaN, or, where rounding hides that,
    very large. Integers give float64; float16 is computed in a wider float, and rounded once. PyTorch's, JAX's and
    NumPy's `linalg.matrix_power`, of which the latter keep whole numbers whole.
    """

    name = "matrix_power"
    section = "matrix_power"
    operands = ("x",)
    dtypes = DTYPES
    attrs: ClassVar[Mapping[str, Attr]] = {"k": Attr("int", doc="the exponent; may be 0 or negative")}
    since = 2
    gradient = "Σ (xᴴ)ⁱ g (xᴴ)ʲ over i + j = k − 1, as the products give it"
    samples = (
        Sample(Real(3, 3), k=3),
        Sample(Real(2, 2, 2), k=6),
        Sample(Real(2, 2, 2, diagonal=7), k=-2),
        Sample(Real(3, 3), k=1),
        Sample(Real(2, 2, 2), k=0),
        Sample(Real(0, 0), k=2),
    )
    truths = (
        Truth(
            operands=[[[1.0, 2.0], [0.0, 1.0]]],
            attrs={"k": 3},
            value=[[1.0, 6.0], [0.0, 1.0]],
            cotangent=[[0.0, 1.0], [0.0, 0.0]],
            gradients=[[[6.0, 3.0], [4.0, 6.0]]],
            source="by hand: of [[p, q], [r, s]], p² q + q² r + p q s + q s² at that place",
        ),
        Truth(
            operands=[[[2.0, 0.0], [0.0, 4.0]]],
            attrs={"k": -2},
            value=[[0.25, 0.0], [0.0, 0.0625]],
            cotangent=[[1.0, 0.0], [0.0, 10.0]],
            gradients=[[[-0.25, 0.0], [0.0, -0.3125]]],
            source="by hand: −2 / x³",
        ),
    )

    def infer(self, x: TensorType, *, k: int) -> ResultTypes:
        """That of x, in float64 what is not float. Raises ShapeMismatch."""
        return square(x)

    def compose(self, x: Value, *, k: int) -> Value:
        """Squares of x, or its inverse, of which those are multiplied that k has in binary."""
        dtype, n = to_average(x.dtype), x.shape[-1]
        if k == 0:
            return identity_like(x.cast(dtype=dtype), n).broadcast_to(shape=x.shape)
        base = wide(x.cast(dtype=dtype) if dtype != x.dtype else x)
        power = _power(base if k > 0 else base.inv(), abs(k))
        return power.cast(dtype=dtype) if power.dtype != dtype else power


def _power(x: Value, k: int) -> Value:
    found: Value | None = None
    while True:
        if k % 2:
            found = x if found is None else found @ x
        k //= 2
        if not k:
            assert found is not None
            return found
        x = x @ x
