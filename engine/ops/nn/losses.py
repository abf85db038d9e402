"""Losses, one per row or element or reduced to one number; the logarithm of softmax."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from engine.codegen.kernels.program import Scalar
from engine.ir.attributes import Attr
from engine.ir.graph import Value
from engine.ir.op import Array, ResultTypes, wrong_dtype
from engine.ir.run_context import RunContext
from engine.ir.sample import Ints, Real, Sample
from engine.ir.tensor_type import FLOATS, INTEGERS, REALS, Shape, TensorType, promote
from engine.ops.common.numerics import (
    accumulator,
    axis_first,
    axis_first_elements,
    require_shape,
    upcast,
    upcast_operands,
    wrong_shape,
)
from engine.ops.elementwise.base import Formula
from engine.ops.nn.softmax import Softmax

REDUCTION = Attr("string", "mean", "how to combine the losses; none: return each one", ("mean", "sum", "none"))


class Loss(Formula):
    """Base of losses: `single` returns one loss per row or element, which `reduction` combines."""

    section = "losses"
    attrs: ClassVar[Mapping[str, Attr]] = {"reduction": REDUCTION}

    @abstractmethod
    def single(self, *operands: Any) -> Value:
        """Compute the losses before the reduction."""

    def formula(self, *operands: Value, reduction: str) -> Value:
        """Return the mean, the sum, or all losses."""
        losses = self.single(*operands)
        return losses if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()


def reduced(shape: Shape, reduction: str, *floats: TensorType) -> TensorType:
    """Return the type of a loss whose single losses have `shape`."""
    return TensorType(shape if reduction == "none" else (), promote(*(x.dtype for x in floats)))


class CrossEntropy(Loss):
    """loss = −Σ p · log softmax(logits) over the last axis, the axis of the classes; then the mean over all rows.

    logits [..., classes]; targets are either class indices [...] of an integer dtype (p is 1 at the index), or the
    distribution p itself, a float tensor of the logits' shape. Indices lie in [0, classes).
    """

    name = "cross_entropy"
    aliases: ClassVar[Mapping[str, str]] = {"CrossEntropyOp": "born", "CrossEntropy": "born, cjc"}
    operands = ("logits", "targets")
    dtypes = REALS
    gradient = "d logits = g · (softmax(logits) · Σ p − p) / rows, d targets = −g · log softmax(logits) / rows if float"
    samples = (
        Sample(Real(4, 3), Ints(4, high=3)),
        Sample(Real(2, 2, 3), Ints(2, 2, high=3), reduction="none"),
        Sample(Real(3), Ints(high=3), reduction="sum"),
        Sample(Real(2, 3), Real(2, 3, low=0, high=1)),
        Sample(Real(3), Real(3, low=0, high=1), reduction="none"),
    )

    def infer(self, logits: TensorType, targets: TensorType, *, reduction: str) -> ResultTypes:
        """Return a scalar, or one loss per row with reduction none. Raises ShapeMismatch, DtypeMismatch."""
        if not logits.is_float:
            raise wrong_dtype("logits", 0, FLOATS, logits)
        if not logits.ndim:
            raise wrong_shape(0, "logits", "an axis of classes", logits)
        rows = logits.shape[:-1]
        if targets.is_float:
            require_shape(targets, logits.shape, 1, "targets", "one distribution for each row of logits")
            return reduced(rows, reduction, logits, targets)
        if targets.dtype.name not in INTEGERS:
            raise wrong_dtype("targets", 1, INTEGERS + FLOATS, targets)
        require_shape(targets, rows, 1, "targets", "one class index for each row of logits")
        return reduced(rows, reduction, logits)

    def single(self, logits: Value, targets: Value) -> Value:
        """Use log softmax, which is accurate for small losses."""
        logp = logits.log_softmax()
        if targets.type.is_float:
            return -(targets * logp).sum(axes=(logp.ndim - 1,))
        index = targets.reshape(shape=(*targets.shape, 1))
        return -logp.gather(index, axis=logp.ndim - 1).reshape(shape=targets.shape)


class ElementwiseLoss(Loss):
    """Base of losses of x and y of equal shapes, one per element."""

    operands: ClassVar[tuple[str, ...]] = ("x", "y")

    def infer(self, x: TensorType, y: TensorType, *, reduction: str) -> ResultTypes:
        """Return a scalar, or x's shape with reduction none. Raises ShapeMismatch."""
        require_shape(y, x.shape, 1, "y", "that of x")
        return reduced(x.shape, reduction, x, y)


class MSELoss(ElementwiseLoss):
    """loss = (x − y)², elementwise for equal shapes; then the mean."""

    name = "mse_loss"
    gradient = "dx = g · 2 (x − y) / n, dy = −dx"
    samples = (
        Sample(Real(2, 3), Real(2, 3)),
        Sample(Real(2, 3), Real(2, 3), reduction="sum"),
        Sample(Real(), Real(), reduction="none"),
    )

    def single(self, x: Value, y: Value) -> Value:
        """Apply the formula."""
        return (x - y).square()


class BCEWithLogits(ElementwiseLoss):
    """loss = −y · log σ(x) − (1 − y) · log σ(−x), binary cross-entropy, elementwise for equal shapes; then the mean.

    x contains logits, y probabilities. Accurate in both tails, because the logarithm of σ is computed in one step.
    """

    name = "bce_with_logits"
    gradient = "dx = g · (σ(x) − y) / n, dy = −g · x / n"
    samples = (
        Sample(Real(2, 3), Real(2, 3, low=0, high=1)),
        Sample(Real(2, 3), Real(2, 3, low=0, high=1), reduction="none"),
        Sample(Real(), Real(low=0, high=1), reduction="sum"),
    )

    def single(self, x: Value, y: Value) -> Value:
        """Apply the formula."""
        return -(y * x.log_sigmoid() + (1 - y) * (-x).log_sigmoid())


def _logarithm(x: Scalar) -> Scalar:
    y = x - x.row_max()
    leads = y.eq(0.0)
    others = leads.where(0.0, y.exp()).row_sum() + (leads.where(1.0, 0.0).row_sum() - 1.0)
    return y - others.log1p()


class LogSoftmax(Softmax):
    """y = x − log Σ exp(x) along `axis`, of x's shape; stable: computed from x − max x. Integers give float64.

    The largest x has y = −log(1 + Σ of the others), all of whose digits are kept. A row that contains only −inf gives
    NaN.
    """

    name = "log_softmax"
    section = "log_softmax"
    aliases = {"LogSoftmaxOp": "born, cjc"}
    gradient = "g − exp(y) · Σ g, with the sum along the axis, computed as −g · expm1(y) − (Σ g − g) · exp(y)"
    rows = staticmethod(lambda x, count: _logarithm(x))

    def forward(self, run: RunContext, x: Array, *, out: Array, axis: int) -> None:
        """Subtract the maximum, then log1p of the sum of the other exponentials; of equal maxima, all but one count."""
        xp = run.xp
        if not x.size:
            return
        for rows, y in run.checked(axis_first(run, x, out, axis)):
            xp.subtract(rows, xp.max(rows, axis=0), out=y, dtype=y.dtype)
            leads = y == 0
            exponentials = xp.exp(y)
            xp.copyto(exponentials, 0, where=leads)
            total = xp.sum(exponentials, axis=0, dtype=accumulator(y), keepdims=True)
            total += xp.sum(leads, axis=0, keepdims=True) - 1
            xp.subtract(y, xp.log1p(total, out=total), out=y)

    def vjp(self, g: Value, y: Value, x: Value, *, axis: int) -> Sequence[Value | None]:
        """Subtract from g each element's share of its row's sum; 1 − exp(y) keeps its digits where y is close to 0."""
        y, _ = upcast_operands(self, y, (x,), {"axis": axis})
        g = upcast(g)
        others = g.sum(axes=(axis,), keepdims=True) - g
        return (-(g * y.expm1()) - others * y.exp(),)

    def batch(self, mapped: Sequence[bool], x: Value, *, axis: int) -> Value:
        """Shift `axis` by one: the axis N comes first."""
        return x.log_softmax(axis=axis + 1)

    def workspace(self, out: Any, *types: TensorType, axis: int) -> int:
        """Return the bytes of softmax, and of the exponentials and a mask of a chunk or of all of x."""
        (x,) = types
        elements: int = axis_first_elements(x, axis) or out.size
        return elements * int(out.dtype.itemsize + 1) + super().workspace(out, x, axis=axis)
