"""Requests without functions that ask the same: loops step by step, one function or the other by `where`.

What is computed and not chosen may be infinite, and make NaN of what it does not touch. So such a request is no judge
where its own answer is not finite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from engine import OverBudget, Program, TensorType
from tests.fuzz.drawing import MOST_OF_ONE, Drawing
from tests.fuzz.graphs import Request
from tests.fuzz.shrink import renamed_fields
from tests.fuzz.values import Array

#: nodes that are written at most
MOST: Final = 600
#: what a fixed point's gradients are is another limit than that of its steps'; `derivative` may say anything
_OTHERWISE: Final = ("fixed_point",)


def written_out(request: Request, program: Program, types: Mapping[int, TensorType]) -> Request | None:
    """The request without functions, whose leaves have these types; None where that is long, or not the same."""
    if not program.functions or any(_means_more(part) for part in (program, *program.functions)):
        return None
    writing = _Writing(np.random.default_rng(0), "float64", "tame", MOST_OF_ONE)
    try:
        place = writing.program(program, types)
    except OverBudget:
        return None
    fields = {name: value for name, value in request.body.items() if name != "graph"}
    moved = renamed_fields(fields, place.__getitem__)
    return Request(request.call, {**moved, "graph": {"opset": program.opset, "nodes": writing.nodes}})


def _means_more(part: Program) -> bool:
    return any(s.op.name in _OTHERWISE or s.attrs.get("derivative") is not None for s in part.statements)


class _Writing(Drawing):
    """Nodes, in whose places those of functions are written. Raises OverBudget where these are many, or no step is."""

    def program(self, program: Program, types: Mapping[int, TensorType]) -> dict[int, int]:
        """Write it; where its nodes of one result are."""
        leaves = {i: [self.input(types[i], program.statements[i].op.name)] for i in program.leaves if i in types}
        return self._statements(program, leaves)

    def _statements(self, program: Program, leaves: Mapping[int, list[int]]) -> dict[int, int]:
        made: dict[int, list[int]] = dict(leaves)
        for i, s in enumerate(program.statements):
            if i in made or s.op.is_leaf or not all(k in made for k in s.operands):
                continue
            read = [k for operand in s.operands for k in made[operand]]
            if s.op.name == "get_output" and program.statements[s.operands[0]].op.functions:
                made[i] = [self.add("identity", [read[s.attrs["index"]]], {})]
            elif s.op.functions:
                attrs: Any = {name: value for name, value in program.attrs[i].items() if value is not None}
                bodies = {name: program.functions[attrs.pop(name)] for name in s.op.functions if name in attrs}
                made[i] = getattr(self, f"_{s.op.name}")(read, **attrs, **bodies)
            else:
                made[i] = [self.add(s.op.name, read, s.attrs)]
            if len(self.nodes) > MOST:
                raise OverBudget("there are too many steps to write out")
        return {i: found[0] for i, found in made.items() if len(found) == 1}

    def _run(self, body: Any, operands: Sequence[int]) -> list[int]:
        """The results of a body, in which an operand is a node of its own: that derivatives inside are taken by."""
        own = [[self.add("identity", [k], {})] for k in operands]
        made = self._statements(body, dict(zip(body.leaves, own, strict=True)))
        return [made[i] for i in body.outputs]

    def _call(self, operands: Sequence[int], *, body: Any, **_: Any) -> list[int]:
        return self._run(body, operands)

    def _cond(self, operands: Sequence[int], *, then: Any, otherwise: Any) -> list[int]:
        predicate, *given = operands
        return self._picked(predicate, self._run(then, given), self._run(otherwise, given))

    def _picked(self, flag: int, yes: Sequence[int], no: Sequence[int]) -> list[int]:
        return [self.add("where", [flag, one, other], {}) for one, other in zip(yes, no, strict=True)]

    def _map(self, operands: Sequence[int], *, sequences: int, **attrs: Any) -> list[int]:
        return self._scan(operands, carries=0, sequences=sequences, **attrs)

    def _scan(
        self,
        operands: Sequence[int],
        *,
        body: Any,
        carries: int,
        sequences: int,
        length: int | None = None,
        reverse: bool = False,
        **_: Any,
    ) -> list[int]:
        consts, state, through = self._parts(operands, carries, sequences)
        length = self.shape(through[0])[0] if length is None else length
        stacks: list[list[int]] = []
        for t in range(length - 1, -1, -1) if reverse else range(length):
            entries = [self.add("select", [x], {"index": t, "axis": 0}) for x in through]
            found = self._run(body, [*consts, *state, *entries])
            state = found[:carries]
            stacks.append(found[carries:])
        if not length:
            raise OverBudget("of what no step says, nothing can be stacked")
        columns = zip(*(reversed(stacks) if reverse else stacks), strict=True)
        return [*state, *[self.add("stack", column, {"axis": 0}) for column in columns]]

    def _while(self, operands: Sequence[int], *, condition: Any, body: Any, carries: int, max_steps: int) -> list[int]:
        consts, state, _ = self._parts(operands, carries, 0)
        (on,) = self._run(condition, operands)
        steps = self._number(0)
        for _ in range(max_steps):
            steps = self.add("where", [on, self.add("add", [steps, self._number(1)], {}), steps], {})
            state = self._picked(on, self._run(body, [*consts, *state]), state)
            (goes_on,) = self._run(condition, [*consts, *state])
            on = self.add("logical_and", [on, goes_on], {})
        return [*state, steps, self.add("logical_not", [on], {})]

    def _number(self, value: int) -> int:
        array: Array = np.array(value)
        return self.add("constant", [], {"value": array})

    @staticmethod
    def _parts(operands: Sequence[int], carries: int, sequences: int) -> tuple[list[int], list[int], list[int]]:
        first, behind = len(operands) - carries - sequences, len(operands) - sequences
        return list(operands[:first]), list(operands[first:behind]), list(operands[behind:])
