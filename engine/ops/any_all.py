"""Truth of any or of all of the elements."""

from __future__ import annotations

from typing import Any, ClassVar

from engine.graph.op import Array, NoGradient
from engine.graph.run_context import RunContext
from engine.graph.sample import Bools, Ints, Real, Sample
from engine.graph.tensor_type import BOOL, DType
from engine.oplib.reduction import Reduction


class TruthReduction(Reduction):
    """Base: a bool over axes, by the function of numpy and cupy called `function`."""

    function: ClassVar[str]
    gradient: ClassVar[str] = "none: the result is bool"
    vjp = NoGradient("the result is bool")
    samples: ClassVar[tuple[Sample, ...]] = (
        Sample(Bools(2, 3)),
        Sample(Bools(2, 3, 2), axes=[0, -1]),
        Sample(Bools(2, 3), axes=[1], keepdims=True),
        Sample(Ints(2, 3, high=2), axes=[0]),
        Sample(Real(2, 3)),
        Sample(Bools()),
        Sample(Bools(0, 2), axes=[0]),
    )

    def result_dtype(self, dtype: DType) -> DType:
        """bool."""
        return BOOL

    def reduce(self, run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...], **attrs: Any) -> None:
        """NumPy's."""
        getattr(run.xp, self.function)(x, axis=axes, out=out, **attrs)


class AnyTrue(TruthReduction):
    """y = whether any element over axes is true; a number is true unless it is 0. False over nothing."""

    name = "any"
    section = "any_all"
    function = "any"


class AllTrue(TruthReduction):
    """y = whether all elements over axes are true; a number is true unless it is 0. True over nothing."""

    name = "all"
    section = "any_all"
    function = "all"
