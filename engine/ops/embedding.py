"""Between class numbers and vectors: rows of a table, and one-hot vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from engine.graph.attributes import Attr
from engine.graph.dtypes import DTYPES
from engine.graph.errors import BadAttribute
from engine.graph.ir import Value
from engine.graph.op import Array, Composite, NoGradient, Op, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Ints, Real, Sample
from engine.graph.tensor_type import FLOAT64, DType, TensorType
from engine.graph.truth import Truth
from engine.oplib.from_end import FROM_END, from_front
from engine.oplib.indices import check_indices, require_integer
from engine.oplib.operands import require_axes
from engine.oplib.source import require_real


class Embedding(Composite):
    """y[i, j, …, :] = weight[indices[i, j, …], :]: rows of a table.

    weight [rows, features…], indices of any shape with entries in [0, rows); y [shape of indices…, features…]. With
    `from_end`, entries lie in [−rows, rows), and negative ones count from the end. PyTorch's `functional.embedding`,
    which takes no negative index, and has `padding_idx`; JAX's weight[indices], which takes negative ones, and moves
    those outside to the nearest row.
    """

    name = "embedding"
    section = "embedding"
    aliases: ClassVar[Mapping[str, str]] = {"EmbeddingOp": "born", "Embedding": "born"}
    operands = ("weight", "indices")
    dtypes = DTYPES
    attrs: ClassVar[Mapping[str, Attr]] = {
        "from_end": FROM_END,
        "padding_idx": Attr("int", None, "a row that gets no gradient, read as others are; absent: none", since=2),
    }
    gradient = "d weight = g added to the rows that were read, repeated ones accumulating; none for indices"
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
        """The padding row counted from the front. Raises BadAttribute."""
        row, weight = attrs["padding_idx"], types[0]
        require_axes(weight, 1, "to look up rows")
        if row is None:
            return attrs
        rows = weight.shape[0]
        if not -rows <= row < rows:
            wanted = f"in [{-rows}, {rows})"
            raise BadAttribute(f"attribute padding_idx must lie {wanted}, but is {row}", expected=wanted, got=str(row))
        return {**attrs, "padding_idx": row % rows}

    def infer(self, weight: TensorType, indices: TensorType, **attrs: Any) -> ResultTypes:
        """The rows' shape for each index. Raises DtypeMismatch, ShapeMismatch."""
        require_integer(indices, 1, "indices")
        require_axes(weight, 1, "to look up rows")
        return weight.with_shape((*indices.shape, *weight.shape[1:]))

    def compose(self, weight: Value, indices: Value, *, from_end: bool, padding_idx: int | None) -> Value:
        """A gather of whole rows; of the padding row, of which nothing goes back."""
        indices = from_front(indices, weight.shape[0], 1, from_end)
        y = self._rows(weight, indices)
        if padding_idx is None:
            return y
        is_padding = indices.equal(padding_idx)
        column = is_padding.reshape(shape=(*indices.shape, *[1] * (weight.ndim - 1)))
        return column.where(y.stop_gradient(), y)

    def _rows(self, weight: Value, indices: Value) -> Value:
        count, features = indices.type.size, weight.shape[1:]
        column = indices.reshape(shape=(count, *[1] * len(features)))
        rows = weight.gather(column.broadcast_to(shape=(count, *features)), axis=0)
        return rows.reshape(shape=(*indices.shape, *features))


class OneHot(Op):
    """y[…, c] = 1 where indices[…] = c, else 0; a new last axis of extent `classes`. Indices lie in [0, classes)."""

    name = "one_hot"
    section = "embedding"
    operands = ("indices",)
    attrs = {
        "classes": Attr("int", doc="the number of classes", minimum=0),
        "dtype": Attr("dtype", FLOAT64, "the result's dtype"),
    }
    gradient = "none: indices have no derivative"
    vjp = NoGradient("indices have no derivative")
    samples = (Sample(Ints(2, 3, high=4), classes=4), Sample(Ints(high=3), classes=3, dtype="bool"))

    def infer(self, indices: TensorType, *, classes: int, dtype: DType) -> ResultTypes:
        """A new last axis. Raises DtypeMismatch."""
        require_integer(indices, 0, "indices")
        require_real(dtype)
        return TensorType((*indices.shape, classes), dtype)

    def forward(self, run: RunContext, indices: Array, *, out: Array, classes: int, dtype: DType) -> None:
        """Compare with all classes, after the range check."""
        xp = run.xp
        check_indices(indices, classes, operand=0)
        xp.equal(indices[..., None], xp.arange(classes), out=out)

    def batch(self, mapped: Sequence[bool], indices: Value, *, classes: int, dtype: DType) -> Value:
        """Itself: the classes are on the last axis."""
        return indices.one_hot(classes=classes, dtype=dtype)

    def workspace(self, out: ResultTypes, indices: TensorType, *, classes: int, dtype: DType) -> int:
        """The numbers of the classes."""
        return 8 * classes
