"""A client's graph as it was written: ops and references are checked, types are not yet known.

A `Program` is checked once and built for each combination of feed types:

    program = Program(registry, statements)            # check names, references, attributes: all errors at once
    builder, values = program.build(types, roots)      # infer types of the nodes that `roots` need: all shape errors
    graph = builder.graph([values[i] for i in roots])

`build` walks the needed nodes in ascending order. At each node it emits the op on the values of its operands, which
infers the type and may raise. Nodes that read a faulty one are skipped, so one response names every error that is not
a consequence of another. A statement that repeats an earlier one, on operands of the same types, is copied instead of
inferred (`Repeats`). Nodes that derivatives are taken with respect to get an `identity`, which their readers use.

Functions are typed where they are used, once per combination of operand types (`FunctionTyping`), and become a `Body`,
the attribute that the op receives. Their nodes count towards one budget. `FunctionCounter` detects in advance that a
function used on many types would exceed it. `graph_id` names a program by the hash of its canonical text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b, sha256
from itertools import compress
from typing import Any, Final, Self, TypeVar, cast

from engine.ir.attributes import bind
from engine.ir.errors import (
    BadAttribute,
    BadReference,
    DtypeMismatch,
    EngineError,
    Faults,
    InvalidField,
    MissingFeed,
    ShapeMismatch,
    TooManyNodes,
    UnexpectedFeed,
    counted,
)
from engine.ir.graph import Builder, Graph, KeyedAttributes, Node, Origin, Value, attributes_key, inferred
from engine.ir.kinds import key
from engine.ir.kinds.scalars import Callee
from engine.ir.op import Definition, Registry
from engine.ir.opset import LATEST, OPSET, admit_dtype, admit_op
from engine.ir.run_context import NO_DEADLINE, NO_LIMITS, Deadline, Limits
from engine.ir.tensor_type import TensorType


@dataclass(slots=True, unsafe_hash=True)  # not frozen: creating a frozen instance takes four times as long
class Statement:
    """One node of a client's graph; its id is its position. `attrs` holds the client's attributes, unchecked.

    Never changed once created.
    """

    op: Definition
    operands: tuple[int, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict)
    name: str | None = None

    def located(self, error: EngineError, node: int) -> EngineError:
        """Return `error`, located at this node."""
        return error.at(node, self.op.name, self.name)


def count_operands(statements: Iterable[tuple[int, Statement]], faults: Faults) -> None:
    """Report wrong numbers of operands.

    `Program.build` would find them, too, but never runs for a program with faults.
    """
    for node, statement in statements:
        with faults.at(node, statement.op.name, statement.name):
            statement.op.check_count(len(statement.operands))


def check_references(statements: Sequence[Statement | None], node: int, statement: Statement) -> None:
    """Raise BadReference for an operand that is no earlier node, or that has several results and is not projected."""
    for position, operand in enumerate(statement.operands):
        if not 0 <= operand < node:
            expected = f"an earlier node, 0 to {node - 1}" if node else "an earlier node (node 0 has none)"
            raise BadReference(
                f"operand {position} must be {expected}, but is {operand}",
                operand=position,
                expected=expected,
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


def check_functions(op: Definition, attrs: Mapping[str, Any], count: int) -> None:
    """Raise BadAttribute for an attribute that is not the index of one of the first `count` functions."""
    for name in op.functions:
        index = attrs.get(name)
        if index is not None and index >= count:
            expected = (
                f"the index of an earlier function, 0 to {count - 1}"
                if count
                else "the index of an earlier function (there is none)"
            )
            raise BadAttribute(
                f"attribute {name} must be {expected}, but is {index}",
                attribute=name,
                expected=expected,
                got=str(index),
            )


class WrittenValues(Mapping[int, Value]):
    """The values of a program's nodes, as far as they are written. Stored as indices into the builder."""

    def __init__(self, builder: Builder, count: int) -> None:
        """Start with none of `count` nodes written."""
        self.builder = builder
        self.numbers = [-1] * count

    def put(self, node: int, value: Value) -> None:
        """Record the value of a node."""
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
    """Writer of statements that repeat an earlier one: the same op and attributes on operands of the same types.

    Types are compared by identity, since repeated nodes share them. Leaves, composites and statements with large
    attributes are never repeats.
    """

    def __init__(self, values: WrittenValues, function: int | None = None) -> None:
        """Create an empty cache. `function` is the index of the function that contains the statements."""
        self._builder, self._numbers, self._function = values.builder, values.numbers, function
        self._nodes_by_use: dict[Hashable, Node] = {}

    def write_node(self, node: int, statement: Statement, attrs: Hashable) -> bool:
        """Write a statement if it repeats an earlier one, and return whether it did.

        `attrs` is the key of its attributes.
        """
        builder, op = self._builder, statement.op
        operands = tuple([self._numbers[i] for i in statement.operands])
        nodes = builder.nodes
        original = self._nodes_by_use.get((op, attrs, *[id(nodes[i].types) for i in operands]))
        if original is None or not builder.may_repeat:
            return False
        self._numbers[node] = builder.repeat(original, operands, Origin(node, op.name, function=self._function))
        return True

    def remember(self, node: int, statement: Statement, attrs: Hashable) -> None:
        """Cache the node of a statement, if the statement is a single node of its own op."""
        op, nodes = statement.op, self._builder.nodes
        written = nodes[self._numbers[node]]
        if attrs is None or op.is_leaf or op.is_composite or written.op is not op:
            return
        self._nodes_by_use[op, attrs, *[id(nodes[i].types) for i in written.operands]] = written


_Made = TypeVar("_Made")


@dataclass(eq=False, slots=True)
class BodyBudget:
    """Limit on the nodes of all bodies of one request together, derivatives included, and the request's deadline."""

    limits: Limits
    deadline: Deadline = NO_DEADLINE
    spent: int = field(default=0, init=False)

    def admit(self, nodes: int) -> None:
        """Count further nodes. Raises TooManyNodes if the total exceeds the limit."""
        self.spent += nodes
        self.limits.admit_nodes(self.spent)

    def builder(self, registry: Registry) -> Builder:
        """Return an empty builder for one body."""
        return Builder(registry, self.limits, self.deadline)


NO_BUDGET: Final = BodyBudget(NO_LIMITS)


class Body(Callee):
    """A graph as a function: its leaves are fed under 0, 1, …, with values of the types `inputs`.

    An input that nothing reads need not be a leaf. Bodies with equal digests are equal. Bodies derived from a body are
    cached in it (`cached`), and count towards its `budget`. `function` is the index of the client's function.
    """

    __slots__ = ("_known", "budget", "function", "graph", "inputs")

    def __init__(
        self, graph: Graph, inputs: Sequence[TensorType], budget: BodyBudget = NO_BUDGET, function: int | None = None
    ) -> None:
        super().__init__(_digest(graph, inputs))
        self.graph = graph
        self.inputs = tuple(inputs)
        self.budget = budget
        self.function = function
        self._known: dict[Hashable, Any] = {}

    @property
    def outputs(self) -> tuple[TensorType, ...]:
        """The types of its results."""
        return tuple([self.graph.nodes[i].type for i in self.graph.outputs])

    def typed(self, types: Sequence[TensorType]) -> Self:
        """Return the body, which is already typed. Raises TypeError for other types, which is an error of a rule."""
        if tuple(types) != self.inputs:
            raise TypeError(f"a body of {_listed(self.inputs)} is used on {_listed(types)}")
        return self

    def cached(self, name: Hashable, make: Callable[[], _Made]) -> _Made:
        """Return the cached result of `make` under `name`; call `make` the first time."""
        if name not in self._known:
            self._known[name] = make()
        return cast("_Made", self._known[name])

    def derived(self, graph: Graph, inputs: Sequence[TensorType]) -> Body:
        """Return a body derived from this one, within its budget. Raises TooManyNodes."""
        self.budget.admit(len(graph.nodes))
        return Body(graph, inputs, self.budget, self.function)

    def inline_into(self, builder: Builder, operands: Sequence[Value] | Mapping[int, Value]) -> list[Value]:
        """Append the body to another graph, on these operands, and return its results, each a new node.

        A mapping may omit operands that nothing reads.
        """
        values: list[Value] = []
        call_origin, first = builder.origin, len(builder.nodes)
        for node in self.graph.nodes:
            if node.is_leaf:
                values.append(operands[node.attrs["feed"]])
            else:
                origin = node.origin if call_origin is None else call_origin.containing(node.origin)
                read_indices = tuple([values[i].index for i in node.operands])
                values.append(builder.append(node._replace(operands=read_indices, origin=origin)))
        results = [values[i] for i in self.graph.outputs]
        return [x if x.index >= first else x.identity() for x in results]

    def __repr__(self) -> str:
        return f"<body {self.digest.hex()[:8]} of {_listed(self.inputs)}>"


def check_arity(function: int, name: str, expected: int, received: int, noun: str) -> None:
    """Raise BadAttribute unless the function in attribute `name` has `expected` parameters (or results: `noun`)."""
    if expected != received:
        raise BadAttribute(
            f"attribute {name}: function {function} has {counted(received, noun)}, but here it must have {expected}",
            attribute=name,
            expected=counted(expected, noun),
            got=counted(received, noun),
        ).at_function(function)


def _digest(graph: Graph, inputs: Sequence[TensorType]) -> bytes:
    hasher = blake2b(repr((_listed(inputs), graph.outputs)).encode(), digest_size=32)
    for op, operands, attrs, types, _ in graph.nodes:
        attrs_key = attributes_key(attrs) if attrs else ()
        hasher.update(repr((op.name, operands, attrs_key, list(map(str, types)))).encode())
    return hasher.digest()


def _listed(types: Sequence[TensorType]) -> str:
    return f"({', '.join(map(str, types))})"


_NO_ATTRIBUTES: Final = KeyedAttributes({})
#: the first opset with int16
_SINCE_INT16: Final = 2


class Program:
    """Checked statements. Raises the first EngineError, naming its node; the others are attached to it.

    Tensors among the attributes belong to the program: writable ones are copied. `functions` are those that the
    statements may call, by index. Functions appended to that sequence later do not belong to the program.
    """

    #: index among the graph's functions; None for the graph itself
    index: int | None = None

    def __init__(
        self,
        registry: Registry,
        statements: Sequence[Statement | None],
        limits: Limits | None = None,
        faults: Faults | None = None,
        opset: int = OPSET,
        functions: Sequence[Function] = (),
    ) -> None:
        """Check the statements.

        Statements are None at nodes that could not be read, for which `faults` holds the reasons.
        """
        self.registry = registry
        self.opset = opset
        self.limits = limits or Limits()
        self.functions, function_count = functions, len(functions)
        self.limits.admit_nodes(len(statements) + self._function_statements)
        self.statements: tuple[Statement, ...] = ()
        self.attrs: list[KeyedAttributes] = []
        faults = faults or Faults(self.index)
        readable = [(node, statement) for node, statement in enumerate(statements) if statement is not None]
        for node, statement in readable:
            if statement.op.since > opset:
                with faults.at(node, statement.op.name, statement.name):
                    admit_op(statement.op.name, statement.op.since, opset)
                continue
            if statement.operands:
                with faults.at(node, statement.op.name, statement.name):
                    check_references(statements, node, statement)
            if statement.attrs or statement.op.attrs:
                with faults.at(node, statement.op.name, statement.name):
                    self.attrs.append(KeyedAttributes(bind(statement.op.attrs, statement.attrs, opset)))
                    self._admit_dtypes(statement.op, self.attrs[-1])
                    check_functions(statement.op, self.attrs[-1], function_count)
            else:
                self.attrs.append(_NO_ATTRIBUTES)
        if faults.errors or self.index is not None:
            count_operands(readable, faults)
        faults.report()
        self.statements = tuple(statement for _, statement in readable)

    @property
    def size(self) -> int:
        """The number of statements, including those of its functions."""
        return len(self.statements) + self._function_statements

    @property
    def _function_statements(self) -> int:
        """The number of statements in a graph's functions; 0 for a function, since the graph counts those before it."""
        return sum(len(function.statements) for function in self.functions) if self.index is None else 0

    def located(self, error: EngineError, node: int) -> EngineError:
        """Return `error`, located at one of its nodes."""
        statement = self.statements[node]
        if self.index is None:
            return statement.located(error, node)
        return error.within(self.index, node, statement.op.name, statement.name)

    def _admit_dtypes(self, op: Definition, attrs: Mapping[str, Any]) -> None:
        """Raise DtypeMismatch for an attribute that is, or has, a dtype of a later opset."""
        if self.opset < LATEST:
            for name, attr in op.attrs.items():
                value = attrs.get(name)  # absent if checking stopped at too many faults
                if value is not None and (dtype := attr.definition.dtype_of(value)) is not None:
                    admit_dtype(f"attribute {name}", dtype, self.opset, name)

    @cached_property
    def leaves(self) -> tuple[int, ...]:
        """The nodes that take a feed."""
        return tuple(i for i, s in enumerate(self.statements) if s.op.is_leaf)

    @cached_property
    def parameters(self) -> tuple[int, ...]:
        """The nodes that derivatives are taken with respect to by default."""
        return tuple(i for i, s in enumerate(self.statements) if s.op.name == "parameter")

    @cached_property
    def digest(self) -> bytes:
        """Hash of everything that decides results: ops, operands, attributes. Names are labels and do not count."""
        hasher = blake2b(str(self.opset).encode(), digest_size=32)
        for part in (self, *self.functions):
            for statement, attrs in zip(part.statements, part.attrs, strict=True):
                hasher.update(repr((statement.op.name, statement.operands, attributes_key(attrs))).encode())
            if isinstance(part, Function):
                hasher.update(repr(part.outputs).encode())
        return hasher.digest()

    def called(self, roots: Iterable[int]) -> list[tuple[Function, bool]]:
        """Return the functions that nodes call on which `roots` depend, once per call, and whether it is inlined."""
        ops = [(self.statements[node].op, self.attrs[node]) for node in self.needed(roots)]
        calls = [(attrs[name], op.inlines) for op, attrs in ops for name in op.functions]
        return [(self.functions[index], inlines) for index, inlines in calls if index is not None]

    def needed(self, roots: Iterable[int]) -> list[int]:
        """Return the nodes that `roots` depend on, including themselves, in ascending order."""
        is_needed, statements = bytearray(len(self.statements)), self.statements
        for root in roots:
            is_needed[root] = 1
        for node in range(len(is_needed) - 1, -1, -1):
            if is_needed[node]:
                for i in statements[node].operands:
                    is_needed[i] = 1
        return list(compress(range(len(is_needed)), is_needed))

    def dependents(self, nodes: Iterable[int]) -> set[int]:
        """Return the nodes that depend on one of `nodes`, including themselves."""
        reached = set(nodes)
        for node, statement in enumerate(self.statements):
            if not reached.isdisjoint(statement.operands):
                reached.add(node)
        return reached

    def used(
        self, types: Mapping[int, TensorType], roots: Sequence[int], deadline: Deadline = NO_DEADLINE
    ) -> dict[int, TensorType]:
        """Return the feeds that `roots` need; check the others against the declarations of their leaves.

        Raises MissingFeed; UnexpectedFeed for a node that is no leaf; ShapeMismatch and DtypeMismatch for a feed that
        is not needed.
        """
        faults = Faults()
        used = self._used(types, self.needed(roots), faults)
        if faults.errors:
            self.build(types, roots, deadline)  # raises these together with all other errors
        return used

    def build(
        self,
        types: Mapping[int, TensorType],
        roots: Sequence[int],
        deadline: Deadline = NO_DEADLINE,
        wrt: Iterable[int] = (),
        limits: Limits | None = None,
    ) -> tuple[Builder, Mapping[int, Value]]:
        """Return a builder with the typed nodes that `roots` need for feeds of these types, and the value of each node.

        `wrt` are the nodes that gradients will be taken with respect to; `limits` replace the program's.

        Raises as `used` does, and the errors of ops about their operands. A node that reads a faulty one is not
        checked.
        """
        limits = limits or self.limits
        typing = FunctionTyping(self.functions, BodyBudget(limits, deadline))
        if self.functions:
            typing.admit(self, roots)
        builder = Builder(self.registry, limits, deadline, has_int16=self.opset >= _SINCE_INT16)
        return builder, self._write_nodes(builder, types, roots, wrt, typing)

    def _write_nodes(
        self,
        builder: Builder,
        types: Mapping[int, TensorType],
        roots: Sequence[int],
        wrt: Iterable[int],
        typing: FunctionTyping,
    ) -> WrittenValues:
        needed = self.needed(roots)
        faults = Faults(self.index)
        types = self._used(types, needed, faults)
        if typing.may_be_many(self, needed):
            self._count_uses(builder, types, needed, FunctionCounter(typing))
        values = WrittenValues(builder, len(self.statements))
        barriers = self._barriers(wrt, needed)
        repeats = Repeats(values, self.index)
        for node in needed:
            statement = self.statements[node]
            if not faults.errors and node not in barriers and repeats.write_node(node, statement, self.attrs[node].key):
                continue
            if not faults.errors or self._is_ready(node, values, types):
                builder.origin = Origin(node, statement.op.name, function=self.index)
                with faults.at(node, statement.op.name, statement.name):
                    value = self._emit(builder, node, values, types, typing)
                    values.put(node, value.identity() if node in barriers else value)
                    repeats.remember(node, statement, self.attrs[node].key)
        faults.report()
        return values

    def _count_uses(
        self, target: Builder, types: Mapping[int, TensorType], needed: Iterable[int], counting: FunctionCounter
    ) -> None:
        """Raise TooManyNodes for functions that would exceed the limit, before all of them are written.

        Ignores all other errors: the actual build reports them.
        """
        scratch = Builder(self.registry, target.limits, target.deadline, has_int16=target.has_int16)
        values = WrittenValues(scratch, len(self.statements))
        for node in needed:
            if self._is_ready(node, values, types):
                try:
                    values.put(node, self._emit(values.builder, node, values, types, counting))
                except UntypedUse:
                    continue
                except TooManyNodes as error:
                    raise self.located(error, node) from None
                except EngineError:
                    return

    def _is_ready(self, node: int, values: Mapping[int, Value], types: Mapping[int, TensorType]) -> bool:
        """Return whether everything that the node reads is available."""
        statement = self.statements[node]
        return node in types if statement.op.is_leaf else all(i in values for i in statement.operands)

    def _barriers(self, wrt: Iterable[int], needed: Iterable[int]) -> set[int]:
        """Return the nodes that derivatives are taken with respect to.

        They get an `identity`, which all readers use instead.

        A rule may express a derivative through its result (exp' = y). A reader of that derivative does not read the
        client's node: without the barrier, a gradient with respect to that node would depend on how the rule is
        written.
        """
        grads = (self.statements[i] for i in needed if self.statements[i].op.name == "grad")
        targets = {*wrt, *(x for s in grads for x in s.operands[1:2])}
        return targets.difference(self.leaves)

    def _emit(
        self,
        builder: Builder,
        node: int,
        values: Mapping[int, Value],
        types: Mapping[int, TensorType],
        typing: FunctionTyping,
    ) -> Value:
        statement, attrs = self.statements[node], self.attrs[node]
        if statement.op.is_leaf:
            return builder.leaf(self._leaf_type(node, types[node]), node, statement.op.name)
        first, operands = len(builder.nodes), [values[i] for i in statement.operands]
        value = builder.emit(statement.op, operands, typing.bound(statement.op, attrs) if self.functions else attrs)
        # A composite may return one of its operands. The client's node must still be a node of its own.
        return value if value.index >= first else value.identity()

    def _leaf_type(self, node: int, fed: TensorType) -> TensorType:
        """Return the type of a leaf that is fed this type. Raises ShapeMismatch and DtypeMismatch."""
        try:
            (type,) = inferred(self.statements[node].op, (fed,), self.attrs[node]).types
        except (ShapeMismatch, DtypeMismatch) as error:
            if self.index is None:  # the leaves of a function are fed by the node that calls it
                error.in_field("feeds", node=node)
            raise
        return type

    def _used(self, types: Mapping[int, TensorType], needed: Sequence[int], faults: Faults) -> dict[int, TensorType]:
        leaves = set(self.leaves)
        required = leaves.intersection(needed)
        for node in types:
            with faults:
                if not 0 <= node < len(self.statements):
                    count = counted(len(self.statements), "node")
                    outside = UnexpectedFeed(f"feeds name node {node}, but the graph has {count}")
                    raise outside.in_field("feeds", node=node)
                if node not in leaves:
                    unexpected = UnexpectedFeed("got a feed, but only input and parameter nodes take one")
                    raise self.located(unexpected, node).in_field("feeds", node=node)
        for node in sorted(required.difference(types)):
            with faults:
                missing = MissingFeed("the result needs a feed for this node, but there is none", expected="a feed")
                raise self.located(missing, node)
        for node in sorted(leaves.intersection(types) - required):
            statement = self.statements[node]
            # Check feeds that nothing reads, too: a wrong one is more likely a mistake than intended.
            with faults.at(node, statement.op.name, statement.name):
                self._leaf_type(node, types[node])
        for node in leaves.intersection(types) if self.opset < LATEST else ():
            with faults.at(node, self.statements[node].op.name, self.statements[node].name):
                try:
                    admit_dtype("the feed", types[node].dtype, self.opset)
                except DtypeMismatch as error:
                    error.in_field("feeds", node=node)
                    raise
        return {node: types[node] for node in required.intersection(types)}


class Function(Program):
    """Statements that a graph's nodes call. Its `input` nodes are its parameters, in their order."""

    def __init__(
        self,
        registry: Registry,
        statements: Sequence[Statement | None],
        outputs: Sequence[int],
        limits: Limits | None = None,
        faults: Faults | None = None,
        functions: Sequence[Function] = (),
        name: str | None = None,
    ) -> None:
        """Check the statements and outputs. `functions` are those before it, which it may call.

        `outputs` may name a node several times. The function may be appended to `functions` later: this list may be
        long, so it is not copied for each function.
        """
        self.index = len(functions)
        self.name = name
        self.outputs = tuple(outputs)
        faults = faults or Faults(self.index)
        for node, statement in enumerate(statements):
            if statement is not None and statement.op.name == "parameter":
                with faults.at(node, statement.op.name, statement.name):
                    raise InvalidField(
                        "a function cannot have parameter nodes: use input nodes for its arguments",
                        expected="input",
                        got="parameter",
                    ).in_field("nodes", node, "op")
        super().__init__(registry, statements, limits, faults, LATEST, functions)
        for position, output in enumerate(self.outputs):
            self._check_output(position, output)
        #: depth of nested functions, including itself
        self.depth: int = 1 + max((function.depth for function, _ in self.called(self.outputs)), default=0)

    def _check_output(self, position: int, output: int) -> None:
        assert self.index is not None
        if not 0 <= output < len(self.statements):
            expected = (
                f"a node of the function, 0 to {len(self.statements) - 1}"
                if self.statements
                else "a node of the function (it has none)"
            )
            detail = f"function {self.index}: outputs[{position}] must be {expected}, but is {output}"
            outside = BadReference(detail, expected=expected, got=str(output))
            raise outside.at_function(self.index).in_field("outputs", position)
        if self.statements[output].op.several:
            several = BadReference(
                f"outputs[{position}] names this node, which has several outputs: name a get_output node"
            )
            raise self.located(several, output).in_field("outputs", position)

    @cached_property
    def weight(self) -> int:
        """The number of nodes that its outputs need, including those of inlined functions."""
        return len(self.needed(self.outputs)) + _inlined(self.called(self.outputs))

    def build_body(self, types: Sequence[TensorType], typing: FunctionTyping) -> Body:
        """Return the function as a body for operands of these types.

        Raises as `build` does, naming the function's nodes.
        """
        values = self.values_for(types, typing)
        builder = values.builder
        positions = {leaf: position for position, leaf in enumerate(self.leaves)}
        for leaf in positions.keys() & set(values):
            builder.refeed(values[leaf], positions[leaf])
        return Body(builder.graph([values[i] for i in self.outputs]), types, typing.budget, self.index)

    def values_for(self, types: Sequence[TensorType], typing: FunctionTyping) -> WrittenValues:
        """Return the typed nodes that its outputs need, by index, for operands of these types."""
        builder = typing.budget.builder(self.registry)
        return self._write_nodes(builder, dict(zip(self.leaves, types, strict=True)), self.outputs, (), typing)


def _inlined(called: Iterable[tuple[Function, bool]]) -> int:
    return sum(function.weight for function, is_inlined in called if is_inlined)


class FunctionTyping:
    """The functions of a graph as bodies: one per function and operand types, within a budget."""

    def __init__(self, functions: Sequence[Function], budget: BodyBudget) -> None:
        self.functions = functions
        self.budget = budget
        self._bodies: dict[tuple[int, tuple[TensorType, ...]], Body] = {}

    def admit(self, program: Program, roots: Iterable[int]) -> None:
        """Count the nodes that `roots` need, including inlined functions. Raises OverBudget."""
        called = program.called(roots)
        self.budget.limits.admit_depth(max((function.depth for function, _ in called), default=0))
        self.budget.admit(len(program.statements) + _inlined(called))

    def may_be_many(self, program: Program, needed: Iterable[int]) -> bool:
        """Return whether functions could exceed the node limit if each call had operand types of its own."""
        if not self.functions:
            return False
        nodes = self.budget.spent + sum(function.weight for function, _ in program.called(needed))
        return nodes > self.budget.limits.nodes

    def bound(self, op: Definition, attrs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the attributes of a node, with function indices replaced by FunctionUse."""
        indices = {name: attrs[name] for name in op.functions if attrs[name] is not None}
        uses = {name: FunctionUse(self, name, index) for name, index in indices.items()}
        return {**attrs, **uses} if uses else attrs

    def has(self, use: tuple[int, tuple[TensorType, ...]]) -> bool:
        """Return whether a function is typed for these operands."""
        return use in self._bodies

    def body(self, index: int, types: tuple[TensorType, ...]) -> Body:
        """Return a function for operands of these types. Raises the errors of its nodes for them."""
        body = self._bodies.get((index, types))
        if body is None:
            function = self.functions[index]
            self.budget.admit(function.weight)
            body = self._bodies[index, types] = function.build_body(types, self)
        return body


class UntypedUse(Exception):
    """Raised if a function is used on operand types that it is not built for."""


class FunctionCounter(FunctionTyping):
    """Builds each function for the first operand types only, and counts the nodes that further types would add."""

    def __init__(self, typing: FunctionTyping) -> None:
        super().__init__(typing.functions, typing.budget)
        self._typing = typing
        self._built: set[int] = set()
        self._counted: set[tuple[int, tuple[TensorType, ...]]] = set()
        self._extra_nodes = 0

    def body(self, index: int, types: tuple[TensorType, ...]) -> Body:
        """Build a function on its first use. Later, raise UntypedUse for new types, or TooManyNodes."""
        use = (index, types)
        if self._typing.has(use) or index not in self._built:
            self._built.add(index)
            return self._typing.body(index, types)
        if use not in self._counted:
            self._counted.add(use)
            self._extra_nodes += self.functions[index].weight
            self.budget.limits.admit_nodes(self.budget.spent + self._extra_nodes)
        raise UntypedUse


class FunctionUse:
    """Function in an attribute of one node, before the types of the node's operands are known."""

    def __init__(self, typing: FunctionTyping, name: str, index: int) -> None:
        self._typing, self._name, self._index = typing, name, index

    def typed(self, types: Sequence[TensorType]) -> Body:
        """Return the body.

        Raises BadAttribute for a wrong number of parameters, and the errors of its nodes for these types.
        """
        function = self._typing.functions[self._index]
        check_arity(self._index, self._name, len(types), len(function.leaves), "parameter")
        return self._typing.body(self._index, tuple(types))


# Identity of a program: the hash of a canonical text.
#
# The text is JSON without spaces and with sorted keys: `{"nodes":[…],"opset":1}`. A node has `op` (the canonical name)
# and, if not empty, `operands` and `attrs`. Names and attributes at their default are omitted. The kind of an attribute
# defines how its value is written, so that all languages write it alike. If a graph has functions, they are another
# key: `"functions":[{"nodes":[…],"outputs":[…]}]`.


def graph_id(program: Program) -> str:
    """Return the SHA-256 of the canonical text, as 64 hexadecimal digits."""
    return sha256(canonical(program).encode()).hexdigest()


class GraphName:
    """The `graph_id` of equal programs, computed on first use."""

    __slots__ = ("_graph_id",)

    def __init__(self) -> None:
        self._graph_id: str | None = None

    def get(self, program: Program) -> str:
        """Return `graph_id(program)`; `program` must be one of the equal programs."""
        if self._graph_id is None:
            self._graph_id = graph_id(program)
        return self._graph_id


def canonical(program: Program) -> str:
    """Return the canonical text of a program."""
    document: dict[str, Any] = {"nodes": _nodes(program), "opset": program.opset}
    if program.functions:
        document["functions"] = [{"nodes": _nodes(f), "outputs": f.outputs} for f in program.functions]
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def _nodes(part: Program) -> list[dict[str, Any]]:
    return [_node(part, i) for i in range(len(part.statements))]


def _node(program: Program, i: int) -> dict[str, Any]:
    statement, attrs_given = program.statements[i], program.attrs[i]
    attrs = {}
    for name, value in attrs_given.items():
        attr = statement.op.attrs[name]
        # Compare types first: no tensor has a default, and hashing one takes as long as writing it.
        if type(value) is not type(attr.default) or key(value) != key(attr.default):
            attrs[name] = attr.definition.canonical(value)
    node: dict[str, Any] = {"op": statement.op.name}
    if statement.operands:
        node["operands"] = statement.operands
    if attrs:
        node["attrs"] = attrs
    return node
