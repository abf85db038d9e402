"""Dense layers, embeddings and one-hot vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from engine.ir.attributes import Attr
from engine.ir.errors import BadAttribute, ShapeMismatch
from engine.ir.graph import Value
from engine.ir.op import Array, Composite, NoGradient, Op, ResultTypes
from engine.ir.run_context import RunContext
from engine.ir.sample import Ints, Real, Sample, Truth
from engine.ir.tensor_type import DTYPES, FLOAT64, REALS, DType, Shape, TensorType, promote, show_shape
from engine.ops.common.numerics import require_axes, require_real, wrong_shape
from engine.ops.elementwise.base import Formula
from engine.ops.elementwise.trigonometry import Sin, Tanh
from engine.ops.index.indices import FROM_END, check_indices, make_non_negative, require_integer
from engine.ops.nn.activations import Elu, Gelu, Relu, Selu, Sigmoid, Silu

_OPS = {op.name: op for op in (Relu(), Tanh(), Sigmoid(), Gelu(), Silu(), Elu(), Selu(), Sin())}
ACTIVATIONS = ("none", *_OPS)


class Dense(Formula):
    """Base of layers: a matrix product, a bias, an activation."""

    section = "linear"
    attrs = {"activation": Attr("string", "none", "op applied to the sum", ACTIVATIONS)}
    dtypes = DTYPES
    #: axis of w that is contracted with x
    inner: ClassVar[int]

    def infer(self, x: TensorType, w: TensorType, b: TensorType | None = None, *, activation: str) -> ResultTypes:
        """Return x's shape with the layer's width on the last axis. Raises ShapeMismatch."""
        if w.ndim != 2:
            raise wrong_shape(1, "w", "2 axes", w)
        _check_inner(x.shape, w.shape, self.inner)
        y = TensorType((*x.shape[:-1], w.shape[1 - self.inner]), promote(x.dtype, w.dtype))
        if b is not None:
            paired = zip(reversed(b.shape), reversed(y.shape), strict=False)
            if b.ndim > y.ndim or any(e not in (1, s) for e, s in paired):
                expected, received = f"a shape that broadcasts to {show_shape(y.shape)}", show_shape(b.shape)
                raise ShapeMismatch(
                    f"operand 2 (b) must have {expected}, but has {received}",
                    operand=2,
                    expected=expected,
                    got=received,
                )
            y = y.with_dtype(promote(y.dtype, b.dtype))
        if activation == "none":
            return y
        op = _OPS[activation]
        return op.infer(y, **op.canonical({name: attr.default for name, attr in op.attrs.items()}, y))


class Linear(Dense):
    """y = activation(x @ w + b) for x[…, in], w[in, out] and b[out]: y[…, out]. Without b, nothing is added.

    b may have any shape that broadcasts to y's shape. The activation is the op of that name with its defaults.
    """

    name = "linear"
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
        """Multiply, add, activate."""
        product = x @ w
        return _activate(product if b is None else product + b, activation)


class MlpLayer(Dense):
    """y = activation(x @ wᵀ + b) for x[…, in], w[out, in] and b[out]: y[…, out].

    b may have any shape that broadcasts to y's shape. The activation is the op of that name with its defaults. CJC's
    layer uses the tanh form of `gelu`: for that, build the layer from its parts.
    """

    name = "mlp_layer"
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
        """Multiply, add, activate."""
        return _activate(x @ w.transpose() + b, activation)


def _activate(y: Value, activation: str) -> Value:
    return y if activation == "none" else y.builder.emit(y.builder.registry.ops[activation], (y,), {})


def _check_inner(x: Shape, w: Shape, inner: int) -> None:
    if not x or x[-1] != w[inner]:
        expected, received = f"extent {w[inner]} on its last axis", show_shape(x)
        raise ShapeMismatch(
            f"operand 0 (x) must have {expected}, to match w of shape {show_shape(w)}, but has shape {received}",
            operand=0,
            expected=expected,
            got=received,
        )


class Embedding(Composite):
    """y[i, j, …, :] = weight[indices[i, j, …], :]: rows of a table.

    weight [rows, features…], indices of any shape with entries in [0, rows), y [shape of indices…, features…]. With
    `from_end`, entries lie in [−rows, rows), and negative ones count from the end. PyTorch: `functional.embedding`,
    which rejects negative indices and has `padding_idx`. JAX: weight[indices], which accepts negative indices and moves
    those out of range to the nearest row.
    """

    name = "embedding"
    section = "embedding"
    aliases: ClassVar[Mapping[str, str]] = {"EmbeddingOp": "born", "Embedding": "born"}
    operands = ("weight", "indices")
    dtypes = DTYPES
    attrs: ClassVar[Mapping[str, Attr]] = {
        "from_end": FROM_END,
        "padding_idx": Attr("int", None, "row that gets no gradient but is read as usual; default: none", since=2),
    }
    gradient = "d weight = g, added to the rows that were read: repeated indices accumulate; none for indices"
    samples = (
        Sample(Real(4, 3), Ints(2, 5, high=4)),
        Sample(Real(4, 2, 3), Ints(3, high=4)),
        Sample(Real(4), Ints(high=4)),
        Sample(Real(4, 3), Ints(2, 5, low=-4, high=4), from_end=True),
        Sample(Real(4), Ints(5, high=3), padding_idx=-1),
    )
    truths = (
        Truth(
            operands=[[[1.0, 2.0], [4.0, 8.0]], [-1, -2, 1]],
            attrs={"from_end": True},
            value=[[4.0, 8.0], [1.0, 2.0], [4.0, 8.0]],
            gradients=[[[1.0, 1.0], [2.0, 2.0]], None],
            source="by hand",
        ),
        Truth(
            operands=[[1.0, 2.0, 4.0], [1, 2, 1]],
            attrs={"padding_idx": 1},
            value=[2.0, 4.0, 2.0],
            gradients=[[0.0, 0.0, 1.0], None],
            source="by hand: row 1 gets none",
        ),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Count the padding row from the front. Raises BadAttribute."""
        row, weight = attrs["padding_idx"], types[0]
        require_axes(weight, 1, "to look up rows")
        if row is None:
            return attrs
        rows = weight.shape[0]
        if not -rows <= row < rows:
            expected = f"in [{-rows}, {rows})"
            raise BadAttribute(
                f"attribute padding_idx must lie {expected}, but is {row}",
                attribute="padding_idx",
                expected=expected,
                got=str(row),
            )
        return {**attrs, "padding_idx": row % rows}

    def infer(self, weight: TensorType, indices: TensorType, **attrs: Any) -> ResultTypes:
        """Return the rows' shape for each index. Raises DtypeMismatch, ShapeMismatch."""
        require_integer(indices, 1, "indices")
        require_axes(weight, 1, "to look up rows")
        return weight.with_shape((*indices.shape, *weight.shape[1:]))

    def compose(self, weight: Value, indices: Value, *, from_end: bool, padding_idx: int | None) -> Value:
        """Gather whole rows, and stop gradients of the padding row."""
        indices = make_non_negative(indices, weight.shape[0], 1, from_end)
        count, features = indices.type.size, weight.shape[1:]
        row_indices = indices.reshape(shape=(count, *[1] * len(features))).broadcast_to(shape=(count, *features))
        y = weight.gather(row_indices, axis=0).reshape(shape=(*indices.shape, *features))
        if padding_idx is None:
            return y
        is_padding = indices.equal(padding_idx)
        column = is_padding.reshape(shape=(*indices.shape, *[1] * (weight.ndim - 1)))
        return column.where(y.stop_gradient(), y)


class OneHot(Op):
    """y[…, c] = 1 where indices[…] = c, else 0, on a new last axis of extent `classes`. Indices lie in [0, classes)."""

    name = "one_hot"
    section = "embedding"
    operands = ("indices",)
    attrs = {
        "classes": Attr("int", doc="number of classes", minimum=0),
        "dtype": Attr("dtype", FLOAT64, "dtype of the result"),
    }
    gradient = "none: indices have no derivative"
    vjp = NoGradient("indices have no derivative")
    samples = (Sample(Ints(2, 3, high=4), classes=4), Sample(Ints(high=3), classes=3, dtype="bool"))

    def infer(self, indices: TensorType, *, classes: int, dtype: DType) -> ResultTypes:
        """Append an axis of classes. Raises DtypeMismatch."""
        require_integer(indices, 0, "indices")
        require_real(dtype)
        return TensorType((*indices.shape, classes), dtype)

    def forward(self, run: RunContext, indices: Array, *, out: Array, classes: int, dtype: DType) -> None:
        """Compare with all classes, after the range check."""
        xp = run.xp
        check_indices(indices, classes, operand=0)
        xp.equal(indices[..., None], xp.arange(classes), out=out)

    def batch(self, mapped: Sequence[bool], indices: Value, *, classes: int, dtype: DType) -> Value:
        """Return the op itself: the classes are on the last axis."""
        return indices.one_hot(classes=classes, dtype=dtype)

    def workspace(self, out: ResultTypes, indices: TensorType, *, classes: int, dtype: DType) -> int:
        """Return the bytes of the class numbers."""
        return 8 * classes
