"""Messages of `check`: a gradient check."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field, with_config
from typing_extensions import TypedDict

from schemas.answer import Stats
from schemas.graph import CLOSED, Double, Int64, NodeId
from schemas.request import GraphRequest, Of, Wrt


@with_config(CLOSED)
class CheckRequest(GraphRequest):
    """A graph, values for its leaves, and the gradients to compare with finite differences."""

    of: NotRequired[Of]
    wrt: NotRequired[Wrt]
    directions: NotRequired[
        Annotated[Int64, Field(description="Number of random directions per node, 1 to 64. Default: 4.")]
    ]
    tolerance: NotRequired[
        Annotated[Double, Field(description="Largest relative error that passes, between 0 and 1. Default: 1e-6.")]
    ]


class GradientError(TypedDict):
    """Difference between a gradient and central differences, in the worst direction."""

    node: NodeId
    relative_error: Double


class Uncertified(TypedDict):
    """A node whose gradient could not be checked, and the reason."""

    node: NodeId
    reason: Annotated[
        str,
        Field(description="kink, integer_path, stop_gradient, not_finite or roundoff. Later releases may add reasons."),
    ]
    detail: str


class CheckAnswer(TypedDict):
    """Result of the gradient check: gradients versus central differences, in float64, along random directions."""

    passed: Annotated[bool, Field(description="Whether every node was compared and is within the tolerance.")]
    errors: list[GradientError]
    uncertified: list[Uncertified]
    directions: Int64
    tolerance: Double
    stats: Stats
