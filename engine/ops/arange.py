"""Ranges: numbers that are counted instead of sent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from engine.graph.attributes import Attr
from engine.graph.errors import BadAttribute
from engine.graph.op import Array, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Sample
from engine.graph.tensor_type import INT64, DType, TensorType
from engine.oplib.source import Source, is_integral, require_real, whole_limits


class Arange(Source):
    """Evenly spaced numbers: y[i] = start + i · step, for as long as they lie before stop.

    Result [⌈(stop − start) / step⌉], at least 0. As NumPy's arange, but exact: integer dtypes need a whole start and
    step, and a range that they hold.
    """

    name = "arange"
    section = "arange"
    attrs: ClassVar[Mapping[str, Attr]] = {
        "start": Attr("number", 0.0, "the first number", typed_by="dtype"),
        "stop": Attr("number", doc="the end, not included", typed_by="dtype"),
        "step": Attr("number", 1.0, "the distance; negative to count down, not 0", typed_by="dtype"),
        "dtype": Attr("dtype", INT64, "the result's dtype"),
    }
    samples: ClassVar[tuple[Sample, ...]] = (
        Sample(stop=5.0),
        Sample(start=1.0, stop=0.0, step=-0.25, dtype="float64"),
        Sample(start=3.0, stop=1.0),
        Sample(start=250.0, stop=256.0, dtype="uint8"),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Raises BadAttribute for a step of 0, a range too long to count, and one that the dtype does not hold.

        Raises DtypeMismatch for a complex dtype: what is counted is ordered.
        """
        require_real(attrs["dtype"])
        start, stop, step = attrs["start"], attrs["stop"], attrs["step"]
        if step == 0:
            raise BadAttribute("attribute step must not be 0", expected="a number other than 0", got="0")
        if not math.isfinite((stop - start) / step):
            raise BadAttribute("the range from start to stop by step is too long to count", expected="a finite range")
        if attrs["dtype"].kind != "f":
            _check_whole(start, stop, step, attrs["dtype"])
        return attrs

    def infer(self, *types: TensorType, start: float, stop: float, step: float, dtype: DType) -> ResultTypes:
        """One axis, as long as the range."""
        return TensorType((_count(start, stop, step, dtype),), dtype)

    def forward(self, run: RunContext, *arrays: Array, out: Array, start: float, step: float, **attrs: Any) -> None:
        """Count in float64, or for integers in int64; then cast."""
        if not out.size:  # the ends of an empty range may lie anywhere
            return
        counter, number = ("float64", float) if out.dtype.kind == "f" else ("int64", int)
        ramp = run.xp.arange(out.size, dtype=counter)
        ramp *= number(step)
        ramp += number(start)
        out[...] = ramp

    def workspace(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """The numbers in 64 bits."""
        return 8 * out.size if isinstance(out, TensorType) else 0


def _count(start: float, stop: float, step: float, dtype: DType) -> int:
    """How many numbers; of floats one, where the quotient is too small to be told from 0."""
    if dtype.kind != "f":
        end = math.ceil(stop) if step > 0 else math.floor(stop)
        return max(0, -((int(start) - end) // int(step)))
    count = max(0, math.ceil((stop - start) / step))
    return 1 if not count and stop != start and (stop > start) == (step > 0) else count


def _check_whole(start: float, stop: float, step: float, dtype: DType) -> None:
    """Raise BadAttribute unless all numbers of the range are whole and lie in `dtype`."""
    if not (is_integral(start) and is_integral(step)):
        wanted = f"whole numbers, as dtype is {dtype.name}"
        got = f"{start:g} and {step:g}"
        raise BadAttribute(f"attributes start and step must be {wanted}, but are {got}", expected=wanted, got=got)
    (low, high), count = whole_limits(dtype), _count(start, stop, step, dtype)
    first, last = int(start), int(start) + (count - 1) * int(step)
    # The counter's arithmetic is in int64, where a product may wrap around but a sum then wraps back.
    if count and not (low <= first <= high and low <= last <= high and abs(step) < 2**63):
        wanted, got = f"between {low} and {high}", f"{start:g} to {stop:g} by {step:g}"
        raise BadAttribute(
            f"the range must lie {wanted}, as dtype is {dtype.name}, but is {got}", expected=wanted, got=got
        )
