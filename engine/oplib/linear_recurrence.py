"""A running sum whose terms are scaled on the way: what the gradients of running products are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from engine.graph.attributes import Attr
from engine.graph.by_device import DeviceFunction
from engine.graph.dtypes import COMPLEX, FLOATS
from engine.graph.ir import Value
from engine.graph.op import Array, Op, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import HostArray, TensorType
from engine.oplib import batching
from engine.oplib.conjugates import conjugate
from engine.oplib.running_op import shifted

#: elements of a slice across the axis from which NumPy's calls for each take less time than Python's floats
_LEAST_SLICE: Final = 24
#: elements of a line that are Python's floats at a time
_LINE: Final = 1 << 13
#: bytes of one of these, with its place in a list
_FLOAT_BYTES: Final = 32


class LinearRecurrence(Op):
    """h[0] = b[0] and h[i] = a[i] · h[i − 1] + b[i] along `axis`; a[0] is not read. One after the other.

    a and b have one shape and one dtype, float or complex, and so has h.
    """

    name = "linear_recurrence"
    internal = True
    operands = ("a", "b")
    dtypes = (*FLOATS, *COMPLEX)
    attrs: ClassVar[Mapping[str, Attr]] = {"axis": Attr("int", doc="the axis to run along")}
    gradient: ClassVar[str] = "db[i] = g[i] + conj a[i + 1] · db[i + 1], da[i] = db[i] · conj h[i − 1]"

    def infer(self, a: TensorType, b: TensorType, *, axis: int) -> ResultTypes:
        """b's type."""
        return b

    def forward(self, run: RunContext, a: Array, b: Array, *, out: Array, axis: int) -> None:
        """One after the other."""
        if out.size:
            _recur(run, a, b, out, axis)

    def vjp(self, g: Value, y: Value, a: Value, b: Value, *, axis: int) -> Sequence[Value | None]:
        """The same, from the end."""
        back = recurrence_back(conjugate(a), g, axis)
        return back * conjugate(shifted(y, axis)), back

    def batch(self, mapped: Sequence[bool], *operands: Value, axis: int) -> Value:
        """The next axis, with N on both operands."""
        a, b = batching.expand(mapped, operands)
        return recurrence(a, b, axis + 1)

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """In log₂ n rounds, each of which has twice as many terms: a[0] is 0, so that nothing comes from before."""
        (a, h), axis = operands, attrs["axis"]
        n, distance = h.shape[axis], 1
        a = shifted(shifted(a, axis, -1), axis)
        while distance < n:
            h = h + a * shifted(h, axis, distance)
            a = a * shifted(a, axis, distance)
            distance *= 2
        return (h,)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """A product and a sum for each element."""
        return 2 * types[1].size

    def workspace(self, out: ResultTypes, *types: TensorType, axis: int) -> int:
        """A slice of products; or three chunks of a line as Python's floats, and one to be cast."""
        b = types[1]
        extent, across = b.shape[axis], b.size // max(1, b.shape[axis])
        if across >= _LEAST_SLICE:
            return across * b.dtype.itemsize
        return min(extent, _LINE) * (3 * _FLOAT_BYTES + 8)


_OP: Final = LinearRecurrence()


def recurrence(a: Value, b: Value, axis: int) -> Value:
    """h[0] = b[0] and h[i] = a[i] · h[i − 1] + b[i]."""
    return b.builder.emit(_OP, (a, b), {"axis": axis})


def recurrence_back(a: Value, b: Value, axis: int) -> Value:
    """h[i] = b[i] + a[i + 1] · h[i + 1], and the last b as it is."""
    turned = recurrence(shifted(a, axis, -1).flip(axes=(axis,)), b.flip(axes=(axis,)), axis)
    return turned.flip(axes=(axis,))


@DeviceFunction
def _recur(run: RunContext, a: Array, b: Array, out: Array, axis: int) -> None:
    """Slice by slice."""
    xp = run.xp
    a, b, out = (xp.moveaxis(x, axis, 0) for x in (a, b, out))
    out[0] = b[0]
    for i in run.through(range(1, len(out))):
        now = out[i : i + 1]  # a slice: a number alone has no place to write to
        xp.multiply(a[i : i + 1], out[i - 1 : i], out=now)
        now += b[i : i + 1]


@_recur.on("cpu")
def _recur_on_cpu(run: RunContext, a: HostArray, b: HostArray, out: HostArray, axis: int) -> None:
    """Short slices by Python's floats, which are doubles: a call for each would take longer."""
    if out.size >= _LEAST_SLICE * out.shape[axis]:
        _recur.general(run, a, b, out, axis)
        return
    a, b, out = (np.moveaxis(x, axis, -1) for x in (a, b, out))
    for where in np.ndindex(out.shape[:-1]):
        last: complex | None = None
        for start in run.through(range(0, out.shape[-1], _LINE)):
            part = (*where, slice(start, start + _LINE))
            found = list(_line(a[part].tolist(), b[part].tolist(), last))
            last = found[-1]
            out[part] = found


def _line(a: list[complex], b: list[complex], last: complex | None) -> Iterator[complex]:
    """Behind the `last` of the part before, if there was one."""
    for factor, term in zip(a, b, strict=True):
        last = term if last is None else factor * last + term
        yield last
