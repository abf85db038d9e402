"""Problems (RFC 9457), with the fields that say where in a graph."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from schemas.scalars import Int64, NodeId


class Problem(TypedDict):
    """A refusal. `detail` is one sentence for a person; programs read `code`, and accept codes they do not know."""

    type: Annotated[str, Field(description="where the code is explained, relative to the server")]
    title: Annotated[str, Field(description="what the code means")]
    status: Int64
    detail: Annotated[str, Field(description="what, where, what was expected, what came, what to do")]
    code: str
    node: NotRequired[
        Annotated[
            NodeId,
            Field(description="the node it happened at; inside a function, the node of the graph that uses it"),
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
