"""Translation of an exported program to nodes of a graph, one node at a time.

`Translator.walk` visits the nodes of the program in order. It maps each to a `Value`, or to a list of values if the op
has several results. The rule of the op adds nodes to the graph:

    linear = aten.linear(x, w, b)    the rule of `linear` adds mlp_layer(x, w, b)
    relu = aten.relu(linear)         the rule of `relu` adds relu(...)

An op of constants is not translated: PyTorch evaluates it at once. If a rule raises Blocked, the translator records
the reason, stands placeholder inputs in for the results and continues, so that one import reports everything that is
unsupported. A value without a placeholder is unknown, and nodes that read it are skipped.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import torch
from torch.fx import Graph
from torch.fx import Node as Step

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked, Budget, Note, Obstacles, SourceGraph
from gradserve_client.importing.notes import Tally
from gradserve_client.torch.call import Call, Result, Results
from gradserve_client.torch.families.complex_numbers import TAKE_COMPLEX
from gradserve_client.torch.places import place_of
from gradserve_client.torch.rules import RULES, refusal_of
from gradserve_client.torch.values import Type, Unknown, Value, constant_of, require_supported, type_of

#: ops of leaves, which the tally of nodes per op leaves out
_LEAVES: Final = ("constant", "input", "parameter")
#: ops that only check, and have no result; checks of data get a note
_CHECKS: Final = ("_assert_tensor_metadata", "_assert_scalar", "sym_constrain_range", "sym_constrain_range_for_size")
_DATA_CHECKS: Final = ("_assert_async", "_assert_async.msg", "_functional_assert_async.msg")
_UNCHECKED: Final = "the graph does not check what it asserts about the data"
_HIGHER: Final = (
    "it runs functions of its own, for which torch.export makes no nodes",
    "unroll the loop, or write the choice with torch.where",
)


def name_of(target: Any) -> str:
    """Return the name of an overload in the table of rules: without `aten.` and `.default`."""
    return str(target).removeprefix("aten.").removesuffix(".default")


class Translator:
    """Translates one program. `obstacles` has what is unsupported, `tally` counts ops and their nodes."""

    def __init__(self, graph: SourceGraph, obstacles: Obstacles, budget: Budget) -> None:
        self.graph = graph
        self.obstacles = obstacles
        self.tally = Tally()
        self.remarks: list[Note] = []
        self._budget = budget
        self._values: dict[Step, Any] = {}

    def define(self, step: Step, value: Value | None) -> None:
        """Set the value of a placeholder of the program."""
        self._values[step] = value

    def walk(self, program: Graph) -> None:
        """Translate all nodes that call an op."""
        for step in program.nodes:
            if step.op == "call_function":
                try:
                    self._values[step] = self._translate(step)
                except Unknown:
                    self._values[step] = None

    def value_of(self, argument: Any) -> Any:
        """Return an argument of a node with values in place of nodes. Raises Unknown if a node has no value."""
        if isinstance(argument, Step):
            value = self._values.get(argument)
            if value is None:
                raise Unknown(argument.name)
            return value
        if isinstance(argument, list | tuple):
            return [self.value_of(each) for each in argument]
        return argument

    def _translate(self, step: Step) -> Any:
        if step.target is operator.getitem:
            node, position = step.args
            return self.value_of(node)[position]
        name = name_of(step.target)
        if name in _CHECKS:
            return None
        if name in _DATA_CHECKS:
            self.remarks.append(Note("op", name, 1, _UNCHECKED))
            return None
        before = len(self.graph)
        self._budget.locate(name, partial(place_of, step))
        self._budget.add_steps()
        try:
            return self._apply_rule(step, name)
        except Blocked as blocked:
            self.obstacles.add(name, place_of(step), blocked)
            return self._placeholders(step)
        finally:
            if not step.all_input_nodes or not self._is_constant(step):
                self.tally.count(name, self._ops_since(before))

    def _ops_since(self, before: int) -> list[str]:
        ops = (self.graph.find(i).op for i in range(before, len(self.graph)))
        return [op for op in ops if op not in _LEAVES]

    def _is_constant(self, step: Step) -> bool:
        """Return whether all its operands are constants, so that it is folded."""
        operands = (self._values.get(each) for each in step.all_input_nodes)
        values = [each for operand in operands for each in (operand if isinstance(operand, list) else [operand])]
        return all(isinstance(each, Value) and each.constant is not None for each in values)

    def _apply_rule(self, step: Step, name: str) -> Any:
        if isinstance(step.target, torch._ops.HigherOrderOperator):
            raise Blocked(*_HIGHER)
        if name.startswith("sym_"):
            self.value_of(step.args)  # raises Unknown for the size of an unknown value
        refusal = refusal_of(name)
        if refusal is not None:
            raise refusal
        arguments = self._arguments(step)
        rule = RULES.find(name)
        if self._is_constant(step) and (rule is None or step.all_input_nodes):
            return _map_results(_fold(step.target, arguments), constant_of)
        if rule is None:
            raise Blocked("there is no rule for it")
        results = _result_types(step)
        if name not in TAKE_COMPLEX and any(kind.is_complex for kind in (*results, *_tensor_types(arguments))):
            raise Blocked("no op computes it for complex numbers", "write it with separate real and imaginary parts")
        used = _used_results(step)
        for position, kind in enumerate(results):
            if position in used:
                require_supported(kind)
        return self._as_values(step, rule.translate(Call(name, arguments, results, used, self.graph)), results)

    def _arguments(self, step: Step) -> dict[str, Any]:
        """Return all arguments by name, including defaults."""
        if not isinstance(step.target, torch._ops.OpOverload):
            self.value_of(step.args)
            raise Blocked("it computes with Python numbers that depend on the data")
        arguments = {}
        for position, parameter in enumerate(step.target._schema.arguments):
            if position < len(step.args) and not parameter.kwarg_only:
                arguments[parameter.name] = self.value_of(step.args[position])
            elif parameter.name in step.kwargs:
                arguments[parameter.name] = self.value_of(step.kwargs[parameter.name])
            else:
                arguments[parameter.name] = parameter.default_value
        return arguments

    def _as_values(self, step: Step, output: Results, results: Sequence[Type]) -> Any:
        if not isinstance(output, Node | torch.Tensor | Value):
            outputs = [*output] + [None] * (len(results) - len(output))
            return [_as_value(one, kind) for one, kind in zip(outputs, results, strict=True)]
        value = _as_value(output, results[0])
        return [value] if isinstance(step.meta["val"], list | tuple) else value

    def _placeholders(self, step: Step) -> Any:
        """Return placeholder inputs for the results of an unsupported node. The import fails in the end."""
        if not isinstance(step.meta.get("val"), torch.Tensor | list | tuple):
            return None
        try:
            values: list[Value | None] = [Value(kind, self.graph.input()) for kind in _result_types(step)]
        except Blocked:
            return None
        return values if isinstance(step.meta["val"], list | tuple) else values[0]


def _as_value(output: Result, kind: Type) -> Value | None:
    if isinstance(output, Node):
        return Value(kind, output)
    return constant_of(output) if isinstance(output, torch.Tensor) else output


def _result_types(step: Step) -> list[Type]:
    results = step.meta.get("val")
    if not isinstance(results, list | tuple):
        results = [results]
    return [type_of(each) if isinstance(each, torch.Tensor) else Type("none", ()) for each in results]


def _tensor_types(arguments: dict[str, Any]) -> Iterator[Type]:
    """Yield the types of the tensors among arguments."""
    for argument in arguments.values():
        for each in argument if isinstance(argument, list) else [argument]:
            if isinstance(each, Value):
                yield each.type


def _used_results(step: Step) -> set[int]:
    """Return the positions of the results that other nodes read."""
    if not isinstance(step.meta.get("val"), list | tuple):
        return {0}
    return {int(user.args[1]) for user in step.users if user.target is operator.getitem and user.users}


def _map_results(results: Any, wrap: Callable[[Any], Value]) -> Any:
    return [wrap(one) for one in results] if isinstance(results, list | tuple) else wrap(results)


def _fold(target: Any, arguments: dict[str, Any]) -> Any:
    """Evaluate an op of constants."""
    positional, named = [], {}
    for parameter in target._schema.arguments:
        value = _unwrap(arguments[parameter.name])
        if parameter.kwarg_only:
            named[parameter.name] = value
        else:
            positional.append(value)
    if "device" in named:
        named["device"] = None
    with torch.no_grad():
        return target(*positional, **named)


def _unwrap(value: Any) -> Any:
    if isinstance(value, list):
        return [_unwrap(each) for each in value]
    return value.constant if isinstance(value, Value) else value


def unused_leaves(leaves: Sequence[str], used: Sequence[str]) -> Iterator[Note]:
    """Yield a note for each leaf of the module that no output needs."""
    for name in leaves:
        if name not in used:
            yield Note("leaf", name, 1, "no output needs it, so it is not a leaf of the graph")
