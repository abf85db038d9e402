"""Convolution layers of known networks, each way by itself: the values, the gradient by x, that by the kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from benchmarks.workload import Question, Workload, normal


class Layer(NamedTuple):
    """x [images, channels, extent, extent], and a square kernel with half its extent of padding."""

    images: int
    channels: int
    features: int
    extent: int
    size: int = 3
    stride: int = 1
    groups: int = 1

    @property
    def placing(self) -> dict[str, Any]:
        """The op's attributes."""
        return {"stride": [self.stride] * 2, "padding": [self.size // 2] * 2, "groups": self.groups}

    @property
    def positions(self) -> int:
        """Along each axis of the result."""
        return (self.extent + 2 * (self.size // 2) - self.size) // self.stride + 1


LAYERS_BY_NAME: Final = {
    "64-64": Layer(16, 64, 64, 56),
    "128-128-s2": Layer(16, 128, 128, 28, stride=2),
    "1x1-64-256": Layer(16, 64, 256, 56, size=1),
    "depthwise-96": Layer(16, 96, 96, 28, groups=96),
    "256-256-14": Layer(16, 256, 256, 14),
    "256-256-7": Layer(16, 256, 256, 7),
    "stem-7x7": Layer(4, 3, 64, 224, size=7, stride=2),
}
WAYS: Final = ("forward", "by input", "by kernel")


def _values(layer: Layer, ops: Any, x: Any, kernel: Any, *_: Any) -> Any:
    return ops.conv2d(x, kernel, **layer.placing)


def _gradient(layer: Layer, way: str, ops: Any, x: Any, kernel: Any, g: Any) -> Any:
    """Asked alone, so that the values are not computed."""
    total = ops.sum(ops.conv2d(x, kernel, **layer.placing) * g)
    return ops.grad(total, x if way == "by input" else kernel)


def _values_by_torch(layer: Layer, _: Any, x: Any, kernel: Any, *__: Any) -> Any:
    from torch.nn import functional  # noqa: PLC0415 - a peer, where installed

    return functional.conv2d(x, kernel, **layer.placing)


def _gradient_by_torch(layer: Layer, way: str, _: Any, x: Any, kernel: Any, g: Any) -> Any:
    """What its autograd calls."""
    import torch  # noqa: PLC0415 - a peer, where installed

    placing, wanted = layer.placing, [way == "by input", way == "by kernel", False]
    found = torch.ops.aten.convolution_backward(
        g, x, kernel, None, placing["stride"], placing["padding"], [1, 1], False, [0, 0], layer.groups, wanted
    )
    return found[wanted.index(True)]


def _workload(name: str, layer: Layer, way: str) -> Workload:
    x = normal(0, layer.images, layer.channels, layer.extent, layer.extent)
    kernel = normal(1, layer.features, layer.channels // layer.groups, layer.size, layer.size, scale=0.05)
    g = normal(2, layer.images, layer.features, layer.positions, layer.positions)
    function, by_torch = partial(_values, layer), partial(_values_by_torch, layer)
    if way != "forward":
        function, by_torch = partial(_gradient, layer, way), partial(_gradient_by_torch, layer, way)
    title = f"convolution {name}, {way}"
    written = {"torch": by_torch}
    return Workload(
        f"{name} {way}", title, function, [x, kernel], [g], Question.VALUES, written, sides=("gradserve", "torch")
    )


def _makers() -> Iterator[tuple[str, Callable[[], Workload]]]:
    for name, layer in LAYERS_BY_NAME.items():
        for way in WAYS:
            yield f"{name} {way}", partial(_workload, name, layer, way)


LAYERS: Final = dict(_makers())
