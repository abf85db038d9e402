"""A request once it is parsed, whatever it came as."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from engine import HostArray
from service.wire.graph_source import GraphSource

#: of a request in JSON alone
NO_TENSORS: Final[Mapping[tuple[str, int], HostArray]] = MappingProxyType({})


class Message(NamedTuple):
    """The JSON of a request, and the tensors that came beside it, by (role, node).

    With a `source`, that is the graph, and the field of the body has an empty one in its place.
    """

    body: Mapping[str, Any]
    tensors: Mapping[tuple[str, int], HostArray] = NO_TENSORS
    source: GraphSource | None = None

    def of_role(self, role: str) -> dict[int, HostArray]:
        """The tensors of one role, by node."""
        return {node: array for (other, node), array in self.tensors.items() if other == role}
