"""Fields that requests have in common. Unknown fields are refused: a misspelt option must not be ignored."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import FailFast, Field, with_config
from typing_extensions import TypeAliasType, TypedDict

from schemas.graph import CLOSED, Dtype, Graph, Int64, NodeId, Shape, Tensor
from schemas.resources import Etag, TensorName

# The finest first. A message of its own in the document: generators else make one type for each request.
Precision = TypeAliasType("Precision", Literal["float32", "tf32x3", "tf32", "bfloat16"])


# A message of its own in the document: generators else make one type for each request.
TensorEncoding = TypeAliasType("TensorEncoding", Literal["json", "base64"])
AnswerEncoding = Annotated[TensorEncoding, Field(description="how the tensors of the answer are written; default json")]


Rows = Annotated[
    list[Int64],
    FailFast(),
    Field(
        description="with `tensor_id`: start and stop of a part of its leading axis",
        json_schema_extra={"minItems": 2, "maxItems": 2},
    ),
]


@with_config(CLOSED)
class Feed(TypedDict):
    """A tensor for a node: the value of a leaf, a cotangent, a tangent or a vector.

    Exactly one of `tensor` and `tensor_id` says which.
    """

    node: NodeId
    tensor: NotRequired[Tensor]
    tensor_id: NotRequired[Annotated[TensorName, Field(description="name of a resident tensor")]]
    rows: NotRequired[Rows]


@with_config(CLOSED)
class StoreEntry(TypedDict):
    """A node whose value, or the gradient by which, is to be kept as a resident tensor."""

    node: NodeId
    gradient: NotRequired[Annotated[bool, Field(description="the gradient by the node, not its value; default no")]]
    tensor_id: Annotated[TensorName, Field(description="name of the resident tensor, which need not be there yet")]
    if_match: NotRequired[
        Annotated[
            Etag,
            Field(
                description="the etag that the tensor must have, * where any will do, empty where it must not be there "
                "yet; otherwise nothing of this request is kept. Absent: no condition"
            ),
        ]
    ]
    durable: NotRequired[
        Annotated[
            bool,
            Field(
                description="whether it is on disk before the answer; if not, it is written within the time that the "
                "answer states. Default: yes"
            ),
        ]
    ]


@with_config(CLOSED)
class NodeType(TypedDict):
    """The type of a leaf, in place of its value."""

    node: NodeId
    dtype: Dtype
    shape: Shape


Feeds = Annotated[
    list[Feed],
    FailFast(),
    Field(description="a value for every input and parameter that the answer needs; other leaves may be fed too"),
]
Types = Annotated[
    list[NodeType],
    FailFast(),
    Field(description="the type of every input and parameter that the answer needs; others may be given too"),
]
Outputs = Annotated[
    list[NodeId],
    FailFast(),
    Field(description="nodes whose values come back; absent or empty: `of`, or else the last node"),
]
Of = Annotated[NodeId, Field(description="the node to differentiate; default: the last")]
Wrt = Annotated[
    list[NodeId],
    FailFast(),
    Field(
        description="the float nodes to differentiate with respect to, leaves or not, each once; "
        "absent or empty: all parameter nodes"
    ),
]
MemoryBudget = Annotated[
    Int64,
    Field(
        description="the most bytes that tensors and kernels may have at once, from 1 to the limit; what there is no "
        "room for is computed again. Default: the limit, within which graphs of opset 1 compute nothing again"
    ),
]
AskedPrecision = Annotated[
    Precision,
    Field(
        description="how products and convolutions may read float32 operands on a GPU, their sums being float32; a "
        "processor computes float32. Default: the server's, which is float32 unless it was told otherwise"
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
    """A graph, values for its leaves, and how values come back."""

    outputs: NotRequired[Outputs]
    diagnose: NotRequired[
        Annotated[
            bool, Field(description="look for the first NaN or infinity, and report it in `stats`; slower; default no")
        ]
    ]
    store: NotRequired[
        Annotated[
            list[StoreEntry],
            FailFast(),
            Field(description="nodes whose values, or gradients, are kept as resident tensors: all of them, or none"),
        ]
    ]


@with_config(CLOSED)
class TypesRequest(TypedDict):
    """A graph, and the types of its leaves: nothing is run."""

    graph: Graph
    types: NotRequired[Types]
    encoding: NotRequired[AnswerEncoding]
    of: NotRequired[Of]
    wrt: NotRequired[Wrt]
