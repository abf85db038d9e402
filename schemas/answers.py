"""What the calls answer. Nothing here is ever validated: the server writes it."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from schemas.graph import Graph
from schemas.numbers import Double, Int64, NodeId
from schemas.tensor import Dtype, Shape, Tensor


class NodeTensor(TypedDict):
    """A tensor that belongs to a node: its value, or the gradient with respect to it."""

    node: NodeId
    tensor: Tensor


class Versions(TypedDict):
    """What computed the answer."""

    gradserve: str
    numpy: str
    cupy: NotRequired[Annotated[str, Field(description="where a GPU computed")]]


class Range(TypedDict):
    """The least and the greatest element of a tensor: an infinite one is absent, and both are where it has none."""

    low: NotRequired[Double]
    high: NotRequired[Double]


class Nonfinite(TypedDict):
    """Where NaN or infinity first came out of finite operands, or was fed."""

    node: NodeId
    op: Annotated[str, Field(description="the node's op")]
    backward: Annotated[bool, Field(description="whether it happened on the way back through the node")]
    computed: Annotated[str, Field(description="the primitive that did it: the op itself, or a part of it")]
    operands: Annotated[list[Range], Field(description="what the primitive's operands ranged over")]


class Stats(TypedDict):
    """What running the request took, and what it takes to run it again with the same result."""

    device: Annotated[str, Field(description="what ran it: cpu, or cuda:N")]
    plan_cached: Annotated[bool, Field(description="whether a plan made earlier was used")]
    execute_ms: Annotated[Double, Field(description="execution alone, in milliseconds")]
    peak_bytes: Annotated[Int64, Field(description="the most bytes that tensors and kernels had at once")]
    graph_id: Annotated[str, Field(description="hash of the graph's canonical form: the same for the same graph")]
    opset: Int64
    dtype: Annotated[str, Field(description="dtype of the node that the call is about: `of`, or the last output")]
    versions: Versions
    first_nonfinite: NotRequired[
        Annotated[Nonfinite, Field(description="with `diagnose`: absent where everything was finite")]
    ]


class ForwardAnswer(TypedDict):
    """Values of nodes, in the order of the request."""

    values: list[NodeTensor]
    stats: Stats


Disconnected = Annotated[
    list[NodeId],
    Field(description="the `wrt` nodes without a path to what is differentiated; their gradients are zeros"),
]


class GradientsAnswer(TypedDict):
    """Values and gradients, in the order of the request. A gradient has the dtype and shape of its node.

    From `vjp` with `batched`, gradients have a leading axis K; from `batch`, values and gradients a leading axis N.
    """

    values: list[NodeTensor]
    gradients: list[NodeTensor]
    disconnected: Disconnected
    stats: Stats


class JvpAnswer(TypedDict):
    """Values and their derivatives along the tangents, in the order of the outputs."""

    values: list[NodeTensor]
    tangents: list[NodeTensor]
    stats: Stats


class JacobianBlock(TypedDict):
    """The derivative of one output by one node: the shape of `of`, then the shape of `wrt`, and its dtype."""

    of: NodeId
    wrt: NodeId
    tensor: Tensor


class JacobianAnswer(TypedDict):
    """Values, and a block for each output and each node of `wrt`."""

    values: list[NodeTensor]
    jacobian: list[JacobianBlock]
    stats: Stats


class HvpAnswer(TypedDict):
    """Values, gradients, and the products of the Hessian with the vectors, one for each node of `wrt`."""

    values: list[NodeTensor]
    gradients: list[NodeTensor]
    hvp: list[NodeTensor]
    disconnected: Disconnected
    stats: Stats


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


class NodePlan(TypedDict):
    """What a node of the graph is, and what it costs in all: its value, and the way back through it."""

    node: NodeId
    op: str
    dtype: Dtype
    shape: Shape
    flops: Int64
    bytes: Annotated[Int64, Field(description="of its value")]


class Limits(TypedDict):
    """What one request may take on this server."""

    nodes: Int64
    rank: Int64
    peak_bytes: Int64
    flops: Int64
    response_bytes: Int64
    body_bytes: Int64
    binary_body_bytes: Int64
    json_depth: Int64
    name_characters: Int64
    timeout_ms: Int64


class PlanAnswer(TypedDict):
    """What the request would take. Nothing was run."""

    nodes: Annotated[list[NodePlan], Field(description="the nodes that the answer needs, in ascending order")]
    forward_flops: Int64
    backward_flops: Int64
    saved_bytes: Annotated[Int64, Field(description="of results of the forward pass that the backward pass reads")]
    peak_bytes: Annotated[Int64, Field(description="the most bytes that tensors and kernels have at once")]
    response_bytes: Annotated[Int64, Field(description="how long the answer can get, in the encoding asked for")]
    stops_gradient: Annotated[list[NodeId], Field(description="nodes that no derivative passes through")]
    admitted: Annotated[bool, Field(description="whether the request is within the limits")]
    limits: Limits


class GradientError(TypedDict):
    """How far a gradient is from central differences, at the worst of the directions."""

    node: NodeId
    relative_error: Double


class Uncertified(TypedDict):
    """A node whose gradient could not be compared, and why."""

    node: NodeId
    reason: Annotated[str, Field(description="kink, integer_path, not_finite, or roundoff; an open list")]
    detail: str


class CheckAnswer(TypedDict):
    """The certificate: gradients against central differences, in float64, along random directions."""

    passed: Annotated[bool, Field(description="whether every node was compared, and within the tolerance")]
    errors: list[GradientError]
    uncertified: list[Uncertified]
    directions: Int64
    tolerance: Double
    stats: Stats


class GradientNode(TypedDict):
    """Where the gradient with respect to a node is computed."""

    node: NodeId
    gradient_node: NodeId


class DifferentiateAnswer(TypedDict):
    """The graph that was sent, under the same node ids, and behind it the nodes of its gradient."""

    graph: Graph
    gradients: list[GradientNode]
    disconnected: Disconnected


class Health(TypedDict):
    """The state of the server."""

    status: Annotated[str, Field(description="live, or ready")]
    device: NotRequired[str]
