"""W1 as a Tesseract: its runtime serves `vector_jacobian_product`."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import BaseModel
from tesseract_core.runtime import Array, Differentiable, Float32, ShapeDType

torch.set_num_threads(1)


class InputSchema(BaseModel):
    """The operands."""

    mean: Differentiable[Array[(None,), Float32]]
    log_scale: Differentiable[Array[(None,), Float32]]
    x: Differentiable[Array[(None,), Float32]]


class OutputSchema(BaseModel):
    """The value."""

    value: Differentiable[Float32]


def _value(mean: Any, log_scale: Any, x: Any) -> Any:
    z = (x - mean) / torch.exp(log_scale)
    level = torch.tanh(mean)
    return torch.sum(z * z * -0.5 - log_scale - level * level * 0.1)


def apply(inputs: InputSchema) -> OutputSchema:
    """The value alone."""
    leaves = [torch.from_numpy(part) for part in (inputs.mean, inputs.log_scale, inputs.x)]
    return OutputSchema(value=_value(*leaves).numpy())


def vector_jacobian_product(
    inputs: InputSchema, vjp_inputs: set[str], vjp_outputs: set[str], cotangent_vector: dict[str, Any]
) -> dict[str, Any]:
    """The gradient by each operand that is asked for."""
    del vjp_outputs
    leaves = {name: torch.from_numpy(getattr(inputs, name)).requires_grad_() for name in ("mean", "log_scale", "x")}
    _value(**leaves).backward(torch.tensor(float(cotangent_vector["value"])))
    return {name: leaves[name].grad.numpy() for name in vjp_inputs}


def abstract_eval(abstract_inputs: Any) -> Any:
    """The type of the value."""
    del abstract_inputs
    return {"value": ShapeDType(shape=(), dtype="float32")}
