"""Whole Hessians."""

from __future__ import annotations

from typing import NotRequired

from pydantic import with_config
from typing_extensions import TypedDict

from schemas.answer import Disconnected, NodeTensor, Stats
from schemas.graph import CLOSED, NodeId, Tensor
from schemas.request import ComputingRequest, Of, Wrt
from schemas.resources import StoredTensors


@with_config(CLOSED)
class HessianRequest(ComputingRequest):
    """A graph, values for its leaves, and what to differentiate twice."""

    of: NotRequired[Of]
    wrt: NotRequired[Wrt]


class HessianBlock(TypedDict):
    """The second derivative by two nodes: the shape of `row`, then the shape of `column`, and its dtype."""

    row: NodeId
    column: NodeId
    tensor: Tensor


class HessianAnswer(TypedDict):
    """Values, gradients, and a block for each pair of nodes of `wrt`, row by row."""

    values: list[NodeTensor]
    gradients: list[NodeTensor]
    hessian: list[HessianBlock]
    disconnected: Disconnected
    stats: Stats
    stored: NotRequired[StoredTensors]
