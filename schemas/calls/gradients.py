"""Values, and the gradients of one node."""

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
    """A graph, values for its leaves, and what to differentiate."""

    of: NotRequired[Of]
    wrt: NotRequired[Wrt]
    cotangent: NotRequired[
        Annotated[
            Tensor, Field(description="seed for `of`, of its dtype and shape; default 1 where it has one element")
        ]
    ]


class GradientsAnswer(TypedDict):
    """Values and gradients, in the order of the request. A gradient has the dtype and shape of its node.

    From `vjp` with `batched`, gradients have a leading axis K; from `batch`, values and gradients a leading axis N.
    Where `of` of `batch` has several elements, a gradient is a Jacobian: the shape of `of`, then that of its node.
    """

    values: list[NodeTensor]
    gradients: list[NodeTensor]
    disconnected: Disconnected
    stats: Stats
    stored: NotRequired[StoredTensors]
