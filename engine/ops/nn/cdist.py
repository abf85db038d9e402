"""Pairwise distances of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from engine.ir.attributes import Attr
from engine.ir.errors import BadAttribute
from engine.ir.graph import Value
from engine.ir.op import ResultTypes
from engine.ir.sample import Real, Sample, Truth
from engine.ir.tensor_type import TensorType, promote
from engine.ops.common.numerics import require_axes, require_extent, wrong_shape
from engine.ops.elementwise.base import Formula
from engine.ops.nn.attention import leading


class CDist(Formula):
    """y[…, i, j] = (Σ |a[…, i, k] − b[…, j, k]|ᵖ)^(1/p) over k: the distance between row i of a and row j of b.

    a [..., m, d], b [..., n, d], y [..., m, n]; leading axes broadcast. Where two rows coincide, the gradient and its
    own gradient are 0. Differences are taken before they are squared, so that no digits are lost. PyTorch: `cdist` with
    compute_mode donot_use_mm_for_euclid_dist. JAX has no equivalent.
    """

    name = "cdist"
    section = "cdist"
    operands = ("a", "b")
    since = 2
    attrs: ClassVar[Mapping[str, Attr]] = {"p": Attr("float", 2.0, "exponent; positive")}
    gradient = "da = Σ g · sign(a − b) · (|a − b| / y)^(p − 1), 0 where y = 0; db likewise"
    samples = (
        Sample(Real(3, 2), Real(4, 2, low=3, high=5)),
        Sample(Real(2, 3, 2), Real(1, 2, 2, low=3, high=5), p=1.0),
        Sample(Real(3, 2), Real(2, 2, low=3, high=5), p=3.0),
    )
    truths = (
        Truth(
            operands=[[[0.0, 0.0]], [[3.0, 4.0], [0.0, 0.0]]],
            value=[[5.0, 0.0]],
            gradients=[[[-0.6, -0.8]], [[0.6, 0.8], [0.0, 0.0]]],
            source="by hand",
        ),
        Truth(
            operands=[[[0.0, 0.0]], [[3.0, -4.0]]],
            attrs={"p": 1.0},
            value=[[7.0]],
            gradients=[[[-1.0, 1.0]], [[1.0, -1.0]]],
            source="by hand",
        ),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Check the exponent. Raises BadAttribute if it is 0 or less."""
        if attrs["p"] <= 0:
            received = f"{attrs['p']:g}"
            raise BadAttribute(
                f"attribute p must be positive, but is {received}", attribute="p", expected="above 0", got=received
            )
        return attrs

    def infer(self, a: TensorType, b: TensorType, *, p: float) -> ResultTypes:
        """Return the type [..., m, n]. Raises ShapeMismatch."""
        require_axes(a, 2, "rows and coordinates")
        if b.ndim < 2:
            raise wrong_shape(1, "b", "at least 2 axes", b)
        require_extent(b, -1, a.shape[-1], 1, "b", "that of a")
        return TensorType((*leading(a, b), a.shape[-2], b.shape[-2]), promote(a.dtype, b.dtype))

    def formula(self, a: Value, b: Value, *, p: float) -> Value:
        """Reduce all differences. Powers never see a 0, where their derivatives would be infinite."""
        differences = a.unsqueeze(axes=(a.ndim - 1,)) - b.unsqueeze(axes=(b.ndim - 2,))
        last = (differences.ndim - 1,)
        if p == 2:
            return differences.norm(axes=last)
        return _power(_power(differences.abs(), p).sum(axes=last), 1 / p)


def _power(x: Value, exponent: float) -> Value:
    if exponent == 1:
        return x
    is_zero = x.equal(0.0)
    return is_zero.where(0.0, is_zero.where(1.0, x) ** exponent)
