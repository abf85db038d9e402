"""Resources: tensors, graphs and models that a server keeps, as requests and answers speak of them."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Final, NotRequired, get_type_hints

from pydantic import FailFast, Field, with_config
from typing_extensions import TypedDict

from schemas.graph import CLOSED, OPEN_IN_DOCUMENT, Dtype, Graph, Int64, NodeId, Shape, Tensor

# The server checks names and etags, and reports an invalid one in a sentence.
TensorName = Annotated[
    str, Field(description="1 to 128 of A-Z a-z 0-9 _ . - of which the first is neither a dot nor a hyphen")
]
Etag = Annotated[str, Field(description="16 hexadecimal digits that no other version of a tensor has")]
WrittenWithin = Annotated[
    Int64, Field(description="milliseconds in which it will be on disk; absent where it is there already")
]


class StoredTensor(TypedDict):
    """The value of a node, or the gradient by it, as it is kept now."""

    node: NodeId
    tensor_id: TensorName
    etag: Etag
    durable: Annotated[bool, Field(description="whether it is on disk")]
    written_within_ms: NotRequired[WrittenWithin]


StoredTensors = Annotated[
    list[StoredTensor], Field(description="what was kept, in the order of `store`; absent where that was nothing")
]


class TensorSummary(TypedDict):
    """A resident tensor without its elements."""

    tensor_id: TensorName
    dtype: Dtype
    shape: Shape
    bytes: Annotated[Int64, Field(description="of its elements")]
    etag: Etag
    durable: Annotated[bool, Field(description="whether it is on disk")]
    written_within_ms: NotRequired[WrittenWithin]


class ResidentTensor(TypedDict):
    """A resident tensor."""

    tensor_id: TensorName
    etag: Etag
    tensor: Tensor


DESCRIPTION_CHARACTERS: Final = 1000

GraphId = Annotated[str, Field(description="hash of the graph's canonical form, in 64 hexadecimal digits")]
Description = Annotated[str, Field(max_length=DESCRIPTION_CHARACTERS, description="for people; changes nothing")]


@with_config(CLOSED)
class RegisterGraphRequest(TypedDict):
    """A graph that the server is to keep."""

    graph: Graph
    description: NotRequired[Description]


class GraphSummary(TypedDict):
    """A graph that is kept, without itself."""

    graph_id: GraphId
    description: NotRequired[Description]
    node_count: Int64


class RegisteredGraph(GraphSummary):
    """A graph that is kept: its ops under their canonical names, and tensors that came beside it in it."""

    graph: Graph


@cache
def without_graph(request: Any) -> Any:
    """The message that asks the same of a registered graph: it has all fields but `graph`."""
    fields = {name: hint for name, hint in get_type_hints(request, include_extras=True).items() if name != "graph"}
    registered: Any = TypedDict(f"Registered{request.__name__}", fields)  # type: ignore[misc] # named by what it is of
    registered.__doc__ = f"{request.__doc__} The graph is the one that the path names."
    return with_config(CLOSED)(registered)


ModelName = Annotated[
    str, Field(description="1 to 128 of A-Z a-z 0-9 _ . - of which the first is neither a dot nor a hyphen")
]
ModelEtag = Annotated[str, Field(description="16 hexadecimal digits that no other version of a model has")]
FreeShape = Annotated[
    list[Int64], FailFast(), Field(description="extents of the axes; -1 is one that each call states anew")
]


@with_config(OPEN_IN_DOCUMENT)
class ModelInput(TypedDict):
    """A leaf that each call gives a value for, under a name."""

    name: ModelName
    node: NodeId
    dtype: Dtype
    shape: FreeShape


@with_config(CLOSED)
class NamedOutput(TypedDict):
    """A node whose value comes back, under a name."""

    name: ModelName
    node: NodeId


@with_config(CLOSED)
class BoundLeaf(TypedDict):
    """A leaf whose value is a resident tensor, read at each call in the version that is there then."""

    node: NodeId
    tensor_id: Annotated[TensorName, Field(description="name of a resident tensor")]


@with_config(CLOSED)
class PutModelRequest(TypedDict):
    """A registered graph, with the names that it is to be called by."""

    graph_id: GraphId
    inputs: Annotated[list[ModelInput], FailFast(), Field(description="in the order in which protocols count them")]
    outputs: Annotated[list[NamedOutput], FailFast(), Field(description="at least one, in the order of answers")]
    bound: NotRequired[Annotated[list[BoundLeaf], FailFast(), Field(description="all other leaves that they need")]]
    description: NotRequired[Description]


class ModelOutput(TypedDict):
    """An output, and the type of its value; an extent of -1 depends on those that are free."""

    name: ModelName
    node: NodeId
    dtype: Dtype
    shape: FreeShape


class ModelTensor(TypedDict):
    """A bound leaf, and the type that its tensor had when the model was put, and has to have."""

    node: NodeId
    tensor_id: TensorName
    dtype: Dtype
    shape: Shape


class NamedModel(TypedDict):
    """A model that is kept."""

    name: ModelName
    etag: ModelEtag
    graph_id: GraphId
    description: NotRequired[Description]
    inputs: list[ModelInput]
    outputs: list[ModelOutput]
    bound: list[ModelTensor]


_MORE = "where there are more, what to state as `after` to get those"


class GraphList(TypedDict):
    """Graphs that are kept, in the order in which they came."""

    graphs: list[GraphSummary]
    next: NotRequired[Annotated[GraphId, Field(description=_MORE)]]


class TensorList(TypedDict):
    """Tensors that are kept, by their names."""

    tensors: list[TensorSummary]
    next: NotRequired[Annotated[TensorName, Field(description=_MORE)]]


class ModelList(TypedDict):
    """Models that are kept, by their names."""

    models: list[NamedModel]
    next: NotRequired[Annotated[ModelName, Field(description=_MORE)]]
