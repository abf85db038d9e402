"""Registered graphs, and requests that name one in place of sending it."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Final, NotRequired, get_type_hints

from pydantic import Field, with_config
from typing_extensions import TypedDict

from schemas.graph import Graph
from schemas.scalars import CLOSED, Int64

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
