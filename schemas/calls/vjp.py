"""Cotangents times the Jacobian."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import FailFast, Field, with_config

from schemas.graph import CLOSED
from schemas.request import ComputingRequest, Feed, Wrt


@with_config(CLOSED)
class VjpRequest(ComputingRequest):
    """A graph, values for its leaves, and a cotangent for each output."""

    wrt: NotRequired[Wrt]
    cotangents: NotRequired[
        Annotated[list[Feed], FailFast(), Field(description="one for each output, of its dtype and shape")]
    ]
    batched: NotRequired[
        Annotated[
            bool, Field(description="every cotangent has a leading axis K, and so have the gradients; default no")
        ]
    ]
