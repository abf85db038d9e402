"""Messages of `hvp`: Hessian-vector products."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import FailFast, Field, with_config
from typing_extensions import TypedDict

from schemas.answer import Disconnected, NodeTensor, Stats
from schemas.graph import CLOSED
from schemas.request import ComputingRequest, Feed, Of, Wrt
from schemas.resources import StoredTensors


@with_config(CLOSED)
class HvpRequest(ComputingRequest):
    """A graph, values for its leaves, and the vectors to multiply the Hessian by."""

    of: NotRequired[Of]
    wrt: NotRequired[Wrt]
    vectors: NotRequired[
        Annotated[
            list[Feed], FailFast(), Field(description="A vector for each node in `wrt`, with its dtype and shape.")
        ]
    ]


class HvpAnswer(TypedDict):
    """Values, gradients, and the Hessian-vector product for each node in `wrt`."""

    values: list[NodeTensor]
    gradients: list[NodeTensor]
    hvp: list[NodeTensor]
    disconnected: Disconnected
    stats: Stats
    stored: NotRequired[StoredTensors]
