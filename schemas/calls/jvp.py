"""The Jacobian times tangents."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import FailFast, Field, with_config
from typing_extensions import TypedDict

from schemas.answer import NodeTensor, Stats
from schemas.graph import CLOSED
from schemas.request import ComputingRequest, Feed
from schemas.resources import StoredTensors


@with_config(CLOSED)
class JvpRequest(ComputingRequest):
    """A graph, values for its leaves, and the direction in which these move."""

    tangents: NotRequired[
        Annotated[
            list[Feed],
            FailFast(),
            Field(description="for at least one leaf, of its dtype and shape; leaves that are absent stay as they are"),
        ]
    ]


class JvpAnswer(TypedDict):
    """Values and their derivatives along the tangents, in the order of the outputs."""

    values: list[NodeTensor]
    tangents: list[NodeTensor]
    stats: Stats
    stored: NotRequired[StoredTensors]
