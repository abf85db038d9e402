"""Arithmetic: of two operands, with a constant, whole quotients, rounding, signs. A partial derivative is one line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from engine.graph.by_device import DeviceMethod
from engine.graph.dtypes import DTYPES
from engine.graph.ir import Value
from engine.graph.op import Array, Namespace, NoGradient, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Real, Sample
from engine.graph.tensor_type import TensorType
from engine.oplib.accumulate import sum_parts_bytes
from engine.oplib.conjugates import conjugate
from engine.oplib.elementwise import Binary, unbroadcast
from engine.oplib.widening import wide, widened
from engine.rewrites.arithmetic import by_a_number, sign_out, sum_with_negated, without
from engine.rewrites.movement import MOVING
from engine.rewrites.spans import sum_of_spans


class Add(Binary):
    """y = a + b, elementwise, broadcasting as NumPy."""

    name = "add"
    section = "arithmetic"
    aliases = {"AddOp": "born", "Add": "born, cjc", "EWiseAdd": "minima"}
    dtypes = DTYPES
    ufunc = "add"
    commutative = True
    gradient = "da = g, db = g"
    partials = (lambda y, a, b: 1, lambda y, a, b: 1)
    rewrites = (without(0.0, either=True), sum_with_negated, sum_of_spans, *MOVING)


class Sub(Binary):
    """y = a − b, elementwise, broadcasting as NumPy."""

    name = "sub"
    section = "arithmetic"
    aliases = {"SubOp": "born", "Sub": "born, cjc", "subtract": "sadl"}
    dtypes = DTYPES
    ufunc = "subtract"
    gradient = "da = g, db = −g"
    partials = (lambda y, a, b: 1, lambda y, a, b: -1)
    rewrites = (without(0.0, either=False), *MOVING)


class Mul(Binary):
    """y = a · b, elementwise, broadcasting as NumPy."""

    name = "mul"
    section = "arithmetic"
    aliases = {"MulOp": "born", "Mul": "born, cjc", "EWiseMul": "minima", "multiply": "minima, sadl"}
    dtypes = DTYPES
    ufunc = "multiply"
    commutative = True
    gradient = "da = g · b, db = g · a"
    partials = (lambda y, a, b: b, lambda y, a, b: a)
    rewrites = (without(1.0, either=True), by_a_number, sign_out(0), sign_out(1), *MOVING)


class Div(Binary):
    """y = a / b, elementwise, broadcasting as NumPy; integers give floats, x / 0 gives ±inf or NaN."""

    name = "div"
    section = "arithmetic"
    aliases = {"DivOp": "born", "Div": "born, cjc", "EWiseDiv": "minima", "divide": "minima, sadl"}
    dtypes = DTYPES
    ufunc = "divide"
    gradient = "da = g / b, db = −y · g / b"
    samples = tuple(Sample(a, Real(*b.shape, low=0.5, high=2)) for a, b in (s.operands for s in Binary.samples))
    rewrites = (without(1.0, either=False), *MOVING)
    partials = NoGradient("written out in vjp")

    def vjp(self, g: Value, y: Value, a: Value, b: Value) -> Sequence[Value | None]:
        """Through g / b, which both need, and which exists where 1 / b overflows."""
        y, a, b = widened(self, y, (a, b), {})
        quotient = wide(g) / conjugate(b)
        return unbroadcast(quotient, a), unbroadcast(-(quotient * conjugate(y)), b)


def _steps(y: Value, a: Value, b: Value) -> Value:
    """−⌊a / b⌋, from y, which is exact: a / b may round up to a whole number that a does not reach, as 1 / 0.1 does.

    Where y is infinite b is, and of the other sign than a: one step.
    """
    return y.abs().equal(math.inf).where(1.0, ((y - a) / b).round())


class Mod(Binary):
    """y = a − b · ⌊a / b⌋: the remainder, with the divisor's sign, as Python's % and NumPy's mod.

    A float modulo 0 is NaN, an integer modulo 0 is 0.
    """

    name = "mod"
    section = "arithmetic"
    ufunc = "remainder"
    cost = 20
    gradient = "da = g, db = −g · ⌊a / b⌋"
    samples = (
        Sample(Real(2, 3, low=4.1, high=4.9), Real(3, low=1.8, high=2)),
        Sample(Real(2, low=-1.9, high=-1.1), Real(low=0.97, high=1)),
        Sample(Real(), Real(2, low=-9, high=-3)),
    )

    @DeviceMethod
    def compute(self, run: RunContext, a: Array, b: Array, *, out: Array) -> None:
        """NumPy's."""
        super().compute(run, a, b, out=out)

    @compute.on("cuda")
    def _compute_on_cuda(self, run: RunContext, a: Array, b: Array, *, out: Array) -> None:
        """CuPy takes a − b · ⌊a / b⌋ of floats by its word, which is −5e-17 for 1 and 0.1, where 0.1 is right."""
        if out.dtype.kind == "f":
            _float_mod(run.xp, a, b, out)
        else:
            super().compute(run, a, b, out=out)

    def workspace(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """The parts in which a kernel counts the quotients that are too long for it."""
        assert isinstance(out, TensorType)
        return sum_parts_bytes(out.size) if out.is_float else 0

    partials = (lambda y, a, b: 1, _steps)


def _float_mod(xp: Namespace, a: Array, b: Array, out: Array) -> None:
    """C's fmod, which is exact and has a's sign, moved to b's."""
    xp.fmod(a, b, out=out)
    other_sign = (out != 0) & ((out < 0) != (b < 0))
    out += xp.where(other_sign, b, 0).astype(out.dtype, copy=False)
