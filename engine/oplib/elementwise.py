"""Base of the elementwise ops: an op states a kernel and one partial derivative an operand, nothing else.

Broadcasting, its adjoint, batching and cost are here, once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from engine.graph.errors import DtypeMismatch
from engine.graph.ir import Value
from engine.graph.op import Namespace, NoGradient, Op, ResultTypes
from engine.graph.sample import Real, Sample
from engine.graph.tensor_type import DType, TensorType, broadcast, in_opset, to_float
from engine.oplib import batching
from engine.oplib.permutation import shaped
from engine.oplib.widening import widened

#: the partial derivative by one operand: `partial(y, *operands, **attrs)`; a number, or a bool mask, is allowed
Partial = Callable[..., "Value | float"]


class Elementwise(Op):
    """y = f(a, b, …) on broadcast operands.

    A subclass names the ufunc (of numpy and cupy alike) or overrides `compute` and `result_dtype`; and gives
    `partials`, one for each operand, or a reason why there are none.
    """

    #: name of the function in numpy and cupy
    ufunc: ClassVar[str] = ""
    partials: ClassVar[Sequence[Partial] | NoGradient]
    #: FLOPs for one element
    cost: ClassVar[int] = 1
    #: arrays of the result's size that `compute` allocates beside `out`
    temporaries: ClassVar[int] = 0
    samples: ClassVar[tuple[Sample, ...]] = (Sample(Real(2, 3)), Sample(Real()), Sample(Real(0, 2)))

    def result_dtype(self, *dtypes: DType, **attrs: Any) -> DType:
        """As NumPy 2 decides for the ufunc. Raises DtypeMismatch where NumPy has no loop for these dtypes."""
        return _ufunc_dtype(self.ufunc, dtypes)

    def compute(self, xp: Namespace, *xs: Any, **attrs: Any) -> None:
        """The kernel: write f(xs) into the keyword argument `out`."""
        getattr(xp, self.ufunc)(*xs, out=attrs["out"])

    def infer(self, *types: Any, **attrs: Any) -> Any:
        """Broadcast shape, dtype by `result_dtype`."""
        dtype = self.result_dtype(*(t.dtype for t in types), **attrs)
        if all(t is types[0] for t in types) and dtype == types[0].dtype:
            return types[0]
        return TensorType(broadcast(*(t.shape for t in types)), dtype)

    def forward(self, xp: Namespace, *xs: Any, **attrs: Any) -> None:
        """Run the kernel."""
        self.compute(xp, *xs, **attrs)

    def vjp(self, g: Value, y: Value, *xs: Any, **attrs: Any) -> Sequence[Value | None]:
        """g times each partial, summed over the axes that its operand was broadcast along."""
        if isinstance(self.partials, NoGradient):
            return [None for _ in xs]
        wide = widened(self, y, xs, attrs)
        return [
            unbroadcast(scale(g, partial(*wide, **attrs)), x) if x.type.is_float else None
            for partial, x in zip(self.partials, xs, strict=True)
        ]

    def batch(self, mapped: Sequence[bool], *xs: Any, **attrs: Any) -> Value:
        """Itself, once the ranks agree."""
        aligned = batching.align(mapped, xs)
        return aligned[0].builder.emit(self, aligned, attrs)

    def flops(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """`cost` for each element."""
        return self.cost * super().flops(out, *types, **attrs)

    def workspace(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """`temporaries` arrays like the result."""
        return self.temporaries * out.nbytes if isinstance(out, TensorType) else 0


class Unary(Elementwise):
    """Base: one operand."""

    operands: ClassVar[tuple[str, ...]] = ("x",)
    cost = 10


class FloatUnary(Unary):
    """Base: one operand and a float result, by a kernel of our own."""

    def result_dtype(self, *dtypes: DType, **attrs: Any) -> DType:
        """x's own dtype where it is float; integers as NumPy's exp."""
        return to_float(*dtypes)


class WithConstants(Unary):
    """Base: y = f(x) with constants among the attributes."""

    cost = 1

    def result_dtype(self, *dtypes: DType, **attrs: Any) -> DType:
        """x's own dtype where it is float, else float64."""
        return in_opset(np.result_type(dtypes[0], 0.0))


class Predicate(Elementwise):
    """Base: a bool result, by NumPy's ufunc."""

    gradient = "none: the result is bool"
    partials = vjp = NoGradient("the result is bool")


class Binary(Elementwise):
    """Base: two operands."""

    operands: ClassVar[tuple[str, ...]] = ("a", "b")
    samples: ClassVar[tuple[Sample, ...]] = (
        Sample(Real(2, 3), Real(2, 3)),
        Sample(Real(2, 3), Real(3)),
        Sample(Real(2, 1), Real(1, 3)),
        Sample(Real(), Real(2)),
        Sample(Real(0, 3), Real(3)),
    )


def scale(g: Value, partial: Value | float) -> Value:
    """g · partial. A bool partial is a mask: it selects, so that an infinite g beside it does no harm."""
    if not isinstance(partial, (int, float)):
        return partial.where(g, 0.0) if partial.dtype.kind == "b" else g * partial
    return g if partial == 1 else -g if partial == -1 else g * partial


def unbroadcast(g: Value, x: Value) -> Value:
    """The adjoint of broadcasting x to g's shape: g summed over the axes that x does not have or has at extent 1."""
    if g.type is x.type or g.shape == x.shape:
        return g
    lead = g.ndim - x.ndim
    axes = (*range(lead), *(lead + i for i, e in enumerate(x.shape) if e != g.shape[lead + i]))
    return shaped(g.sum(axes=axes) if axes else g, x.shape)


@lru_cache(maxsize=4096)
def _ufunc_dtype(ufunc: str, dtypes: tuple[DType, ...]) -> DType:
    try:
        resolved = getattr(np, ufunc).resolve_dtypes((*dtypes, None))
    except TypeError:
        names = ", ".join(d.name for d in dtypes)
        raise DtypeMismatch(f"is not defined for {names}", expected="numbers", got=names) from None
    return in_opset(resolved[-1])
