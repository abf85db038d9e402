"""One graph on many examples."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import FailFast, Field, with_config
from typing_extensions import TypeAliasType

from schemas.graph import CLOSED, Int64, NodeId
from schemas.request import ComputingRequest, Of, Wrt

# A message of its own in the document, as other words are.
Reduction = TypeAliasType("Reduction", Literal["none", "sum", "mean"])

Reduce = Annotated[
    Reduction,
    Field(description="what is made of the N examples, differentiated as one; default none: the answer has their axis"),
]
Block = Annotated[
    Int64, Field(description="with `reduce`: how many examples are added up at a time; default: by their plan")
]


@with_config(CLOSED)
class BatchRequest(ComputingRequest):
    """A graph written for one example, and feeds for many."""

    mapped: NotRequired[
        Annotated[
            list[NodeId], FailFast(), Field(description="the leaves whose feeds have a leading axis N, at least one")
        ]
    ]
    of: NotRequired[Of]
    wrt: NotRequired[Wrt]
    reduce: NotRequired[Reduce]
    block: NotRequired[Block]
