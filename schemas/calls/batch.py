"""One graph on many examples."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import FailFast, Field, with_config

from schemas.request import ComputingRequest, Of, Wrt
from schemas.scalars import CLOSED, NodeId


@with_config(CLOSED)
class BatchRequest(ComputingRequest):
    """A graph written for one example, and feeds for many."""

    mapped: NotRequired[
        Annotated[
            list[NodeId], FailFast(), Field(description="the leaves whose feeds have a leading axis N, at least one")
        ]
    ]
    of: NotRequired[Of]
    wrt: NotRequired[Wrt]
