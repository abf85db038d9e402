"""One node of a model, as its rule sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked, SourceGraph
from gradserve_client.onnx.scope import Known, Scope, Value
from gradserve_client.tensors import Array

if TYPE_CHECKING:
    from onnx import GraphProto

    from gradserve_client.onnx.bodies import Bodies

#: one result of a rule: a node; an array if it is the same for all data of these shapes; an existing value; or None for
#: an output that is not requested
Result = Node | Array | Value | None
RuleResult = Node | Array | Sequence[Result]
OpRule = Callable[["Call"], RuleResult]


class ByDefinition(Exception):
    """Raised by a rule to fall back to the function with which ONNX defines the op."""


class Call:
    """A node of the model, its operands, and the graph to translate it into.

    `op` is ONNX's name of the op, `version` the opset that introduced its current definition. `attrs` holds the node's
    attributes and the defaults of the attributes that it omits. `results` are the arrays that the node computes for the
    example, None for an output that is not requested. Operands are counted from 0; an omitted operand is None.
    """

    def __init__(
        self,
        op: str,
        version: int,
        attrs: Mapping[str, Any],
        operands: Sequence[Value | None],
        results: Sequence[Any],
        scope: Scope,
        bodies: Bodies | None = None,
    ) -> None:
        self.op = op
        self.version = version
        self.attrs = attrs
        self.operands = operands
        self.results = results
        self.scope = scope
        self._bodies = bodies

    def __len__(self) -> int:
        """Return the number of operands, omitted ones before the last included."""
        return len(self.operands)

    @property
    def graph(self) -> SourceGraph:
        """Graph that the rule writes nodes into."""
        return self.scope.graph

    def has(self, i: int) -> bool:
        """Return whether operand i is present."""
        return i < len(self.operands) and self.operands[i] is not None

    def value(self, i: int = 0) -> Value:
        """Return the value of operand i, which must be present."""
        value = self.operands[i]
        assert value is not None, f"{self.op} has its operand {i}"
        return value

    def node(self, i: int = 0) -> Node:
        """Return the node of operand i."""
        return self.scope.node_of(self.value(i))

    def node_or_none(self, i: int) -> Node | None:
        """Return the node of operand i, or None if it is omitted."""
        return self.node(i) if self.has(i) else None

    @property
    def nodes(self) -> list[Node]:
        """Nodes of all operands, for ops that cannot omit any."""
        return [self.node(i) for i in range(len(self.operands))]

    def shape(self, i: int = 0) -> tuple[int, ...]:
        """Return the shape of operand i."""
        return self.value(i).shape

    def rank(self, i: int = 0) -> int:
        """Return the rank of operand i."""
        return len(self.shape(i))

    def dtype(self, i: int = 0) -> np.dtype[Any]:
        """Return the dtype of operand i."""
        return self.value(i).dtype

    def is_requested(self, i: int) -> bool:
        """Return whether result i is requested."""
        return i < len(self.results) and self.results[i] is not None

    def result_shape(self, i: int = 0) -> list[int]:
        """Return the shape that result i has for the example."""
        return [int(extent) for extent in self.results[i].shape]

    def is_constant(self, i: int) -> bool:
        """Return whether the file fixes the value of operand i, so that it is not trained."""
        return self.has(i) and self.value(i).known is Known.CONSTANT

    def static(self, i: int, label: str) -> Array:
        """Return the value of operand i, which the graph is specialised for. `label` names it in messages.

        Raises Blocked if the value depends on the data.
        """
        value = self.value(i)
        if value.known is Known.DATA:
            names = " and ".join(repr(root) for root in sorted(value.roots))
            suggestion = f"list {names} in `constants` to make the example's values part of the graph" if names else ""
            reason = f"its {label} would depend on the data, but must be constant"
            raise Blocked(reason, suggestion, sorted(value.roots))
        return np.asarray(value.example)

    def ints(self, i: int, name: str) -> list[int] | None:
        """Return integers given as operand i or, in older opsets, as the attribute `name`; None if they are absent."""
        if self.has(i):
            return [int(each) for each in self.static(i, name).reshape(-1)]
        stated = self.attrs.get(name)
        return None if stated is None else [int(each) for each in np.atleast_1d(stated)]

    def constant(self, value: Any, dtype: Any = None) -> Node:
        """Add a constant to the graph."""
        return self.graph.constant(np.asarray(value, dtype))

    def like(self, value: Any, i: int = 0) -> Node:
        """Add a constant with the dtype of operand i."""
        return self.constant(value, self.dtype(i))

    def axis(self, rank: int, name: str = "axis") -> int:
        """Return an axis attribute, counted from the front."""
        axis: int = self.attrs[name]
        return axis % rank if rank else 0

    def text(self, name: str) -> str:
        """Return a string attribute."""
        stated = self.attrs[name]
        return stated.decode() if isinstance(stated, bytes) else str(stated)

    def body(self, name: str) -> GraphProto:
        """Return the body that an attribute holds."""
        body: GraphProto = self.attrs[name]
        return body

    @property
    def bodies(self) -> Bodies:
        """Translator of bodies into functions."""
        assert self._bodies is not None, f"{self.op} runs bodies"
        return self._bodies


def is_float(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype is a real float, which has derivatives."""
    return dtype.kind == "f"
