"""Networks as graphs and as NumPy references; the references are analytic, so complex steps differentiate them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.engine.autodiff.calls.asking import Array, Net

#: size of a complex step: no difference is formed, so nothing cancels
STEP = 1e-40


@dataclass(frozen=True)
class Network:
    """A graph with its data, parameters, output and loss, and the same network in NumPy."""

    net: Net
    data: list[int]
    parameters: list[int]
    output: int
    loss: int
    reference: Callable[..., tuple[Any, Any]]

    def evaluate(self, *parameters: Any) -> tuple[Any, Any]:
        """Compute output and loss in NumPy for these parameters."""
        return self.reference(*(self.net.feeds[i] for i in self.data), *parameters)

    @property
    def point(self) -> list[Array]:
        """The parameters as they are fed."""
        return [self.net.feeds[i] for i in self.parameters]

    def slope(self, along: Sequence[Array], parameters: Sequence[Array] | None = None) -> tuple[Array, Array]:
        """Differentiate output and loss along a direction, by a complex step."""
        moved = [x + 1j * STEP * v for x, v in zip(parameters or self.point, along, strict=True)]
        output, loss = self.evaluate(*moved)
        return np.imag(output) / STEP, np.imag(loss) / STEP

    def units(self, index: int) -> list[list[Array]]:
        """Return the unit directions of parameter number `index`, one for each element."""
        point = self.point
        zeros = [np.zeros_like(x) for x in point]
        directions = []
        for position in np.ndindex(point[index].shape):
            unit = np.zeros_like(point[index])
            unit[position] = 1.0
            directions.append([*zeros[:index], unit, *zeros[index + 1 :]])
        return directions

    def gradients(self, parameters: Sequence[Array] | None = None) -> list[Array]:
        """Compute the gradients of the loss."""
        return [
            np.array([self.slope(v, parameters)[1] for v in self.units(k)]).reshape(x.shape)
            for k, x in enumerate(self.point)
        ]

    def curvature(self, along: Sequence[Array]) -> list[Array]:
        """Compute a Hessian-vector product of the loss by five-point differences of exact gradients."""
        h = 1e-3

        def shifted(t: float) -> list[Array]:
            return self.gradients([x + t * h * v for x, v in zip(self.point, along, strict=True)])

        points = zip(shifted(1), shifted(-1), shifted(2), shifted(-2), strict=True)
        return [(8 * (a - b) - (c - d)) / (12 * h) for a, b, c, d in points]


def cross_entropy(logits: Any, labels: Array) -> Any:
    """Compute the mean negative log-likelihood of the labels."""
    picked = np.take_along_axis(logits, labels[:, None], 1)[:, 0]
    return np.mean(np.log(np.sum(np.exp(logits), 1)) - picked)


def normalised(x: Any, axes: tuple[int, ...]) -> Any:
    """Subtract the mean of x and divide by its standard deviation."""
    centred = x - x.mean(axes, keepdims=True)
    return centred * (np.mean(centred**2, axes, keepdims=True) + 1e-5) ** -0.5


def conv2d(x: Any, kernel: Any, bias: Any) -> Any:
    """Cross-correlation by its definition, without padding and with stride 1."""
    k = kernel.shape[-1]
    rows, columns = x.shape[2] - k + 1, x.shape[3] - k + 1
    windows = np.array([[x[:, :, i : i + k, j : j + k] for j in range(columns)] for i in range(rows)])
    return np.einsum("ijnckl,ockl->noij", windows, kernel) + bias[:, None, None]


def draw(*shape: int, seed: int) -> Array:
    return np.asarray(np.random.default_rng([seed, *shape]).uniform(-1, 1, shape))


def convolution() -> Network:
    """conv2d, batch_norm, tanh, mean over the plane, linear, gather of some logits, cross_entropy."""
    net = Net()
    x, labels = net.leaf(draw(3, 2, 4, 4, seed=1), "input"), net.leaf(np.array([0, 2, 1]), "input")
    shapes = [(2, 2, 2, 2), (2,), (2,), (2,), (2, 3)]
    kernel, bias, scale, offset, w = (net.leaf(draw(*s, seed=k)) for k, s in enumerate(shapes))
    z = net.add("batch_norm", net.add("conv2d", x, kernel, bias), scale, offset)
    logits = net.add("matmul", net.add("mean", net.add("tanh", z), axes=[2, 3]), w)
    chosen = np.array([[2, 0, 2], [1, 1, 0], [0, 1, 2]])
    output = net.add("gather", logits, net.add("constant", value=chosen), axis=1)
    loss = net.add("cross_entropy", output, labels)

    def reference(x: Any, labels: Any, kernel: Any, bias: Any, scale: Any, offset: Any, w: Any) -> tuple[Any, Any]:
        z = normalised(conv2d(x, kernel, bias), (0, 2, 3)) * scale[:, None, None] + offset[:, None, None]
        output = np.take_along_axis(np.tanh(z).mean((2, 3)) @ w, chosen, 1)
        return output, cross_entropy(output, labels)

    return Network(net, [x, labels], [kernel, bias, scale, offset, w], output, loss, reference)


def attention() -> Network:
    """embedding, layer_norm, causal attention, a residual, logits from the same table, cross_entropy."""
    net = Net()
    tokens, labels = net.leaf(np.array([3, 0, 3, 1]), "input"), net.leaf(np.array([0, 3, 1, 2]), "input")
    shapes = [(4, 3), (3, 3), (3, 3), (3, 3), (3,), (3,)]
    table, q, k, v, scale, offset = (net.leaf(draw(*s, seed=10 + i)) for i, s in enumerate(shapes))
    x = net.add("embedding", table, tokens)
    normed = net.add("layer_norm", x, scale, offset, axes=[-1])
    heads = [net.add("matmul", normed, w) for w in (q, k, v)]
    y = net.add("add", x, net.add("attention", *heads, causal=True))
    output = net.add("matmul", y, net.add("transpose", table))
    loss = net.add("cross_entropy", output, labels)

    def reference(tokens: Any, labels: Any, table: Any, q: Any, k: Any, v: Any, *affine: Any) -> tuple[Any, Any]:
        x = table[tokens]
        normed = normalised(x, (1,)) * affine[0] + affine[1]
        scores = np.exp((normed @ q) @ (normed @ k).T / np.sqrt(3)) * np.tri(4)
        y = x + scores / scores.sum(1, keepdims=True) @ (normed @ v)
        return y @ table.T, cross_entropy(y @ table.T, labels)

    return Network(net, [tokens, labels], [table, q, k, v, scale, offset], output, loss, reference)


def parts() -> Network:
    """split, gelu-like gates and a nested gradient: a gated layer whose loss penalizes its own slope."""
    net = Net()
    x = net.leaf(draw(2, 3, seed=20))
    w = net.leaf(draw(3, 4, seed=21))
    halves = net.add("split", net.add("matmul", x, w), sizes=[2, 2], axis=1)
    gate, value = (net.add("get_output", halves, index=i) for i in range(2))
    output = net.add("mul", net.add("sigmoid", gate), net.add("sin", value))
    slope = net.add("grad", output, x)
    loss = net.add("add", net.add("sum", net.add("square", slope)), net.add("mean", output))

    def reference(x: Any, w: Any) -> tuple[Any, Any]:
        gate, value = np.split(x @ w, 2, 1)
        s = 1 / (1 + np.exp(-gate))
        output = s * np.sin(value)
        slope = np.concatenate([s * (1 - s) * np.sin(value), s * np.cos(value)], 1) @ w.T
        return output, np.sum(slope**2) + np.mean(output)

    return Network(net, [], [x, w], output, loss, reference)


NETWORKS = {"convolution": convolution, "attention": attention, "parts and a nested gradient": parts}
