"""W1 behind FastAPI with PyTorch, as its documentation has one write it: a model in, a model out, lists of numbers.

`/gradients` is a plain function, which FastAPI runs in its pool of threads: what it advises who is not sure. `/tuned`
is `async def`, for work that is shorter than the way to a thread and back.
"""

from __future__ import annotations

import torch
from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()


class Leaves(BaseModel):
    """The operands."""

    mean: list[float]
    log_scale: list[float]
    x: list[float]


class Gradients(BaseModel):
    """The value, and its gradient by each operand."""

    value: float
    mean: list[float]
    log_scale: list[float]
    x: list[float]


@app.post("/gradients")
def gradients(leaves: Leaves) -> Gradients:
    """Run forward and backward."""
    return _gradients(leaves)


@app.post("/tuned")
async def tuned(leaves: Leaves) -> Gradients:
    """The same, on the event loop's thread."""
    return _gradients(leaves)


def _gradients(leaves: Leaves) -> Gradients:
    mean, log_scale, x = (torch.tensor(part, requires_grad=True) for part in (leaves.mean, leaves.log_scale, leaves.x))
    z = (x - mean) / torch.exp(log_scale)
    level = torch.tanh(mean)
    value = torch.sum(z * z * -0.5 - log_scale - level * level * 0.1)
    value.backward()
    return Gradients(value=value.item(), mean=mean.grad.tolist(), log_scale=log_scale.grad.tolist(), x=x.grad.tolist())
