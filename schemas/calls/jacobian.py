"""Messages of `jacobian`: full Jacobians."""

from __future__ import annotations

from typing import NotRequired

from pydantic import with_config
from typing_extensions import TypedDict

from schemas.answer import NodeTensor, Stats
from schemas.graph import CLOSED, NodeId, Tensor
from schemas.request import ComputingRequest, Wrt
from schemas.resources import StoredTensors


@with_config(CLOSED)
class JacobianRequest(ComputingRequest):
    """A graph, values for its leaves, and the nodes to differentiate with respect to."""

    wrt: NotRequired[Wrt]


class JacobianBlock(TypedDict):
    """Derivative of one output with respect to one node: the shape of `of`, then that of `wrt`; the dtype of `wrt`."""

    of: NodeId
    wrt: NodeId
    tensor: Tensor


class JacobianAnswer(TypedDict):
    """Values, and a block for each output and each node in `wrt`."""

    values: list[NodeTensor]
    jacobian: list[JacobianBlock]
    stats: Stats
    stored: NotRequired[StoredTensors]
