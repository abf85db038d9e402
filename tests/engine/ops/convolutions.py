"""Convolution settings on any number of spatial axes: helpers for convolution tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from tests.engine.ops.run import Array, grads

RNG = np.random.default_rng(5)
Index = tuple[int, ...]


@dataclass(frozen=True)
class Axis:
    """One spatial axis of a convolution."""

    extent: int
    size: int = 1
    stride: int = 1
    padding: int = 0
    dilation: int = 1

    @property
    def spare(self) -> int:
        return self.extent + 2 * self.padding - self.dilation * (self.size - 1) - 1

    @property
    def positions(self) -> int:
        return self.spare // self.stride + 1

    def contacts(self) -> list[Index]:
        """Return the pairs of position and tap that read an element, as (element, position, tap)."""
        pairs = product(range(self.positions), range(self.size))
        contacts = [(i * self.stride + a * self.dilation - self.padding, i, a) for i, a in pairs]
        return [contact for contact in contacts if 0 <= contact[0] < self.extent]


@dataclass(frozen=True)
class Setting:
    """A convolution on any number of axes."""

    axes: tuple[Axis, ...]
    images: int = 2
    depth: int = 1
    features: int = 2
    groups: int = 1

    def each(self, name: str) -> list[int]:
        return [getattr(axis, name) for axis in self.axes]

    @property
    def attrs(self) -> dict[str, Any]:
        return {**{name: self.each(name) for name in ("stride", "padding", "dilation")}, "groups": self.groups}

    @property
    def rest(self) -> list[int]:
        return [axis.spare % axis.stride for axis in self.axes]

    @property
    def shapes(self) -> tuple[Index, Index, Index]:
        """Shapes of images, results and a kernel."""
        wide = (self.images, self.depth * self.groups, *self.each("extent"))
        narrow = (self.images, self.features * self.groups, *self.each("positions"))
        return wide, narrow, (self.features * self.groups, self.depth, *self.each("size"))

    def draw(self) -> list[Array]:
        """Return random images, results and a kernel."""
        return [RNG.normal(size=shape) for shape in self.shapes]

    def terms(self) -> Iterator[tuple[Index, Index, Index]]:
        """Yield the indices in images, results and kernel of each product in the definition."""
        inside = list(product(*(axis.contacts() for axis in self.axes)))
        for n, group, f, c in product(*map(range, (self.images, self.groups, self.features, self.depth))):
            o = group * self.features + f
            for contacts in inside:
                elements, position, tap = zip(*contacts, strict=True)
                yield (n, group * self.depth + c, *elements), (n, o, *position), (o, c, *tap)


def by_loops(setting: Setting, wide: Array, narrow: Array, kernel: Array) -> tuple[Array, Array, Array]:
    """Sum all terms over two of the tensors, for each third one: the derivatives of the trilinear form."""
    results = np.zeros_like(wide), np.zeros_like(narrow), np.zeros_like(kernel)
    for x, y, k in setting.terms():
        results[0][x] += narrow[y] * kernel[k]
        results[1][y] += wide[x] * kernel[k]
        results[2][k] += wide[x] * narrow[y]
    return results


def check(setting: Setting) -> None:
    wide, narrow, kernel = setting.draw()
    by_wide, by_narrow, by_kernel = by_loops(setting, wide, narrow, kernel)
    rank = len(setting.axes)
    value, gradients = grads(f"conv{rank}d", wide, kernel, cotangent=narrow, **setting.attrs)
    for actual, expected in zip([value, *gradients], [by_narrow, by_wide, by_kernel], strict=True):
        np.testing.assert_allclose(actual, expected, 1e-12, 1e-12)
    if rank > 1:
        attrs = {**setting.attrs, "output_padding": setting.rest}
        value, gradients = grads(f"conv_transpose{rank}d", narrow, kernel, cotangent=wide, **attrs)
        for actual, expected in zip([value, *gradients], [by_wide, by_narrow, by_kernel], strict=True):
            np.testing.assert_allclose(actual, expected, 1e-12, 1e-12)
