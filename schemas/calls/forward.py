"""Messages of `forward`: values of nodes."""

from __future__ import annotations

from typing import NotRequired

from pydantic import with_config
from typing_extensions import TypedDict

from schemas.answer import NodeTensor, Stats
from schemas.graph import CLOSED
from schemas.request import ComputingRequest
from schemas.resources import StoredTensors


@with_config(CLOSED)
class ForwardRequest(ComputingRequest):
    """A graph and values for its leaves."""


class ForwardAnswer(TypedDict):
    """Values of nodes, in the order of the request."""

    values: list[NodeTensor]
    stats: Stats
    stored: NotRequired[StoredTensors]
