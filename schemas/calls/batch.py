"""Messages of `batch`: one graph on many examples."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import FailFast, Field, with_config
from typing_extensions import TypeAliasType

from schemas.graph import CLOSED, Int64, NodeId
from schemas.request import ComputingRequest, Of, Wrt

# A schema of its own in the document: otherwise, generators make one type for each request.
Reduction = TypeAliasType("Reduction", Literal["none", "sum", "mean"])

Reduce = Annotated[
    Reduction,
    Field(
        description="Reduce the N examples to their sum or mean, and differentiate that. Default: none; results have a "
        "leading axis N."
    ),
]
Block = Annotated[
    Int64, Field(description="With `reduce`: number of examples accumulated at a time. Default: chosen by the planner.")
]


@with_config(CLOSED)
class BatchRequest(ComputingRequest):
    """A graph for one example, and feeds for many examples."""

    mapped: NotRequired[
        Annotated[
            list[NodeId], FailFast(), Field(description="Leaves whose feeds have a leading axis N, at least one.")
        ]
    ]
    of: NotRequired[Of]
    wrt: NotRequired[Wrt]
    reduce: NotRequired[Reduce]
    block: NotRequired[Block]
