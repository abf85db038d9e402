"""A computation graph on the wire: a list of nodes, each referring to earlier ones by index.

Below it: tensors, and the scalars that all messages are made of.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, NotRequired

from pydantic import ConfigDict, FailFast, Field, WithJsonSchema, with_config
from typing_extensions import TypedDict

# Without a format, generated Go clients read float32 and Java clients BigDecimal.
Int64 = Annotated[int, Field(ge=-(2**63), le=2**63 - 1), WithJsonSchema({"type": "integer", "format": "int64"})]
Double = Annotated[float, WithJsonSchema({"type": "number", "format": "double"})]
NodeId = Annotated[
    int,
    Field(ge=-(2**63), le=2**63 - 1),
    WithJsonSchema({"type": "integer", "format": "int64", "description": "index of a node in `nodes`"}),
]

#: keyword of a string of which the document lists the words that there are: a later release has more, and answers them.
#: A type says which they are, by the field of the vocabulary; the document has the words in place of its name
OPEN: Final = "x-extensible-enum"


def _leave_open(schema: dict[str, Any]) -> None:
    schema.pop("additionalProperties", None)


CLOSED: Final = ConfigDict(strict=True, extra="forbid")
# Refused all the same, but by the server: a client generated today must read the answers of a later release.
OPEN_IN_DOCUMENT: Final = ConfigDict(strict=True, extra="forbid", json_schema_extra=_leave_open)


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


# Millions of elements: they are checked by the array library, never one by one by pydantic.
_Elements = Annotated[
    Any,
    WithJsonSchema(
        {
            "type": "array",
            "items": {"type": "number", "format": "double"},
            "description": "the elements, row-major and flat; bool as 0 and 1, complex numbers as the real part "
            "and the imaginary one behind it",
        }
    ),
]
_Bytes = Annotated[
    Any,
    WithJsonSchema(
        {
            "type": "string",
            "format": "byte",
            "description": "the elements as base64 of their little-endian bytes, row-major; lossless for every value",
        }
    ),
]


Dtype = Annotated[str, Field(json_schema_extra={OPEN: "dtypes"})]
Shape = Annotated[
    list[Int64], FailFast(), Field(description="extents of the axes; [] is a 0-d tensor with one element")
]


@with_config(OPEN_IN_DOCUMENT)
class Tensor(TypedDict):
    """A dense array. Exactly one of `data` and `data_b64` holds its elements; neither is needed when it has none."""

    dtype: Dtype
    shape: Shape
    data: NotRequired[_Elements]
    data_b64: NotRequired[_Bytes]
