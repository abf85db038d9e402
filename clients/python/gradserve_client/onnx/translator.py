"""The walk over the nodes of a model.

The translator visits nodes in the order of the file and puts the value of each output into the scope. For each node it
takes the first way that applies:

1. An op that is refused by name becomes an obstacle. 2. If all operands are constants, ONNX's evaluator computes the
node, and its results are constants. 3. If the op has a rule, the rule writes nodes of the graph. 4. If the op is a
function, the model's own or one with which ONNX defines the op, its nodes are walked in a scope of their own. A rule
may also ask for this way with `ByDefinition`.

For example, in `Shape -> Gather -> Reshape`, `Shape` has a rule that returns an array, so its result is a constant,
`Gather` is folded, and only `Reshape` becomes a node.

A node that cannot be translated is recorded in `obstacles`. Its outputs get placeholder inputs with the example's
values, so that the walk can go on and find the other obstacles.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from onnx import FunctionProto, NodeProto, defs, helper

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked, Budget, Note, Obstacles, Rule, SourceGraph
from gradserve_client.importing.notes import Tally
from gradserve_client.onnx.bodies import Bodies
from gradserve_client.onnx.call import ByDefinition, Call, OpRule, Result, RuleResult
from gradserve_client.onnx.evaluation import evaluate_node
from gradserve_client.onnx.functions import (
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
from gradserve_client.onnx.scope import Known, Scope, Unknown, Value, wire_obstacle

#: ops that are translated even if all operands are constants: ONNX's evaluator ignores clip, activations and lengths
_NOT_FOLDED = frozenset({"RNN", "GRU", "LSTM"})
#: domains of the ops that have rules
_DEFAULT = ("", "ai.onnx")
#: ops of leaves, which the tally leaves out
_LEAVES = ("constant", "input", "parameter")
#: maximum nesting of bodies and functions, for each of which a walk calls itself
_DEPTH = 32


class Translator:
    """Translator of the nodes of one model. `obstacles` collects unsupported nodes, `tally` counts translated ones."""

    def __init__(self, functions: Functions, budget: Budget, max_steps: int | None = None) -> None:
        self.obstacles = Obstacles()
        self.tally = Tally()
        self.max_steps = max_steps
        #: notes to report besides the counts
        self.remarks: list[Note] = []
        #: number of casts from float64 to float32 within ONNX's definitions of ops
        self.narrowed = 0
        self._functions = functions
        self._budget = budget
        #: number of walks around this one
        self._depth = 0
        #: functions of the model that the current walk is inside
        self._calling: frozenset[FunctionKey] = frozenset()

    def fork(self, *calling: FunctionKey) -> Translator:
        """Return another translator of the same model, inside a call of these functions.

        Its obstacles and notes are its own.
        """
        inner = Translator(self._functions, self._budget, self.max_steps)
        inner._depth, inner._calling = self._depth, self._calling.union(calling)
        return inner

    def walk(self, nodes: Iterable[NodeProto], scope: Scope) -> None:
        """Translate nodes, and put the values of their outputs into the scope.

        Raises ImportRefused if the budget is exceeded.
        """
        if self._depth == _DEPTH:
            raise Blocked(f"bodies and functions are nested more than {_DEPTH} levels deep")
        self._depth += 1
        for node in nodes:
            if self._depth == 1:
                # inside bodies and functions, messages name the enclosing node of the model
                self._budget.locate(_op_of(node), partial(_place_of, node))
            self._budget.add_steps()
            self._walk_step(_Step(node, scope), scope)
        self._depth -= 1

    def _walk_step(self, step: _Step, scope: Scope) -> None:
        """Translate one node, and put its outputs into the scope."""
        if not scope.expanded:
            step.read()
        # the nodes from here on are those that this step adds, for the tally
        before = len(scope.graph)
        try:
            results = self._translate(step)
        except Blocked as blocked:
            self.obstacles.add(step.op, step.place, blocked)
            results = step.placeholders(self._budget)
        except Unknown:
            results = [Value(name, None) for name in step.node.output]
        # a node may leave out the last of its outputs
        for name, value in zip(step.node.output, results, strict=False):
            if name:
                scope[name] = value
        if not scope.expanded:
            self.tally.count(step.op, _ops_since(scope.graph, before))

    def _translate(self, step: _Step) -> list[Value]:
        refused = refusal_of(step.op)
        if refused is not None:
            raise refused
        has_rules = step.node.domain in _DEFAULT and not self._is_own(step.node)
        rule = RULES.find(step.node.op_type) if has_rules else None
        may_fold = step.is_constant and step.node.op_type not in _NOT_FOLDED and not self._is_own(step.node)
        # an op without a rule that is a function is expanded instead, and its nodes are folded one by one
        if may_fold and (rule is not None or self._body(step) is None):
            return step.folded(self._budget)
        if rule is None:
            return self._expanded(step)
        step.require_examples()
        try:
            return self._by_rule(step, rule)
        except ByDefinition:
            return self._expanded(step)

    def _body(self, step: _Step) -> FunctionProto | None:
        """Return the function that the node calls, or that defines its op, or None."""
        return body_of(step.node, step.scope.opsets, step.operands, self._functions)

    def _is_own(self, node: NodeProto) -> bool:
        """Return whether a node calls a function of the model."""
        return _key(node) in self._functions

    def _by_rule(self, step: _Step, rule: Rule[OpRule]) -> list[Value]:
        schema = schema_of(step.node, step.scope.opsets)
        if schema is None:
            raise Blocked("ONNX has no such op in this opset")
        if schema.since_version < rule.since:
            raise Blocked(
                f"it is defined by opset {schema.since_version}, differently from opset {rule.since}",
                f"convert the model to opset {rule.since} or newer with onnx.version_converter",
            )
        step.require_attributes(schema)
        results = step.results(self._budget)
        for result in results:
            reason = None if result is None else wire_obstacle(result)
            if reason is not None:
                raise Blocked(f"it returns {reason}")
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
        return step.wrapped(rule.translate(call), results)

    def _expanded(self, step: _Step) -> list[Value]:
        """Translate a node by the nodes of its function."""
        function = self._body(step)
        if function is None:
            step.require_examples()
            raise Blocked("there is no rule for it, and ONNX does not define it in terms of other ops")
        if self._is_own(step.node) and _key(step.node) in self._calling:
            raise Blocked("it is a function that calls itself")
        step.require_examples()
        return self._through(step, function)

    def _through(self, step: _Step, function: FunctionProto) -> list[Value]:
        opsets = {each.domain: each.version for each in function.opset_import}
        inside = Scope(step.scope.graph, {**step.scope.opsets, **opsets}, expanded=True)
        for name, operand in zip(function.input, step.operands, strict=False):
            if operand is not None:
                inside[name] = operand
        schema = None if self._is_own(step.node) else schema_of(step.node, step.scope.opsets)
        before = len(self.obstacles)
        # its obstacles are collected separately, to report them under the op of the model's node
        inner = self.fork(_key(step.node))
        inner.walk(substituted(function.node, attributes_for(step.node, function, schema)), inside)
        if inner.narrowed:
            self.remarks.append(Note("op", step.op, 1, f"{step.place} computes in float32, as ONNX defines it"))
        for obstacle in inner.obstacles:
            within = Blocked(f"within it, {obstacle.op}: {obstacle.reason}", obstacle.way_round, obstacle.reads)
            self.obstacles.add(step.op, step.place, within)
        if len(self.obstacles) > before:
            return step.placeholders(self._budget)
        values = [inside.find(name) for name in function.output]
        return [Value(name, None) if value is None else value for name, value in _paired(step.node.output, values)]


def _key(node: NodeProto) -> FunctionKey:
    """Return the key of the model function that a node calls."""
    return node.domain, node.op_type, node.overload


def _op_of(node: NodeProto) -> str:
    """Return the op's name as messages show it."""
    return node.op_type if node.domain in _DEFAULT else f"{node.domain}.{node.op_type}"


def _place_of(node: NodeProto) -> str:
    """Return the name of a node, or that of its first result if it has none."""
    return repr(node.name) if node.name or not node.output else f"the node that computes {node.output[0]!r}"


def _ops_since(graph: SourceGraph, before: int) -> list[str]:
    """Return the ops of the nodes added since position `before`, leaves excluded."""
    ops = (graph.find(i).op for i in range(before, len(graph)))
    return [op for op in ops if op not in _LEAVES]


def _paired(names: Sequence[str], values: Sequence[Value | None]) -> list[tuple[str, Value | None]]:
    return [(name, values[i] if i < len(values) else None) for i, name in enumerate(names)]


class _Step:
    """A node being translated, its operands, and the values that its bodies read."""

    def __init__(self, node: NodeProto, scope: Scope) -> None:
        self.node = node
        self.scope = scope
        self.op = _op_of(node)
        self.operands = [scope.find(name) if name else None for name in node.input]
        outer = {name: scope.find(name) for name in read_around(bodies_of(node).values())}
        self.outer_values = {name: value for name, value in outer.items() if value is not None}

    @property
    def place(self) -> str:
        """Name of the node, for messages."""
        return _place_of(self.node)

    @property
    def _all(self) -> list[Value]:
        return [value for value in self.operands if value is not None] + [*self.outer_values.values()]

    @property
    def known(self) -> Known:
        """Stage at which its results are known: the latest of its operands'."""
        return max((value.known for value in self._all), default=Known.CONSTANT)

    @property
    def is_constant(self) -> bool:
        """Whether the file alone determines its results."""
        return self.known is Known.CONSTANT and all(value.has_example for value in self._all)

    @property
    def roots(self) -> frozenset[str]:
        """Model inputs that it depends on."""
        return frozenset().union(*(value.roots for value in self._all))

    def read(self) -> None:
        """Record the node as a reader of its operands."""
        for value in {id(each): each for each in self._all}.values():
            value.readers.append(self.place)

    def require_examples(self) -> None:
        """Raise Unknown if the example value of an operand is unknown."""
        if not all(value.has_example for value in self._all):
            raise Unknown(self.op)

    def require_attributes(self, schema: defs.OpSchema) -> None:
        """Raise Blocked unless the node has exactly the attributes of its op, of the right types."""
        stated = {each.name: each.type for each in self.node.attribute}
        for name, kind in stated.items():
            if name not in schema.attributes:
                raise Blocked(f"it has an attribute {name!r}, which its op does not define")
            if kind != schema.attributes[name].type.value:
                raise Blocked(f"its attribute {name!r} has another type than its op defines")
        for name, attribute in schema.attributes.items():
            if attribute.required and name not in stated:
                raise Blocked(f"it lacks the attribute {name!r}")

    def results(self, budget: Budget) -> list[Any]:
        """Return the node's outputs for the example, None for outputs that are not requested."""
        named = zip(self.node.input, self.operands, strict=True)
        values = {name: value.example for name, value in named if value is not None}
        values |= {name: value.example for name, value in self.outer_values.items()}
        return evaluate_node(self.node, values, self.scope.opsets, budget)

    def narrows(self, results: Sequence[Any]) -> bool:
        """Return whether the node is a cast from float64 to float32 inside ONNX's definition of an op."""
        wide = bool(self.operands) and self.operands[0] is not None and self.operands[0].dtype.name == "float64"
        return self.scope.expanded and self.node.op_type == "Cast" and wide and results[0].dtype.name == "float32"

    def folded(self, budget: Budget) -> list[Value]:
        """Return its results as constants."""
        return [
            Value(name, result, Known.CONSTANT, self.roots)
            for name, result in zip(self.node.output, self.results(budget), strict=True)
        ]

    def wrapped(self, translated: RuleResult, results: Sequence[Any]) -> list[Value]:
        """Pair the results of a rule with those of the example."""
        each: list[Result] = [*translated] if isinstance(translated, Sequence) else [translated]
        each += [None] * (len(results) - len(each))
        known = max(self.known, Known.MODEL)
        return [
            self._value(name, rule_result, example, known)
            for name, rule_result, example in zip(self.node.output, each, results, strict=False)
        ]

    def _value(self, name: str, translated: Result, example: Any, known: Known) -> Value:
        if isinstance(translated, Value):
            return translated
        if isinstance(translated, Node):
            return Value(name, example, known, self.roots, translated)
        return Value(name, translated, Known.CONSTANT) if translated is not None else Value(name, None)

    def placeholders(self, budget: Budget) -> list[Value]:
        """Return stand-ins for the results of an unsupported node, to continue the walk.

        They never reach the caller.
        """
        try:
            self.require_examples()
            results = self.results(budget)
        except (Blocked, Unknown):
            return [Value(name, None) for name in self.node.output]
        return [
            Value(
                name,
                None if example is None or wire_obstacle(example) else example,
                Known.DATA,
                self.roots,
                self.scope.graph.input(),
            )
            for name, example in zip(self.node.output, results, strict=True)
        ]
