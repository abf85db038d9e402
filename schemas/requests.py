"""What the computing calls take. Unknown fields are refused: a misspelt option must not be ignored."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import FailFast, Field, with_config
from typing_extensions import TypeAliasType, TypedDict

from schemas.graph import Graph
from schemas.numbers import CLOSED, NodeId
from schemas.tensor import Tensor

# A message of its own in the document: generators else make one type for each request.
Encoding = TypeAliasType("Encoding", Literal["json", "base64"])


@with_config(CLOSED)
class Feed(TypedDict):
    """The value of one `input` or `parameter` node."""

    node: NodeId
    tensor: Tensor


@with_config(CLOSED)
class ForwardRequest(TypedDict):
    """A graph, and values for its leaves."""

    graph: Graph
    feeds: NotRequired[
        Annotated[
            list[Feed],
            FailFast(),
            Field(description="a value for every input and parameter that the answer needs, and for no other node"),
        ]
    ]
    outputs: NotRequired[
        Annotated[
            list[NodeId],
            FailFast(),
            Field(description="nodes whose values come back; absent or empty: `of`, or else the last node"),
        ]
    ]
    encoding: NotRequired[
        Annotated[Encoding, Field(description="how the tensors of the answer are written; default json")]
    ]


@with_config(CLOSED)
class GradientsRequest(ForwardRequest):
    """A graph, values for its leaves, and what to differentiate."""

    of: NotRequired[Annotated[NodeId, Field(description="the node to differentiate; default: the last")]]
    wrt: NotRequired[
        Annotated[
            list[NodeId],
            FailFast(),
            Field(
                description="the float nodes to differentiate with respect to, leaves or not, each once; "
                "absent or empty: all parameter nodes"
            ),
        ]
    ]
    cotangent: NotRequired[
        Annotated[
            Tensor, Field(description="seed for `of`, of its dtype and shape; default 1 where it has one element")
        ]
    ]
