"""Resources on the server: tensors, graphs and models, as they appear in requests and responses."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Final, NotRequired, get_type_hints

from pydantic import FailFast, Field, with_config
from typing_extensions import TypedDict

from schemas.graph import CLOSED, OPEN_IN_DOCUMENT, Dtype, Graph, Int64, NodeId, Shape, Tensor

# The server checks names and etags itself, so that its error messages are readable.
TensorName = Annotated[
    str, Field(description="1 to 128 of the characters `A-Z a-z 0-9 _ . -`. The first is not a dot or a hyphen.")
]
Etag = Annotated[str, Field(description="Version of a tensor: 16 hexadecimal digits, different for each version.")]
WrittenWithin = Annotated[
    Int64, Field(description="Maximum delay in milliseconds before it is written to disk. Absent if it already is.")
]


class StoredTensor(TypedDict):
    """A value or gradient of a node that the server has stored."""

    node: NodeId
    tensor_id: TensorName
    etag: Etag
    durable: Annotated[bool, Field(description="Whether the tensor is on disk.")]
    written_within_ms: NotRequired[WrittenWithin]


StoredTensors = Annotated[
    list[StoredTensor], Field(description="Stored tensors, in the order of `store`. Absent if nothing was stored.")
]


class TensorSummary(TypedDict):
    """A resident tensor without its elements."""

    tensor_id: TensorName
    dtype: Dtype
    shape: Shape
    bytes: Annotated[Int64, Field(description="Size of the elements.")]
    etag: Etag
    durable: Annotated[bool, Field(description="Whether the tensor is on disk.")]
    written_within_ms: NotRequired[WrittenWithin]


class ResidentTensor(TypedDict):
    """A resident tensor."""

    tensor_id: TensorName
    etag: Etag
    tensor: Tensor


DESCRIPTION_CHARACTERS: Final = 1000

GraphId = Annotated[str, Field(description="Hash of the canonical form of the graph: 64 hexadecimal digits.")]
Description = Annotated[
    str, Field(max_length=DESCRIPTION_CHARACTERS, description="A description for people. It has no effect.")
]


@with_config(CLOSED)
class RegisterGraphRequest(TypedDict):
    """A graph to register."""

    graph: Graph
    description: NotRequired[Description]


class GraphSummary(TypedDict):
    """A registered graph without its nodes."""

    graph_id: GraphId
    description: NotRequired[Description]
    node_count: Int64


class RegisteredGraph(GraphSummary):
    """A registered graph. Ops have their canonical names. Tensors that were sent beside the JSON are part of it."""

    graph: Graph


@cache
def without_graph(request: Any) -> Any:
    """Return the type of the same request on a registered graph: all fields except `graph`."""
    fields = {name: hint for name, hint in get_type_hints(request, include_extras=True).items() if name != "graph"}
    registered: Any = TypedDict(f"Registered{request.__name__}", fields)  # type: ignore[misc] # the name is computed
    registered.__doc__ = f"{request.__doc__} The path names the graph."
    return with_config(CLOSED)(registered)


ModelName = Annotated[
    str, Field(description="1 to 128 of the characters `A-Z a-z 0-9 _ . -`. The first is not a dot or a hyphen.")
]
ModelEtag = Annotated[str, Field(description="Version of a model: 16 hexadecimal digits, different for each version.")]
FreeShape = Annotated[
    list[Int64], FailFast(), Field(description="Extents of the axes. -1 means that each call chooses the extent.")
]


@with_config(OPEN_IN_DOCUMENT)
class ModelInput(TypedDict):
    """A named leaf whose value each call sends."""

    name: ModelName
    node: NodeId
    dtype: Dtype
    shape: FreeShape


@with_config(CLOSED)
class NamedOutput(TypedDict):
    """A named node whose value is returned."""

    name: ModelName
    node: NodeId


@with_config(CLOSED)
class BoundLeaf(TypedDict):
    """A leaf whose value is a resident tensor. Each call reads the current version."""

    node: NodeId
    tensor_id: Annotated[TensorName, Field(description="Name of a resident tensor.")]


@with_config(CLOSED)
class PutModelRequest(TypedDict):
    """A registered graph, with names for its inputs and outputs."""

    graph_id: GraphId
    inputs: Annotated[
        list[ModelInput], FailFast(), Field(description="Inputs, in the order that inference protocols use.")
    ]
    outputs: Annotated[
        list[NamedOutput], FailFast(), Field(description="Outputs in the order of responses, at least one.")
    ]
    bound: NotRequired[
        Annotated[list[BoundLeaf], FailFast(), Field(description="All other leaves that the outputs depend on.")]
    ]
    description: NotRequired[Description]


class ModelOutput(TypedDict):
    """An output and its type. An extent of -1 depends on the free extents of the inputs."""

    name: ModelName
    node: NodeId
    dtype: Dtype
    shape: FreeShape


class ModelTensor(TypedDict):
    """A bound leaf, and the required type of its tensor: the one that it had when the model was stored."""

    node: NodeId
    tensor_id: TensorName
    dtype: Dtype
    shape: Shape


class NamedModel(TypedDict):
    """A model."""

    name: ModelName
    etag: ModelEtag
    graph_id: GraphId
    description: NotRequired[Description]
    inputs: list[ModelInput]
    outputs: list[ModelOutput]
    bound: list[ModelTensor]


_MORE = "Value of `after` for the next page. Absent on the last page."


class GraphList(TypedDict):
    """A page of registered graphs, in the order of registration."""

    graphs: list[GraphSummary]
    next: NotRequired[Annotated[GraphId, Field(description=_MORE)]]


class TensorList(TypedDict):
    """A page of resident tensors, by name."""

    tensors: list[TensorSummary]
    next: NotRequired[Annotated[TensorName, Field(description=_MORE)]]


class ModelList(TypedDict):
    """A page of models, by name."""

    models: list[NamedModel]
    next: NotRequired[Annotated[ModelName, Field(description=_MORE)]]
