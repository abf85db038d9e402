"""Dense layers, embeddings and one-hot vectors."""

from __future__ import annotations

from typing import ClassVar

from engine.graph.attributes import Attr
from engine.graph.dtypes import DTYPES, REALS
from engine.graph.errors import ShapeMismatch
from engine.graph.ir import Value
from engine.graph.op import ResultTypes
from engine.graph.sample import Real, Sample
from engine.graph.tensor_type import Shape, TensorType, promote, show_shape
from engine.oplib.formula import Formula
from engine.ops.activations import Elu, Gelu, Relu, Selu, Silu
from engine.ops.hyperbolic import Tanh
from engine.ops.sigmoid import Sigmoid
from engine.ops.trigonometry import Sin

_OPS = {op.name: op for op in (Relu(), Tanh(), Sigmoid(), Gelu(), Silu(), Elu(), Selu(), Sin())}
ACTIVATIONS = ("none", *_OPS)


class Dense(Formula):
    """Base: a matrix product, a bias, an activation."""

    attrs = {"activation": Attr("string", "none", "the op that is applied to the sum", ACTIVATIONS)}
    dtypes = DTYPES
    #: the axis of w that meets x
    inner: ClassVar[int]

    def infer(self, x: TensorType, w: TensorType, b: TensorType | None = None, *, activation: str) -> ResultTypes:
        """x's shape with the layer's width on the last axis. Raises ShapeMismatch."""
        if w.ndim != 2:
            got = show_shape(w.shape)
            raise ShapeMismatch(
                f"operand 1 (w) must have 2 axes, but has shape {got}", operand=1, expected="2 axes", got=got
            )
        _check_inner(x.shape, w.shape, self.inner)
        y = TensorType((*x.shape[:-1], w.shape[1 - self.inner]), promote(x.dtype, w.dtype))
        if b is not None:
            paired = zip(reversed(b.shape), reversed(y.shape), strict=False)
            if b.ndim > y.ndim or any(e not in (1, s) for e, s in paired):
                wanted, got = f"a shape that broadcasts to {show_shape(y.shape)}", show_shape(b.shape)
                raise ShapeMismatch(
                    f"operand 2 (b) must have {wanted}, but has {got}", operand=2, expected=wanted, got=got
                )
            y = y.with_dtype(promote(y.dtype, b.dtype))
        if activation == "none":
            return y
        op = _OPS[activation]
        return op.infer(y, **op.canonical({name: attr.default for name, attr in op.attrs.items()}, y))


class Linear(Dense):
    """y = activation(x @ w + b) for x[…, in], w[in, out] and b[out]: y[…, out]. Without b nothing is added.

    b may have any shape that broadcasts to y's. The activation is the op of that name with its defaults.
    """

    name = "linear"
    section = "linear"
    operands = ("x", "w", "b?")
    gradient = "with h = g · activation′: dx = h @ wᵀ, dw = xᵀ @ h, db = Σ h over the rows"
    inner = 0
    samples = (
        Sample(Real(2, 3), Real(3, 4)),
        Sample(Real(2, 2, 3), Real(3, 2), Real(2, 1)),
        Sample(Real(3), Real(3, 2), Real(2)),
        Sample(Real(0, 3), Real(3, 2), Real(2)),
        *(Sample(Real(2, 3), Real(3, 2), Real(2), activation=name) for name in ACTIVATIONS),
    )

    def formula(self, x: Value, w: Value, b: Value | None = None, *, activation: str) -> Value:
        """Product, sum, activation."""
        product = x @ w
        return _activate(product if b is None else product + b, activation)


class MlpLayer(Dense):
    """y = activation(x @ wᵀ + b) for x[…, in], w[out, in] and b[out]: y[…, out].

    b may have any shape that broadcasts to y's. The activation is the op of that name with its defaults; CJC's `gelu`
    here is the tanh form: write that one as parts.
    """

    name = "mlp_layer"
    section = "linear"
    aliases = {"MlpLayer": "cjc"}
    operands = ("x", "w", "b")
    dtypes = REALS
    gradient = "with h = g · activation′: dx = h @ w, dw = hᵀ @ x, db = Σ h over the rows"
    inner = 1
    samples = (
        Sample(Real(2, 2, 3), Real(2, 3), Real(2)),
        Sample(Real(3), Real(2, 3), Real(2)),
        *(Sample(Real(2, 3), Real(4, 3), Real(4), activation=name) for name in ACTIVATIONS),
    )

    def formula(self, x: Value, w: Value, b: Value, *, activation: str) -> Value:
        """Product, sum, activation."""
        return _activate(x @ w.transpose() + b, activation)


def _activate(y: Value, activation: str) -> Value:
    return y if activation == "none" else y.builder.emit(y.builder.registry.ops[activation], (y,), {})


def _check_inner(x: Shape, w: Shape, inner: int) -> None:
    if not x or x[-1] != w[inner]:
        wanted, got = f"extent {w[inner]} on its last axis", show_shape(x)
        raise ShapeMismatch(
            f"operand 0 (x) must have {wanted}, as w of shape {show_shape(w)} takes it in, but has shape {got}",
            operand=0,
            expected=wanted,
            got=got,
        )
