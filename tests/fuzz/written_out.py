"""Equivalent requests without functions: loops are unrolled, and branches selected by `where`.

A branch that is computed but not selected may be infinite, and turn other results into NaN. So such a request is no
reference where its own answer is not finite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from engine import OverBudget, Program, TensorType
from tests.fuzz.drawing import MAX_SIZE, Drawing
from tests.fuzz.graphs import Request
from tests.fuzz.shrink import renamed_fields
from tests.fuzz.values import Array

#: most nodes of an unrolled graph
MAX_NODES: Final = 600
#: the gradient of a fixed point differs from that of its steps, and a `derivative` may be arbitrary
_NOT_EQUIVALENT: Final = ("fixed_point",)


def unrolled(request: Request, program: Program, types: Mapping[int, TensorType]) -> Request | None:
    """The request without functions, with leaves of these types; None if it is too long, or not equivalent."""
    if not program.functions or any(_is_not_unrollable(part) for part in (program, *program.functions)):
        return None
    writing = _Unrolling(np.random.default_rng(0), "float64", "tame", MAX_SIZE)
    try:
        place = writing.program(program, types)
    except OverBudget:
        return None
    fields = {name: value for name, value in request.body.items() if name != "graph"}
    moved = renamed_fields(fields, place.__getitem__)
    return Request(request.call, {**moved, "graph": {"opset": program.opset, "nodes": writing.nodes}})


def _is_not_unrollable(part: Program) -> bool:
    return any(s.op.name in _NOT_EQUIVALENT or s.attrs.get("derivative") is not None for s in part.statements)


class _Unrolling(Drawing):
    """A drawing that unrolls functions. Raises OverBudget if there are too many nodes, or no steps."""

    def program(self, program: Program, types: Mapping[int, TensorType]) -> dict[int, int]:
        """Unroll a program, and return the new places of its nodes with one result."""
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
            if len(self.nodes) > MAX_NODES:
                raise OverBudget("there are too many steps to write out")
        return {i: nodes[0] for i, nodes in made.items() if len(nodes) == 1}

    def _run(self, body: Any, operands: Sequence[int]) -> list[int]:
        """The results of a body, whose operands are separate nodes, so that inner derivatives refer to them."""
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
            results = self._run(body, [*consts, *state, *entries])
            state = results[:carries]
            stacks.append(results[carries:])
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
