"""Comparisons, and the choice between two tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from engine.elementwise import Elementwise, unbroadcast
from engine.op import Array, Namespace, NoGradient
from engine.sample import Bools, Real, Sample
from engine.tensor_type import DType, promote

if TYPE_CHECKING:
    from engine.ir import Value


class Comparison(Elementwise):
    """Base: bool results, by NumPy's ufunc."""

    operands: ClassVar[tuple[str, ...]] = ("a", "b")
    samples: ClassVar[tuple[Sample, ...]] = (Sample(Real(2, 3), Real(3)), Sample(Real(), Real()))
    gradient: ClassVar[str] = "none: the result is bool"
    partials = NoGradient("the result is bool")
    vjp = partials


class Equal(Comparison):
    """y = (a = b), elementwise; NaN equals nothing."""

    name = "equal"
    aliases = {"Equal": "born"}
    ufunc = "equal"
    commutative = True


class NotEqual(Comparison):
    """y = (a ≠ b), elementwise; NaN differs from everything."""

    name = "not_equal"
    aliases = {"NotEqual": "born"}
    ufunc = "not_equal"
    commutative = True


class Greater(Comparison):
    """y = (a > b), elementwise."""

    name = "greater"
    aliases = {"Greater": "born"}
    ufunc = "greater"


class GreaterEqual(Comparison):
    """y = (a ≥ b), elementwise."""

    name = "greater_equal"
    aliases = {"GreaterEqual": "born"}
    ufunc = "greater_equal"


class Less(Comparison):
    """y = (a < b), elementwise."""

    name = "less"
    aliases = {"Lower": "born"}
    ufunc = "less"


class LessEqual(Comparison):
    """y = (a ≤ b), elementwise."""

    name = "less_equal"
    aliases = {"LowerEqual": "born"}
    ufunc = "less_equal"


class Where(Elementwise):
    """y = on_true where cond, else on_false; the three broadcast. A number as cond is true where it is not zero.

    Each branch gets the cotangent where it was chosen and exactly zero elsewhere, whatever the other branch holds.
    """

    name = "where"
    aliases = {"WhereOp": "born", "Where": "born, cjc"}
    operands = ("cond", "on_true", "on_false")
    gradient = "d on_true = where(cond, g, 0), d on_false = where(cond, 0, g); none for cond"
    samples = (
        Sample(Bools(2, 3), Real(2, 3), Real(3)),
        Sample(Bools(3), Real(2, 1), Real()),
        Sample(Real(2, 3), Real(2, 3), Real(2, 3)),
    )
    partials = NoGradient("written out in vjp")

    def result_dtype(self, *dtypes: DType, **attrs: Any) -> DType:
        """The common dtype of the branches."""
        return promote(*dtypes[1:])

    def compute(self, xp: Namespace, cond: Array, on_true: Array, on_false: Array, *, out: Array) -> None:
        """Copy one branch, then the other over it."""
        xp.copyto(out, on_false)
        xp.copyto(out, on_true, where=cond if cond.dtype.kind == "b" else cond != 0)

    def vjp(self, g: Value, y: Value, cond: Value, on_true: Value, on_false: Value) -> Sequence[Value | None]:
        """The cotangent goes to the branch that was taken."""
        return None, unbroadcast(cond.where(g, 0.0), on_true), unbroadcast(cond.where(0.0, g), on_false)

    def workspace(self, out: Any, *types: Any, **attrs: Any) -> int:
        """The mask of a numeric condition."""
        return int(types[0].size) if types[0].dtype.kind != "b" else 0
