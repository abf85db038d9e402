"""Messages of `hessian`: full Hessians."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field, with_config
from typing_extensions import TypeAliasType, TypedDict

from schemas.answer import Disconnected, NodeTensor, Stats
from schemas.graph import CLOSED, Int64, NodeId, Tensor
from schemas.request import ComputingRequest, Of, Wrt
from schemas.resources import StoredTensors

# A schema of its own in the document: otherwise, generators make one type for each request.
HessianLayout = TypeAliasType(
    "HessianLayout",
    Annotated[
        Literal["blocks", "matrix"],
        Field(description="One block for each pair of nodes, or one matrix over all of `wrt`. Default: blocks."),
    ],
)


@with_config(CLOSED)
class HessianRequest(ComputingRequest):
    """A graph, values for its leaves, and the second derivatives to compute."""

    of: NotRequired[Of]
    wrt: NotRequired[Wrt]
    layout: NotRequired[HessianLayout]


class HessianBlock(TypedDict):
    """Second derivative with respect to two nodes: the shape of `row`, then that of `column`; the dtype of `column`."""

    row: NodeId
    column: NodeId
    tensor: Tensor


class NodeOffset(TypedDict):
    """Rows and columns of a node in the matrix: `size` (the number of its elements), starting at `offset`."""

    node: NodeId
    offset: Int64
    size: Int64


class HessianMatrix(TypedDict):
    """All blocks as one square matrix. Nodes are in the order of `wrt`, elements of a node in row-major order."""

    offsets: list[NodeOffset]
    tensor: Tensor


class HessianAnswer(TypedDict):
    """Values, gradients, and a block for each pair of nodes in `wrt`, row by row, or all blocks as one matrix."""

    values: list[NodeTensor]
    gradients: list[NodeTensor]
    hessian: Annotated[list[HessianBlock], Field(description="Empty with the layout `matrix`.")]
    matrix: NotRequired[Annotated[HessianMatrix, Field(description="With the layout `matrix`.")]]
    disconnected: Disconnected
    stats: Stats
    stored: NotRequired[StoredTensors]
