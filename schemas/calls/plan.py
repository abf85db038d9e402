"""Messages of `plan`: a dry run."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import FailFast, Field, WithJsonSchema, with_config
from typing_extensions import TypeAliasType, TypedDict

from schemas.calls.batch import Block, Reduce
from schemas.calls.hessian import HessianLayout
from schemas.graph import CLOSED, Dtype, Int64, NodeId, OpName, Shape
from schemas.request import AskedPrecision, MemoryBudget, Outputs, TypesRequest

# A schema of its own in the document, which lists the calls that run a graph. The execution of the plan call checks it.
PlannedCall = TypeAliasType("PlannedCall", Annotated[Any, WithJsonSchema({"type": "string"})])


@with_config(CLOSED)
class PlanRequest(TypesRequest):
    """A graph, the types of its leaves, and the call to plan."""

    call: NotRequired[
        Annotated[
            PlannedCall,
            Field(
                description="The call to plan. Its cotangents, vectors or tangents (those of the leaves in `wrt`) are "
                "assumed to fit. Default: gradients, or forward if there is nothing to differentiate with respect to."
            ),
        ]
    ]
    mapped: NotRequired[
        Annotated[list[NodeId], FailFast(), Field(description="For batch: leaves whose types have a leading axis N.")]
    ]
    reduce: NotRequired[Reduce]
    block: NotRequired[Block]
    layout: NotRequired[HessianLayout]
    outputs: NotRequired[Outputs]
    memory_budget: NotRequired[MemoryBudget]
    precision: NotRequired[AskedPrecision]


class NodePlan(TypedDict):
    """Type of a node, and its cost. FLOPs include the forward and the backward pass."""

    node: NodeId
    op: OpName
    dtype: Dtype
    shape: Shape
    flops: Int64
    bytes: Annotated[Int64, Field(description="Size of its value.")]


class ServerLimits(TypedDict):
    """Limits of this server for one request."""

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
    """Estimate of what the request needs. The graph was not run."""

    nodes: Annotated[list[NodePlan], Field(description="Nodes that the result depends on, in ascending order.")]
    forward_flops: Int64
    backward_flops: Int64
    recomputed_flops: Annotated[
        Int64, Field(description="Part of these FLOPs that is rematerialization. 0 in the fastest plan.")
    ]
    saved_bytes: Annotated[Int64, Field(description="Size of the forward results that the backward pass reads.")]
    peak_bytes: Annotated[Int64, Field(description="Peak memory of tensors and kernels.")]
    fastest_flops: Annotated[Int64, Field(description="FLOPs of the fastest plan, which has no memory limit.")]
    fastest_peak_bytes: Annotated[Int64, Field(description="Peak memory of the fastest plan.")]
    response_bytes: Annotated[Int64, Field(description="Maximum size of the response in the requested encoding.")]
    stops_gradient: Annotated[
        list[NodeId], Field(description="Nodes between `wrt` and `of` that pass no derivative on.")
    ]
    admitted: Annotated[bool, Field(description="Whether the request is within the limits.")]
    block: NotRequired[
        Annotated[
            Int64,
            Field(
                description="If `batch` reduces: number of examples accumulated at a time. Byte figures are per block."
            ),
        ]
    ]
    blocks: NotRequired[
        Annotated[
            Int64, Field(description="If `batch` reduces: number of blocks. FLOP figures are totals over all blocks.")
        ]
    ]
    limits: ServerLimits
