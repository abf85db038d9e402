"""Convolution, its adjoint, and its gradient by the kernel, on one, two and three spatial axes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from operator import sub
from typing import Any, ClassVar

from engine.graph.attributes import Attr
from engine.graph.dtypes import NUMBERS
from engine.graph.ir import Value
from engine.graph.op import Op, ResultTypes
from engine.graph.tensor_type import TensorType, promote
from engine.oplib import batching
from engine.oplib.convolution_layout import Layout
from engine.oplib.permutation import shaped
from engine.oplib.spatial import check_ranks, check_spatial
from engine.oplib.windows import Windows

GROUPS = Attr("int", 1, "how many equal parts the channels are cut into, each with its own kernels", minimum=1)


def placing(rank: int) -> dict[str, Attr]:
    """The attributes of a convolution on `rank` spatial axes."""
    return {
        "stride": Attr("ints", (1,) * rank, "distance of the windows along each spatial axis", minimum=1),
        "padding": Attr("ints", (0,) * rank, "zeros put on both sides of each spatial axis", minimum=0),
        "dilation": Attr("ints", (1,) * rank, "distance of the kernel's taps along each spatial axis", minimum=1),
        "groups": GROUPS,
    }


def placing_transposed(rank: int) -> dict[str, Attr]:
    """The attributes of its adjoint."""
    doc = "extent added at the end of each spatial axis of the result"
    return {**placing(rank), "output_padding": Attr("ints", (0,) * rank, doc, minimum=0)}


class Convolution(Op):
    """Base: images [n, channels, *extents] and a kernel of the same rank; a bias has one number for each feature."""

    makes_parts = True
    #: how many spatial axes there are
    rank: ClassVar[int]
    operands: ClassVar[tuple[str, ...]] = ("x", "kernel", "bias?")
    dtypes: ClassVar[tuple[str, ...]] = NUMBERS
    #: the kernel's axis of the features of one group
    feature_axis: ClassVar[int]
    #: what the kernel's first two axes are
    kernel_axes: ClassVar[str]

    @abstractmethod
    def layout(self, out: TensorType, x: TensorType, windows: Windows, groups: int) -> Layout:
        """What is laid out to compute `out`."""

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """The least numbers that place the windows so. Raises BadAttribute, ShapeMismatch."""
        for name, value in attrs.items():
            if name != "groups":
                check_spatial(name, value, self.rank)
        x, kernel = types[:2]
        check_ranks(x, kernel, self.rank, self.kernel_axes)
        spatial = {name: attrs[name] for name in ("stride", "padding", "dilation")}
        return {**attrs, **self.least(Windows(kernel.shape[2:], **spatial), x.shape[2:], attrs)}

    @abstractmethod
    def least(self, windows: Windows, extents: Sequence[int], attrs: Mapping[str, Any]) -> Mapping[str, Any]:
        """The least numbers for `windows` on x of these `extents`. Raises BadAttribute, ShapeMismatch."""

    def compose(self, x: Value, kernel: Value, bias: Value | None = None, **attrs: Any) -> Value | None:
        """A bias is added afterwards."""
        if bias is None:
            return None
        return x.builder.emit(self, (x, kernel), attrs) + bias.reshape(shape=(*bias.shape, *[1] * self.rank))

    def batch(self, mapped: Sequence[bool], x: Value, kernel: Value, *, groups: int, **attrs: Any) -> Value:
        """N goes into the images, or into the features, or, where both operands have it, into the groups."""
        if 0 in (v.shape[0] for v, m in zip((x, kernel), mapped, strict=True) if m):
            return of_none(self, mapped, (x, kernel), {**attrs, "groups": groups})
        if not mapped[1]:
            return unfolded(self._emit(folded(x, 0), kernel, groups, attrs), 0, x.shape[0])
        if not mapped[0] and groups == 1:
            return unfolded(self._emit(x, folded(kernel, self.feature_axis), 1, attrs), 1, kernel.shape[0])
        x, kernel = batching.expand(mapped, (x, kernel))
        n = x.shape[0]
        return unfolded(self._emit(folded(x, 1), folded(kernel, 0), n * groups, attrs), 1, n)

    def _emit(self, x: Value, kernel: Value, groups: int, attrs: Mapping[str, Any]) -> Value:
        return x.builder.emit(self, (x, kernel), {**attrs, "groups": groups})

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """A multiplication and an addition for each tap of each window, in each channel that it sees or gives."""
        return 2 * self.laid_out(out, *types, **attrs).products

    def laid_out(
        self,
        out: ResultTypes,
        x: TensorType,
        kernel: TensorType,
        *,
        groups: int,
        output_padding: Any = None,
        **spatial: Any,
    ) -> Layout:
        """`layout`, from what `flops` and `workspace` are given."""
        assert isinstance(out, TensorType)
        return self.layout(out, x, Windows(kernel.shape[2:], **spatial), groups)


def typed(shape: Sequence[int], *operands: TensorType | None) -> TensorType:
    """A result of `shape` in the operands' common dtype."""
    return TensorType(tuple(shape), promote(*(x.dtype for x in operands if x is not None)))


def of_none(op: Op, mapped: Sequence[bool], operands: Sequence[Value], attrs: Mapping[str, Any]) -> Value:
    """`op` on no examples: an extent that nothing was folded into does not come back out of 0."""
    each = [v.type.with_shape(v.shape[1:]) if m else v.type for v, m in zip(operands, mapped, strict=True)]
    y = op.infer(*each, **attrs)
    assert isinstance(y, TensorType)
    return operands[0].builder.full((0, *y.shape), 0.0, y.dtype)


def folded(x: Value, axis: int, groups: int = 1) -> Value:
    """x [N, *shape] as `shape`, with N in front of the entries of `axis`, in each of its groups."""
    n, *shape = x.shape
    split = (groups,) if groups > 1 else ()
    parted = shaped(x, (n, *shape[:axis], *split, shape[axis] // groups, *shape[axis + 1 :]))
    at = axis + len(split)
    moved = parted.transpose(axes=(*range(1, at + 1), 0, *range(at + 1, parted.ndim)))
    return moved.reshape(shape=(*shape[:axis], n * shape[axis], *shape[axis + 1 :]))


def unfolded(y: Value, axis: int, n: int, groups: int = 1) -> Value:
    """The inverse of `folded`."""
    shape = y.shape
    split, at = ((groups,), axis + 1) if groups > 1 else ((), axis)
    parted = y.reshape(shape=(*shape[:axis], *split, n, shape[axis] // (n * groups), *shape[axis + 1 :]))
    moved = parted.transpose(axes=(at, *(i for i in range(parted.ndim) if i != at)))
    return shaped(moved, (n, *shape[:axis], shape[axis] // n, *shape[axis + 1 :]))


def correlated(wide: Value, kernel: Value, positions: Sequence[int], windows: Windows, groups: int) -> Value:
    """Σ over channels of a group and taps t of wide[n, c, p·s + t·d − p₀] · kernel[o, c, t], as [n, o, *positions]."""
    convolve = getattr(wide, f"conv{len(windows.size)}d")
    found = convolve(kernel, groups=groups, **windows.placing)
    return cropped(found, (*found.shape[:2], *positions))


def spread_values(narrow: Value, kernel: Value, extents: Sequence[int], windows: Windows, groups: int) -> Value:
    """The adjoint of `correlated` by its first operand: the values of `narrow` times the kernel, as [n, c, *extents].

    On one axis by way of two, since the opset has no such op.
    """
    if len(extents) == 1:
        images, taps = (v.unsqueeze(axes=(2,)) for v in (narrow, kernel))
        return spread_values(images, taps, (1, *extents), windows.on_axes(2), groups).squeeze(axes=(2,))
    transposed = getattr(narrow, f"conv_transpose{len(extents)}d")
    rest = tuple(map(sub, extents, windows.cover(narrow.shape[2:])))
    dx: Value = transposed(kernel, output_padding=rest, groups=groups, **windows.placing)
    return dx


def cropped(x: Value, shape: Sequence[int]) -> Value:
    """The leading part of x: windows that do not fit evenly see a few positions more."""
    if x.shape == tuple(shape):
        return x
    return x.slice(stops=tuple(shape))
