"""A certificate for gradients."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field, with_config
from typing_extensions import TypedDict

from schemas.answer import Stats
from schemas.graph import CLOSED, Double, Int64, NodeId
from schemas.request import GraphRequest, Of, Wrt


@with_config(CLOSED)
class CheckRequest(GraphRequest):
    """A graph, values for its leaves, and which gradients to compare with central differences."""

    of: NotRequired[Of]
    wrt: NotRequired[Wrt]
    directions: NotRequired[Annotated[Int64, Field(description="random directions for each node, 1 to 64; default 4")]]
    tolerance: NotRequired[
        Annotated[Double, Field(description="largest relative error that passes, between 0 and 1; default 1e-6")]
    ]


class GradientError(TypedDict):
    """How far a gradient is from central differences, at the worst of the directions."""

    node: NodeId
    relative_error: Double


class Uncertified(TypedDict):
    """A node whose gradient could not be compared, and why."""

    node: NodeId
    reason: Annotated[str, Field(description="kink, integer_path, not_finite, or roundoff; an open list")]
    detail: str


class CheckAnswer(TypedDict):
    """The certificate: gradients against central differences, in float64, along random directions."""

    passed: Annotated[bool, Field(description="whether every node was compared, and within the tolerance")]
    errors: list[GradientError]
    uncertified: list[Uncertified]
    directions: Int64
    tolerance: Double
    stats: Stats
