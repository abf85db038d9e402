"""What the calls answer. Nothing here is ever validated: the server writes it."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from schemas.numbers import Double, Int64, NodeId
from schemas.tensor import Tensor


class NodeTensor(TypedDict):
    """A tensor that belongs to a node: its value, or the gradient with respect to it."""

    node: NodeId
    tensor: Tensor


class Stats(TypedDict):
    """What running the request took."""

    device: Annotated[str, Field(description="what ran it: cpu, or cuda:N")]
    plan_cached: Annotated[bool, Field(description="whether a plan made earlier was used")]
    execute_ms: Annotated[Double, Field(description="execution alone, in milliseconds")]
    peak_bytes: Annotated[Int64, Field(description="the most bytes of tensors that were live at once")]


class ForwardAnswer(TypedDict):
    """Values of nodes, in the order of the request."""

    values: list[NodeTensor]
    stats: Stats


class GradientsAnswer(TypedDict):
    """Values and gradients, in the order of the request. A gradient has the dtype and shape of its node."""

    values: list[NodeTensor]
    gradients: list[NodeTensor]
    disconnected: Annotated[
        list[NodeId], Field(description="the `wrt` nodes without a path to `of`; their gradients are zeros")
    ]
    stats: Stats


class Health(TypedDict):
    """The state of the server."""

    status: Annotated[str, Field(description="live, or ready")]
    device: NotRequired[str]
