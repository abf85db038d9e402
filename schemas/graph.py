"""Computation graphs on the wire: lists of nodes that refer to earlier nodes by index.

Tensors, and the scalar types that all messages share.
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
    WithJsonSchema({"type": "integer", "format": "int64", "description": "Index of a node in `nodes`."}),
]

#: keyword that lists the known values of a string; later releases may return more. In a type, its value is the name of
#: a field of the vocabulary, which the document replaces with the values
OPEN: Final = "x-extensible-enum"


def _leave_open(schema: dict[str, Any]) -> None:
    schema.pop("additionalProperties", None)


CLOSED: Final = ConfigDict(strict=True, extra="forbid")
# The server still rejects unknown fields, but a client generated today must read the responses of later releases.
OPEN_IN_DOCUMENT: Final = ConfigDict(strict=True, extra="forbid", json_schema_extra=_leave_open)


NAME_CHARACTERS = 128

Label = Annotated[
    str, Field(max_length=NAME_CHARACTERS, description="A label for people. It has no effect on results.")
]
OpName = Annotated[str, Field(json_schema_extra={OPEN: "ops"})]


@with_config(OPEN_IN_DOCUMENT)
class GraphNode(TypedDict):
    """An operation. Its id is its index in `nodes`; its operands are ids of earlier nodes."""

    op: Annotated[OpName, Field(description="Name of an op. Aliases are accepted, too. Case does not matter.")]
    operands: NotRequired[Annotated[list[NodeId], FailFast()]]
    # The engine checks them against the op.
    attrs: NotRequired[dict[str, Any]]
    name: NotRequired[Label]


@with_config(OPEN_IN_DOCUMENT)
class GraphFunction(TypedDict):
    """A function that nodes of the graph run. Node ids inside it, also in `outputs`, refer to its own `nodes`.

    Its `input` nodes are its parameters, in order. It cannot refer to other nodes of the graph.
    """

    nodes: Annotated[
        list[GraphNode], FailFast(), Field(description="Nodes in order: operands come before the nodes that use them.")
    ]
    outputs: Annotated[
        list[NodeId], FailFast(), Field(description="Nodes that are the results. A node may appear several times.")
    ]
    name: NotRequired[Label]


@with_config(OPEN_IN_DOCUMENT)
class Graph(TypedDict):
    """A computation graph."""

    opset: NotRequired[Annotated[Int64, Field(description="Version of the set of ops. Default: 1.", examples=[1])]]
    nodes: Annotated[
        list[GraphNode], FailFast(), Field(description="Nodes in order: operands come before the nodes that use them.")
    ]
    # Checked only if the opset has functions.
    functions: NotRequired[
        Annotated[
            list[Any],
            Field(description="Functions (since opset 2). A function may run earlier functions, by their index here."),
        ]
    ]


# There may be millions of elements: the array library checks them, not pydantic one by one.
_Elements = Annotated[
    Any,
    WithJsonSchema(
        {
            "type": "array",
            "items": {"type": "number", "format": "double"},
            "description": "Elements as a flat list in row-major order. Bools are 0 and 1. A complex number is two "
            "numbers: the real part, then the imaginary part.",
        }
    ),
]
_Bytes = Annotated[
    Any,
    WithJsonSchema(
        {
            "type": "string",
            "format": "byte",
            "description": "Elements as base64 of little-endian bytes in row-major order. Lossless for every value.",
        }
    ),
]


Dtype = Annotated[str, Field(json_schema_extra={OPEN: "dtypes"})]
Shape = Annotated[
    list[Int64], FailFast(), Field(description="Extents of the axes. [] is a 0-d tensor with one element.")
]


@with_config(OPEN_IN_DOCUMENT)
class Tensor(TypedDict):
    """A dense array. Its elements are in exactly one of `data` and `data_b64`; an empty array may omit both."""

    dtype: Dtype
    shape: Shape
    data: NotRequired[_Elements]
    data_b64: NotRequired[_Bytes]
