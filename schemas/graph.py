"""A computation graph on the wire: a list of nodes, each referring to earlier ones by index.

Below it: tensors, and the scalars that all messages are made of.
"""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import FailFast, Field, with_config
from typing_extensions import TypedDict

from schemas.scalars import OPEN, OPEN_IN_DOCUMENT, Int64, NodeId

NAME_CHARACTERS = 128

Label = Annotated[str, Field(max_length=NAME_CHARACTERS, description="a label for people; refers to nothing")]
OpName = Annotated[str, Field(json_schema_extra={OPEN: "ops"})]


@with_config(OPEN_IN_DOCUMENT)
class GraphNode(TypedDict):
    """One operation. Its id is its index in `nodes`; its operands are indices of earlier nodes."""

    op: Annotated[OpName, Field(description="canonical name of an op; aliases are accepted too, ignoring case")]
    operands: NotRequired[Annotated[list[NodeId], FailFast()]]
    # Checked by the engine, which knows what the op takes and says so.
    attrs: NotRequired[dict[str, Any]]
    name: NotRequired[Label]


@with_config(OPEN_IN_DOCUMENT)
class GraphFunction(TypedDict):
    """Nodes that a graph's nodes run. Their ids, and those in `outputs`, are the function's own.

    Its `input` nodes are its parameters, in their order; it sees nothing else of the graph.
    """

    nodes: Annotated[list[GraphNode], FailFast(), Field(description="operands come before the nodes that use them")]
    outputs: Annotated[list[NodeId], FailFast(), Field(description="the results; a node may be there several times")]
    name: NotRequired[Label]


@with_config(OPEN_IN_DOCUMENT)
class Graph(TypedDict):
    """A computation graph."""

    opset: NotRequired[Annotated[Int64, Field(description="version of the set of ops; default 1", examples=[1])]]
    nodes: Annotated[list[GraphNode], FailFast(), Field(description="operands come before the nodes that use them")]
    # Checked once the opset is known to have them.
    functions: NotRequired[
        Annotated[list[Any], Field(description="since opset 2; each may run those before it, by their index here")]
    ]
