"""The walk over the nodes of a program: what is constant is folded, rules say the rest."""

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
from gradserve_client.torch.call import Call, Result, Said
from gradserve_client.torch.families.complex_numbers import TAKE_COMPLEX
from gradserve_client.torch.places import place_of
from gradserve_client.torch.rules import RULES, refusal_of
from gradserve_client.torch.values import Type, Unknown, Value, constant_of, require_sendable, type_of

#: nodes that say no op
_LEAVES: Final = ("constant", "input", "parameter")
#: what only checks, and gives nothing; a check of data is noted
_CHECKS: Final = ("_assert_tensor_metadata", "_assert_scalar", "sym_constrain_range", "sym_constrain_range_for_size")
_DATA_CHECKS: Final = ("_assert_async", "_assert_async.msg", "_functional_assert_async.msg")
_UNCHECKED: Final = "what it asserts of the data is not looked at by the graph"
_HIGHER: Final = (
    "it runs functions of its own, of which torch.export makes no nodes",
    "write the loop or the choice out, with torch.where",
)


def name_of(target: Any) -> str:
    """An overload as the table of rules has it: without PyTorch's own namespace, and without `default`."""
    return str(target).removeprefix("aten.").removesuffix(".default")


class Translator:
    """Says the nodes of one program. What it cannot say is in `obstacles`, what it said in `tally`."""

    def __init__(self, graph: SourceGraph, obstacles: Obstacles, budget: Budget) -> None:
        self.graph = graph
        self.obstacles = obstacles
        self.tally = Tally()
        self.remarks: list[Note] = []
        self._budget = budget
        self._values: dict[Step, Any] = {}

    def give(self, step: Step, value: Value | None) -> None:
        """Say what a placeholder of the program is."""
        self._values[step] = value

    def walk(self, program: Graph) -> None:
        """Say all nodes that call something."""
        for step in program.nodes:
            if step.op == "call_function":
                try:
                    self._values[step] = self._said(step)
                except Unknown:
                    self._values[step] = None

    def value_of(self, stated: Any) -> Any:
        """What an argument of a node is, with values for nodes. Raises Unknown where one has none."""
        if isinstance(stated, Step):
            value = self._values.get(stated)
            if value is None:
                raise Unknown(stated.name)
            return value
        if isinstance(stated, list | tuple):
            return [self.value_of(each) for each in stated]
        return stated

    def _said(self, step: Step) -> Any:
        if step.target is operator.getitem:
            several, place = step.args
            return self.value_of(several)[place]
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
            return self._by_rule(step, name)
        except Blocked as blocked:
            self.obstacles.meet(name, place_of(step), blocked)
            return self._instead(step)
        finally:
            if not step.all_input_nodes or not self._is_constant(step):
                self.tally.count(name, self._said_since(before))

    def _said_since(self, before: int) -> list[str]:
        ops = (self.graph.find(i).op for i in range(before, len(self.graph)))
        return [op for op in ops if op not in _LEAVES]

    def _is_constant(self, step: Step) -> bool:
        """Whether all that it reads is known, so that it is folded."""
        given = (self._values.get(each) for each in step.all_input_nodes)
        values = [each for one in given for each in (one if isinstance(one, list) else [one])]
        return all(isinstance(each, Value) and each.constant is not None for each in values)

    def _by_rule(self, step: Step, name: str) -> Any:
        if isinstance(step.target, torch._ops.HigherOrderOperator):
            raise Blocked(*_HIGHER)
        if name.startswith("sym_"):
            self.value_of(step.args)  # of what is unknown, sizes are, too
        refused = refusal_of(name)
        if refused is not None:
            raise refused
        arguments = self._arguments(step)
        rule = RULES.find(name)
        if self._is_constant(step) and (rule is None or step.all_input_nodes):
            return _each(_folded(step.target, arguments), constant_of)
        if rule is None:
            raise Blocked("there is no rule for it")
        results = _types(step)
        if name not in TAKE_COMPLEX and any(kind.is_complex for kind in (*results, *_read(arguments))):
            raise Blocked("no op computes it of complex numbers", "write real and imaginary parts apart")
        asked = _asked(step)
        for place, kind in enumerate(results):
            if place in asked:
                require_sendable(kind)
        return self._wrapped(step, rule.say(Call(name, arguments, results, asked, self.graph)), results)

    def _arguments(self, step: Step) -> dict[str, Any]:
        """All arguments by name, those that are not stated by their defaults."""
        if not isinstance(step.target, torch._ops.OpOverload):
            self.value_of(step.args)
            raise Blocked("it computes with numbers that come from the data")
        found = {}
        for place, stated in enumerate(step.target._schema.arguments):
            if place < len(step.args) and not stated.kwarg_only:
                found[stated.name] = self.value_of(step.args[place])
            elif stated.name in step.kwargs:
                found[stated.name] = self.value_of(step.kwargs[stated.name])
            else:
                found[stated.name] = stated.default_value
        return found

    def _wrapped(self, step: Step, said: Said, results: Sequence[Type]) -> Any:
        if not isinstance(said, Node | torch.Tensor | Value):
            each = [*said] + [None] * (len(results) - len(said))
            return [_value(one, kind) for one, kind in zip(each, results, strict=True)]
        value = _value(said, results[0])
        return [value] if isinstance(step.meta["val"], list | tuple) else value

    def _instead(self, step: Step) -> Any:
        """Results that stand in for those of a node that cannot be said, to go on with: nobody gets to see them."""
        if not isinstance(step.meta.get("val"), torch.Tensor | list | tuple):
            return None
        try:
            values: list[Value | None] = [Value(kind, self.graph.input()) for kind in _types(step)]
        except Blocked:
            return None
        return values if isinstance(step.meta["val"], list | tuple) else values[0]


def _value(said: Result, kind: Type) -> Value | None:
    if isinstance(said, Node):
        return Value(kind, said)
    return constant_of(said) if isinstance(said, torch.Tensor) else said


def _types(step: Step) -> list[Type]:
    found = step.meta.get("val")
    if not isinstance(found, list | tuple):
        found = [found]
    return [type_of(each) if isinstance(each, torch.Tensor) else Type("none", ()) for each in found]


def _read(arguments: dict[str, Any]) -> Iterator[Type]:
    """The types of the tensors among arguments."""
    for stated in arguments.values():
        for each in stated if isinstance(stated, list) else [stated]:
            if isinstance(each, Value):
                yield each.type


def _asked(step: Step) -> set[int]:
    """The places of the results that are read."""
    if not isinstance(step.meta.get("val"), list | tuple):
        return {0}
    return {int(user.args[1]) for user in step.users if user.target is operator.getitem and user.users}


def _each(found: Any, wrap: Callable[[Any], Value]) -> Any:
    return [wrap(one) for one in found] if isinstance(found, list | tuple) else wrap(found)


def _folded(target: Any, arguments: dict[str, Any]) -> Any:
    """What an op gives of constants."""
    positional, named = [], {}
    for stated in target._schema.arguments:
        value = _tensors(arguments[stated.name])
        if stated.kwarg_only:
            named[stated.name] = value
        else:
            positional.append(value)
    if "device" in named:
        named["device"] = None
    with torch.no_grad():
        return target(*positional, **named)


def _tensors(value: Any) -> Any:
    if isinstance(value, list):
        return [_tensors(each) for each in value]
    return value.constant if isinstance(value, Value) else value


def unread(leaves: Sequence[str], kept: Sequence[str]) -> Iterator[Note]:
    """A note for each leaf of the module that no output needs."""
    for name in leaves:
        if name not in kept:
            yield Note("leaf", name, 1, "no output needs it, so it is no leaf of the graph")
