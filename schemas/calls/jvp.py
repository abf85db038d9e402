"""Messages of `jvp`: Jacobian-vector products."""

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
    """A graph, values for its leaves, and tangents of leaves."""

    tangents: NotRequired[
        Annotated[
            list[Feed],
            FailFast(),
            Field(
                description="Tangents of leaves, at least one, with their dtypes and shapes. Omitted tangents are 0."
            ),
        ]
    ]


class JvpAnswer(TypedDict):
    """Values, and their derivatives along the tangents, in the order of the outputs."""

    values: list[NodeTensor]
    tangents: list[NodeTensor]
    stats: Stats
    stored: NotRequired[StoredTensors]
