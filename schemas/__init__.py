"""The wire: what a request, an answer and a problem look like, as pydantic validates and documents them.

    numbers → tensor → graph → requests
                     → answers, catalogue, problem      document: all of them as JSON Schema

What may live here: the shape of messages, and their documentation. What may not: NumPy, the engine, HTTP, or any
meaning beyond shape. The names of ops and attributes are handed in as plain data (`Vocabulary`), so that a new op
is no change here.

Messages are TypedDicts, not model classes: an absent field stays absent where a class would invent a null, and a
graph of 100,000 nodes is validated in place.
"""

from __future__ import annotations

from schemas.answers import (
    CheckAnswer,
    DifferentiateAnswer,
    ForwardAnswer,
    GradientsAnswer,
    Health,
    HessianAnswer,
    HvpAnswer,
    JacobianAnswer,
    JvpAnswer,
    NodeTensor,
    PlanAnswer,
    Stats,
)
from schemas.catalogue import Alias, AttributeInfo, Catalogue, OpInfo
from schemas.document import Vocabulary, components
from schemas.graph import Graph, Node
from schemas.problem import Problem
from schemas.requests import (
    BatchRequest,
    CheckRequest,
    DifferentiateRequest,
    Feed,
    ForwardRequest,
    GradientsRequest,
    HessianRequest,
    HvpRequest,
    JacobianRequest,
    JvpRequest,
    NodeType,
    PlanRequest,
    VjpRequest,
)
from schemas.tensor import Tensor

__all__ = [
    "Alias",
    "AttributeInfo",
    "BatchRequest",
    "Catalogue",
    "CheckAnswer",
    "CheckRequest",
    "DifferentiateAnswer",
    "DifferentiateRequest",
    "Feed",
    "ForwardAnswer",
    "ForwardRequest",
    "GradientsAnswer",
    "GradientsRequest",
    "Graph",
    "Health",
    "HessianAnswer",
    "HessianRequest",
    "HvpAnswer",
    "HvpRequest",
    "JacobianAnswer",
    "JacobianRequest",
    "JvpAnswer",
    "JvpRequest",
    "Node",
    "NodeTensor",
    "NodeType",
    "OpInfo",
    "PlanAnswer",
    "PlanRequest",
    "Problem",
    "Stats",
    "Tensor",
    "VjpRequest",
    "Vocabulary",
    "components",
]
