"""A client's graph as it was written: ops and references checked, types not yet known."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from itertools import compress
from typing import Any, Final

from engine.graph.attributes import bind
from engine.graph.errors import BadReference, EngineError, MissingFeed, UnexpectedFeed, counted
from engine.graph.faults import Faults
from engine.graph.inference import inferred
from engine.graph.ir import Builder, Node, Origin, Value
from engine.graph.limits import NO_DEADLINE, Deadline, Limits
from engine.graph.memory import Stated, attributes_key
from engine.graph.op import Definition
from engine.graph.opset import LATEST, OPSET, admit_dtype, admit_op
from engine.graph.registry import Registry
from engine.graph.tensor_type import TensorType

_NOTHING: Final = Stated({})


@dataclass(slots=True, unsafe_hash=True)  # frozen, making one would take four times as long
class Statement:
    """One node of a client's graph: its id is its position. `attrs` holds what the client stated, unchecked.

    Never changed once made.
    """

    op: Definition
    operands: tuple[int, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict)
    name: str | None = None

    def located(self, error: EngineError, node: int) -> EngineError:
        """`error`, said to have happened here."""
        return error.at(node, self.op.name, self.name)


class Program:
    """Checked statements. Raises the EngineError of the first that is wrong, naming it; the others are attached.

    Tensors among their attributes are its own: what could be written to is copied.
    """

    def __init__(
        self,
        registry: Registry,
        statements: Sequence[Statement | None],
        limits: Limits | None = None,
        faults: Faults | None = None,
        opset: int = OPSET,
    ) -> None:
        """`statements` are None at nodes that could not be read; `faults` says why, and is reported with the others."""
        self.registry = registry
        self.opset = opset
        self.limits = limits or Limits()
        self.limits.admit_nodes(len(statements))
        self.attrs: list[Stated] = []
        faults = faults or Faults()
        read = [(node, statement) for node, statement in enumerate(statements) if statement is not None]
        for node, statement in read:
            if statement.op.since > opset:
                with faults.at(node, statement.op.name, statement.name):
                    admit_op(statement.op.name, statement.op.since, opset)
                continue
            if statement.operands:
                with faults.at(node, statement.op.name, statement.name):
                    _check_references(statements, node, statement)
            if statement.attrs or statement.op.attrs:
                with faults.at(node, statement.op.name, statement.name):
                    self.attrs.append(Stated(bind(statement.op.attrs, statement.attrs)))
                    self._admit_dtypes(statement.op, self.attrs[-1])
            else:
                self.attrs.append(_NOTHING)
        if faults.found:
            _count_operands(read, faults)
        faults.report()
        self.statements = tuple(statement for _, statement in read)

    def _admit_dtypes(self, op: Definition, attrs: Mapping[str, Any]) -> None:
        """Raise DtypeMismatch for an attribute that is, or has, a dtype of a later opset."""
        if self.opset < LATEST:
            for name, attr in op.attrs.items():
                value = attrs.get(name)  # where there are too many faults to look for more, not all are there
                if value is not None and (dtype := attr.definition.dtype_of(value)) is not None:
                    admit_dtype(f"attribute {name}", dtype, self.opset)

    @cached_property
    def leaves(self) -> tuple[int, ...]:
        """Nodes that take a feed."""
        return tuple(i for i, s in enumerate(self.statements) if s.op.is_leaf)

    @cached_property
    def parameters(self) -> tuple[int, ...]:
        """Nodes that are differentiated with respect to by default."""
        return tuple(i for i, s in enumerate(self.statements) if s.op.name == "parameter")

    @cached_property
    def digest(self) -> bytes:
        """Hash of all that decides results: ops, operands, attributes. Names are labels and do not count."""
        said = blake2b(str(self.opset).encode(), digest_size=32)
        for statement, attrs in zip(self.statements, self.attrs, strict=True):
            said.update(repr((statement.op.name, statement.operands, attributes_key(attrs))).encode())
        return said.digest()

    def needed(self, roots: Iterable[int]) -> list[int]:
        """The nodes that `roots` depend on, themselves included, in ascending order."""
        marks, statements = bytearray(len(self.statements)), self.statements
        for root in roots:
            marks[root] = 1
        for node in range(len(marks) - 1, -1, -1):
            if marks[node]:
                for i in statements[node].operands:
                    marks[i] = 1
        return list(compress(range(len(marks)), marks))

    def used(
        self, types: Mapping[int, TensorType], roots: Sequence[int], deadline: Deadline = NO_DEADLINE
    ) -> dict[int, TensorType]:
        """Of feeds of these types, those that `roots` need; the others are checked by what their leaves declare.

        Raises MissingFeed, UnexpectedFeed for what is no leaf, and for a feed that is not needed ShapeMismatch and
        DtypeMismatch.
        """
        faults = Faults()
        used = self._used(types, self.needed(roots), faults)
        if faults.found:
            self.build(types, roots, deadline)  # raises these, with what else is wrong
        return used

    def build(
        self,
        types: Mapping[int, TensorType],
        roots: Sequence[int],
        deadline: Deadline = NO_DEADLINE,
        wrt: Iterable[int] = (),
        limits: Limits | None = None,
    ) -> tuple[Builder, Mapping[int, Value]]:
        """The typed nodes that `roots` need, for feeds of these types, and where each client's node went.

        `wrt` are those that gradients will be taken by; `limits` hold in place of the program's.

        Raises what `used` does, and what the ops find wrong with their operands. A node that reads one that has a
        fault is not looked at.
        """
        needed = self.needed(roots)
        faults = Faults()
        types = self._used(types, needed, faults)
        builder = Builder(self.registry, limits or self.limits, deadline)
        values = _Values(builder, len(self.statements))
        barriers = self._barriers(wrt, needed)
        repeats = _Repeats(values)
        for node in needed:
            statement = self.statements[node]
            if not faults.found and node not in barriers and repeats.write_node(node, statement, self.attrs[node].key):
                continue
            if not faults.found or self._is_ready(node, values, types):
                builder.origin = Origin(node, statement.op.name)
                with faults.at(node, statement.op.name, statement.name):
                    made = self._emit(builder, node, values, types)
                    values.put(node, made.identity() if node in barriers else made)
                    repeats.keep(node, statement, self.attrs[node].key)
        faults.report()
        return builder, values

    def _is_ready(self, node: int, values: Mapping[int, Value], types: Mapping[int, TensorType]) -> bool:
        """Whether there is all that the node reads."""
        statement = self.statements[node]
        return node in types if statement.op.is_leaf else all(i in values for i in statement.operands)

    def _barriers(self, wrt: Iterable[int], needed: Iterable[int]) -> set[int]:
        """Nodes that derivatives are taken by: they get an `identity`, and all read that in their place.

        A rule may write a derivative with its result (exp' = y). What reads that derivative does not read the
        client's node: without the barrier, a gradient by that node would depend on how the rule is written.
        """
        grads = (self.statements[i] for i in needed if self.statements[i].op.name == "grad")
        named = {*wrt, *(x for s in grads for x in s.operands[1:2])}
        return named.difference(self.leaves)

    def _emit(self, builder: Builder, node: int, values: Mapping[int, Value], types: Mapping[int, TensorType]) -> Value:
        statement = self.statements[node]
        if statement.op.is_leaf:
            (type,) = inferred(statement.op, (types[node],), self.attrs[node]).types
            return builder.leaf(type, node, statement.op.name)
        before, operands = len(builder.nodes), [values[i] for i in statement.operands]
        value = builder.emit(statement.op, operands, self.attrs[node])
        # A composite may come down to one of its operands; the client's node is still a node of its own.
        return value if value.index >= before else value.identity()

    def _used(self, types: Mapping[int, TensorType], needed: Sequence[int], faults: Faults) -> dict[int, TensorType]:
        leaves = set(self.leaves)
        wanted = leaves.intersection(needed)
        for node in types:
            with faults:
                if node not in leaves:
                    raise self._unexpected(node)
        for node in sorted(wanted.difference(types)):
            with faults:
                missing = MissingFeed("the answer needs a feed for this node, but got none", expected="a feed")
                raise self.statements[node].located(missing, node)
        for node in sorted(leaves.intersection(types) - wanted):
            statement = self.statements[node]
            # A feed that nothing reads: a wrong one is likelier to be a mistake than to be meant.
            with faults.at(node, statement.op.name, statement.name):
                statement.op.infer(types[node], **self.attrs[node])
        for node in leaves.intersection(types) if self.opset < LATEST else ():
            with faults.at(node, self.statements[node].op.name, self.statements[node].name):
                admit_dtype("the feed", types[node].dtype, self.opset)
        return {node: types[node] for node in wanted.intersection(types)}

    def _unexpected(self, node: int) -> EngineError:
        if not 0 <= node < len(self.statements):
            return UnexpectedFeed(f"feeds name node {node}, but the graph has {counted(len(self.statements), 'node')}")
        unexpected = UnexpectedFeed("got a feed, but only input and parameter nodes take one")
        return self.statements[node].located(unexpected, node)


class _Values(Mapping[int, Value]):
    """The values of a program's nodes, as far as these are written; what is kept of each is a number in the builder."""

    def __init__(self, builder: Builder, count: int) -> None:
        """Of so many nodes, none."""
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


class _Repeats:
    """Writes statements that say the same as one before: the same op and attributes, on operands of the same types.

    The types are told by the objects that they are, which nodes that say the same share. Leaves, spellings for other
    ops and attributes that are large do not come twice.
    """

    def __init__(self, values: _Values) -> None:
        self._builder, self._numbers = values.builder, values.numbers
        self._known: dict[Hashable, Node] = {}

    def write_node(self, node: int, statement: Statement, attrs: Hashable) -> bool:
        """Whether it is one of these, and was written. `attrs` is what tells its attributes from others."""
        builder, op = self._builder, statement.op
        read = tuple([self._numbers[i] for i in statement.operands])
        nodes = builder.nodes
        like = self._known.get((op, attrs, *[id(nodes[i].types) for i in read]))
        if like is None or not builder.has_room:
            return False
        self._numbers[node] = builder.repeat(like, read, Origin(node, op.name))
        return True

    def keep(self, node: int, statement: Statement, attrs: Hashable) -> None:
        """Remember what a statement came to: one node of its op, on its operands."""
        op, nodes = statement.op, self._builder.nodes
        made = nodes[self._numbers[node]]
        if attrs is None or op.is_leaf or op.decomposes or made.op is not op:
            return
        self._known[op, attrs, *[id(nodes[i].types) for i in made.operands]] = made


def _count_operands(statements: Iterable[tuple[int, Statement]], faults: Faults) -> None:
    """Look for operands too few or too many, as `Program.build` would, which a program with faults never comes to."""
    for node, statement in statements:
        with faults.at(node, statement.op.name, statement.name):
            statement.op.check_count(len(statement.operands))


def _check_references(statements: Sequence[Statement | None], node: int, statement: Statement) -> None:
    for position, operand in enumerate(statement.operands):
        if not 0 <= operand < node:
            wanted = f"an earlier node, 0 to {node - 1}" if node else "absent: node 0 has no earlier nodes"
            raise BadReference(
                f"operand {position} must be {wanted}, but is {operand}",
                operand=position,
                expected=wanted,
                got=str(operand),
            )
        producer = statements[operand]
        if producer is not None and producer.op.several != (statement.op.name == "get_output"):
            raise _projection_error(position, operand, producer.op)


def _projection_error(position: int, operand: int, producer: Definition) -> BadReference:
    if producer.several:
        detail = f"node {operand} ({producer.name}) has several outputs: read one of them through get_output"
    else:
        detail = f"get_output reads an op with several outputs, but node {operand} is {producer.name}"
    return BadReference(f"operand {position}: {detail}", operand=position, got=f"node {operand} ({producer.name})")
