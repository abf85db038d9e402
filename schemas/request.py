"""Common fields of requests. Unknown fields are errors: a misspelt option must not be ignored."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import FailFast, Field, with_config
from typing_extensions import TypeAliasType, TypedDict

from schemas.graph import CLOSED, Dtype, Graph, Int64, NodeId, Shape, Tensor
from schemas.resources import Etag, TensorName

# Most precise first. A schema of its own in the document: otherwise, generators make one type for each request.
Precision = TypeAliasType("Precision", Literal["float32", "tf32x3", "tf32", "bfloat16"])


# A schema of its own in the document: otherwise, generators make one type for each request.
TensorEncoding = TypeAliasType("TensorEncoding", Literal["json", "base64"])
AnswerEncoding = Annotated[TensorEncoding, Field(description="Encoding of the tensors in the response. Default: json.")]


Rows = Annotated[
    list[Int64],
    FailFast(),
    Field(
        description="With `tensor_id`: use only the rows from start to before stop of the leading axis.",
        json_schema_extra={"minItems": 2, "maxItems": 2},
    ),
]


@with_config(CLOSED)
class Feed(TypedDict):
    """A tensor for a node: the value of a leaf, a cotangent, a tangent or a vector.

    It needs exactly one of `tensor` and `tensor_id`.
    """

    node: NodeId
    tensor: NotRequired[Tensor]
    tensor_id: NotRequired[Annotated[TensorName, Field(description="Name of a resident tensor.")]]
    rows: NotRequired[Rows]


@with_config(CLOSED)
class StoreEntry(TypedDict):
    """A node whose value or gradient the server stores as a resident tensor."""

    node: NodeId
    gradient: NotRequired[
        Annotated[
            bool, Field(description="Store the gradient with respect to the node instead of its value. Default: false.")
        ]
    ]
    tensor_id: Annotated[TensorName, Field(description="Name of the resident tensor. It need not exist yet.")]
    if_match: NotRequired[
        Annotated[
            Etag,
            Field(
                description="Condition: the etag that the tensor must have, `*` for any, or an empty string if it must "
                "not exist yet. If the condition fails, nothing of this request is stored. Default: no condition."
            ),
        ]
    ]
    durable: NotRequired[
        Annotated[
            bool,
            Field(
                description="Whether to write the tensor to disk before responding. If false, it is written within the "
                "time that the response states. Default: true."
            ),
        ]
    ]


@with_config(CLOSED)
class NodeType(TypedDict):
    """Type of a leaf, in place of its value."""

    node: NodeId
    dtype: Dtype
    shape: Shape


Feeds = Annotated[
    list[Feed],
    FailFast(),
    Field(
        description="A value for every input and parameter that the result depends on. You may feed other leaves, too."
    ),
]
Types = Annotated[
    list[NodeType],
    FailFast(),
    Field(description="Type of every input and parameter that the result depends on. Other leaves are allowed, too."),
]
Outputs = Annotated[
    list[NodeId],
    FailFast(),
    Field(description="Nodes whose values to return. If absent or empty: `of`, or else the last node."),
]
Of = Annotated[NodeId, Field(description="Node to differentiate. Default: the last node.")]
Wrt = Annotated[
    list[NodeId],
    FailFast(),
    Field(
        description="Float nodes to differentiate with respect to, leaves or not, each once. "
        "If absent or empty: all parameter nodes."
    ),
]
MemoryBudget = Annotated[
    Int64,
    Field(
        description="Maximum memory of tensors and kernels in bytes, from 1 to the server's limit. Values that do not "
        "fit are recomputed when needed. Default: the limit; graphs of opset 1 then recompute nothing."
    ),
]
AskedPrecision = Annotated[
    Precision,
    Field(
        description="Lowest precision at which matrix products and convolutions may read float32 operands on a GPU. "
        "Sums are always float32, and CPUs always use float32. Default: the setting of the server, which is itself "
        "float32 by default."
    ),
]


@with_config(CLOSED)
class GraphRequest(TypedDict):
    """A graph, and values for its leaves."""

    graph: Graph
    feeds: NotRequired[Feeds]
    encoding: NotRequired[AnswerEncoding]
    memory_budget: NotRequired[MemoryBudget]
    precision: NotRequired[AskedPrecision]


@with_config(CLOSED)
class ComputingRequest(GraphRequest):
    """A graph, values for its leaves, and options for the results."""

    outputs: NotRequired[Outputs]
    diagnose: NotRequired[
        Annotated[
            bool, Field(description="Find the first NaN or infinity and report it in `stats`. Slower. Default: false.")
        ]
    ]
    store: NotRequired[
        Annotated[
            list[StoreEntry],
            FailFast(),
            Field(description="Nodes whose values or gradients to store as resident tensors. All are stored, or none."),
        ]
    ]


@with_config(CLOSED)
class TypesRequest(TypedDict):
    """A graph, and the types of its leaves. The server does not run the graph."""

    graph: Graph
    types: NotRequired[Types]
    encoding: NotRequired[AnswerEncoding]
    of: NotRequired[Of]
    wrt: NotRequired[Wrt]
