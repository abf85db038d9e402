"""Resources: tensors, graphs and models that a server keeps, as requests and answers speak of them."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from schemas.scalars import Int64, NodeId
from schemas.tensor import Dtype, Shape, Tensor

# What a name and an etag may be, the server checks, which says it in a sentence.
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
