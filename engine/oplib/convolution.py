"""Base of convolution and its adjoint, on any number of spatial axes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from engine.graph.attributes import Attr
from engine.graph.dtypes import NUMBERS
from engine.graph.ir import Value
from engine.graph.op import Op, ResultTypes
from engine.graph.tensor_type import TensorType, promote
from engine.oplib import batching
from engine.oplib.spatial import check_ranks, check_spatial
from engine.oplib.tiling import Layout
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

    def decompose(self, x: Value, kernel: Value, bias: Value | None = None, **attrs: Any) -> Value | None:
        """A bias is added afterwards."""
        if bias is None:
            return None
        return x.builder.emit(self, (x, kernel), attrs) + bias.reshape(shape=(*bias.shape, *[1] * self.rank))

    def batch(self, mapped: Sequence[bool], x: Value, kernel: Value, *, groups: int, **attrs: Any) -> Value:
        """N goes into the images, or into the features, or, where both operands have it, into the groups."""
        if 0 in (v.shape[0] for v, m in zip((x, kernel), mapped, strict=True) if m):
            return self._of_none(mapped, x, kernel, groups=groups, **attrs)
        if not mapped[1]:
            return _unfold(self._emit(_fold(x, 0), kernel, groups, attrs), 0, x.shape[0])
        if not mapped[0] and groups == 1:
            return _unfold(self._emit(x, _fold(kernel, self.feature_axis), 1, attrs), 1, kernel.shape[0])
        x, kernel = batching.expand(mapped, (x, kernel))
        n = x.shape[0]
        return _unfold(self._emit(_fold(x, 1), _fold(kernel, 0), n * groups, attrs), 1, n)

    def _of_none(self, mapped: Sequence[bool], x: Value, kernel: Value, **attrs: Any) -> Value:
        """No examples: an extent that nothing was folded into does not come back out of 0."""
        each = [v.type.with_shape(v.shape[1:]) if m else v.type for v, m in zip((x, kernel), mapped, strict=True)]
        y = self.infer(*each, **attrs)
        assert isinstance(y, TensorType)
        return x.builder.full((0, *y.shape), 0.0, y.dtype)

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


def _fold(x: Value, axis: int) -> Value:
    """x [N, *shape] as `shape`, with N in front of the entries of `axis`."""
    n, *shape = x.shape
    moved = x.transpose(axes=(*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))
    return moved.reshape(shape=(*shape[:axis], n * shape[axis], *shape[axis + 1 :]))


def _unfold(y: Value, axis: int, n: int) -> Value:
    """The inverse of `_fold`."""
    shape = y.shape
    split = y.reshape(shape=(*shape[:axis], n, shape[axis] // n, *shape[axis + 1 :]))
    return split.transpose(axes=(axis, *(i for i in range(split.ndim) if i != axis)))


def by_kernel(wide: Value, narrow: Value, windows: Windows, groups: int) -> Value:
    """Σ over images and positions p of wide[n, c, p·s + t·d − p₀] · narrow[n, o, p], as [o, c, *t].

    A convolution whose kernel is `narrow`: images and channels change places, and so do stride and dilation.
    """
    convolve = getattr(_by_group(wide, groups), f"conv{len(windows.size)}d")
    correlated = convolve(
        _exchanged(narrow), stride=windows.dilation, padding=windows.padding, dilation=windows.stride, groups=groups
    )
    kernel = _exchanged(correlated)
    return cropped(kernel, (*kernel.shape[:2], *windows.size))


def _exchanged(x: Value) -> Value:
    """x with its first two axes exchanged."""
    return x.transpose(axes=(1, 0, *range(2, x.ndim)))


def _by_group(x: Value, groups: int) -> Value:
    """x [n, channels, *extents] as [channels / groups, groups · n, *extents]."""
    if groups == 1:
        return _exchanged(x)
    n, channels, *extents = x.shape
    split = x.reshape(shape=(n, groups, channels // groups, *extents))
    moved = split.transpose(axes=(2, 1, 0, *range(3, split.ndim)))
    return moved.reshape(shape=(channels // groups, groups * n, *extents))


def cropped(x: Value, shape: Sequence[int]) -> Value:
    """The leading part of x: windows that do not fit evenly see a few positions more."""
    if x.shape == tuple(shape):
        return x
    return x.slice(stops=tuple(shape))
