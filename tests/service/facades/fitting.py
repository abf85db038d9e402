"""The model of the tests of facades: a linear fit, with its values and derivatives in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conftest import Client
from tests.service.support import Json, node, request, tensor

Array = np.ndarray[Any, np.dtype[Any]]

#: names of the model, and of one whose weights are a resident tensor and whose rows are free
FIT, BOUND = "fit", "bound"
X, W, Y = np.array([[1.0, 2.0], [3.0, 4.0], [0.5, -1.0]]), np.array([0.5, -0.25]), np.array([0.2, 0.1, 0.9])
INPUTS = {"x": X, "w": W, "y": Y}
#: loss = mean((x w - y)²) and residual = tanh(x w - y)
GRAPH = request(
    node("input"), node("parameter"), node("input"), node("matmul", 0, 1), node("sub", 3, 2),
    node("square", 4), node("mean", 5), node("tanh", 4),
)["graph"]  # fmt: skip
OUTPUTS: list[Json] = [{"name": "loss", "node": 6}, {"name": "residual", "node": 7}]


def ports(rows: int, names: str = "xwy") -> list[Json]:
    """Inputs of these names, for this number of rows; -1 for any number."""
    shapes = {"x": [rows, 2], "w": [2], "y": [rows]}
    return [{"name": n, "node": "xwy".index(n), "dtype": "float64", "shape": shapes[n]} for n in names]


def put_models(client: Client) -> None:
    """Register both models."""
    graph_id = client.post("/v1/graphs", json={"graph": GRAPH}).json()["graph_id"]
    client.request("PUT", "/v1/tensors/w", json=tensor([2], W.tolist()))
    for name, inputs, bound in (
        (FIT, ports(3), []),
        (BOUND, ports(-1, "xy"), [{"node": 1, "tensor_id": "w"}]),
    ):
        body = {"graph_id": graph_id, "inputs": inputs, "outputs": OUTPUTS, "bound": bound}
        answer = client.request("PUT", f"/v1/models/{name}", json=body)
        assert answer.is_success, answer.text


def loss(x: Array = X, w: Array = W, y: Array = Y) -> float:
    """The mean of the squared differences."""
    return float(np.mean((x @ w - y) ** 2))


def residual(x: Array = X, w: Array = W, y: Array = Y) -> Array:
    """The tanh of the differences."""
    return np.tanh(x @ w - y)


def slope() -> Array:
    """The derivative of tanh, at each row."""
    return 1 - residual() ** 2


def loss_by_w() -> Array:
    """The gradient of the loss with respect to w."""
    return 2 / 3 * (X.T @ (X @ W - Y))


def residual_by_w() -> Array:
    """The Jacobian of the residuals with respect to w."""
    return slope()[:, None] * X


def residual_by_x() -> Array:
    """The Jacobian of the residuals with respect to x, of the shape [3, 3, 2]."""
    return np.einsum("i,ij,k->ijk", slope(), np.eye(3), W)


def hessian_by_w(weights: Array, along: Array) -> Array:
    """The Hessian of the weighted residuals with respect to w, times a vector."""
    curved = -2 * residual() * slope() * weights
    return X.T @ (curved * (X @ along))


def mixed_by_x(weights: Array, along: Array) -> Array:
    """The second derivative with respect to x and w, along a direction of w; of the shape of x."""
    curved, first = -2 * residual() * slope() * weights, slope() * weights
    return np.outer(curved * (X @ along), W) + np.outer(first, along)
