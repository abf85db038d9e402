"""Request of `vjp`: vector-Jacobian products."""

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
        Annotated[list[Feed], FailFast(), Field(description="A cotangent for each output, with its dtype and shape.")]
    ]
    batched: NotRequired[
        Annotated[
            bool, Field(description="Cotangents and gradients have a leading axis K (K products). Default: false.")
        ]
    ]
