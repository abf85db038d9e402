"""Responses: common fields, problem reports, and the catalogue of ops.

These messages are never validated: the server writes them.
"""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from schemas.graph import Double, Dtype, Int64, NodeId, OpName, Tensor
from schemas.request import Precision


class NodeTensor(TypedDict):
    """A tensor of a node: its value, or the gradient with respect to it."""

    node: NodeId
    tensor: Tensor


class Versions(TypedDict):
    """Versions of the software that computed the result."""

    gradserve: str
    numpy: str
    cupy: NotRequired[Annotated[str, Field(description="Present if a GPU was used.")]]


class ValueRange(TypedDict):
    """Smallest and largest element of a tensor. An infinite bound is absent; an empty tensor has no bounds."""

    low: NotRequired[Double]
    high: NotRequired[Double]


class Nonfinite(TypedDict):
    """The first node that produced NaN or infinity from finite operands, or that was fed one."""

    node: NodeId
    op: Annotated[OpName, Field(description="Op of the node.")]
    backward: Annotated[bool, Field(description="Whether it happened in the backward pass.")]
    function: NotRequired[
        Annotated[Int64, Field(description="Index of the function in which it happened. The node runs this function.")]
    ]
    function_node: NotRequired[Annotated[Int64, Field(description="Node inside that function.")]]
    steps: NotRequired[Annotated[list[Int64], Field(description="Step of each enclosing loop, outermost first.")]]
    computed: Annotated[str, Field(description="The primitive that produced it: the op, or a part of it.")]
    operands: Annotated[list[ValueRange], Field(description="Ranges of the operands of the primitive.")]


#: how much of a run compiled kernels did: nothing, the most expensive parts, or everything that can be compiled
Tier = Literal["uncompiled", "partly_compiled", "compiled"]


class Stats(TypedDict):
    """Run statistics, and what you need to reproduce the result."""

    device: Annotated[str, Field(description="Device that ran the request: `cpu` or `cuda:N`.")]
    plan_cached: Annotated[bool, Field(description="Whether the plan came from the cache.")]
    execute_ms: Annotated[Double, Field(description="Execution time in milliseconds.")]
    tier: Annotated[Tier, Field(description="How much of the run used compiled kernels.")]
    precision: NotRequired[
        Annotated[
            Precision,
            Field(
                description="Lowest precision at which a matrix product or convolution read float32 operands. "
                "Absent if none did."
            ),
        ]
    ]
    peak_bytes: Annotated[Int64, Field(description="Peak memory of tensors and kernels, in bytes.")]
    recomputed_flops: Annotated[
        Int64, Field(description="Floating-point operations that were repeated to save memory (rematerialization).")
    ]
    graph_id: Annotated[
        str, Field(description="Hash of the canonical form of the graph. Equal graphs have equal hashes.")
    ]
    opset: Int64
    dtype: Annotated[Dtype, Field(description="Dtype of `of`, or else of the last output.")]
    versions: Versions
    first_nonfinite: NotRequired[
        Annotated[Nonfinite, Field(description="With `diagnose`. Absent if every value was finite.")]
    ]
    server: NotRequired[
        Annotated[
            str, Field(description="Address or name of the server that ran the request, if there are several servers.")
        ]
    ]
    pieces: NotRequired[
        Annotated[
            Int64,
            Field(description="Sum over examples: number of pieces that it was divided into for several workers."),
        ]
    ]
    repeated: NotRequired[
        Annotated[Int64, Field(description="Sum over examples: number of times that a piece was started again.")]
    ]


Disconnected = Annotated[
    list[NodeId],
    Field(description="Nodes of `wrt` on which the differentiated node does not depend. Their gradients are zero."),
]


class Health(TypedDict):
    """State of the server."""

    status: Annotated[str, Field(description="`live` or `ready`.")]
    device: NotRequired[str]


class Problem(TypedDict):
    """Problem report of an error. `detail` is for people. Programs should branch on `code` and accept unknown codes."""

    type: Annotated[str, Field(description="Page that explains the code, relative to the server.")]
    title: Annotated[str, Field(description="Meaning of the code.")]
    status: Int64
    detail: Annotated[
        str, Field(description="One sentence: what is wrong, where, what was expected and received, and how to fix it.")
    ]
    code: str
    node: NotRequired[
        Annotated[
            NodeId,
            Field(
                description="Node with the error. For an error inside a function: the node of the graph that uses it."
            ),
        ]
    ]
    function: NotRequired[Annotated[Int64, Field(description="Index of the function with the error.")]]
    function_node: NotRequired[Annotated[Int64, Field(description="Node inside that function.")]]
    operand: NotRequired[Annotated[Int64, Field(description="Position in the operands of that node, from 0.")]]
    expected: NotRequired[str]
    got: NotRequired[str]
    pointer: NotRequired[Annotated[str, Field(description="JSON pointer to the error in the request.")]]
    request_id: str
    errors: NotRequired[
        Annotated[list[Problem], Field(description="All errors, this one included, if several were found at once.")]
    ]


class AttributeInfo(TypedDict):
    """An attribute of an op."""

    name: str
    type: Annotated[str, Field(description="Kind of the attribute. The document lists all kinds.")]
    required: bool
    doc: str
    since: Annotated[Int64, Field(description="Opset that introduced the attribute or its op.")]
    default: NotRequired[
        Annotated[
            str, Field(description="Default as JSON. If there is none, `doc` says what an absent attribute means.")
        ]
    ]
    choices: NotRequired[list[str]]


class OpAlias(TypedDict):
    """An alias of an op, and the systems that use it."""

    name: str
    systems: str


class OpInfo(TypedDict):
    """An op."""

    name: str
    summary: str
    doc: str
    operands: Annotated[list[str], Field(description='Names of the operands. "b?" is optional; "x..." is one or more.')]
    attributes: list[AttributeInfo]
    gradient: Annotated[str, Field(description="Formula of the gradient.")]
    dtypes: list[Dtype]
    aliases: list[OpAlias]
    several_outputs: Annotated[
        bool, Field(description="Whether the op has several results, which are read with get_output.")
    ]
    since: Annotated[Int64, Field(description="Opset that introduced the op.")]


class Catalogue(TypedDict):
    """All ops, sorted by name."""

    opset: Int64
    ops: list[OpInfo]
