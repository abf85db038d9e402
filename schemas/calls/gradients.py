"""Messages of `gradients`: values, and the gradients of one node."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field, with_config
from typing_extensions import TypedDict

from schemas.answer import Disconnected, NodeTensor, Stats
from schemas.graph import CLOSED, Tensor
from schemas.request import ComputingRequest, Of, Wrt
from schemas.resources import StoredTensors


@with_config(CLOSED)
class GradientsRequest(ComputingRequest):
    """A graph, values for its leaves, and the gradients to compute."""

    of: NotRequired[Of]
    wrt: NotRequired[Wrt]
    cotangent: NotRequired[
        Annotated[
            Tensor,
            Field(description="Cotangent of `of`, with its dtype and shape. Default: 1 if `of` has one element."),
        ]
    ]


class GradientsAnswer(TypedDict):
    """Values and gradients, in the order of the request. A gradient has the dtype and shape of its node.

    In `vjp` with `batched`, gradients have a leading axis K. In `batch`, values and gradients have a leading axis N
    unless it reduces; if `of` has several elements, each gradient is a Jacobian: its shape is that of `of` followed by
    that of the node.
    """

    values: list[NodeTensor]
    gradients: list[NodeTensor]
    disconnected: Disconnected
    stats: Stats
    stored: NotRequired[StoredTensors]
