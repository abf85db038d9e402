"""Writing statements into a builder: the values of a program's nodes, and a shortcut for repeated statements."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping

from engine.graph.ir import Builder, Node, Origin, Value
from engine.graph.statement import Statement


class WrittenValues(Mapping[int, Value]):
    """The values of a program's nodes, as far as these are written; what is kept of each is a number in the builder."""

    def __init__(self, builder: Builder, count: int) -> None:
        """Start with none of so many nodes written."""
        self.builder = builder
        self.numbers = [-1] * count

    def put(self, node: int, value: Value) -> None:
        """Add one."""
        self.numbers[node] = value.index

    def __getitem__(self, node: int) -> Value:
        number = self.numbers[node] if 0 <= node < len(self.numbers) else -1
        if number < 0:
            raise KeyError(node)
        return self.builder.value(number)

    def __iter__(self) -> Iterator[int]:
        return (node for node, number in enumerate(self.numbers) if number >= 0)

    def __len__(self) -> int:
        return len(self.numbers) - self.numbers.count(-1)


class Repeats:
    """Writer of statements that say the same as one before: the same op and attributes, on operands of the same types.

    The types are told by the objects that they are, which nodes that say the same share. Leaves, spellings for other
    ops and attributes that are large do not come twice.
    """

    def __init__(self, values: WrittenValues, function: int | None = None) -> None:
        """`function` is the index of the function whose statements they are."""
        self._builder, self._numbers, self._function = values.builder, values.numbers, function
        self._known: dict[Hashable, Node] = {}

    def write_node(self, node: int, statement: Statement, attrs: Hashable) -> bool:
        """Whether it is one of these, and was written. `attrs` is what tells its attributes from others."""
        builder, op = self._builder, statement.op
        read = tuple([self._numbers[i] for i in statement.operands])
        nodes = builder.nodes
        like = self._known.get((op, attrs, *[id(nodes[i].types) for i in read]))
        if like is None or not builder.may_repeat:
            return False
        self._numbers[node] = builder.repeat(like, read, Origin(node, op.name, function=self._function))
        return True

    def keep(self, node: int, statement: Statement, attrs: Hashable) -> None:
        """Remember what a statement came to: one node of its op, on its operands."""
        op, nodes = statement.op, self._builder.nodes
        made = nodes[self._numbers[node]]
        if attrs is None or op.is_leaf or op.is_composite or made.op is not op:
            return
        self._known[op, attrs, *[id(nodes[i].types) for i in made.operands]] = made
