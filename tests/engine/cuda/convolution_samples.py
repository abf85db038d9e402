"""The samples of every convolution op as geometries, in all three directions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from engine.codegen.microkernels.convolution import ConvolutionGeometry, Direction, TensorLayout
from engine.ir.sample import Sample
from engine.ir.tensor_type import TensorType
from engine.ops import registry
from engine.ops.conv.convolution import Convolution

DIRECTIONS: tuple[Direction, ...] = ("forward", "adjoint", "by_kernel")


class Placing(NamedTuple):
    """A convolution between images and values, one for each window."""

    wide: tuple[int, ...]
    kernel: tuple[int, ...]
    narrow: tuple[int, ...]
    groups: int
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]

    def geometry(self, direction: Direction, dtype: str) -> ConvolutionGeometry:
        """The geometry on three axes, of dense tensors."""
        itemsize, more = np.dtype(dtype).itemsize, 3 - len(self.stride)
        wide, kernel, narrow = (
            _dense((*shape[:2], *[1] * more, *shape[2:]), itemsize) for shape in (self.wide, self.kernel, self.narrow)
        )
        x, y = (narrow, wide) if direction == "adjoint" else (wide, narrow)
        numbers = ((neutral,) * more for neutral in (1, 0, 1))
        stride, padding, dilation = (
            n + each for n, each in zip(numbers, (self.stride, self.padding, self.dilation), strict=True)
        )
        return ConvolutionGeometry(dtype, itemsize, self.groups, x, kernel, y, stride, padding, dilation)


def _dense(shape: tuple[int, ...], itemsize: int) -> TensorLayout:
    """A dense layout; axes of one entry have stride 0."""
    steps = [itemsize * int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]
    return TensorLayout(shape, tuple(step if extent > 1 else 0 for step, extent in zip(steps, shape, strict=True)))


class SampledConvolution(NamedTuple):
    """A sample of a convolution op."""

    op: Convolution
    sample: Sample

    def __str__(self) -> str:
        return f"{self.op.name}{self.sample}"

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes as kernels receive them."""
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in self.sample.attrs.items()}
        attrs = {name: attr.default for name, attr in self.op.attrs.items()} | given
        return self.op.canonical(attrs, *self._types)

    @property
    def _types(self) -> list[TensorType]:
        return [TensorType(operand.shape, np.dtype("float64")) for operand in self.sample.operands[:2]]

    @property
    def placing(self) -> Placing:
        """The placing of its windows."""
        x, kernel = self._types
        attrs = self.attrs
        out = self.op.infer(x, kernel, **attrs)
        assert isinstance(out, TensorType)
        wide, narrow = (out, x) if "output_padding" in attrs else (x, out)
        spatial = (attrs[name] for name in ("stride", "padding", "dilation"))
        return Placing(wide.shape, kernel.shape, narrow.shape, attrs["groups"], *spatial)


def sampled_convolutions() -> Iterator[SampledConvolution]:
    """Every sample of every convolution op."""
    for op in registry().ops.values():
        if isinstance(op, Convolution):
            yield from (SampledConvolution(op, sample) for sample in op.samples)
