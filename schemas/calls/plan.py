"""What a request would take."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import FailFast, Field, WithJsonSchema, with_config
from typing_extensions import TypeAliasType, TypedDict

from schemas.calls.batch import Block, Reduce
from schemas.graph import CLOSED, Dtype, Int64, NodeId, OpName, Shape
from schemas.request import AskedPrecision, MemoryBudget, Outputs, TypesRequest

# A message of its own in the document, where the names of the calls that compute are written in. The plan's
# definition checks it, which knows them.
PlannedCall = TypeAliasType("PlannedCall", Annotated[Any, WithJsonSchema({"type": "string"})])


@with_config(CLOSED)
class PlanRequest(TypesRequest):
    """A graph, the types of its leaves, and what would be asked of it."""

    call: NotRequired[
        Annotated[
            PlannedCall,
            Field(
                description="the call to plan, its cotangents, vectors or (for the leaves of `wrt`) tangents being "
                "taken to fit; default gradients, or forward where there is nothing to differentiate by"
            ),
        ]
    ]
    mapped: NotRequired[
        Annotated[
            list[NodeId], FailFast(), Field(description="for batch: the leaves whose types have a leading axis N")
        ]
    ]
    reduce: NotRequired[Reduce]
    block: NotRequired[Block]
    outputs: NotRequired[Outputs]
    memory_budget: NotRequired[MemoryBudget]
    precision: NotRequired[AskedPrecision]


class NodePlan(TypedDict):
    """What a node of the graph is, and what it costs in all: its value, and the way back through it."""

    node: NodeId
    op: OpName
    dtype: Dtype
    shape: Shape
    flops: Int64
    bytes: Annotated[Int64, Field(description="of its value")]


class ServerLimits(TypedDict):
    """What one request may take on this server."""

    nodes: Int64
    rank: Int64
    peak_bytes: Int64
    flops: Int64
    response_bytes: Int64
    body_bytes: Int64
    binary_body_bytes: Int64
    json_depth: Int64
    function_depth: Int64
    name_characters: Int64
    timeout_ms: Int64


class PlanAnswer(TypedDict):
    """What the request would take. Nothing was run."""

    nodes: Annotated[list[NodePlan], Field(description="the nodes that the answer needs, in ascending order")]
    forward_flops: Int64
    backward_flops: Int64
    recomputed_flops: Annotated[Int64, Field(description="of these two, for want of memory; 0 in the fastest plan")]
    saved_bytes: Annotated[Int64, Field(description="of results of the forward pass that the backward pass reads")]
    peak_bytes: Annotated[Int64, Field(description="the most bytes that tensors and kernels have at once")]
    fastest_flops: Annotated[Int64, Field(description="of the plan that there would be if memory were no matter")]
    fastest_peak_bytes: Annotated[Int64, Field(description="and its peak")]
    response_bytes: Annotated[Int64, Field(description="how long the answer can get, in the encoding asked for")]
    stops_gradient: Annotated[list[NodeId], Field(description="nodes that no derivative passes through")]
    admitted: Annotated[bool, Field(description="whether the request is within the limits")]
    block: NotRequired[
        Annotated[Int64, Field(description="where `batch` reduces: examples at a time, of which bytes are")]
    ]
    blocks: NotRequired[Annotated[Int64, Field(description="how many times, of which FLOPs are")]]
    limits: ServerLimits
