"""One node of a model, as a rule sees it."""

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

#: what says a result: a node; an array, where it is the same for all data of these shapes; a value that there is
#: already; None where nobody asked for it
Result = Node | Array | Value | None
Said = Node | Array | Sequence[Result]
OpRule = Callable[["Call"], Said]


class ByDefinition(Exception):
    """Raised by a rule that leaves an op to the function that ONNX defines it by."""


class Call:
    """A node of the model on its operands, and the graph to say it in.

    `op` is ONNX's name, `version` the opset in which the op became what it is here. `attrs` has the node's attributes
    and the defaults of the others. `results` are arrays, what the node gives for the example; an output that is not
    asked for is None. Operands are counted from 0; those that are left out are None.
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
        """How many operands are stated, those that are left out before others among them."""
        return len(self.operands)

    @property
    def graph(self) -> SourceGraph:
        """What nodes without operands are written with."""
        return self.scope.graph

    def has(self, i: int) -> bool:
        """Whether there is an operand i."""
        return i < len(self.operands) and self.operands[i] is not None

    def value(self, i: int = 0) -> Value:
        """Operand i, which there is."""
        value = self.operands[i]
        assert value is not None, f"{self.op} has its operand {i}"
        return value

    def node(self, i: int = 0) -> Node:
        """The node of operand i."""
        return self.scope.node_of(self.value(i))

    def node_or_none(self, i: int) -> Node | None:
        """The node of operand i, where there is one."""
        return self.node(i) if self.has(i) else None

    @property
    def nodes(self) -> list[Node]:
        """The nodes of all operands, of an op that can leave none out."""
        return [self.node(i) for i in range(len(self.operands))]

    def shape(self, i: int = 0) -> tuple[int, ...]:
        """The shape of operand i."""
        return self.value(i).shape

    def rank(self, i: int = 0) -> int:
        """How many axes operand i has."""
        return len(self.shape(i))

    def dtype(self, i: int = 0) -> np.dtype[Any]:
        """The dtype of operand i."""
        return self.value(i).dtype

    def asked(self, i: int) -> bool:
        """Whether result i is asked for."""
        return i < len(self.results) and self.results[i] is not None

    def result_shape(self, i: int = 0) -> list[int]:
        """The shape of result i, as the example has it."""
        return [int(extent) for extent in self.results[i].shape]

    def is_constant(self, i: int) -> bool:
        """Whether the value of operand i stands in the file, as what is not trained."""
        return self.has(i) and self.value(i).known is Known.CONSTANT

    def static(self, i: int, what: str) -> Array:
        """The value of operand i, which the graph is made for; `what` it is, in messages.

        Raises Blocked where it comes from the data.
        """
        value = self.value(i)
        if value.known is Known.DATA:
            told = " and ".join(repr(root) for root in sorted(value.roots))
            reads = f"name {told} in `constants`, and the example's values become part of the graph" if told else ""
            reason = f"its {what} would come from the data, which the graph is made without"
            raise Blocked(reason, reads, sorted(value.roots))
        return np.asarray(value.example)

    def ints(self, i: int, name: str) -> list[int] | None:
        """Whole numbers that are an operand or, in older versions, an attribute; None where there are none."""
        if self.has(i):
            return [int(each) for each in self.static(i, name).reshape(-1)]
        stated = self.attrs.get(name)
        return None if stated is None else [int(each) for each in np.atleast_1d(stated)]

    def constant(self, value: Any, dtype: Any = None) -> Node:
        """A constant of the graph."""
        return self.graph.constant(np.asarray(value, dtype))

    def like(self, value: Any, i: int = 0) -> Node:
        """A constant of the dtype of operand i."""
        return self.constant(value, self.dtype(i))

    def axis(self, rank: int, name: str = "axis") -> int:
        """An attribute that is an axis, counted from the front."""
        axis: int = self.attrs[name]
        return axis % rank if rank else 0

    def text(self, name: str) -> str:
        """An attribute that is a string."""
        stated = self.attrs[name]
        return stated.decode() if isinstance(stated, bytes) else str(stated)

    def body(self, name: str) -> GraphProto:
        """The body that an attribute is."""
        body: GraphProto = self.attrs[name]
        return body

    @property
    def bodies(self) -> Bodies:
        """What writes functions of bodies."""
        assert self._bodies is not None, f"{self.op} runs bodies"
        return self._bodies


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether it is one of the floats that have derivatives."""
    return dtype.kind == "f"
