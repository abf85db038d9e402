"""Forms of nodes, as numbers: nodes of one form have the same op and attributes, and operands of the same types.

A rule sees types and attributes, never numbers, and never what its operands are made of. So what it writes for one
node of a form it writes for all of them: it is found out once, on leaves of the same types.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from engine.graph.errors import EngineError
from engine.graph.ir import Builder, Node, Value, ancestors
from engine.graph.limits import NO_LIMITS
from engine.graph.memory import Stated
from engine.graph.registry import Registry
from engine.graph.tensor_type import TensorType
from engine.oplib.conjugates import for_real
from engine.oplib.elementwise import Elementwise

#: in place of the form of a cast, where there is none
NO_CAST: Final = -1

Types = tuple[TensorType, ...]


class Given(NamedTuple):
    """A cotangent that a rule gives: for which operand, which of its results, where it is, and the form of its cast.

    `way` are the elementwise nodes, of those written, between what has arrived and it; None where it does not depend
    on that.
    """

    operand: int
    result: int
    number: int
    cast: int
    way: tuple[int, ...] | None


class Written(NamedTuple):
    """Nodes written on some values: forms, whose operands are numbers of these values, then of those nodes.

    For a rule the values are the cotangents that have `arrived`, the node itself, and its operands. Where it raised an
    `error`, nothing was written.
    """

    forms: tuple[int, ...]
    operands: tuple[tuple[int, ...], ...]
    given: tuple[Given, ...]
    arrived: int = 0
    error: EngineError | None = None


@dataclass(eq=False, slots=True)
class Form:
    """One of its nodes, and numbers that stand for types: of its results, and of its operands."""

    node: Node
    types: int
    operands: tuple[int, ...]
    #: whether derivatives pass through it
    passes: bool
    #: numbers of what its rule writes, by which of its results a cotangent has arrived at
    pulls: dict[tuple[bool, ...], int] = field(default_factory=dict)


class Forms:
    """Forms by their numbers, and what rules write for them, by numbers of its own."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._numbers: dict[Hashable, int] = {}
        #: nodes by the identities of what they hold, and the nodes themselves, so that these stay what they are
        self._seen: dict[tuple[int, ...], tuple[int, Node]] = {}
        self._types: dict[Types, int] = {}
        self._typed: list[Types] = []
        self._made: dict[Hashable, Written] = {}
        self.forms: list[Form] = []
        self.written: list[Written] = []

    def of(self, node: Node, operands: tuple[int, ...]) -> int:
        """The form of a node on operands of these types, which are numbers."""
        op, _, attrs, types, _ = node
        told = (id(op), id(attrs), id(types), *operands)
        seen = self._seen.get(told)
        if seen is None:
            seen = self._seen[told] = self._number(node, operands), node
        return seen[0]

    def of_all(self, nodes: Iterable[Node]) -> list[int]:
        """The forms of nodes, of which each reads earlier ones."""
        seen, found, types = self._seen, list[int](), list[int]()
        for node in nodes:
            op, operands, attrs, results, _ = node
            told = (id(op), id(attrs), id(results), *[types[i] for i in operands])
            form = seen[told][0] if told in seen else self.of(node, told[3:])
            found.append(form)
            types.append(self.forms[form].types)
        return found

    def leaf(self, type: TensorType) -> int:
        """The form of what is fed, of this type."""
        return self.of(_leaf(self._registry, (type,)), ())

    def pull(self, number: int, there: tuple[bool, ...]) -> int:
        """The number of what the rule of a form writes, where cotangents of these of its results are there."""
        form = self.forms[number]
        known = form.pulls.get(there)
        if known is None:
            known = form.pulls[there] = len(self.written)
            self.written.append(self._ask(form, there))
        return known

    def made(self, name: Hashable, make: Callable[..., Value], *types: int) -> Written:
        """What is written to make something of values of these types: the same, whenever it has this name."""
        number = name, *types
        written = self._made.get(number)
        if written is None:
            builder = Builder(self._registry, NO_LIMITS)
            value = make(*[_new(builder, self._typed[each]) for each in types])
            written = self._made[number] = self._recorded(builder, len(types), [(0, 0, value, value.type)])
        return written

    def sum(self, number: int, result: int) -> int:
        """The form of a sum of two cotangents of one of the results of a form."""
        types = self._number_types((self.forms[number].node.types[result],))
        (form,) = self.made("add", lambda a, b: a + b, types, types).forms
        return form

    def _number(self, node: Node, operands: tuple[int, ...]) -> int:
        attrs = node.attrs
        key = () if node.is_leaf else attrs.key if isinstance(attrs, Stated) else None
        if key is None and attrs:
            return self._new(node, operands)  # of attributes that are large
        said = node.op, key, node.types, operands
        known = self._numbers.get(said)
        if known is None:
            known = self._numbers[said] = self._new(node, operands)
        return known

    def _new(self, node: Node, operands: tuple[int, ...]) -> int:
        passes = (
            bool(node.operands) and node.op.is_differentiable and any(type.is_differentiable for type in node.types)
        )
        self.forms.append(Form(node, self._number_types(node.types), operands, passes))
        return len(self.forms) - 1

    def _number_types(self, types: Types) -> int:
        known = self._types.get(types)
        if known is None:
            known = self._types[types] = len(self._typed)
            self._typed.append(types)
        return known

    def _ask(self, form: Form, there: tuple[bool, ...]) -> Written:
        """Have the rule of a form write on leaves."""
        node, types = form.node, [self._typed[number] for number in form.operands]
        builder = Builder(self._registry, NO_LIMITS)
        arrived = [
            _new(builder, (type,)) if is_there else None for type, is_there in zip(node.types, there, strict=True)
        ]
        y = builder.append(node.on(()))  # of an op of several results, which the rule may ask for
        operands = [_new(builder, each) for each in types]
        outer = len(builder.nodes)
        try:
            rule = node.rules.vjp(tuple(arrived) if node.op.several else arrived[0], y, *operands, **node.attrs)
        except EngineError as error:
            return Written((), (), (), sum(there), error)
        wanted = [
            (operand, k, for_real(g, types[operand][k]), types[operand][k])
            for operand, parts in enumerate(rule)
            for k, g in _parts(parts)
            if types[operand][k].is_differentiable
        ]
        return self._recorded(builder, outer, wanted, sum(there))

    def _recorded(
        self,
        builder: Builder,
        outer: int,
        wanted: Iterable[tuple[int, int, Value, TensorType]],
        arrived: int = 0,
    ) -> Written:
        """What stands in a builder behind `outer` leaves, the first of which are cotangents that have arrived.

        `wanted` are the cotangents that are given: for which result of which operand, and of what type it is.
        """
        nodes = tuple(builder.nodes[outer:])
        forms = tuple([self._form_in(builder, node) for node in nodes])
        given = [
            Given(
                operand,
                result,
                g.index,
                NO_CAST if g.dtype == type.dtype else self._form_in(builder, g.cast(dtype=type.dtype).node),
                _way(builder.nodes, arrived, outer, g.index),
            )
            for operand, result, g, type in wanted
        ]
        return Written(forms, tuple([node.operands for node in nodes]), tuple(given), arrived)

    def _form_in(self, builder: Builder, node: Node) -> int:
        return self.of(node, tuple([self._number_types(builder.nodes[i].types) for i in node.operands]))


def _way(nodes: Sequence[Node], arrived: int, outer: int, end: int) -> tuple[int, ...] | None:
    """The elementwise nodes, of those behind `outer`, on any way from the first `arrived` ones to node `end`."""
    back = ancestors([end], lambda i: nodes[i].operands)
    forth = set(range(arrived))
    for i in back:
        if i >= outer and not forth.isdisjoint(nodes[i].operands):
            forth.add(i)
    if end not in forth:
        return None
    return tuple([i - outer for i in back if i in forth and i >= outer and isinstance(nodes[i].op, Elementwise)])


def _leaf(registry: Registry, types: Types) -> Node:
    return Node(registry.ops["input"], (), {"feed": None}, types)


def _new(builder: Builder, types: Types) -> Value:
    return builder.append(_leaf(builder.registry, types))


def _parts(g: Value | Mapping[int, Value | None] | None) -> Iterable[tuple[int, Value]]:
    if g is None:
        return ()
    return ((0, g),) if isinstance(g, Value) else [(k, part) for k, part in g.items() if part is not None]
