"""Answers: fields that they have in common, problems, and the catalogue of ops.

Nothing here is ever validated: the server writes it.
"""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from schemas.graph import Double, Dtype, Int64, NodeId, OpName, Tensor
from schemas.request import Precision


class NodeTensor(TypedDict):
    """A tensor that belongs to a node: its value, or the gradient with respect to it."""

    node: NodeId
    tensor: Tensor


class Versions(TypedDict):
    """What computed the answer."""

    gradserve: str
    numpy: str
    cupy: NotRequired[Annotated[str, Field(description="where a GPU computed")]]


class ValueRange(TypedDict):
    """The least and the greatest element of a tensor: an infinite one is absent, and both are where it has none."""

    low: NotRequired[Double]
    high: NotRequired[Double]


class Nonfinite(TypedDict):
    """Where NaN or infinity first came out of finite operands, or was fed."""

    node: NodeId
    op: Annotated[OpName, Field(description="the node's op")]
    backward: Annotated[bool, Field(description="whether it happened on the way back through the node")]
    function: NotRequired[Annotated[Int64, Field(description="index of the function it happened in, used by the node")]]
    function_node: NotRequired[Annotated[Int64, Field(description="the node of that function")]]
    steps: NotRequired[
        Annotated[list[Int64], Field(description="the step of each loop around that node, the outermost first")]
    ]
    computed: Annotated[str, Field(description="the primitive that did it: the op itself, or a part of it")]
    operands: Annotated[list[ValueRange], Field(description="what the primitive's operands ranged over")]


#: none of a run; what takes most of its time; all that can be compiled of it
Tier = Literal["uncompiled", "partly_compiled", "compiled"]


class Stats(TypedDict):
    """What running the request took, and what it takes to run it again with the same result."""

    device: Annotated[str, Field(description="what ran it: cpu, or cuda:N")]
    plan_cached: Annotated[bool, Field(description="whether a plan made earlier was used")]
    execute_ms: Annotated[Double, Field(description="execution alone, in milliseconds")]
    tier: Annotated[Tier, Field(description="how much of it compiled kernels did")]
    precision: Annotated[
        Precision,
        Field(description="the least exact way in which a product or convolution of it read float32 operands"),
    ]
    peak_bytes: Annotated[Int64, Field(description="the most bytes that tensors and kernels had at once")]
    recomputed_flops: Annotated[
        Int64, Field(description="floating-point operations that were done again for want of memory")
    ]
    graph_id: Annotated[str, Field(description="hash of the graph's canonical form: the same for the same graph")]
    opset: Int64
    dtype: Annotated[Dtype, Field(description="dtype of the node that the call is about: `of`, or the last output")]
    versions: Versions
    first_nonfinite: NotRequired[
        Annotated[Nonfinite, Field(description="with `diagnose`: absent where everything was finite")]
    ]
    server: NotRequired[
        Annotated[str, Field(description="the server that answered, where there are several: its address, or its name")]
    ]
    pieces: NotRequired[
        Annotated[Int64, Field(description="of a sum over examples: pieces that it was cut into, for several workers")]
    ]
    repeated: NotRequired[
        Annotated[Int64, Field(description="of a sum over examples: how often a piece was begun again")]
    ]


Disconnected = Annotated[
    list[NodeId],
    Field(description="the `wrt` nodes without a path to what is differentiated; their gradients are zeros"),
]


class Health(TypedDict):
    """The state of the server."""

    status: Annotated[str, Field(description="live, or ready")]
    device: NotRequired[str]


class Problem(TypedDict):
    """A refusal. `detail` is one sentence for a person; programs read `code`, and accept codes they do not know."""

    type: Annotated[str, Field(description="where the code is explained, relative to the server")]
    title: Annotated[str, Field(description="what the code means")]
    status: Int64
    detail: Annotated[str, Field(description="what, where, what was expected, what came, what to do")]
    code: str
    node: NotRequired[
        Annotated[
            NodeId, Field(description="the node it happened at; inside a function, the node of the graph that uses it")
        ]
    ]
    function: NotRequired[Annotated[Int64, Field(description="index of the function it happened in")]]
    function_node: NotRequired[Annotated[Int64, Field(description="the node of that function it happened at")]]
    operand: NotRequired[Annotated[Int64, Field(description="position among that node's operands, from 0")]]
    expected: NotRequired[str]
    got: NotRequired[str]
    pointer: NotRequired[Annotated[str, Field(description="JSON pointer into the request")]]
    request_id: str
    errors: NotRequired[Annotated[list[Problem], Field(description="all of them, where several were found at once")]]


class AttributeInfo(TypedDict):
    """One attribute that an op takes."""

    name: str
    type: Annotated[str, Field(description="one of the kinds that there are, which the document lists")]
    required: bool
    doc: str
    since: Annotated[Int64, Field(description="the opset that introduced it, or its op")]
    default: NotRequired[Annotated[str, Field(description="as JSON; without one, absence means what `doc` says")]]
    choices: NotRequired[list[str]]


class OpAlias(TypedDict):
    """Another spelling of an op, and the systems that use it."""

    name: str
    systems: str


class OpInfo(TypedDict):
    """One op."""

    name: str
    summary: str
    doc: str
    operands: Annotated[list[str], Field(description='"b?" may be absent, "x..." stands for one or more')]
    attributes: list[AttributeInfo]
    gradient: Annotated[str, Field(description="the gradient as a formula")]
    dtypes: list[Dtype]
    aliases: list[OpAlias]
    several_outputs: Annotated[bool, Field(description="whether results are read through get_output")]
    since: Annotated[Int64, Field(description="the opset that introduced it")]


class Catalogue(TypedDict):
    """All ops, sorted by name."""

    opset: Int64
    ops: list[OpInfo]
