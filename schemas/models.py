"""Models: registered graphs with names for what goes in and comes out, as they are put and as they are answered."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import FailFast, Field, with_config
from typing_extensions import TypedDict

from schemas.registered import Description, GraphId
from schemas.resident import TensorName
from schemas.scalars import CLOSED, OPEN_IN_DOCUMENT, Int64, NodeId
from schemas.tensor import Dtype, Shape

ModelName = Annotated[
    str, Field(description="1 to 128 of A-Z a-z 0-9 _ . - of which the first is neither a dot nor a hyphen")
]
ModelEtag = Annotated[str, Field(description="16 hexadecimal digits that no other version of a model has")]
FreeShape = Annotated[
    list[Int64],
    FailFast(),
    Field(description="extents of the axes; -1 is one that each call states anew"),
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
