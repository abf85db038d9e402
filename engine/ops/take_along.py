"""Reading along an axis at index tensors that broadcast."""

from __future__ import annotations

from typing import Any

from engine.graph.attributes import Attr
from engine.graph.dtypes import DTYPES
from engine.graph.ir import Value
from engine.graph.op import Composite, ResultTypes
from engine.graph.sample import Ints, Real, Sample
from engine.graph.tensor_type import Shape, TensorType, normalise_axis, show_shape
from engine.graph.truth import Truth
from engine.oplib.from_end import FROM_END, from_front
from engine.oplib.indices import require_integer
from engine.oplib.operands import with_extent, wrong_shape


class TakeAlong(Composite):
    """y[i, j, …] = x[index[i, j, …], j, …] for axis 0, and alike for the others: NumPy's take_along_axis.

    `index` has x's rank; off the axis the two broadcast, and on it y has the index's extent. Indices lie in
    [0, extent); with `from_end`, in [−extent, extent), and negative ones count from the end. PyTorch's
    `take_along_dim`, which takes no negative index, and JAX's `take_along_axis`, which does.
    """

    name = "take_along"
    section = "take_along"
    operands = ("x", "index")
    dtypes = DTYPES
    attrs = {"axis": Attr("int", 0, "the axis that is indexed"), "from_end": FROM_END}
    gradient = "g added where it was read: repeated indices accumulate; none for index"
    samples = (
        Sample(Real(4, 3), Ints(2, 3, high=4)),
        Sample(Real(3, 4), Ints(1, 5, high=4), axis=-1),
        Sample(Real(1, 4, 2), Ints(3, 2, 1, high=4), axis=1),
        Sample(Real(3), Ints(5, high=3)),
        Sample(Real(1, 4, 2), Ints(3, 2, 1, low=-4, high=4), axis=1, from_end=True),
    )
    truths = (
        Truth(
            operands=[[[1.0, 2.0, 4.0]], [[-1], [-3]]],
            attrs={"axis": 1, "from_end": True},
            value=[[4.0], [1.0]],
            gradients=[[[1.0, 0.0, 1.0]], None],
            source="by hand",
        ),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """The axis counted from the front. Raises BadAttribute."""
        return {**attrs, "axis": normalise_axis(attrs["axis"], types[0].ndim)}

    def infer(self, x: TensorType, index: TensorType, *, axis: int, **attrs: Any) -> ResultTypes:
        """The index's extent on the axis, the two broadcast elsewhere. Raises DtypeMismatch, ShapeMismatch."""
        require_integer(index, 1, "index")
        return x.with_shape(with_extent(_common(x.shape, index, axis), axis, index.shape[axis]))

    def compose(self, x: Value, index: Value, *, axis: int, from_end: bool) -> Value:
        """Both broadcast off the axis, and a gather."""
        index = from_front(index, x.shape[axis], 1, from_end)
        shape = _common(x.shape, index.type, axis)
        wide, places = (
            v if v.shape == (to := with_extent(shape, axis, v.shape[axis])) else v.broadcast_to(shape=to)
            for v in (x, index)
        )
        return wide.gather(places, axis=axis)


def _common(shape: Shape, index: TensorType, axis: int) -> Shape:
    """x's `shape` and the index's, broadcast off the axis; 1 on it. Raises ShapeMismatch."""
    here, there = (with_extent(s, axis, 1) if len(s) > axis else s for s in (shape, index.shape))
    if len(here) != len(there) or any(m != n and 1 not in (m, n) for m, n in zip(here, there, strict=True)):
        wanted = f"rank {len(shape)} and extents that broadcast with {show_shape(shape)} off axis {axis}"
        raise wrong_shape(1, "index", wanted, index)
    return tuple(n if m == 1 else m for m, n in zip(here, there, strict=True))
