"""What gradients will write, as outlines of nodes: what is refused costs neither the time nor the memory of writing it.

A rule sees types and attributes, never numbers, and never what its operands are made of. So what it writes for a node
is found out once, on leaves of the same types; from then on it is counted, or repeated as a pointer and a few numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from engine.graph.errors import DeadlineExceeded, EngineError, TooManyNodes
from engine.graph.ir import Builder, Node, Value, ancestors
from engine.graph.limits import NO_END, Deadline, Limits
from engine.graph.memory import Stated
from engine.graph.registry import Registry
from engine.graph.tensor_type import DType, TensorType
from engine.oplib.elementwise import Elementwise

_UNBOUNDED: Final = Limits(nodes=NO_END, rank=NO_END, bytes=NO_END, flops=NO_END)
#: nodes to be swept over, in all, from which on it is worth to look ahead
WORTH_A_LOOK: Final = 1_000
#: nodes between two looks at the limits
_LOOK: Final = 1 << 10

Types = tuple[TensorType, ...]
#: where a cotangent arrives: at a node, or at one of its further results
Arrival = int | tuple[int, int]


class Given(NamedTuple):
    """A cotangent that a rule gives: for which operand, which of its results, where it is, and what it is cast to."""

    operand: int
    result: int
    number: int
    cast: DType | None


class Written(NamedTuple):
    """What was written on some values: nodes, whose operands are numbers of these values, then of the nodes before."""

    outlines: tuple[Outline, ...]
    operands: tuple[tuple[int, ...], ...]
    given: tuple[Given, ...]
    #: operands with the elementwise nodes between what has arrived and their cotangent, where that depends on it
    ways: tuple[tuple[int, frozenset[int]], ...]


@dataclass(eq=False, slots=True)
class Outline:
    """Nodes of one op with the same attributes and types: known by its identity, and its types by a number."""

    node: Node
    types: int
    #: whether derivatives pass through it
    passes: bool
    #: what its rule writes, by what has arrived (of several results) and the types of its operands
    pulls: dict[tuple[int, ...], Written] = field(default_factory=dict)


Pulled = tuple[int, Written]


class Sketch:
    """A graph, and what gradients append to it, of which there are types and operands alone.

    Whatever is appended has to be within `limits`: else TooManyNodes is raised, before it is.
    """

    def __init__(self, registry: Registry, limits: Limits, deadline: Deadline, nodes: Sequence[Node] = ()) -> None:
        """`nodes` are there already."""
        self._registry, self._limits, self._deadline = registry, limits, deadline
        self._known: dict[Hashable, Outline] = {}
        self._types: dict[Types, int] = {}
        self._applied: dict[Hashable, Written] = {}
        #: nodes that were counted, and not appended
        self._beside = 0
        self.outlines = [self._outline(node) for node in nodes]
        self.operands = [node.operands for node in nodes]

    def copy(self, node: Node, operands: tuple[int, ...] = ()) -> int:
        """Append a node on other operands: its number."""
        self._admit(1)
        self.outlines.append(self._outline(node))
        self.operands.append(operands)
        return len(self.operands) - 1

    def leaf(self, like: int) -> int:
        """Append what is fed, of the type of another node."""
        return self.copy(_leaf(self._registry, self.outlines[like].node.types[:1]))

    def type(self, index: int) -> TensorType:
        """That of the (first) result of a node."""
        return self.outlines[index].node.types[0]

    def filled(self, like: int) -> int:
        """Append a number, repeated in the shape of another node."""
        return self.apply("filled", lambda x: x.full_like(1.0), like)

    def apply(self, name: Hashable, make: Callable[..., Value], *operands: int) -> int:
        """Append what is made of some nodes: the same, whenever it has this name and they have these types."""
        number = name, *[self.outlines[i].types for i in operands]
        written = self._applied.get(number)
        if written is None:
            written = self._applied[number] = self._make(make, [self.outlines[i].node.types for i in operands])
        return self._repeat(written, list(operands))[written.given[0].number]

    def vjp(self, seeds: Sequence[tuple[int, int]], wrt: Sequence[int]) -> list[int | None]:
        """As the function `vjp`: where the gradients are."""
        pulled, _ = self._counted(seeds, wrt)
        cotangents = dict[Arrival, int]()
        for output, g in seeds:
            self._accumulate(cotangents, output, g, None)
        for index, written in pulled:
            arrived = [cotangents[place] for place in self._places(index) if place in cotangents]
            operands = self.operands[index]
            values = self._repeat(written, [*arrived, index, *operands])
            for operand, result, number, cast in written.given:
                self._accumulate(cotangents, _place(operands[operand], result), values[number], cast)
        return [cotangents.get(x) for x in wrt]

    def jvp(self, outputs: Sequence[int], wrt: Sequence[int]) -> None:
        """As the function `jvp`, along tangents of all of `wrt`; of its second sweep, only the number is looked at."""
        dummies = [self.leaf(y) for y in outputs]
        pulled = self.vjp(list(zip(outputs, dummies, strict=True)), wrt)
        self.count([(g, x) for g, x in zip(pulled, wrt, strict=True) if g is not None], dummies)

    def count(self, seeds: Sequence[tuple[int, int]], wrt: Sequence[int], *, swept: bool = False) -> None:
        """Look how many nodes `vjp` appends, and count them as there, but append none.

        Those of products that are `swept` over unit vectors in place of the seeds count once more, where they are
        elementwise: of these alone it is certain that batching writes a node.
        """
        pulled, count = self._counted(seeds, wrt)
        self._beside += count + (self._mapped(pulled, [output for output, _ in seeds], wrt) if swept else 0)
        self._admit(0)

    def _counted(self, seeds: Sequence[tuple[int, int]], wrt: Sequence[int]) -> tuple[list[Pulled], int]:
        """The nodes whose rules write something, from the last one on, and how many nodes that is in all."""
        count, arrived, pulled = 0, dict[Arrival, int](), list[Pulled]()
        for output, g in seeds:
            count += output in arrived
            arrived[output] = g
        for index in self._paths(seeds, wrt):
            written = self._pull(index, arrived)
            if written is None:
                continue
            pulled.append((index, written))
            operands = self.operands[index]
            count += len(written.outlines)
            for operand, result, _, cast in written.given:
                place = _place(operands[operand], result)
                count += (place in arrived) + (cast is not None)
                arrived[place] = 0
            if not len(pulled) % _LOOK:
                self._deadline.check()
                self._admit(count)
        self._admit(count)
        return pulled, count

    def _mapped(self, pulled: Sequence[Pulled], outputs: Sequence[int], wrt: Sequence[int]) -> int:
        """Elementwise nodes between the seeds and the gradients, or some of them: on ways by first results alone."""
        count, seeded, leads = 0, set(outputs), set(wrt)
        single = [(index, written) for index, written in pulled if len(self.outlines[index].node.types) == 1]
        for index, written in single:
            if index in seeded:
                seeded.update(self.operands[index][operand] for operand, _ in written.ways)
        for index, written in reversed(single):
            operands = self.operands[index]
            ways = [way for operand, way in written.ways if operands[operand] in leads] if index in seeded else []
            if ways:
                leads.add(index)
                count += len(ways[0]) if len(ways) == 1 else len(frozenset().union(*ways))
        return count

    def _admit(self, count: int) -> None:
        self._limits.admit_nodes(len(self.operands) + self._beside + count)

    def _paths(self, seeds: Sequence[tuple[int, int]], wrt: Sequence[int]) -> Iterable[int]:
        """The nodes that depend differentiably on one of `wrt`, from the last of `seeds` backwards."""
        outlines, operands = self.outlines, self.operands
        first, past = min(wrt, default=0), max((output for output, _ in seeds), default=-1) + 1
        reached = bytearray(len(operands))
        for index in wrt:
            reached[index] = 1
        for index in range(first, past):
            if outlines[index].passes:
                for i in operands[index]:
                    if reached[i]:
                        reached[index] = 1
                        break
        return [index for index in range(past - 1, first - 1, -1) if reached[index]]

    def _pull(self, index: int, arrived: dict[Arrival, int]) -> Written | None:
        """What the rule of a node writes for what has arrived; None where it writes and gives nothing."""
        outline = self.outlines[index]
        number = tuple([self.outlines[i].types for i in self.operands[index]])
        if len(outline.node.types) == 1:
            there = [index in arrived]
        else:
            there = [place in arrived for place in self._places(index)]
            number = *there, *number
        if not outline.passes or not any(there):
            return None
        written = outline.pulls.get(number)
        if written is None:
            types = [self.outlines[i].node.types for i in self.operands[index]]
            written = outline.pulls[number] = self._ask(outline.node, types, there)
        return written

    def _places(self, index: int) -> list[Arrival]:
        return [_place(index, k) for k in range(len(self.outlines[index].node.types))]

    def _accumulate(self, cotangents: dict[Arrival, int], place: Arrival, g: int, cast: DType | None) -> None:
        if cast is not None:
            g = self.apply(("cast", cast), lambda x: x.cast(dtype=cast), g)
        before = cotangents.get(place)
        cotangents[place] = g if before is None else self.apply("add", lambda a, b: a + b, before, g)

    def _ask(self, node: Node, types: Sequence[Types], there: Sequence[bool]) -> Written:
        """Have the rule of a node write on leaves."""
        builder = Builder(self._registry, _UNBOUNDED)
        arrived = [
            _new(builder, (type,)) if is_there else None for type, is_there in zip(node.types, there, strict=True)
        ]
        y = builder.append(node.on(()))  # of an op of several results, which the rule may ask for
        operands = [_new(builder, each) for each in types]
        outer = len(builder.nodes)
        rule = node.rules.vjp(tuple(arrived) if node.op.several else arrived[0], y, *operands, **node.attrs)
        given = []
        for operand, parts in enumerate(rule):
            for k, g in _parts(parts):
                wanted = types[operand][k]
                if wanted.is_float:
                    given.append(Given(operand, k, g.index, None if g.dtype == wanted.dtype else wanted.dtype))
        return self._written(builder, outer, given, sum(there))

    def _make(self, make: Callable[..., Value], types: Sequence[Types]) -> Written:
        builder = Builder(self._registry, _UNBOUNDED)
        made = make(*[_new(builder, each) for each in types])
        return self._written(builder, len(types), [Given(0, 0, made.index, None)])

    def _written(self, builder: Builder, outer: int, given: Sequence[Given], arrived: int = 0) -> Written:
        """What stands in a builder behind `outer` leaves, the first of which are cotangents that have arrived."""
        nodes = builder.nodes[outer:]
        found = [(each.operand, _way(builder.nodes, arrived, outer, each.number)) for each in given if not each.result]
        ways = tuple([(operand, way) for operand, way in found if way is not None])
        return Written(tuple(map(self._outline, nodes)), tuple([node.operands for node in nodes]), tuple(given), ways)

    def _repeat(self, written: Written, values: list[int]) -> list[int]:
        """Append what was written, on other values: these, and where it is."""
        start, count = len(self.operands), len(written.outlines)
        self._admit(count)
        values.extend(range(start, start + count))
        self.outlines.extend(written.outlines)
        self.operands.extend([tuple([values[i] for i in operands]) for operands in written.operands])
        return values

    def _outline(self, node: Node) -> Outline:
        key = () if node.is_leaf else node.attrs.key if isinstance(node.attrs, Stated) else None
        if key is None and node.attrs:
            return self._new_outline(node)  # of attributes that are large
        number = node.op, key, node.types
        known = self._known.get(number)
        if known is None:
            known = self._known[number] = self._new_outline(node)
        return known

    def _new_outline(self, node: Node) -> Outline:
        passes = bool(node.operands) and node.op.is_differentiable and any(type.is_float for type in node.types)
        return Outline(node, self._types.setdefault(node.types, len(self._types)), passes)


def look_ahead(builder: Builder, work: int, look: Callable[[Sketch], object]) -> None:
    """Look at what will be appended to a builder's nodes. Raises TooManyNodes, as writing would, before any is written.

    `work` is how many nodes there are to be swept over in all: of few, nothing is looked at. What else may be wrong is
    left for writing to find.
    """
    if work < WORTH_A_LOOK:
        return
    try:
        look(Sketch(builder.registry, builder.limits, builder.deadline, builder.nodes))
    except (TooManyNodes, DeadlineExceeded):
        raise
    except EngineError:
        return


def _way(nodes: Sequence[Node], arrived: int, outer: int, end: int) -> frozenset[int] | None:
    """The elementwise nodes, of those behind `outer`, on any way from the first `arrived` ones to node `end`."""
    back = ancestors([end], lambda i: nodes[i].operands)
    forth = set(range(arrived))
    for i in back:
        if i >= outer and not forth.isdisjoint(nodes[i].operands):
            forth.add(i)
    if end not in forth:
        return None
    return frozenset(i for i in back if i in forth and i >= outer and isinstance(nodes[i].op, Elementwise))


def _place(index: int, result: int) -> Arrival:
    return (index, result) if result else index


def _leaf(registry: Registry, types: Types) -> Node:
    return Node(registry.ops["input"], (), {"feed": None}, types)


def _new(builder: Builder, types: Types) -> Value:
    return builder.append(_leaf(builder.registry, types))


def _parts(g: Value | Mapping[int, Value | None] | None) -> Iterable[tuple[int, Value]]:
    if g is None:
        return ()
    return ((0, g),) if isinstance(g, Value) else [(k, part) for k, part in g.items() if part is not None]
