"""Places of a request: a node of the graph or of one of its functions, and a function."""

from __future__ import annotations

from typing import Any, NamedTuple


class FunctionPlace(NamedTuple):
    """A function of the graph, by its index."""

    function: int

    @property
    def location(self) -> tuple[str | int, ...]:
        """The keys that lead there."""
        return ("graph", "functions", self.function)

    @property
    def spoken(self) -> str:
        """Name of the place at the start of messages."""
        return f"function {self.function}"

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of a report that say it."""
        return {"function": self.function}


class NodePlace(NamedTuple):
    """A node of the graph, or of a function of it."""

    node: int
    function: int | None = None

    @property
    def location(self) -> tuple[str | int, ...]:
        """The keys that lead there."""
        around = ("graph",) if self.function is None else FunctionPlace(self.function).location
        return (*around, "nodes", self.node)

    @property
    def spoken(self) -> str:
        """Name of the place at the start of messages."""
        return f"node {self.node}" if self.function is None else f"function {self.function}, node {self.node}"

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of a report that say it: `node` is always one of the graph."""
        if self.function is None:
            return {"node": self.node}
        return {"function": self.function, "function_node": self.node}

    def kind(self, role: str) -> str:
        """Name tensors of this role beside the JSON, without the node."""
        return role if self.function is None else f"functions.{self.function}.{role}"

    def tensor_name(self, role: str) -> str:
        """Name the tensor of this role beside the JSON."""
        return f"{self.kind(role)}.{self.node}"
