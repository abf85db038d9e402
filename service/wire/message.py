"""A request once it is parsed, from JSON or safetensors."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from engine import HostArray
from service.wire.graph_source import GraphSource
from service.wire.node_place import NodePlace

#: of a request in JSON alone
NO_TENSORS: Final[Mapping[tuple[str, NodePlace], HostArray]] = MappingProxyType({})


class Message(NamedTuple):
    """The JSON of a request, and the tensors that came beside it, by (role, node).

    With a `source`, that is the graph, and the field of the body has an empty one in its place. `versions` are the
    etags that resident tensors have to have, by name, where another server says so.
    """

    body: Mapping[str, Any]
    tensors: Mapping[tuple[str, NodePlace], HostArray] = NO_TENSORS
    source: GraphSource | None = None
    versions: Mapping[str, str] = MappingProxyType({})

    def of_role(self, role: str) -> dict[int, HostArray]:
        """The tensors of one role for nodes of the graph, by node."""
        return {place.node: array for place, array in self.placed(role).items() if place.function is None}

    def placed(self, role: str) -> dict[NodePlace, HostArray]:
        """The tensors of one role, by place."""
        return {place: array for (other, place), array in self.tensors.items() if other == role}
