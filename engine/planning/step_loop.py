"""Bodies of scans that are one kernel over elements: a recurrence, whose steps a compiled kernel runs by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from engine.functions.expansions import expand_functions, reports_range
from engine.graph.dtypes import real_dtype
from engine.graph.op import Array
from engine.graph.tensor_type import TensorType
from engine.loops.program import REDUCTIONS, Instruction, Level, LoopOperand, LoopResult, Space
from engine.loops.recurrence import Carry, Recurrence
from engine.oplib.element_formula import scalars_of
from engine.planning.fused import Fused
from engine.planning.plan import Plan, Step

#: elements that a kernel goes through all steps of: of more, stacks would be written far apart
MOST_STEP_ELEMENTS: Final = 4096


@dataclass(frozen=True, eq=False)
class StepLoop:
    """The body of a scan as a recurrence over a space; for each operand, which input of the body it is."""

    recurrence: Recurrence
    space: Space
    inputs: tuple[int, ...]

    @property
    def elements(self) -> int:
        """Number of elements of a step."""
        return self.space.length

    @property
    def reports_range(self) -> bool:
        """Whether its kernel tells that a step is out of range."""
        return reports_range(self.recurrence.loop)

    def entries(self, operands: Sequence[Array], results: Sequence[Array], carries: int, *, reverse: bool) -> list[int]:
        """Elements from one step to the next, of what the loop's operands and results are in those of the scan."""
        step = -1 if reverse else 1
        moving = [
            step * operands[fed][:1].size if n in self.recurrence.moving else 0 for n, fed in enumerate(self.inputs)
        ]
        return [*moving, *[step * array[:1].size if k >= carries else 0 for k, array in enumerate(results)]]

    @cached_property
    def expanded(self) -> Recurrence:
        """The recurrence as it is compiled, its functions written out."""
        return self.recurrence.ranged(expand_functions(self.recurrence.loop))


def step_loop(body: Plan, consts: int, carries: int) -> StepLoop | None:
    """The body of a scan, whose inputs are so many consts, then carries, then entries; None where it is more than one.

    A loop that reduces rows is none, nor is one of many elements.
    """
    loop = _only_loop(body)
    if loop is None:
        return None
    written = _Writer(body, loop)
    results = [written.result(k) for k in range(len(body.results))]
    if None in results or not written.is_of_elements(consts, carries):
        return None
    return written.step_loop([value for value in results if value is not None], consts, carries)


def _only_loop(body: Plan) -> Step | None:
    """The step that does all there is to do, where there is one, element by element."""
    loops = [step for step in body.steps if step.op.name != "get_output"]
    op = loops[0].op if len(loops) == 1 else None
    if not isinstance(op, Fused) or op.space.length > MOST_STEP_ELEMENTS:
        return None
    is_step = all(result.kind == "element" for result in op.loop.results) and not any(
        instruction.op in REDUCTIONS for instruction in op.loop.instructions
    )
    return loops[0] if is_step else None


class _Writer:
    """A body's loop as one of which the results are the body's."""

    def __init__(self, body: Plan, step: Step) -> None:
        assert isinstance(step.op, Fused)
        self._body, self._loop, space = body, step.op.loop, step.op.space
        self._space, self._type = space, step.types[0]
        # Those of bodies are fed by number.
        self._inputs: dict[int, Any] = {slot: feed for feed, slot in body.feeds.items()}
        self._computed: dict[int, int] = {
            view.result: self._loop.results[view.attrs["index"]].value for view in body.steps if view is not step
        }
        self._operands = [*self._loop.operands]
        self._strides = [*space.strides[: len(self._operands)]]
        self._element = space.strides[len(self._operands)]
        self._instructions = [*self._loop.instructions]
        #: of each operand, which input of the body it is; None: a value that is no input
        self._fed = [self._inputs.get(slot) for slot in step.operands]

    def result(self, k: int) -> int | None:
        """The number of the scalar that a result of the body is; None where there is none."""
        slot = self._body.results[k]
        if slot in self._computed:
            return self._computed[slot]
        return self._loaded(self._inputs[slot], self._body.result_types[k]) if slot in self._inputs else None

    def _loaded(self, fed: int, type: TensorType) -> int | None:
        """An input as it comes, which the loop may not have read."""
        if fed not in self._fed:
            if type.shape != self._type.shape or real_dtype(type.dtype).name not in (self._loop.dtype, "bool"):
                return None
            kind = scalars_of(type.dtype)
            self._instructions.append(Instruction("load", (), len(self._operands), kind, Level.ELEMENT))
            self._operands.append(LoopOperand(Level.ELEMENT, kind))
            self._strides.append(self._element)
            self._fed.append(fed)
        operand = self._fed.index(fed)
        found = (i for i, each in enumerate(self._instructions) if each.op == "load" and each.data == operand)
        return next(found) if self._operands[operand].level == Level.ELEMENT else None

    def is_of_elements(self, consts: int, carries: int) -> bool:
        """Whether all operands are inputs, and carries one value an element. One is read twice where shapes differ."""
        if None in self._fed or len({*self._fed}) < len(self._fed):
            return False
        moved = range(consts, consts + carries)
        return all(
            operand.level == Level.ELEMENT and strides == self._element
            for fed, operand, strides in zip(self._fed, self._operands, self._strides, strict=True)
            if fed in moved
        )

    def step_loop(self, results: Sequence[int], consts: int, carries: int) -> StepLoop:
        """The whole, of scalars that are the results."""
        loop = self._loop._replace(
            operands=tuple(self._operands),
            instructions=tuple(self._instructions),
            results=tuple(LoopResult("element", value) for value in results),
        )
        inputs = [fed for fed in self._fed if fed is not None]
        carried = tuple(Carry(inputs.index(consts + k), k) for k in range(carries) if consts + k in inputs)
        moving = tuple(n for n, fed in enumerate(inputs) if fed >= consts + carries)
        strides = (*self._strides, *[self._element] * len(results))
        return StepLoop(Recurrence(loop, carried, moving), self._space._replace(strides=strides), tuple(inputs))
