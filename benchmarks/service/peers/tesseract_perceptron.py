"""W2 as a Tesseract: the gradients of a perceptron 784-256-128-10 by all its weights."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import BaseModel
from tesseract_core.runtime import Array, Differentiable, Float32, Int64, ShapeDType

NAMES = ("w0", "w1", "w2", "b0", "b1", "b2")


class InputSchema(BaseModel):
    """Weights, biases, a batch and its labels."""

    w0: Differentiable[Array[(None, None), Float32]]
    w1: Differentiable[Array[(None, None), Float32]]
    w2: Differentiable[Array[(None, None), Float32]]
    b0: Differentiable[Array[(None,), Float32]]
    b1: Differentiable[Array[(None,), Float32]]
    b2: Differentiable[Array[(None,), Float32]]
    x: Array[(None, None), Float32]
    wanted: Array[(None,), Int64]


class OutputSchema(BaseModel):
    """The loss."""

    value: Differentiable[Float32]


def _value(w0: Any, w1: Any, w2: Any, b0: Any, b1: Any, b2: Any, x: Any, wanted: Any) -> Any:
    h = torch.relu(x @ w0 + b0)
    h = torch.relu(h @ w1 + b1)
    return torch.nn.functional.cross_entropy(h @ w2 + b2, wanted)


def _leaves(inputs: InputSchema) -> dict[str, Any]:
    return {name: torch.from_numpy(getattr(inputs, name)) for name in (*NAMES, "x", "wanted")}


def apply(inputs: InputSchema) -> OutputSchema:
    """The loss alone."""
    return OutputSchema(value=_value(**_leaves(inputs)).numpy())


def vector_jacobian_product(
    inputs: InputSchema, vjp_inputs: set[str], vjp_outputs: set[str], cotangent_vector: dict[str, Any]
) -> dict[str, Any]:
    """The gradient by each of the weights that are asked for."""
    del vjp_outputs
    leaves = _leaves(inputs)
    for name in NAMES:
        leaves[name].requires_grad_()
    _value(**leaves).backward(torch.tensor(float(cotangent_vector["value"])))
    return {name: leaves[name].grad.numpy() for name in vjp_inputs}


def abstract_eval(abstract_inputs: Any) -> Any:
    """The type of the loss."""
    del abstract_inputs
    return {"value": ShapeDType(shape=(), dtype="float32")}
