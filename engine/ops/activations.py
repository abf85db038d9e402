"""Activation functions. The smooth ones are formulas over stable parts; their gradients follow from those."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from engine.graph.attributes import Attr
from engine.graph.dtypes import NUMBERS, REALS
from engine.graph.ir import Value
from engine.graph.op import NoGradient, ResultTypes
from engine.graph.sample import Ints, Real, Sample
from engine.graph.tensor_type import DType, TensorType, to_float
from engine.oplib.elementwise import FloatUnary, Unary, WithConstants
from engine.oplib.formula import Formula
from engine.oplib.widening import wide

_IN_VJP = NoGradient("written out in vjp")
_SMOOTH = (Sample(Real(2, 3, low=-3, high=3)), Sample(Real()), Sample(Real(0, 2)), Sample(Ints(3, low=-2, high=3)))


class Relu(Unary):
    """y = max(x, 0). The derivative at 0 is `at_zero`; some systems let the gradient pass there."""

    name = "relu"
    section = "activations"
    aliases = {"ReLUOp": "born", "ReLU": "born, minima", "Relu": "cjc"}
    attrs: ClassVar[Mapping[str, Attr]] = {"at_zero": Attr("float", 0.0, "the derivative at 0")}
    dtypes = NUMBERS
    cost = 1
    samples = (Sample(Real(2, 3)), Sample(Real(), at_zero=1), Sample(Ints(3, low=-2, high=3)))
    gradient = "g where x > 0 or NaN, g · at_zero where x = 0, else 0"
    scalar = staticmethod(lambda x, at_zero: x.maximum(0))
    partials = _IN_VJP

    def result_dtype(self, *dtypes: DType, **attrs: Any) -> DType:
        """x's own."""
        return dtypes[0]

    def vjp(self, g: Value, y: Value, x: Value, *, at_zero: float) -> Sequence[Value | None]:
        """g, where x is positive or NaN."""
        at_most_zero = x.equal(0.0).where(g * at_zero, 0.0) if at_zero else 0.0
        return ((x <= 0).where(at_most_zero, g),)


class LeakyRelu(WithConstants):
    """y = x for x > 0, else alpha · x. The derivative at 0 is alpha."""

    name = "leaky_relu"
    section = "activations"
    attrs: ClassVar[Mapping[str, Attr]] = {"alpha": Attr("float", 0.01, "the slope for x ≤ 0")}
    cost = 2
    samples = (Sample(Real(2, 3)), Sample(Real(2, 3), alpha=0.25), Sample(Real()), Sample(Ints(3, low=-2, high=3)))
    gradient = "g where x > 0 or NaN, else g · alpha"
    scalar = staticmethod(lambda x, alpha: (x > 0).where(x, x * alpha))
    partials = _IN_VJP

    def vjp(self, g: Value, y: Value, x: Value, *, alpha: float) -> Sequence[Value | None]:
        """g on the one side, g · alpha on the other."""
        return ((x <= 0).where(g * alpha, g),)


class Elu(FloatUnary):
    """y = x for x > 0, else alpha · (eˣ − 1). Derivatives at 0 are those from below: alpha.

    D.-A. Clevert, T. Unterthiner, S. Hochreiter, arXiv:1511.07289.
    """

    name = "elu"
    section = "activations"
    aliases = {"Elu": "cjc"}
    attrs: ClassVar[Mapping[str, Attr]] = {"alpha": Attr("float", 1.0, "−y for x → −∞")}
    samples = (Sample(Real(2, 3)), Sample(Real(2, 3), alpha=0.5), *_SMOOTH[1:])
    gradient = "g where x > 0 or NaN, else g · alpha · eˣ"
    scalar = staticmethod(lambda x, alpha: (x > 0).where(x, x.minimum(0).expm1() * alpha))
    partials = _IN_VJP

    def vjp(self, g: Value, y: Value, x: Value, *, alpha: float) -> Sequence[Value | None]:
        """g on the one side; on the other the curve's slope, which is not let overflow where it is not used."""
        return ((x <= 0).where(wide(g) * (wide(x).clamp(max=0.0).exp() * alpha), g),)


class Activation(Formula):
    """Base: a formula in one operand."""

    operands = ("x",)
    dtypes = REALS
    samples: ClassVar[tuple[Sample, ...]] = _SMOOTH

    def infer(self, *types: TensorType, **attrs: Any) -> ResultTypes:
        """x's own dtype where it is float; integers as NumPy's exp."""
        return types[0].with_dtype(to_float(types[0].dtype))

    def compose(self, *operands: Value, **attrs: Any) -> Value:
        """Of floats."""
        (x,) = operands
        return super().compose(x if x.type.is_differentiable else x.cast(dtype=to_float(x.dtype)), **attrs)


class Selu(Activation):
    """y = 1.0507… · elu(x, alpha = 1.6732…): keeps mean 0 and variance 1 of what it is applied to.

    G. Klambauer, T. Unterthiner, A. Mayr, S. Hochreiter, arXiv:1706.02515.
    """

    name = "selu"
    section = "activations"
    aliases = {"Selu": "cjc"}
    gradient = "1.0507… · that of elu"

    def formula(self, x: Value) -> Value:
        """An `elu`, scaled."""
        return x.elu(alpha=1.6732632423543772) * 1.0507009873554805


class Silu(Activation):
    """y = x · sigmoid x; 0 at −∞."""

    name = "silu"
    section = "activations"
    aliases = {"SiLUOp": "born", "SiLU": "born", "Silu": "cjc"}
    gradient = "g · (s + x · s · (1 − s)), s = sigmoid x"

    def formula(self, x: Value) -> Value:
        """The product. Beyond ±800 the sigmoid is 0 or 1 to the last bit, and so it must be beside an infinite x."""
        low = x.clamp(min=-800.0)
        return low * low.clamp(max=800.0).sigmoid()


class Gelu(Activation):
    """y = x · Φ(x), Φ the standard normal distribution function; 0 at −∞. D. Hendrycks, K. Gimpel, arXiv:1606.08415.

    `approximate` tanh: y = x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), the curve that many models were trained with.
    """

    name = "gelu"
    section = "activations"
    aliases = {"Gelu": "cjc"}
    attrs: ClassVar[Mapping[str, Attr]] = {
        "approximate": Attr("string", "none", "none: by the error function; tanh: its approximation", ("none", "tanh"))
    }
    samples = (*_SMOOTH, Sample(Real(2, 3, low=-3, high=3), approximate="tanh"), Sample(Real(), approximate="tanh"))
    gradient = "g · (Φ(x) + x · Φ′(x))"

    def formula(self, x: Value, *, approximate: str) -> Value:
        """By erfc, or by the sigmoid of twice the argument of tanh: both keep their accuracy for x → −∞."""
        # Beyond these bounds Φ is 0 or 1 to the last bit: so it must be beside an infinite x; and the cube overflows.
        bound = 40.0 if approximate == "none" else 22.0
        low = x.clamp(min=-bound)
        t = low.clamp(max=bound)
        if approximate == "none":
            return low * 0.5 * (t * -math.sqrt(0.5)).erfc()
        doubled = math.sqrt(8 / math.pi)
        return low * (t * (t.square() * (0.044715 * doubled) + doubled)).sigmoid()
