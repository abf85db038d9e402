"""The Hessian times vectors."""

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
    """A graph, values for its leaves, and the vectors that the Hessian is multiplied with."""

    of: NotRequired[Of]
    wrt: NotRequired[Wrt]
    vectors: NotRequired[
        Annotated[list[Feed], FailFast(), Field(description="one for each node of `wrt`, of its dtype and shape")]
    ]


class HvpAnswer(TypedDict):
    """Values, gradients, and the products of the Hessian with the vectors, one for each node of `wrt`."""

    values: list[NodeTensor]
    gradients: list[NodeTensor]
    hvp: list[NodeTensor]
    disconnected: Disconnected
    stats: Stats
    stored: NotRequired[StoredTensors]
