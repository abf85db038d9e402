"""A request once it is parsed, whatever it came as."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine import HostArray


@dataclass(frozen=True)
class Message:
    """The JSON of a request, and the tensors that came beside it, by (role, node)."""

    body: Mapping[str, Any]
    tensors: Mapping[tuple[str, int], HostArray] = field(default_factory=dict)

    def of_role(self, role: str) -> dict[int, HostArray]:
        """The tensors of one role, by node."""
        return {node: array for (other, node), array in self.tensors.items() if other == role}
