"""The walk over the nodes of a model: what is constant is folded, rules say the rest, or what ONNX defines it by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from onnx import FunctionProto, NodeProto, defs, helper

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked, Budget, Note, Obstacles, Rule, SourceGraph
from gradserve_client.importing.notes import Tally
from gradserve_client.onnx.bodies import Bodies
from gradserve_client.onnx.call import ByDefinition, Call, OpRule, Result, Said
from gradserve_client.onnx.evaluating import evaluated
from gradserve_client.onnx.expanding import (
    FunctionKey,
    Functions,
    attributes_for,
    bodies_of,
    body_of,
    read_around,
    schema_of,
    substituted,
)
from gradserve_client.onnx.rules import RULES, refusal_of
from gradserve_client.onnx.scope import Known, Scope, Unknown, Value, unsendable

#: of these, ONNX's evaluator knows neither clip, nor activations, nor lengths: what is constant is said, too
_NOT_FOLDED = frozenset({"RNN", "GRU", "LSTM"})
#: domains whose ops the rules are of
_DEFAULT = ("", "ai.onnx")
#: nodes that say no op
_LEAVES = ("constant", "input", "parameter")
#: how deep bodies and functions may be within one another: a walk calls itself for each
_DEPTH = 32


class Translator:
    """Says the nodes of one model. What it cannot say is in `obstacles`, what it said in `tally`."""

    def __init__(self, functions: Functions, budget: Budget, max_steps: int | None = None) -> None:
        self.obstacles = Obstacles()
        self.tally = Tally()
        self.max_steps = max_steps
        #: what is to be told beside the counts
        self.remarks: list[Note] = []
        #: how often a definition of ONNX's computes in float32 what is float64
        self.narrowed = 0
        self._functions = functions
        self._budget = budget
        #: how many walks this one is within
        self._depth = 0
        #: the functions of the model that this walk is within
        self._calling: frozenset[FunctionKey] = frozenset()

    def apart(self, *calling: FunctionKey) -> Translator:
        """Another for the same model, which keeps to itself what it finds; within a call of these functions, too."""
        made = Translator(self._functions, self._budget, self.max_steps)
        made._depth, made._calling = self._depth, self._calling.union(calling)
        return made

    def walk(self, nodes: Iterable[NodeProto], scope: Scope) -> None:
        """Say all of these. The names of their outputs are in the scope then.

        Raises ImportRefused beyond the budget.
        """
        if self._depth == _DEPTH:
            raise Blocked(f"bodies and functions are more than {_DEPTH} deep within one another")
        self._depth += 1
        for node in nodes:
            if self._depth == 1:
                # within bodies and functions, messages name the node of the model around
                self._budget.locate(_op_of(node), partial(_place_of, node))
            self._budget.add_steps()
            self._walk_step(_Step(node, scope), scope)
        self._depth -= 1

    def _walk_step(self, step: _Step, scope: Scope) -> None:
        """Say one node, and put its outputs into the scope."""
        if not scope.expanded:
            step.read()
        before = len(scope.graph)
        try:
            results = self._said(step)
        except Blocked as blocked:
            self.obstacles.meet(step.op, step.place, blocked)
            results = step.instead(self._budget)
        except Unknown:
            results = [Value(name, None) for name in step.node.output]
        # a node may leave out the last of its outputs
        for name, value in zip(step.node.output, results, strict=False):
            if name:
                scope[name] = value
        if not scope.expanded:
            self.tally.count(step.op, _said_by(scope.graph, before))

    def _said(self, step: _Step) -> list[Value]:
        refused = refusal_of(step.op)
        if refused is not None:
            raise refused
        ours = step.node.domain in _DEFAULT and not self._is_own(step.node)
        rule = RULES.find(step.node.op_type) if ours else None
        may_fold = step.is_constant and step.node.op_type not in _NOT_FOLDED and not self._is_own(step.node)
        if may_fold and (rule is not None or self._body(step) is None):
            return step.folded(self._budget)
        if rule is None:
            return self._expanded(step)
        step.require_told()
        try:
            return self._by_rule(step, rule)
        except ByDefinition:
            return self._expanded(step)

    def _body(self, step: _Step) -> FunctionProto | None:
        """The function that the node is, if it is one."""
        return body_of(step.node, step.scope.opsets, step.operands, self._functions)

    def _is_own(self, node: NodeProto) -> bool:
        """Whether it is a function of the model."""
        return _key(node) in self._functions

    def _by_rule(self, step: _Step, rule: Rule[OpRule]) -> list[Value]:
        schema = schema_of(step.node, step.scope.opsets)
        if schema is None:
            raise Blocked("ONNX has no such op in this opset")
        if schema.since_version < rule.since:
            raise Blocked(
                f"it is that of opset {schema.since_version}, which is another op than that of opset {rule.since}",
                f"convert the model to opset {rule.since} or newer with onnx.version_converter",
            )
        step.require_attributes(schema)
        results = step.results(self._budget)
        for found in results:
            reason = None if found is None else unsendable(found)
            if reason is not None:
                raise Blocked(f"it gives {reason}")
        attrs = {
            name: helper.get_attribute_value(each.default_value)
            for name, each in schema.attributes.items()
            if each.default_value.type
        }
        attrs |= {each.name: helper.get_attribute_value(each) for each in step.node.attribute}
        if step.narrows(results):
            self.narrowed += 1
        bodies = Bodies(self, step.scope)
        call = Call(step.node.op_type, schema.since_version, attrs, step.operands, results, step.scope, bodies)
        return step.wrapped(rule.say(call), results)

    def _expanded(self, step: _Step) -> list[Value]:
        """By the nodes of the function that the op is."""
        function = self._body(step)
        if function is None:
            step.require_told()
            raise Blocked("there is no rule for it, and ONNX defines it by no others")
        if self._is_own(step.node) and _key(step.node) in self._calling:
            raise Blocked("it is a function that calls itself")
        step.require_told()
        return self._through(step, function)

    def _through(self, step: _Step, function: FunctionProto) -> list[Value]:
        opsets = {each.domain: each.version for each in function.opset_import}
        inside = Scope(step.scope.graph, {**step.scope.opsets, **opsets}, expanded=True)
        for name, operand in zip(function.input, step.operands, strict=False):
            if operand is not None:
                inside[name] = operand
        schema = None if self._is_own(step.node) else schema_of(step.node, step.scope.opsets)
        met = len(self.obstacles)
        inner = self.apart(_key(step.node))
        inner.walk(substituted(function.node, attributes_for(step.node, function, schema)), inside)
        if inner.narrowed:
            self.remarks.append(Note("op", step.op, 1, f"{step.place} computes in float32 within, as ONNX defines it"))
        for obstacle in inner.obstacles:
            within = Blocked(f"within it, {obstacle.op}: {obstacle.reason}", obstacle.way_round, obstacle.reads)
            self.obstacles.meet(step.op, step.place, within)
        if len(self.obstacles) > met:
            return step.instead(self._budget)
        found = [inside.find(name) for name in function.output]
        return [Value(name, None) if value is None else value for name, value in _paired(step.node.output, found)]


def _key(node: NodeProto) -> FunctionKey:
    """Return the key of the model function that a node calls."""
    return node.domain, node.op_type, node.overload


def _op_of(node: NodeProto) -> str:
    """Return the op's name as messages show it."""
    return node.op_type if node.domain in _DEFAULT else f"{node.domain}.{node.op_type}"


def _place_of(node: NodeProto) -> str:
    """Return the name of a node, or that of its first result if it has none."""
    return repr(node.name) if node.name or not node.output else f"the node that gives {node.output[0]!r}"


def _said_by(graph: SourceGraph, before: int) -> list[str]:
    """The ops of the nodes that came since, but leaves."""
    ops = (graph.find(i).op for i in range(before, len(graph)))
    return [op for op in ops if op not in _LEAVES]


def _paired(names: Sequence[str], values: Sequence[Value | None]) -> list[tuple[str, Value | None]]:
    return [(name, values[i] if i < len(values) else None) for i, name in enumerate(names)]


class _Step:
    """A node that is being said, its operands, and what its bodies read."""

    def __init__(self, node: NodeProto, scope: Scope) -> None:
        self.node = node
        self.scope = scope
        self.op = _op_of(node)
        self.operands = [scope.find(name) if name else None for name in node.input]
        around = {name: scope.find(name) for name in read_around(bodies_of(node).values())}
        self.around = {name: value for name, value in around.items() if value is not None}

    @property
    def place(self) -> str:
        """Name of the node, for messages."""
        return _place_of(self.node)

    @property
    def _all(self) -> list[Value]:
        return [value for value in self.operands if value is not None] + [*self.around.values()]

    @property
    def known(self) -> Known:
        """When its results are known."""
        return max((value.known for value in self._all), default=Known.CONSTANT)

    @property
    def is_constant(self) -> bool:
        """Whether its results are known from the file alone."""
        return self.known is Known.CONSTANT and all(value.is_told for value in self._all)

    @property
    def roots(self) -> frozenset[str]:
        """The inputs of the model that it depends on."""
        return frozenset().union(*(value.roots for value in self._all))

    def read(self) -> None:
        """Note with its operands that it reads them."""
        for value in {id(each): each for each in self._all}.values():
            value.readers.append(self.place)

    def require_told(self) -> None:
        """Raise Unknown where an operand is."""
        if not all(value.is_told for value in self._all):
            raise Unknown(self.op)

    def require_attributes(self, schema: defs.OpSchema) -> None:
        """Raise Blocked unless the node has all attributes of its op, of the right types, and no others."""
        stated = {each.name: each.type for each in self.node.attribute}
        for name, kind in stated.items():
            if name not in schema.attributes:
                raise Blocked(f"it has an attribute {name!r}, which its op lacks")
            if kind != schema.attributes[name].type.value:
                raise Blocked(f"its attribute {name!r} is of another type than that of its op")
        for name, attribute in schema.attributes.items():
            if attribute.required and name not in stated:
                raise Blocked(f"it lacks the attribute {name!r}")

    def results(self, budget: Budget) -> list[Any]:
        """What it gives for the example, an array for each output that is asked for."""
        named = zip(self.node.input, self.operands, strict=True)
        values = {name: value.example for name, value in named if value is not None}
        values |= {name: value.example for name, value in self.around.items()}
        return evaluated(self.node, values, self.scope.opsets, budget)

    def narrows(self, results: Sequence[Any]) -> bool:
        """Whether a definition of ONNX's makes float32 of float64 here."""
        wide = bool(self.operands) and self.operands[0] is not None and self.operands[0].dtype.name == "float64"
        return self.scope.expanded and self.node.op_type == "Cast" and wide and results[0].dtype.name == "float32"

    def folded(self, budget: Budget) -> list[Value]:
        """Its results as constants."""
        return [
            Value(name, found, Known.CONSTANT, self.roots)
            for name, found in zip(self.node.output, self.results(budget), strict=True)
        ]

    def wrapped(self, said: Said, results: Sequence[Any]) -> list[Value]:
        """Its results as they were said, with the example's."""
        each: list[Result] = [*said] if isinstance(said, Sequence) else [said]
        each += [None] * (len(results) - len(each))
        known = max(self.known, Known.MODEL)
        return [
            self._value(name, one, found, known)
            for name, one, found in zip(self.node.output, each, results, strict=False)
        ]

    def _value(self, name: str, said: Result, found: Any, known: Known) -> Value:
        if isinstance(said, Value):
            return said
        if isinstance(said, Node):
            return Value(name, found, known, self.roots, said)
        return Value(name, said, Known.CONSTANT) if said is not None else Value(name, None)

    def instead(self, budget: Budget) -> list[Value]:
        """Results that stand in for those of a node that cannot be said, to go on with: nobody gets to see them."""
        try:
            self.require_told()
            results = self.results(budget)
        except (Blocked, Unknown):
            return [Value(name, None) for name in self.node.output]
        return [
            Value(
                name,
                None if found is None or unsendable(found) else found,
                Known.DATA,
                self.roots,
                self.scope.graph.input(),
            )
            for name, found in zip(self.node.output, results, strict=True)
        ]
