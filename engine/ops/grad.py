"""Differentiation as an op."""

from __future__ import annotations

from engine.graph.dtypes import DTYPES
from engine.graph.errors import DtypeMismatch, NotDifferentiable
from engine.graph.op import Definition, ResultTypes
from engine.graph.sample import Real, Sample
from engine.graph.tensor_type import TensorType, require_type


class Grad(Definition):
    """The gradient of sum(y · cotangent) with respect to x, of x's type; without a cotangent, of sum(y).

    A node like any other: usable downstream, and differentiable again, to any order. x may be any float node; zeros
    where y does not depend on it. A complex y needs a cotangent; by a complex x, the gradient is ∂/∂Re x + i ∂/∂Im x.
    """

    name = "grad"
    section = "grad"
    operands = ("y", "x", "cotangent?")
    dtypes = DTYPES
    gradient = "the gradient is written out as nodes first, and those are differentiated"
    samples = (Sample(Real(2), Real(2)), Sample(Real(2, 3), Real(2), Real(2, 3)))

    def infer(self, y: TensorType, x: TensorType, cotangent: TensorType | None = None) -> ResultTypes:
        """x's type. Raises NotDifferentiable unless y and x have derivatives, DtypeMismatch for a complex y alone."""
        for i, (name, type) in enumerate((("y", y), ("x", x))):
            if not type.is_differentiable:
                raise NotDifferentiable(
                    f"operand {i} ({name}) must be float to be differentiated, but is {type.dtype.name}",
                    operand=i,
                    expected="a float dtype",
                    got=type.dtype.name,
                )
        if cotangent is not None:
            require_type(cotangent, y, "operand 2 (cotangent)", operand=2)
        elif y.is_complex:
            raise DtypeMismatch(
                f"operand 0 (y) is {y.dtype.name}: give a cotangent of that dtype, or make it real (real, imag, abs)",
                operand=0,
                expected="a real dtype, or a cotangent",
                got=y.dtype.name,
            )
        return x
