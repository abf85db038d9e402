"""Comparisons, logic, and selection between values. They broadcast as NumPy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from engine.codegen.kernels.program import Scalar, Scalars
from engine.ir.attributes import Attr
from engine.ir.graph import Value
from engine.ir.kinds.scalars import typed_number
from engine.ir.op import Array, NoGradient
from engine.ir.run_context import RunContext
from engine.ir.sample import Bools, Ints, Real, Sample
from engine.ir.tensor_type import DTYPES, DType, TensorType, promote
from engine.ops.common.numerics import is_chosen, is_representable
from engine.ops.common.support import Selecting
from engine.ops.elementwise.base import Binary, Elementwise, Predicate, Unary, WithConstants, unbroadcast

_IN_VJP = NoGradient("written out in vjp")


class Comparison(Predicate, Binary):
    """Base of the six comparisons."""

    section = "comparison"
    samples = (Sample(Real(2, 3), Real(3)), Sample(Real(), Real()), Sample(Ints(2, 1, high=3), Ints(3, high=3)))


class Equal(Comparison):
    """y = (a = b), elementwise; false if either is NaN."""

    name = "equal"
    aliases = {"Equal": "born"}
    dtypes = DTYPES
    ufunc = "equal"
    commutative = True


class NotEqual(Comparison):
    """y = (a ≠ b), elementwise; true if either is NaN."""

    name = "not_equal"
    aliases = {"NotEqual": "born"}
    dtypes = DTYPES
    ufunc = "not_equal"
    commutative = True


class Greater(Comparison):
    """y = (a > b), elementwise; false if either is NaN."""

    name = "greater"
    aliases = {"Greater": "born"}
    ufunc = "greater"


class GreaterEqual(Comparison):
    """y = (a ≥ b), elementwise; false if either is NaN."""

    name = "greater_equal"
    aliases = {"GreaterEqual": "born"}
    ufunc = "greater_equal"


class Less(Comparison):
    """y = (a < b), elementwise; false if either is NaN."""

    name = "less"
    aliases = {"Lower": "born"}
    ufunc = "less"


class LessEqual(Comparison):
    """y = (a ≤ b), elementwise; false if either is NaN."""

    name = "less_equal"
    aliases = {"LowerEqual": "born"}
    ufunc = "less_equal"


class Connective(Predicate, Binary):
    """Base: a logical function of two operands."""

    section = "logic"
    commutative = True
    samples = (Sample(Bools(2, 3), Bools(3)), Sample(Real(2, 1), Ints(3, high=2)), Sample(Bools(), Bools(0, 2)))


class LogicalAnd(Connective):
    """y = a and b, elementwise with broadcasting. Nonzero numbers, including NaN, are true."""

    name = "logical_and"
    aliases = {"And": "born"}
    ufunc = "logical_and"


class LogicalOr(Connective):
    """y = a or b (or both), elementwise with broadcasting. Nonzero numbers, including NaN, are true."""

    name = "logical_or"
    aliases = {"Or": "born"}
    ufunc = "logical_or"


class LogicalNot(Predicate, Unary):
    """y = not x, elementwise. Nonzero numbers, including NaN, are true."""

    name = "logical_not"
    section = "logic"
    aliases = {"Not": "born"}
    ufunc = "logical_not"
    cost = 1
    samples = (Sample(Bools(2, 3)), Sample(Ints(3, high=2)), Sample(Real()))


class IsFinite(Predicate, Unary):
    """y = true if x is neither infinite nor NaN."""

    name = "is_finite"
    section = "logic"
    dtypes = DTYPES
    ufunc = "isfinite"
    scalar = staticmethod(lambda x: x.abs() < math.inf)
    complex_scalar = staticmethod(lambda x: (x.real().abs() < math.inf).and_(x.imag().abs() < math.inf))
    cost = 1
    samples = (Sample(Real(2, 3)), Sample(Ints(3, high=5)), Sample(Bools()))


class Where(Selecting, Elementwise):
    """y = on_true where cond is true, else on_false; all three broadcast. Nonzero numbers in cond are true.

    Each branch gets the cotangent where it was chosen and exactly zero elsewhere, whatever the other branch contains.
    """

    name = "where"
    is_linear = True
    section = "selection"
    aliases = {"WhereOp": "born", "Where": "born, cjc"}
    operands = ("cond", "on_true", "on_false")
    dtypes = DTYPES
    gradient = "d on_true = where(cond, g, 0), d on_false = where(cond, 0, g); none for cond"
    may_disconnect = ("cond",)
    samples = (
        Sample(Bools(2, 3), Real(2, 3), Real(3)),
        Sample(Bools(3), Real(2, 1), Real()),
        Sample(Real(2, 3), Real(2, 3), Real(2, 3)),
        Sample(Ints(2, 1, high=2), Real(), Real(3)),
    )
    scalar = staticmethod(lambda cond, on_true, on_false: cond.where(on_true, on_false))
    complex_temporaries = 1
    partials = _IN_VJP

    def result_dtype(self, *dtypes: DType, **attrs: Any) -> DType:
        """Return the common dtype of the branches."""
        return promote(*dtypes[1:])

    def compute_complex(self, run: RunContext, *xs: Array, out: Array, **attrs: Any) -> None:
        """Call NumPy's where, which has no `out`."""
        out[...] = run.xp.where(*xs)

    def reads(self, *types: Scalars) -> Sequence[Scalars]:
        """Take a bool and two branches of the same type."""
        branch: Scalars = "bool" if set(types[1:]) == {"bool"} else "float"
        return "bool", branch, branch

    def vjp(self, g: Value, y: Value, cond: Value, on_true: Value, on_false: Value) -> Sequence[Value | None]:
        """Pass g to the branch that was selected."""
        return None, unbroadcast(cond.where(g, 0.0), on_true), unbroadcast(cond.where(0.0, g), on_false)


class PairwiseExtremum(Selecting, Binary):
    """Base: the larger or smaller of two operands. NaN propagates."""

    is_linear = True
    section = "selection"
    partials = _IN_VJP

    def vjp(self, g: Value, y: Value, a: Value, b: Value) -> Sequence[Value | None]:
        """Pass g to the selected operand, half to each on a tie."""
        selected = [is_chosen(x, y) for x in (a, b)]
        shared = selected[0].logical_and(selected[1]).where(0.5 * g, g)
        return [unbroadcast(mask.where(shared, 0.0), x) for mask, x in zip(selected, (a, b), strict=True)]


class Maximum(PairwiseExtremum):
    """y = the larger of a and b, elementwise with broadcasting; NaN if either is NaN."""

    name = "maximum"
    aliases = {"maximum": "sadl"}
    ufunc = "maximum"
    gradient = "da = g where a > b or only a is NaN, g / 2 where a = b or both are NaN, else 0; db likewise"


class Minimum(PairwiseExtremum):
    """y = the smaller of a and b, elementwise with broadcasting; NaN if either is NaN."""

    name = "minimum"
    aliases = {"minimum": "sadl"}
    ufunc = "minimum"
    gradient = "da = g where a < b or only a is NaN, g / 2 where a = b or both are NaN, else 0; db likewise"


def _clamped(x: Scalar, min: float | None, max: float | None) -> Scalar:
    """Apply the lower bound, then the upper bound."""
    x = x if min is None else x.maximum(min)
    return x if max is None else x.minimum(max)


class Clamp(Selecting, WithConstants):
    """y = x limited to [min, max]; either bound may be absent. If min > max, y is max.

    NaN stays NaN and gets the gradient. Integers keep their dtype if all bounds given are whole numbers within its
    range; otherwise they give float64.
    """

    name = "clamp"
    is_linear = True
    section = "selection"
    aliases = {"Clamp": "cjc"}
    attrs: ClassVar[Mapping[str, Attr]] = {
        "min": Attr("number", None, "lower bound; default: none"),
        "max": Attr("number", None, "upper bound; default: none"),
    }
    cost = 2
    gradient = "g where min ≤ x ≤ max or x is NaN, else 0"
    samples = (
        Sample(Real(2, 3), min=-1, max=0.5),
        Sample(Real(2, 3), min=0.25),
        Sample(Real(), max=0.25),
        Sample(Real(2)),
        Sample(Ints(4, high=9), min=2, max=4.5),
        Sample(Ints(4, high=9), min=2, max=4),
    )
    scalar = staticmethod(_clamped)
    partials = _IN_VJP

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Convert the bounds to numbers of the result's dtype."""
        dtype = self.result_dtype(types[0].dtype, **attrs)
        return {name: None if bound is None else typed_number(bound, dtype) for name, bound in attrs.items()}

    def result_dtype(self, *dtypes: DType, **attrs: Any) -> DType:
        """Return x's own dtype if it is float, or an integer dtype that can represent the bounds; else float64."""
        bounds = [bound for bound in attrs.values() if bound is not None]
        are_representable = dtypes[0].kind in "iu" and all(is_representable(bound, dtypes[0]) for bound in bounds)
        return dtypes[0] if are_representable else super().result_dtype(*dtypes)

    def vjp(self, g: Value, y: Value, x: Value, *, min: float | None, max: float | None) -> Sequence[Value | None]:
        """Pass g on, but not where x is outside a bound."""
        if min is not None:
            g = (x < min).where(0.0, g)
        if max is not None:
            g = (x > max).where(0.0, g)
        return (g,)
