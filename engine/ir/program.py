"""A client's graph as it was written: ops and references checked, types not yet known.

A `Program` is checked once and built for each combination of feed types:

    program = Program(registry, statements)            # names, references and attributes, all errors in one
    builder, values = program.build(types, roots)      # types of the nodes that `roots` need, and their shapes' errors
    graph = builder.graph([values[i] for i in roots])

`build` walks the needed nodes in ascending order. At each it emits the op on the values of its operands, which infers
the type and may raise; a node that reads a faulty one is skipped, so that one answer names every error that does not
follow from another. A statement that says what an earlier one says, on operands of the same types, is copied instead of
inferred (`Repeats`). Nodes that derivatives are taken by get an `identity` of their own, which the rest reads.

Functions are typed where they are used, once for the same types (`FunctionTyping`), and become a `Body`, the attribute
that the op receives. Their nodes count towards one budget. `FunctionCounting` foresees a use on many types that would
exceed it, before the functions are written. `graph_id` names a program by the hash of its canonical text.
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
    EngineError,
    Faults,
    InvalidField,
    MissingFeed,
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


def count_operands(statements: Iterable[tuple[int, Statement]], faults: Faults) -> None:
    """Look for operands too few or too many, as `Program.build` would, which a program with faults never comes to."""
    for node, statement in statements:
        with faults.at(node, statement.op.name, statement.name):
            statement.op.check_count(len(statement.operands))


def check_references(statements: Sequence[Statement | None], node: int, statement: Statement) -> None:
    """Raise BadReference for an operand of a node that is no earlier node, or one of several results, unprojected."""
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


def check_functions(op: Definition, attrs: Mapping[str, Any], count: int) -> None:
    """Raise BadAttribute for an attribute that names none of the `count` functions that may be named."""
    for name in op.functions:
        index = attrs.get(name)
        if index is not None and index >= count:
            wanted = f"the index of an earlier function, 0 to {count - 1}" if count else "absent: there is no function"
            raise BadAttribute(f"attribute {name} must be {wanted}, but is {index}", expected=wanted, got=str(index))


class WrittenValues(Mapping[int, Value]):
    """The values of a program's nodes, as far as these are written; what is kept of each is a number in the builder."""

    def __init__(self, builder: Builder, count: int) -> None:
        """Start with none of so many nodes written."""
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
    """Writer of statements that repeat an earlier one: the same op and attributes, on operands of the same types.

    Types are compared by identity, since repeated nodes share them. Leaves, composites and statements with large
    attributes are never repeats.
    """

    def __init__(self, values: WrittenValues, function: int | None = None) -> None:
        """`function` is the index of the function whose statements they are."""
        self._builder, self._numbers, self._function = values.builder, values.numbers, function
        self._known: dict[Hashable, Node] = {}

    def write_node(self, node: int, statement: Statement, attrs: Hashable) -> bool:
        """Write a statement that repeats one, and return whether it did. `attrs` is the key of its attributes."""
        builder, op = self._builder, statement.op
        read = tuple([self._numbers[i] for i in statement.operands])
        nodes = builder.nodes
        like = self._known.get((op, attrs, *[id(nodes[i].types) for i in read]))
        if like is None or not builder.may_repeat:
            return False
        self._numbers[node] = builder.repeat(like, read, Origin(node, op.name, function=self._function))
        return True

    def keep(self, node: int, statement: Statement, attrs: Hashable) -> None:
        """Remember the node of a statement, if it is one node of its op, on its operands."""
        op, nodes = statement.op, self._builder.nodes
        made = nodes[self._numbers[node]]
        if attrs is None or op.is_leaf or op.is_composite or made.op is not op:
            return
        self._known[op, attrs, *[id(nodes[i].types) for i in made.operands]] = made


_Made = TypeVar("_Made")


@dataclass(eq=False, slots=True)
class BodyBudget:
    """Nodes that all bodies of one request may have together, those of their derivatives included, and its time."""

    limits: Limits
    deadline: Deadline = NO_DEADLINE
    spent: int = field(default=0, init=False)

    def admit(self, nodes: int) -> None:
        """Count further nodes. Raises TooManyNodes when all together are over the limit."""
        self.spent += nodes
        self.limits.admit_nodes(self.spent)

    def builder(self, registry: Registry) -> Builder:
        """Return an empty builder for one body."""
        return Builder(registry, self.limits, self.deadline)


NO_BUDGET: Final = BodyBudget(NO_LIMITS)


class Body(Callee):
    """A graph as a function: its leaves are fed under 0, 1, …, with values of the types `inputs`.

    An input that nothing reads need not be a leaf. Bodies of equal digests are equal. Bodies derived from a body are
    cached in it (`made`), and count towards its `budget`. `function` is the index of the client's function.
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
        """Return the body, which is typed already. Raises TypeError for other types: the mistake of a rule."""
        if tuple(types) != self.inputs:
            raise TypeError(f"a body of {_listed(self.inputs)} is used on {_listed(types)}")
        return self

    def made(self, name: Hashable, make: Callable[[], _Made]) -> _Made:
        """Return the cached result of `make` under a name; call it the first time."""
        if name not in self._known:
            self._known[name] = make()
        return cast("_Made", self._known[name])

    def derived(self, graph: Graph, inputs: Sequence[TensorType]) -> Body:
        """Derive a body from this one, within its budget. Raises TooManyNodes."""
        self.budget.admit(len(graph.nodes))
        return Body(graph, inputs, self.budget, self.function)

    def inline_into(self, builder: Builder, operands: Sequence[Value] | Mapping[int, Value]) -> list[Value]:
        """Append it to another graph, on these operands, and return its results, each a node of its own.

        Operands that nothing reads may be missing in a mapping.
        """
        values: list[Value] = []
        outer, first = builder.origin, len(builder.nodes)
        for node in self.graph.nodes:
            if node.is_leaf:
                values.append(operands[node.attrs["feed"]])
            else:
                origin = node.origin if outer is None else outer.containing(node.origin)
                read = tuple([values[i].index for i in node.operands])
                values.append(builder.append(node._replace(operands=read, origin=origin)))
        results = [values[i] for i in self.graph.outputs]
        return [x if x.index >= first else x.identity() for x in results]

    def __repr__(self) -> str:
        return f"<body {self.digest.hex()[:8]} of {_listed(self.inputs)}>"


def check_arity(function: int, name: str, wanted: int, got: int, what: str) -> None:
    """Raise BadAttribute unless a function that stands as attribute `name` has as many parameters, or results."""
    if wanted != got:
        raise BadAttribute(
            f"attribute {name}: function {function} has {counted(got, what)}, but here it must have {wanted}",
            expected=counted(wanted, what),
            got=counted(got, what),
        ).of_function(function)


def _digest(graph: Graph, inputs: Sequence[TensorType]) -> bytes:
    said = blake2b(repr((_listed(inputs), graph.outputs)).encode(), digest_size=32)
    for op, operands, attrs, types, _ in graph.nodes:
        told = attributes_key(attrs) if attrs else ()
        said.update(repr((op.name, operands, told, list(map(str, types)))).encode())
    return said.digest()


def _listed(types: Sequence[TensorType]) -> str:
    return f"({', '.join(map(str, types))})"


_NOTHING: Final = KeyedAttributes({})
#: the opset that int16 is there since
_SINCE_INT16: Final = 2


class Program:
    """Checked statements. Raises the EngineError of the first that is wrong, naming it; the others are attached.

    Tensors among their attributes are its own: what could be written to is copied. `functions` are those that its
    statements may run, by their indices; what joins them later is none of its own.
    """

    #: which of a graph's functions it is; None: the graph itself
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
        """`statements` are None at nodes that could not be read; `faults` says why, and is reported with the others."""
        self.registry = registry
        self.opset = opset
        self.limits = limits or Limits()
        self.functions, known = functions, len(functions)
        self.limits.admit_nodes(len(statements) + self._statements_of_functions)
        self.statements: tuple[Statement, ...] = ()
        self.attrs: list[KeyedAttributes] = []
        faults = faults or Faults(self.index)
        read = [(node, statement) for node, statement in enumerate(statements) if statement is not None]
        for node, statement in read:
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
                    check_functions(statement.op, self.attrs[-1], known)
            else:
                self.attrs.append(_NOTHING)
        if faults.found or self.index is not None:
            count_operands(read, faults)
        faults.report()
        self.statements = tuple(statement for _, statement in read)

    @property
    def size(self) -> int:
        """Statements, with those of its functions."""
        return len(self.statements) + self._statements_of_functions

    @property
    def _statements_of_functions(self) -> int:
        """Count the statements of a graph's functions; 0 for a function, as the graph counts those before it."""
        return sum(len(function.statements) for function in self.functions) if self.index is None else 0

    def located(self, error: EngineError, node: int) -> EngineError:
        """`error`, said to have happened at one of its nodes."""
        statement = self.statements[node]
        if self.index is None:
            return statement.located(error, node)
        return error.within(self.index, node, statement.op.name, statement.name)

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
        for part in (self, *self.functions):
            for statement, attrs in zip(part.statements, part.attrs, strict=True):
                said.update(repr((statement.op.name, statement.operands, attributes_key(attrs))).encode())
            if isinstance(part, Function):
                said.update(repr(part.outputs).encode())
        return said.digest()

    def called(self, roots: Iterable[int]) -> list[tuple[Function, bool]]:
        """The functions that nodes run which `roots` depend on, once for each time; and whether they are inlined."""
        ops = [(self.statements[node].op, self.attrs[node]) for node in self.needed(roots)]
        named = [(attrs[name], op.inlines) for op, attrs in ops for name in op.functions]
        return [(self.functions[index], inlines) for index, inlines in named if index is not None]

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

    def dependent(self, nodes: Iterable[int]) -> set[int]:
        """The nodes that depend on one of these, and these."""
        reached = set(nodes)
        for node, statement in enumerate(self.statements):
            if not reached.isdisjoint(statement.operands):
                reached.add(node)
        return reached

    def used(
        self, types: Mapping[int, TensorType], roots: Sequence[int], deadline: Deadline = NO_DEADLINE
    ) -> dict[int, TensorType]:
        """Return the feeds that `roots` need; the others are checked by what their leaves declare.

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
            self._count_uses(builder, types, needed, FunctionCounting(typing))
        values = WrittenValues(builder, len(self.statements))
        barriers = self._barriers(wrt, needed)
        repeats = Repeats(values, self.index)
        for node in needed:
            statement = self.statements[node]
            if not faults.found and node not in barriers and repeats.write_node(node, statement, self.attrs[node].key):
                continue
            if not faults.found or self._is_ready(node, values, types):
                builder.origin = Origin(node, statement.op.name, function=self.index)
                with faults.at(node, statement.op.name, statement.name):
                    made = self._emit(builder, node, values, types, typing)
                    values.put(node, made.identity() if node in barriers else made)
                    repeats.keep(node, statement, self.attrs[node].key)
        faults.report()
        return values

    def _count_uses(
        self, like: Builder, types: Mapping[int, TensorType], needed: Iterable[int], counting: FunctionCounting
    ) -> None:
        """Raise TooManyNodes for functions that come to more than there may be, before all of them are written.

        What is wrong with a node is for others to say.
        """
        writing = Builder(self.registry, like.limits, like.deadline, has_int16=like.has_int16)
        values = WrittenValues(writing, len(self.statements))
        for node in needed:
            if self._is_ready(node, values, types):
                try:
                    values.put(node, self._emit(values.builder, node, values, types, counting))
                except AnotherUse:
                    continue
                except TooManyNodes as error:
                    raise self.located(error, node) from None
                except EngineError:
                    return

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
            (type,) = inferred(statement.op, (types[node],), attrs).types
            return builder.leaf(type, node, statement.op.name)
        before, operands = len(builder.nodes), [values[i] for i in statement.operands]
        value = builder.emit(statement.op, operands, typing.bound(statement.op, attrs) if self.functions else attrs)
        # A composite may come down to one of its operands; the client's node is still a node of its own.
        return value if value.index >= before else value.identity()

    def _used(self, types: Mapping[int, TensorType], needed: Sequence[int], faults: Faults) -> dict[int, TensorType]:
        leaves = set(self.leaves)
        wanted = leaves.intersection(needed)
        for node in types:
            with faults:
                if not 0 <= node < len(self.statements):
                    count = counted(len(self.statements), "node")
                    raise UnexpectedFeed(f"feeds name node {node}, but the graph has {count}")
                if node not in leaves:
                    unexpected = UnexpectedFeed("got a feed, but only input and parameter nodes take one")
                    raise self.located(unexpected, node)
        for node in sorted(wanted.difference(types)):
            with faults:
                missing = MissingFeed("the answer needs a feed for this node, but got none", expected="a feed")
                raise self.located(missing, node)
        for node in sorted(leaves.intersection(types) - wanted):
            statement = self.statements[node]
            # A feed that nothing reads: a wrong one is likelier to be a mistake than to be meant.
            with faults.at(node, statement.op.name, statement.name):
                statement.op.infer(types[node], **self.attrs[node])
        for node in leaves.intersection(types) if self.opset < LATEST else ():
            with faults.at(node, self.statements[node].op.name, self.statements[node].name):
                admit_dtype("the feed", types[node].dtype, self.opset)
        return {node: types[node] for node in wanted.intersection(types)}


class Function(Program):
    """Statements that a graph's nodes run. Its `input` nodes are its parameters, in their order."""

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
        """`functions` are those before it, the only ones that it may run; `outputs` may name a node several times.

        It may join them: there may be many, and they are not copied for each.
        """
        self.index = len(functions)
        self.name = name
        self.outputs = tuple(outputs)
        faults = faults or Faults(self.index)
        for node, statement in enumerate(statements):
            if statement is not None and statement.op.name == "parameter":
                with faults.at(node, statement.op.name, statement.name):
                    raise InvalidField(
                        "a function has no parameter nodes, which are fed: what is passed to it arrives at input nodes",
                        expected="input",
                        got="parameter",
                    )
        super().__init__(registry, statements, limits, faults, LATEST, functions)
        for place, output in enumerate(self.outputs):
            self._check_output(place, output)
        #: levels of functions that run within one another, itself included
        self.depth: int = 1 + max((function.depth for function, _ in self.called(self.outputs)), default=0)

    def _check_output(self, place: int, output: int) -> None:
        assert self.index is not None
        if not 0 <= output < len(self.statements):
            wanted = f"a node of it, 0 to {len(self.statements) - 1}" if self.statements else "absent: it has no nodes"
            detail = f"function {self.index}: outputs[{place}] must be {wanted}, but is {output}"
            raise BadReference(detail, expected=wanted, got=str(output)).of_function(self.index)
        if self.statements[output].op.several:
            several = BadReference(f"outputs[{place}] names this node, which has several outputs: name a get_output")
            raise self.located(several, output)

    @cached_property
    def weight(self) -> int:
        """Nodes that its outputs need, with those of all functions that are written in their place."""
        return len(self.needed(self.outputs)) + _inlined(self.called(self.outputs))

    def build_body(self, types: Sequence[TensorType], typing: FunctionTyping) -> Body:
        """Return the function as a body, for operands of these types. Raises what `build` does, naming its nodes."""
        values = self.values_for(types, typing)
        builder = values.builder
        places = {leaf: place for place, leaf in enumerate(self.leaves)}
        for leaf in places.keys() & set(values):
            builder.refeed(values[leaf], places[leaf])
        return Body(builder.graph([values[i] for i in self.outputs]), types, typing.budget, self.index)

    def values_for(self, types: Sequence[TensorType], typing: FunctionTyping) -> WrittenValues:
        """The typed nodes that its outputs need, for operands of these types, by their numbers."""
        builder = typing.budget.builder(self.registry)
        return self._write_nodes(builder, dict(zip(self.leaves, types, strict=True)), self.outputs, (), typing)


def _inlined(called: Iterable[tuple[Function, bool]]) -> int:
    return sum(function.weight for function, is_inlined in called if is_inlined)


class FunctionTyping:
    """Functions of a graph as bodies: each once for the same types, within a budget."""

    def __init__(self, functions: Sequence[Function], budget: BodyBudget) -> None:
        self.functions = functions
        self.budget = budget
        self._bodies: dict[tuple[int, tuple[TensorType, ...]], Body] = {}

    def admit(self, program: Program, roots: Iterable[int]) -> None:
        """Count what `roots` need of a program, with what is written in its place. Raises OverBudget."""
        called = program.called(roots)
        self.budget.limits.admit_depth(max((function.depth for function, _ in called), default=0))
        self.budget.admit(len(program.statements) + _inlined(called))

    def may_be_many(self, program: Program, needed: Iterable[int]) -> bool:
        """Whether functions of a program might come to too many nodes, were each use of them on types of its own."""
        if not self.functions:
            return False
        nodes = self.budget.spent + sum(function.weight for function, _ in program.called(needed))
        return nodes > self.budget.limits.nodes

    def bound(self, op: Definition, attrs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Attributes of a node, functions in the place of their indices."""
        named = {name: attrs[name] for name in op.functions if attrs[name] is not None}
        uses = {name: FunctionUse(self, name, index) for name, index in named.items()}
        return {**attrs, **uses} if uses else attrs

    def has(self, use: tuple[int, tuple[TensorType, ...]]) -> bool:
        """Whether a function is typed for such operands."""
        return use in self._bodies

    def body(self, index: int, types: tuple[TensorType, ...]) -> Body:
        """A function for operands of these types. Raises what is wrong with it for them."""
        body = self._bodies.get((index, types))
        if body is None:
            function = self.functions[index]
            self.budget.admit(function.weight)
            body = self._bodies[index, types] = function.build_body(types, self)
        return body


class AnotherUse(Exception):
    """A function is used on operands that it was not typed for."""


class FunctionCounting(FunctionTyping):
    """Count of what functions come to for operands of further types, and types each for the first ones alone."""

    def __init__(self, typing: FunctionTyping) -> None:
        super().__init__(typing.functions, typing.budget)
        self._typing = typing
        self._typed: set[int] = set()
        self._foreseen: set[tuple[int, tuple[TensorType, ...]]] = set()
        self._further = 0

    def body(self, index: int, types: tuple[TensorType, ...]) -> Body:
        """Type a function the first time that it is used. Raises AnotherUse later, or TooManyNodes."""
        use = (index, types)
        if self._typing.has(use) or index not in self._typed:
            self._typed.add(index)
            return self._typing.body(index, types)
        if use not in self._foreseen:
            self._foreseen.add(use)
            self._further += self.functions[index].weight
            self.budget.limits.admit_nodes(self.budget.spent + self._further)
        raise AnotherUse


class FunctionUse:
    """A function as an attribute of one node, until that says of which types its operands are."""

    def __init__(self, typing: FunctionTyping, name: str, index: int) -> None:
        self._typing, self._name, self._index = typing, name, index

    def typed(self, types: Sequence[TensorType]) -> Body:
        """The body. Raises BadAttribute for another number of parameters, and what is wrong with it for these types."""
        function = self._typing.functions[self._index]
        check_arity(self._index, self._name, len(types), len(function.leaves), "parameter")
        return self._typing.body(self._index, tuple(types))


# Identity of a program: a canonical text, and its hash.
#
# The text is JSON without spaces, its keys sorted: `{"nodes":[…],"opset":1}`. A node has `op` (the canonical name) and,
# where they are not empty, `operands` and `attrs`. Attributes at their default are left out, and so are names. The kind
# of an attribute says how its value is written: so that no two languages write it differently. Where a graph has
# functions, they come first: `"functions":[{"nodes":[…],"outputs":[…]}]`.


def graph_id(program: Program) -> str:
    """SHA-256 of the canonical text, as 64 hexadecimal digits."""
    return sha256(canonical(program).encode()).hexdigest()


class GraphName:
    """The `graph_id` of programs that say the same: found when it is first asked for, and known from then on."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: str | None = None

    def of(self, program: Program) -> str:
        """`graph_id(program)`, the program being one of those."""
        if self._found is None:
            self._found = graph_id(program)
        return self._found


def canonical(program: Program) -> str:
    """The canonical text of a program."""
    said: dict[str, Any] = {"nodes": _nodes(program), "opset": program.opset}
    if program.functions:
        said["functions"] = [{"nodes": _nodes(f), "outputs": f.outputs} for f in program.functions]
    return json.dumps(said, sort_keys=True, separators=(",", ":"))


def _nodes(part: Program) -> list[dict[str, Any]]:
    return [_node(part, i) for i in range(len(part.statements))]


def _node(program: Program, i: int) -> dict[str, Any]:
    statement, bound = program.statements[i], program.attrs[i]
    attrs = {}
    for name, value in bound.items():
        attr = statement.op.attrs[name]
        # Types are compared first: no tensor has a default, and to hash one would take as long as to name it.
        if type(value) is not type(attr.default) or key(value) != key(attr.default):
            attrs[name] = attr.definition.canonical(value)
    node: dict[str, Any] = {"op": statement.op.name}
    if statement.operands:
        node["operands"] = statement.operands
    if attrs:
        node["attrs"] = attrs
    return node
