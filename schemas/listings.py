"""Listings of resources, page by page."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from schemas.models import ModelName, NamedModel
from schemas.registered import GraphId, GraphSummary
from schemas.resident import TensorName, TensorSummary

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
