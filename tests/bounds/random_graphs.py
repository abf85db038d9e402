"""Random graphs whose extents lie around vectors, panels and blocks of rows, where masks and counts may be off by one.

Their values do not matter, as long as they stay finite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tests.engine.autodiff.calls.asking import Net

#: the sides of tensors, and those of windows' kernels
EXTENTS: Final = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129, 255, 257)
TAPS: Final = (1, 1, 2, 3, 3, 4, 5)
#: most elements of a result, and of a new operand
MOST: Final = 1 << 16
#: one graph in `LONG_EVERY` is a sum over blocks of rows with a short last row
LONG_EVERY: Final = 12
LONG: Final = (4095, 4096, 4097, 16383, 16384, 16385, 18000, 20479, 20480, 20481)
ROWS: Final = 8


class RandomNet(Net):
    """A random program under construction; later nodes may read its `results`."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.rng = np.random.default_rng(seed)
        self.dtype = "float32" if seed % 3 else "float64"
        self.results: list[int] = []
        self._shapes: dict[int, tuple[int, ...]] = {}

    def pick(self, choices: Sequence[Any]) -> Any:
        """Choose an element."""
        return choices[int(self.rng.integers(len(choices)))]

    def extents(self, rank: int, most: int = MOST) -> tuple[int, ...]:
        """A random shape of at most `most` elements."""
        shape = [int(self.pick(EXTENTS)) for _ in range(rank)]
        while math.prod(shape) > most:
            shape[shape.index(max(shape))] //= 2
        return tuple(shape)

    def fresh(self, *shape: int) -> int:
        """Add a parameter with random values."""
        return self._typed(self.leaf(self.rng.uniform(-1, 1, shape).astype(self.dtype)), shape)

    def indices(self, high: int, *shape: int) -> int:
        """Add an input of random indices, in a random index dtype."""
        drawn = self.rng.integers(0, high, shape).astype(self.pick(["int64", "int32"]))
        return self._typed(self.leaf(drawn, "input"), shape)

    def op(self, name: str, *operands: int, **attrs: Any) -> int:
        """Add a node."""
        return self.add(name, *operands, **attrs)

    def shape(self, node: int) -> tuple[int, ...]:
        """The shape of a node, as the engine infers it."""
        if node not in self._shapes:
            _, values = self.program.build(self.types, (node,))
            self._shapes[node] = values[node].shape
        return self._shapes[node]

    def _typed(self, node: int, shape: tuple[int, ...]) -> int:
        self._shapes[node] = shape
        return node


Move = Callable[[RandomNet, int], int]


def random_graph(seed: int) -> RandomNet:
    """The graph of a seed. Its last node is the loss."""
    net = RandomNet(seed)
    if seed % LONG_EVERY == 0:
        x = net.fresh(int(net.pick(LONG)))
        net.op("sum", _elementwise(net, _elementwise(net, x)))
        return net
    net.results += [net.fresh(*net.extents(int(net.rng.integers(1, 5)))) for _ in range(int(net.rng.integers(1, 3)))]
    for _ in range(int(net.rng.integers(1, 4))):
        node = net.pick(MOVES)(net, net.pick(net.results[-2:]))
        if net.shape(node) and 0 < math.prod(net.shape(node)) <= MOST:
            net.results.append(node)
    net.op("sum", net.op("tanh", net.results[-1]), axes=[])
    return net


def _axis(net: RandomNet, x: int) -> int:
    return int(net.rng.integers(len(net.shape(x)))) if net.shape(x) else 0


def _some_axes(net: RandomNet, x: int) -> list[int]:
    return [i for i in range(len(net.shape(x))) if net.rng.random() < 0.5]


def _elementwise(net: RandomNet, x: int) -> int:
    return net.op(net.pick(["sin", "tanh", "exp", "sigmoid", "square", "gelu", "softplus", "erf", "relu", "neg"]), x)


def _binary(net: RandomNet, x: int) -> int:
    """The other operand broadcasts: it has extent 1 on some axes, or fewer axes."""
    shape = [1 if net.rng.random() < 0.3 else n for n in net.shape(x)][int(net.rng.integers(0, 2)) :]
    pair = [x, net.fresh(*shape)]
    return net.op(net.pick(["add", "mul", "sub", "maximum", "logaddexp"]), *net.rng.permutation(pair).tolist())


def _chosen(net: RandomNet, x: int) -> int:
    other = net.fresh(*net.shape(x))
    return net.op("where", net.op("less", x, other), other, x)


def _reduced(net: RandomNet, x: int) -> int:
    name = net.pick(["sum", "mean", "max", "var", "logsumexp", "prod"])
    return net.op(name, x, axes=_some_axes(net, x) or [_axis(net, x)], keepdims=bool(net.rng.integers(2)))


def _along_an_axis(net: RandomNet, x: int) -> int:
    return net.op(net.pick(["softmax", "log_softmax", "cumsum"]), x, axis=_axis(net, x))


def _normed(net: RandomNet, x: int) -> int:
    last = net.fresh(net.shape(x)[-1])
    return net.op("layer_norm", x, last, net.fresh(net.shape(x)[-1])) if net.rng.integers(2) else net.op("rms_norm", x)


def _batch_normed(net: RandomNet, x: int) -> int:
    channels = net.shape(x)[1 % len(net.shape(x))]
    return net.op("batch_norm", x, net.fresh(channels), net.fresh(channels), axis=1 % len(net.shape(x)))


def _transposed(net: RandomNet, x: int) -> int:
    return net.op("transpose", x, axes=net.rng.permutation(len(net.shape(x))).tolist())


def _reshaped(net: RandomNet, x: int) -> int:
    shape = net.shape(x)
    return net.op("reshape", x, shape=net.pick([[-1], [1, -1], [*shape[::-1]], [shape[0], -1]]))


def _cut(net: RandomNet, x: int) -> int:
    starts = [int(net.rng.integers(0, n)) for n in net.shape(x)]
    steps = [int(net.pick([1, 1, 2, 3])) for _ in starts]
    return net.op("slice", x, starts=starts, stops=list(net.shape(x)), steps=steps)


def _padded(net: RandomNet, x: int) -> int:
    return net.op("pad", x, pad_width=net.rng.integers(0, 3, 2 * len(net.shape(x))).tolist())


def _joined(net: RandomNet, x: int) -> int:
    axis, shape = _axis(net, x), list(net.shape(x))
    shape[axis] = int(net.pick([1, 3, 8, 17]))
    return net.op("cat", x, net.fresh(*shape), axis=axis)


def _divided(net: RandomNet, x: int) -> int:
    axis = _axis(net, x)
    first = int(net.rng.integers(0, net.shape(x)[axis] + 1))
    parts = net.op("split", x, sizes=[first, net.shape(x)[axis] - first], axis=axis)
    return net.op("get_output", parts, index=int(first == 0))


def _turned(net: RandomNet, x: int) -> int:
    if net.rng.integers(2):
        return net.op("flip", x, axes=sorted({_axis(net, x), len(net.shape(x)) - 1}))
    return net.op("roll", x, shifts=[int(net.rng.integers(-3, 4))], axes=[_axis(net, x)])


def _gathered(net: RandomNet, x: int) -> int:
    """The index is no larger than x off the axis."""
    axis = _axis(net, x)
    shape = [int(net.rng.integers(1, n + 1)) for n in net.shape(x)]
    shape[axis] = int(net.pick([1, 7, 8, 9, 17]))
    return net.op("gather", x, net.indices(net.shape(x)[axis], *shape), axis=axis)


def _taken(net: RandomNet, x: int) -> int:
    axis, shape = _axis(net, x), list(net.shape(x))
    extent, shape[axis] = shape[axis], int(net.pick([1, 7, 8, 9, 17]))
    return net.op("take_along", x, net.indices(extent, *shape), axis=axis)


def _added_at(net: RandomNet, x: int) -> int:
    axis, shape = _axis(net, x), list(net.shape(x))
    extent, shape[axis] = shape[axis], int(net.pick([1, 7, 8, 9, 17]))
    return net.op("scatter_add", x, net.indices(extent, *shape), net.fresh(*shape), axis=axis)


def _looked_up(net: RandomNet, x: int) -> int:
    return net.op("embedding", x, net.indices(net.shape(x)[0], *net.extents(int(net.rng.integers(1, 3)), 64)))


def _multiplied(net: RandomNet, x: int) -> int:
    """Multiply by a matrix from either side, sometimes a transposed one."""
    shape, width = net.shape(x), int(net.pick(EXTENTS))
    if len(shape) < 2:
        return net.op("matmul", x, net.fresh(shape[0], width)) if shape else x
    batch = shape[:-2] if net.rng.integers(2) else ()
    if net.rng.integers(2):
        return net.op("matmul", x, net.fresh(*batch, shape[-1], width))
    other = net.op("transpose", net.fresh(*batch, shape[-2], width), axes=[*range(len(batch)), *_swapped(len(batch))])
    return net.op("matmul", other, x)


def _swapped(rank: int) -> tuple[int, int]:
    return rank + 1, rank


def _images(net: RandomNet, x: int, spatial: int) -> int:
    """x itself if it has the rank of images [batch, channels, *spatial], or else new images."""
    if len(net.shape(x)) == 2 + spatial:
        return x
    return net.fresh(int(net.pick([1, 2, 3])), int(net.pick([1, 2, 4, 6])), *net.extents(spatial, MOST // 64))


def _convolved(net: RandomNet, x: int) -> int:
    spatial = int(net.pick([1, 2, 2, 2, 3]))
    x = _images(net, x, spatial)
    _, channels, *plane = net.shape(x)
    groups = channels if net.rng.random() < 0.3 else 1
    padding = [int(net.rng.integers(0, 3)) for _ in plane]
    size = [min(int(net.pick(TAPS)), n) for n in plane]
    dilation = [1 if k == 1 or 2 * k > n else int(net.pick([1, 1, 2])) for k, n in zip(size, plane, strict=True)]
    stride = [int(net.pick([1, 1, 2, 3])) for _ in plane]
    kernel = net.fresh(groups * int(net.pick([1, 2, 5, 8])), channels // groups, *size)
    attrs = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return net.op(f"conv{spatial}d", x, kernel, **attrs)


def _convolved_back(net: RandomNet, x: int) -> int:
    x = _images(net, x, 2)
    kernel = net.fresh(net.shape(x)[1], int(net.pick([1, 3, 8])), int(net.pick(TAPS)), int(net.pick(TAPS)))
    return net.op("conv_transpose2d", x, kernel, stride=[int(net.pick([1, 2])), int(net.pick([1, 2, 3]))])


def _pooled(net: RandomNet, x: int) -> int:
    x = _images(net, x, 2)
    size = [min(int(net.pick([1, 2, 3, 4])), n) for n in net.shape(x)[-2:]]
    stride, padding = [int(net.pick([1, 2, 3])) for _ in size], [int(net.rng.integers(0, k // 2 + 1)) for k in size]
    return net.op(net.pick(["max_pool2d", "avg_pool2d"]), x, kernel_size=size, stride=stride, padding=padding)


def _attended(net: RandomNet, _: int) -> int:
    """Attention with new queries, keys and values."""
    depth, keys = int(net.pick([1, 8, 16, 17])), int(net.pick([1, 7, 16, 33]))
    q = net.fresh(2, int(net.pick([1, 8, 15, 33])), depth)
    return net.op("attention", q, net.fresh(2, keys, depth), net.fresh(2, keys, int(net.pick([1, 8, 9]))))


MOVES: Final[Sequence[Move]] = [
    _elementwise, _elementwise, _binary, _binary, _chosen, _reduced, _along_an_axis, _normed, _batch_normed,
    _transposed, _reshaped, _cut, _padded, _joined, _divided, _turned, _gathered, _taken, _added_at, _looked_up,
    _multiplied, _multiplied, _convolved, _convolved, _convolved_back, _pooled, _pooled, _attended,
]  # fmt: skip
