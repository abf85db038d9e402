"""Activation functions. The smooth ones are formulas over stable parts, and get their gradients from the parts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from engine.codegen.kernels.program import Scalar
from engine.ir.attributes import Attr
from engine.ir.graph import Value
from engine.ir.op import NONE, Array, NoGradient, ResultTypes
from engine.ir.run_context import RunContext
from engine.ir.sample import Ints, Real, Sample
from engine.ir.tensor_type import DTYPES, NUMBERS, REALS, DType, TensorType, float_dtype
from engine.ops.common.numerics import upcast
from engine.ops.common.support import Selecting
from engine.ops.elementwise.base import FloatUnary, Formula, Unary, WithConstants

_IN_VJP = NoGradient("written out in vjp")
_SMOOTH = (Sample(Real(2, 3, low=-3, high=3)), Sample(Real()), Sample(Real(0, 2)), Sample(Ints(3, low=-2, high=3)))


class Relu(Selecting, Unary):
    """y = max(x, 0). The derivative at 0 is `at_zero`; some systems use 1."""

    name = "relu"
    is_linear = True
    section = "activations"
    aliases = {"ReLUOp": "born", "ReLU": "born, minima", "Relu": "cjc"}
    attrs: ClassVar[Mapping[str, Attr]] = {"at_zero": Attr("float", 0.0, "derivative at 0")}
    dtypes = NUMBERS
    cost = 1
    samples = (Sample(Real(2, 3)), Sample(Real(), at_zero=1), Sample(Ints(3, low=-2, high=3)))
    gradient = "g where x > 0 or NaN, g · at_zero where x = 0, else 0"
    scalar = staticmethod(lambda x, at_zero: x.maximum(0))
    partials = _IN_VJP

    def result_dtype(self, *dtypes: DType, **attrs: Any) -> DType:
        """Return x's dtype."""
        return dtypes[0]

    def vjp(self, g: Value, y: Value, x: Value, *, at_zero: float) -> Sequence[Value | None]:
        """Pass g where x is positive or NaN."""
        at_most_zero = x.equal(0.0).where(g * at_zero, 0.0) if at_zero else 0.0
        return ((x <= 0).where(at_most_zero, g),)


class LeakyRelu(WithConstants):
    """y = x for x > 0, else alpha · x. The derivative at 0 is alpha."""

    name = "leaky_relu"
    section = "activations"
    attrs: ClassVar[Mapping[str, Attr]] = {"alpha": Attr("float", 0.01, "slope for x ≤ 0")}
    cost = 2
    samples = (Sample(Real(2, 3)), Sample(Real(2, 3), alpha=0.25), Sample(Real()), Sample(Ints(3, low=-2, high=3)))
    gradient = "g where x > 0 or NaN, else g · alpha"
    scalar = staticmethod(lambda x, alpha: (x > 0).where(x, x * alpha))
    partials = _IN_VJP

    def vjp(self, g: Value, y: Value, x: Value, *, alpha: float) -> Sequence[Value | None]:
        """Pass g on one side, g · alpha on the other."""
        return ((x <= 0).where(g * alpha, g),)


class Elu(FloatUnary):
    """y = x for x > 0, else alpha · (eˣ − 1). Derivatives at 0 are the left ones: alpha.

    D.-A. Clevert, T. Unterthiner, S. Hochreiter, arXiv:1511.07289.
    """

    name = "elu"
    section = "activations"
    aliases = {"Elu": "cjc"}
    attrs: ClassVar[Mapping[str, Attr]] = {"alpha": Attr("float", 1.0, "limit of −y for x → −∞")}
    samples = (Sample(Real(2, 3)), Sample(Real(2, 3), alpha=0.5), *_SMOOTH[1:])
    gradient = "g where x > 0 or NaN, else g · alpha · eˣ"
    scalar = staticmethod(lambda x, alpha: (x > 0).where(x, x.minimum(0).expm1() * alpha))
    partials = _IN_VJP

    def vjp(self, g: Value, y: Value, x: Value, *, alpha: float) -> Sequence[Value | None]:
        """Pass g on one side, and g times the slope on the other; the exponential is clamped so as not to overflow."""
        return ((x <= 0).where(upcast(g) * (upcast(x).clamp(max=0.0).exp() * alpha), g),)


class Activation(Formula):
    """Base of formulas in one operand."""

    section = "activations"
    operands = ("x",)
    dtypes = REALS
    samples: ClassVar[tuple[Sample, ...]] = _SMOOTH

    def infer(self, *types: TensorType, **attrs: Any) -> ResultTypes:
        """Return x's dtype if it is float; for integers, that of NumPy's exp."""
        return types[0].with_dtype(float_dtype(types[0].dtype))

    def compose(self, *operands: Value, **attrs: Any) -> Value:
        """Compute on floats."""
        (x,) = operands
        return super().compose(x if x.type.is_differentiable else x.cast(dtype=float_dtype(x.dtype)), **attrs)


class Selu(Activation):
    """y = 1.0507… · elu(x, alpha = 1.6732…), which preserves mean 0 and variance 1.

    G. Klambauer, T. Unterthiner, A. Mayr, S. Hochreiter, arXiv:1706.02515.
    """

    name = "selu"
    aliases = {"Selu": "cjc"}
    gradient = "1.0507… · that of elu"

    def formula(self, x: Value) -> Value:
        """Scale `elu`."""
        return x.elu(alpha=1.6732632423543772) * 1.0507009873554805


class Silu(Activation):
    """y = x · sigmoid x; 0 at −∞."""

    name = "silu"
    aliases = {"SiLUOp": "born", "SiLU": "born", "Silu": "cjc"}
    gradient = "g · (s + x · s · (1 − s)), s = sigmoid x"

    def formula(self, x: Value) -> Value:
        """Multiply, with operands clamped so that an infinite x does not meet a sigmoid of 0.

        Beyond ±800 the sigmoid is 0 or 1 to the last bit.
        """
        low = x.clamp(min=-800.0)
        return low * low.clamp(max=800.0).sigmoid()


class Gelu(Activation):
    """y = x · Φ(x), with Φ the standard normal distribution function; 0 at −∞.

    With `approximate` set to tanh, y = x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), which many models were trained
    with. D. Hendrycks, K. Gimpel, arXiv:1606.08415.
    """

    name = "gelu"
    aliases = {"Gelu": "cjc"}
    attrs: ClassVar[Mapping[str, Attr]] = {
        "approximate": Attr("string", "none", "none: use the error function; tanh: approximate it", ("none", "tanh"))
    }
    samples = (*_SMOOTH, Sample(Real(2, 3, low=-3, high=3), approximate="tanh"), Sample(Real(), approximate="tanh"))
    gradient = "g · (Φ(x) + x · Φ′(x))"

    def formula(self, x: Value, *, approximate: str) -> Value:
        """Use erfc, or the sigmoid of twice the argument of tanh: both stay accurate for x → −∞."""
        # Beyond these bounds Φ is 0 or 1 to the last bit. Clamping keeps an infinite x from meeting 0, and x³ from
        # overflowing.
        bound = 40.0 if approximate == "none" else 22.0
        low = x.clamp(min=-bound)
        t = low.clamp(max=bound)
        if approximate == "none":
            return low * 0.5 * (t * -math.sqrt(0.5)).erfc()
        doubled = math.sqrt(8 / math.pi)
        return low * (t * (t.square() * (0.044715 * doubled) + doubled)).sigmoid()


#: x up to which e^x does not overflow, and beyond which e^−x is subnormal
_LARGEST: Final = {"float32": 88.0, "float64": 709.0}


def _logistic(x: Scalar) -> Scalar:
    """Compute z / (1 + z) for z = eˣ, with x clamped so that z does not overflow."""
    z = x.minimum(_LARGEST[x.dtype]).exp()
    return z / (z + 1)


def _bell(x: Scalar) -> Scalar:
    """Compute z / (1 + z)² for z = eˣ, which shares the exponential of `_logistic`."""
    z = x.minimum(_LARGEST[x.dtype]).exp()
    total = z + 1
    return (x > _LARGEST[x.dtype]).where(0.0, z / total / total)


def _tail(x: Scalar) -> Scalar:
    """Compute ln(1 + e^−|x|), the difference between softplus x and max(x, 0)."""
    return (-x.abs()).exp().log1p()


def _complex_logistic(z: Scalar) -> Scalar:
    """Compute the sigmoid from e^z or e^−z, whichever does not overflow."""
    is_negative, unit = z.real() < 0.0, z.builder.as_pair(1.0)
    power = is_negative.where(z, -z).exp()
    return is_negative.where(power, unit) / (unit + power)


class SigmoidSlope(FloatUnary):
    """y = s(x) s(−x) with the sigmoid s: its derivative, which keeps its digits where s rounds to 1.

    An op of its own, since y (1 − y) and the derivatives of its factors lose theirs.
    """

    name = "sigmoid_slope"
    internal = True
    gradient = "−g · y · tanh(x / 2)"
    scalar = staticmethod(_bell)
    partials = (lambda y, x: -(y * (x * 0.5).tanh()),)

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """Write the product."""
        (x,) = operands
        return [x.sigmoid() * (-x).sigmoid()]


_SIGMOID_SLOPE: Final = SigmoidSlope()


def sigmoid_slope(x: Value) -> Value:
    """Append the derivative of the sigmoid at x."""
    return x.builder.emit(_SIGMOID_SLOPE, (x,), NONE)


class Sigmoid(FloatUnary):
    """y = 1 / (1 + e⁻ˣ), accurate in both tails, down to the smallest number. The same formula holds for complex x."""

    name = "sigmoid"
    section = "sigmoid"
    aliases = {"SigmoidOp": "born", "Sigmoid": "born, cjc"}
    dtypes = DTYPES
    gradient = "g · y · (1 − y)"
    scalar = staticmethod(_logistic)
    complex_scalar = staticmethod(_complex_logistic)
    complex_temporaries, complex_masks = 2, 2
    partials = (lambda y, x: y * (1 - y) if x.type.is_complex else sigmoid_slope(x),)

    def compute_complex(self, run: RunContext, *xs: Array, out: Array, **attrs: Any) -> None:
        """Compute 1 / (1 + z) or z / (1 + z), z = e^∓x, by the sign of Re x, so that z does not overflow."""
        (x,), xp = xs, run.xp
        is_negative = x.real < 0
        z = xp.where(is_negative, x, -x)
        xp.exp(z, out=z)
        total = 1 + z
        xp.copyto(z, 1, where=~is_negative)
        xp.divide(z, total, out=out)


class LogSigmoid(FloatUnary):
    """y = ln sigmoid x = −softplus(−x)."""

    name = "log_sigmoid"
    section = "sigmoid"
    cost = 20
    gradient = "g · sigmoid(−x)"
    scalar = staticmethod(lambda x: x.minimum(0) - _tail(x))
    partials = (lambda y, x: (-x).sigmoid(),)


class Softplus(FloatUnary):
    """y = ln(1 + eˣ)."""

    name = "softplus"
    section = "sigmoid"
    cost = 20
    gradient = "g · sigmoid x"
    scalar = staticmethod(lambda x: x.maximum(0) + _tail(x))
    partials = (lambda y, x: x.sigmoid(),)
