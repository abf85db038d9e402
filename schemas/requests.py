"""What the computing calls take. Unknown fields are refused: a misspelt option must not be ignored."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import FailFast, Field, with_config
from typing_extensions import TypeAliasType, TypedDict

from schemas.graph import Graph
from schemas.numbers import CLOSED, Double, Int64, NodeId
from schemas.tensor import Dtype, Shape, Tensor

# A message of its own in the document: generators else make one type for each request.
Encoding = TypeAliasType("Encoding", Literal["json", "base64"])
Planned = TypeAliasType("Planned", Literal["gradients", "forward", "vjp", "jvp", "jacobian", "hvp", "hessian", "batch"])


@with_config(CLOSED)
class Feed(TypedDict):
    """A tensor for a node: the value of a leaf, a cotangent, a tangent or a vector."""

    node: NodeId
    tensor: Tensor


@with_config(CLOSED)
class NodeType(TypedDict):
    """The type of a leaf, in place of its value."""

    node: NodeId
    dtype: Dtype
    shape: Shape


Feeds = Annotated[
    list[Feed],
    FailFast(),
    Field(description="a value for every input and parameter that the answer needs, and for no other node"),
]
Types = Annotated[
    list[NodeType],
    FailFast(),
    Field(description="the type of every input and parameter that the answer needs, and of no other node"),
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


@with_config(CLOSED)
class GraphRequest(TypedDict):
    """A graph, and values for its leaves."""

    graph: Graph
    feeds: NotRequired[Feeds]


@with_config(CLOSED)
class ForwardRequest(GraphRequest):
    """A graph, and values for its leaves."""

    outputs: NotRequired[Outputs]
    encoding: NotRequired[
        Annotated[Encoding, Field(description="how the tensors of the answer are written; default json")]
    ]
    diagnose: NotRequired[
        Annotated[
            bool, Field(description="look for the first NaN or infinity, and report it in `stats`; slower; default no")
        ]
    ]


@with_config(CLOSED)
class GradientsRequest(ForwardRequest):
    """A graph, values for its leaves, and what to differentiate."""

    of: NotRequired[Of]
    wrt: NotRequired[Wrt]
    cotangent: NotRequired[
        Annotated[
            Tensor, Field(description="seed for `of`, of its dtype and shape; default 1 where it has one element")
        ]
    ]


@with_config(CLOSED)
class VjpRequest(ForwardRequest):
    """A graph, values for its leaves, and a cotangent for each output."""

    wrt: NotRequired[Wrt]
    cotangents: NotRequired[
        Annotated[list[Feed], FailFast(), Field(description="one for each output, of its dtype and shape")]
    ]
    batched: NotRequired[
        Annotated[
            bool, Field(description="every cotangent has a leading axis K, and so have the gradients; default no")
        ]
    ]


@with_config(CLOSED)
class JvpRequest(ForwardRequest):
    """A graph, values for its leaves, and the direction in which these move."""

    tangents: NotRequired[
        Annotated[
            list[Feed],
            FailFast(),
            Field(description="for at least one leaf, of its dtype and shape; leaves that are absent stay as they are"),
        ]
    ]


@with_config(CLOSED)
class JacobianRequest(ForwardRequest):
    """A graph, values for its leaves, and the nodes to differentiate with respect to."""

    wrt: NotRequired[Wrt]


@with_config(CLOSED)
class HvpRequest(ForwardRequest):
    """A graph, values for its leaves, and the vectors that the Hessian is multiplied with."""

    of: NotRequired[Of]
    wrt: NotRequired[Wrt]
    vectors: NotRequired[
        Annotated[list[Feed], FailFast(), Field(description="one for each node of `wrt`, of its dtype and shape")]
    ]


@with_config(CLOSED)
class HessianRequest(ForwardRequest):
    """A graph, values for its leaves, and what to differentiate twice."""

    of: NotRequired[Of]
    wrt: NotRequired[Wrt]


@with_config(CLOSED)
class BatchRequest(ForwardRequest):
    """A graph written for one example, and feeds for many."""

    mapped: NotRequired[
        Annotated[
            list[NodeId], FailFast(), Field(description="the leaves whose feeds have a leading axis N, at least one")
        ]
    ]
    of: NotRequired[Of]
    wrt: NotRequired[Wrt]


@with_config(CLOSED)
class CheckRequest(GraphRequest):
    """A graph, values for its leaves, and which gradients to compare with central differences."""

    of: NotRequired[Of]
    wrt: NotRequired[Wrt]
    directions: NotRequired[Annotated[Int64, Field(description="random directions for each node, 1 to 64; default 4")]]
    tolerance: NotRequired[
        Annotated[Double, Field(description="largest relative error that passes, between 0 and 1; default 1e-6")]
    ]


@with_config(CLOSED)
class TypesRequest(TypedDict):
    """A graph, and the types of its leaves: nothing is run."""

    graph: Graph
    types: NotRequired[Types]
    of: NotRequired[Of]
    wrt: NotRequired[Wrt]


@with_config(CLOSED)
class PlanRequest(TypesRequest):
    """A graph, the types of its leaves, and what would be asked of it."""

    call: NotRequired[
        Annotated[
            Planned,
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
    outputs: NotRequired[Outputs]
    encoding: NotRequired[
        Annotated[Encoding, Field(description="how the tensors of the answer would be written; default json")]
    ]


@with_config(CLOSED)
class DifferentiateRequest(TypesRequest):
    """A graph, the types of its leaves, and what to differentiate."""
