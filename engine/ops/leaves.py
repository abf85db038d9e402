"""Leaves: fed tensors, constants, and filled tensors and ranges, which are described instead of sent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from engine.ir.attributes import Attr
from engine.ir.errors import BadAttribute, DtypeMismatch, ShapeMismatch
from engine.ir.graph import Value
from engine.ir.op import Array, Definition, Namespace, ResultTypes, Support, View
from engine.ir.run_context import DeviceFunction, RunContext
from engine.ir.sample import Sample
from engine.ir.tensor_type import DTYPES, FLOAT64, INT64, DType, HostArray, Shape, TensorType, show_shape
from engine.ops.common.batching import PACK, BatchedAsIs
from engine.ops.common.numerics import FILL_AS, NullaryOp, integer_limits, is_integral, require_real, resolve_fill


class Leaf(Definition):
    """Base of the fed leaves. Their type is that of the feed, which must match the declared dtype and shape."""

    section = "leaves"
    operands: ClassVar[tuple[str, ...]] = ()
    dtypes: ClassVar[tuple[str, ...]] = DTYPES
    is_leaf = True
    gradient: ClassVar[str] = "none: there are no operands"
    attrs: ClassVar[Mapping[str, Attr]] = {
        "dtype": Attr("dtype", None, "required dtype of the feed; default: any"),
        "shape": Attr("ints", None, "required shape of the feed, -1 for any extent; default: any", minimum=-1),
        "zero_d": Attr("bool", False, "whether the feed must be 0-d"),
    }
    samples: ClassVar[tuple[Sample, ...]] = ()

    def infer(self, fed: TensorType, *, dtype: DType | None, shape: Shape | None, zero_d: bool) -> ResultTypes:
        """Return the feed's type. Raises DtypeMismatch or ShapeMismatch if it differs from the declared one."""
        if dtype is not None and dtype != fed.dtype:
            expected, received = dtype.name, fed.dtype.name
            raise DtypeMismatch(f"is declared as {expected}, but is fed {received}", expected=expected, got=received)
        declared = () if zero_d else shape
        if declared is not None and (
            len(declared) != fed.ndim or any(d not in (-1, s) for d, s in zip(declared, fed.shape, strict=True))
        ):
            expected, received = show_shape(declared), show_shape(fed.shape)
            raise ShapeMismatch(
                f"is declared with shape {expected}, but is fed shape {received}", expected=expected, got=received
            )
        return fed


class Input(Leaf):
    """Data, fed with the request.

    Its gradient is computed only if `wrt` names it. A declared `dtype` or `shape` must match the feed.
    """

    name = "input"
    aliases: ClassVar[Mapping[str, str]] = {"Input": "cjc"}


class Parameter(Leaf):
    """A trainable tensor, fed with the request.

    Same as `input`, but part of `wrt` by default.
    """

    name = "parameter"
    aliases: ClassVar[Mapping[str, str]] = {"Parameter": "cjc"}


class Constant(NullaryOp):
    """A tensor that is part of the graph: y = value."""

    name = "constant"
    section = "leaves"
    is_captured = False
    attrs: ClassVar[Mapping[str, Attr]] = {"value": Attr("tensor", doc="value of the tensor")}
    samples: ClassVar[tuple[Sample, ...]] = (
        Sample(value=np.array([[1.0, -2.0]])),
        Sample(value=np.array(3, dtype="int32")),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Convert the value to native byte order. Raises BadAttribute for a dtype outside the opset."""
        value = attrs["value"]
        if value.dtype.name not in DTYPES:
            expected, received = "a tensor of dtype " + ", ".join(DTYPES), value.dtype.name
            raise BadAttribute(
                f"attribute value must be {expected}, but is {received}",
                attribute="value",
                expected=expected,
                got=received,
            )
        return {"value": value.astype(value.dtype.newbyteorder("="), copy=False)}

    def infer(self, *types: TensorType, value: Array) -> ResultTypes:
        """Return the type of the value."""
        return TensorType.of(value)

    def forward(self, run: RunContext, *arrays: Array, out: Array, value: Array) -> None:
        """Copy the value."""
        out[...] = run.xp.asarray(value)

    def tensor(self, run: RunContext, type: TensorType, **attrs: Array) -> Array:
        """Return the value in memory that the device can read."""
        return _dense_on_device(run, attrs["value"])


@DeviceFunction
def _dense_on_device(run: RunContext, value: HostArray) -> Array:
    """Copy the value into dense memory of the device."""
    return run.xp.array(value, order="C")


@_dense_on_device.on("cpu")
def _dense_on_cpu(_: RunContext, value: HostArray) -> HostArray:
    """Return the value itself if it is dense, else a copy."""
    return value if value.flags.c_contiguous else value.copy()


class Full(NullaryOp):
    """A tensor filled with one number, created on the server: y[…] = fill.

    An absent or empty `shape` makes a 0-d tensor. To fill with an infinity or NaN, use `fill_as`. PyTorch and JAX:
    `full`.
    """

    name = "full"
    section = "leaves"
    attrs: ClassVar[Mapping[str, Attr]] = {
        "shape": Attr("ints", (), "shape of the result", minimum=0),
        "fill": Attr("number", 0.0, "value of every element", typed_by="dtype"),
        "dtype": Attr("dtype", FLOAT64, "dtype of the result"),
        "fill_as": FILL_AS,
    }
    samples: ClassVar[tuple[Sample, ...]] = (
        Sample(shape=[2, 3], fill=1.5),
        Sample(fill=-1.0, dtype="int32"),
        Sample(shape=[0, 2], fill=0.0, dtype="float32"),
        Sample(shape=[2], fill_as="-inf", dtype="float32"),
        Sample(shape=[3], fill_as="inf"),
        Sample(fill_as="nan"),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Resolve `fill` and `fill_as` to one number. Raises BadAttribute if `dtype` cannot represent it."""
        return resolve_fill(attrs, attrs["dtype"])

    def constant_value(self, attrs: Mapping[str, Any]) -> Any:
        """Return `fill`."""
        return attrs["fill"]

    def infer(self, *types: TensorType, shape: Sequence[int], dtype: DType, **attrs: Any) -> ResultTypes:
        """Return the type given by the attributes."""
        return TensorType(tuple(shape), dtype)

    def forward(self, run: RunContext, *arrays: Array, out: Array, fill: float, **attrs: Any) -> None:
        """Fill the tensor."""
        out[...] = fill  # cupy's fill loses the sign of -0.0


class GetOutput(BatchedAsIs, View):
    """One result of an op with several results: y = x[index]."""

    name = "get_output"
    section = "leaves"
    operands = ("x",)
    dtypes = DTYPES
    attrs: ClassVar[Mapping[str, Attr]] = {"index": Attr("int", doc="position of the result, from 0", minimum=0)}
    gradient = "g for that result, 0 for the other results of the op"
    samples: ClassVar[tuple[Sample, ...]] = ()
    reshapes = True

    def infer(self, *types: tuple[TensorType, ...], index: int) -> ResultTypes:
        """Return the type of the result at `index`. Raises BadAttribute if the op has fewer results."""
        (x,) = types
        if index >= len(x):
            expected = f"between 0 and {len(x) - 1}"
            raise BadAttribute(
                f"attribute index must be {expected}, but is {index}",
                attribute="index",
                expected=expected,
                got=str(index),
            )
        return x[index]

    def compose(self, x: Value, *, index: int) -> Value | None:
        """Return the operand of a `pack` node instead of reading it back."""
        producer = x.node
        return x.builder.value(producer.operands[index]) if producer.op is PACK else None

    def view(self, xp: Namespace, x: Sequence[Array], *, index: int) -> Array:
        """Return the result at `index`."""
        return x[index]

    def vjp(self, g: Value, y: Value, x: Value, *, index: int) -> Sequence[Any]:
        """Pass g to the result at `index`; the op's other results have no cotangent."""
        return ({index: g},)

    def supported_vjp(
        self, gs: Sequence[Any], supports: Sequence[Support | None] | None, y: Any, *xs: Any, **attrs: Any
    ) -> tuple[Sequence[Any], Sequence[Support | None]]:
        """Pass the support on, too."""
        return self.vjp(gs[0], y, *xs, **attrs), supports or ()


class Arange(NullaryOp):
    """Evenly spaced numbers: y[i] = start + i · step, up to but not including stop.

    The result has ⌈(stop − start) / step⌉ elements, at least 0. Same as NumPy's arange, but exact: for an integer
    dtype, start and step must be whole numbers, and all numbers must be in its range.
    """

    name = "arange"
    section = "arange"
    attrs: ClassVar[Mapping[str, Attr]] = {
        "start": Attr("number", 0.0, "first number", typed_by="dtype"),
        "stop": Attr("number", doc="end of the range, not included", typed_by="dtype"),
        "step": Attr("number", 1.0, "distance between numbers; negative to count down, not 0", typed_by="dtype"),
        "dtype": Attr("dtype", INT64, "dtype of the result"),
    }
    samples: ClassVar[tuple[Sample, ...]] = (
        Sample(stop=5.0),
        Sample(start=1.0, stop=0.0, step=-0.25, dtype="float64"),
        Sample(start=3.0, stop=1.0),
        Sample(start=250.0, stop=256.0, dtype="uint8"),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Check the range: raise BadAttribute for a step of 0, an infinite length, or numbers outside the dtype.

        Raises DtypeMismatch for a complex dtype: complex numbers are not ordered.
        """
        require_real(attrs["dtype"])
        start, stop, step = attrs["start"], attrs["stop"], attrs["step"]
        if step == 0:
            raise BadAttribute(
                "attribute step must not be 0", attribute="step", expected="a number other than 0", got="0"
            )
        if not math.isfinite((stop - start) / step):
            raise BadAttribute(
                "the range from start to stop by step is too long to count", attribute="stop", expected="a finite range"
            )
        if attrs["dtype"].kind != "f":
            _check_integers(start, stop, step, attrs["dtype"])
        return attrs

    def infer(self, *types: TensorType, start: float, stop: float, step: float, dtype: DType) -> ResultTypes:
        """Return one axis with the length of the range."""
        return TensorType((_count(start, stop, step, dtype),), dtype)

    def forward(self, run: RunContext, *arrays: Array, out: Array, start: float, step: float, **attrs: Any) -> None:
        """Compute in float64, or in int64 for integers, then cast."""
        # Start and step of an empty range are not checked: they may not even fit int64.
        if not out.size:
            return
        counter, number = ("float64", float) if out.dtype.kind == "f" else ("int64", int)
        numbers = run.xp.arange(out.size, dtype=counter)
        numbers *= number(step)
        numbers += number(start)
        out[...] = numbers

    def workspace(self, out: TensorType, *types: Any, **attrs: Any) -> int:
        """Count the bytes of the 64-bit range."""
        return 8 * out.size


def _count(start: float, stop: float, step: float, dtype: DType) -> int:
    """Return the length of the range; 1 for a float range that is not empty although its quotient underflows to 0."""
    if dtype.kind != "f":
        end = math.ceil(stop) if step > 0 else math.floor(stop)
        return max(0, -((int(start) - end) // int(step)))
    count = max(0, math.ceil((stop - start) / step))
    return 1 if not count and stop != start and (stop > start) == (step > 0) else count


def _check_integers(start: float, stop: float, step: float, dtype: DType) -> None:
    """Raise BadAttribute unless all numbers of the range are whole and representable in `dtype`."""
    if not (is_integral(start) and is_integral(step)):
        expected = f"whole numbers, as dtype is {dtype.name}"
        received = f"{start:g} and {step:g}"
        raise BadAttribute(
            f"attributes start and step must be {expected}, but are {received}",
            attribute="step" if is_integral(start) else "start",
            expected=expected,
            got=received,
        )
    (low, high), count = integer_limits(dtype), _count(start, stop, step, dtype)
    first, last = int(start), int(start) + (count - 1) * int(step)
    # forward computes in int64, where i · step may wrap around, but adding start wraps it back.
    if count and not (low <= first <= high and low <= last <= high and abs(step) < 2**63):
        expected, received = f"between {low} and {high}", f"{start:g} to {stop:g} by {step:g}"
        raise BadAttribute(
            f"the range must lie {expected}, as dtype is {dtype.name}, but is {received}",
            attribute="stop" if low <= first <= high else "start",
            expected=expected,
            got=received,
        )
