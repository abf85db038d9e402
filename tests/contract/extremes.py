"""Whole numbers at the ends of 64 bits in every attribute of every op: what each way to run it makes of them.

The numbers are powers of two, of which products with steps in bytes wrap around to 0. Each has a `stand_in` that is
small enough for any arithmetic, and leaves the same remainder by every extent that a sample has. An op that takes a
number makes of it what it makes of the one that stands in for it.

Kernels may end the process that they run in: `python -m tests.contract.extremes FIRST PART OP…` tries the numbers of a
part from the `FIRST` on, in a process of its own. It writes in a line of JSON what it begins with, and in another how
that ended.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from typing import Any, Final
from zlib import crc32

import numpy as np

from engine import (
    COTANGENTS,
    LATEST,
    NO_DEADLINE,
    NO_END,
    Call,
    EngineError,
    Gradients,
    Limits,
    Plan,
    Program,
    Statement,
    TensorType,
    Values,
    registry,
)
from engine.codegen.native.machine_code import KernelStore
from engine.compiler.compiler import CompileRequest, compile_call
from engine.compiler.fused_kernel import select_microkernels
from engine.compiler.plan import graph_of, make_plan
from engine.ir.attributes import make_attributes_key
from engine.ir.run_context import NO_LIMITS
from engine.runtime.numpy_backend import Kernels, NumPyExecutor
from engine.runtime.tiers import ExecutionTier
from tests.contract.cases import Array, Case, all_cases, has_rule
from tests.engine.ir.verified import verified
from tests.engine.printers import fused
from tests.sampling import part_of

POWERS: Final = (2**31, 2**57, 2**58, 2**61, 2**62)
NUMBERS: Final = (*POWERS, 2**63 - 1, *(-n for n in POWERS), 1 - 2**63, -(2**63))
#: those that two attributes have at once
TOGETHER: Final = (1, 2**57, 2**62)
#: errors of numbers that an op does not take
REFUSALS: Final = {"bad_attribute", "shape_mismatch", "over_budget", "too_many_nodes"}
DTYPES: Final = ("float64", "float32")
#: enough for all that stands in
LIMITS: Final = Limits(bytes=1 << 26, flops=1 << 28)
_KERNELS: Final = Kernels(KernelStore())
_STANDS_IN: Final = "what stands in"
#: ops of which no number does what its remainder does: of these, ways are compared alone
_BY_SIZE: Final = {"matrix_power"}


def stand_in(number: int) -> int:
    """A number of up to 20 bits with the same remainders by 8, 9, 5, 7 and their products; and twice it for twice it.

    The remainders of 2ᵏ by 315 come again after twelve. A small number stands for itself.
    """
    if number < 0:
        return -stand_in(-number)
    shift = 48 if number > 2**40 else 12 if number > 2**20 else 0
    return (number + 1 >> shift) - 1 if shift and number & 1 else number >> shift


@dataclass(frozen=True)
class Extreme:
    """A case with other numbers in one or two of its attributes: name and entry of each, and its number."""

    case: Case
    numbers: tuple[tuple[str, int, int], ...]

    def __str__(self) -> str:
        changed = ", ".join(f"{name}[{entry}]={number}" for name, entry, number in self.numbers)
        return f"{self.case} with {changed}"

    def asked(self, of: Callable[[int], int] = int) -> Asked:
        """The op on inputs, with `of` the numbers; of either width, in turn."""
        attrs = dict(_bound(self.case))
        for name, entry, number in self.numbers:
            attrs[name] = _replaced(attrs[name], entry, of(number))
        return Asked(self.case, attrs, tuple(self.case.arrays(DTYPES[crc32(str(self).encode()) % 2])))


@cache
def _bound(case: Case) -> Mapping[str, Any]:
    """All attributes, those that are absent as the op fills them in."""
    types = [TensorType.of(a) for a in case.arrays()]
    stated = case.program().attrs[len(types)]
    canonical = case.op.canonical(dict(stated), *types)
    return {name: canonical[name] if value is None else value for name, value in stated.items()}


def _replaced(value: Any, entry: int, number: int) -> Any:
    return number if isinstance(value, int) else [*(value or ())[:entry], number, *(value or ())[entry + 1 :]]


def extremes_in(which: str, names: Sequence[str]) -> list[Extreme]:
    """The sample: of each op, every number and pair of them once in each entry of each attribute; or the rest."""
    return part_of(which, extremes(names), lambda extreme: [(extreme.case.op.name, extreme.numbers)])


def extremes(names: Sequence[str]) -> Iterator[Extreme]:
    """Each number in each entry of each attribute; and two numbers in the same entry of any two lists.

    All of them in the first sample of an op; in the others, a third, in turn.
    """
    for case in all_cases():
        if case.op.name in names:
            places = list(_places(case))
            every = 3 if case.number else 1
            alone = [Extreme(case, ((*place, n),)) for place in places for n in NUMBERS]
            yield from alone[case.number % every :: every]
            lists = [(name, k) for name, k in places if case.op.attrs[name].kind == "ints"]
            pairs = [(a, b) for a, b in combinations(lists, 2) if a[1] == b[1]]
            both = list(product(TOGETHER, repeat=2))[case.number % every :: every]
            yield from (Extreme(case, ((*a, m), (*b, n))) for m, n in both for a, b in pairs)


def _places(case: Case) -> Iterator[tuple[str, int]]:
    """The whole numbers of all attributes; one at least in each."""
    for name, attr in case.op.attrs.items():
        if attr.kind in ("int", "ints"):
            value = _bound(case)[name]
            yield from ((name, k) for k in range(max(1, len(value or ())) if attr.kind == "ints" else 1))


def attributed() -> list[str]:
    """The ops that have whole numbers as attributes."""
    return list(dict.fromkeys(case.op.name for case in all_cases() if any(_places(case))))


@dataclass(frozen=True)
class Asked:
    """An op with its attributes and operands."""

    case: Case
    attrs: Mapping[str, Any]
    arrays: tuple[Array, ...]

    @property
    def node(self) -> int:
        """The op's."""
        return len(self.arrays)

    @property
    def types(self) -> dict[int, TensorType]:
        """Of the operands."""
        return {i: TensorType.of(a) for i, a in enumerate(self.arrays)}

    def program(self) -> Program:
        """Inputs, the op, and what it gives where that is several. Raises EngineError."""
        ops = registry().ops
        statements = [Statement(ops["input"])] * self.node
        statements.append(Statement(self.case.op, tuple(range(self.node)), self.attrs))
        program = Program(registry(), statements, opset=LATEST)
        if self.case.op.several:
            builder, values = program.build(self.types, [self.node])
            results = range(len(builder.nodes[values[self.node].index].types))
            statements += [Statement(ops["get_output"], (self.node,), {"index": k}) for k in results]
            program = Program(registry(), statements, opset=LATEST)
        return program

    def nodes(self) -> tuple[object, ...]:
        """The typed graph, so that it can be told from others. Raises EngineError."""
        builder, _ = self.program().build(self.types, [self.node])
        return tuple(
            (n.op.name, n.operands, () if n.is_leaf else make_attributes_key(n.attrs), n.types) for n in builder.nodes
        )

    def refusal(self) -> str | None:
        """The code of the error that values are refused with, if they are."""
        try:
            program = self.program()
            self._plan(program, Values(self._outputs(program)))
        except EngineError as error:
            return self._refused(error)
        return None

    def _outputs(self, program: Program) -> tuple[int, ...]:
        return tuple(range(self.node + 1, len(program.statements))) or (self.node,)

    def results(self, run: Callable[[Plan, Mapping[Any, Array]], Sequence[Array]]) -> Results:
        """Values, and gradients of the first float result; of each the error, where it is refused."""
        try:
            program = self.program()
            outputs = self._outputs(program)
            plan, feeds = self._plan(program, Values(outputs)), dict(enumerate(self.arrays))
            values = list(run(plan, feeds))
        except EngineError as error:
            return Results(self._refused(error), None)
        of = next((n for n, y in zip(outputs, values, strict=True) if y.dtype.kind == "f"), None)
        if of is None or not has_rule(self.case):
            return Results(values, None)
        seed = values[outputs.index(of)].copy()
        wrt = tuple(i for i, a in enumerate(self.arrays) if a.dtype.kind == "f")
        try:
            plan = self._plan(program, Gradients((), of, wrt, TensorType.of(seed)))
            return Results(values, list(run(plan, {**feeds, (COTANGENTS, of): seed})))
        except EngineError as error:
            return Results(values, self._refused(error))

    def _plan(self, program: Program, call: Call) -> Plan:
        return compile_call(CompileRequest(program, self.types, call, LIMITS, kernel_threads=0)).plan

    def _refused(self, error: EngineError) -> str:
        """Its code. It names the node, unless it is about the peak of the whole plan."""
        assert error.node == self.node or error.code == "over_budget", f"{error} names node {error.node}"
        return error.code


#: results or the code of an error; None where nothing was asked
Outcome = list[Array] | str | None


@dataclass(frozen=True)
class Results:
    """What came of values and gradients."""

    values: Outcome
    gradients: Outcome


def by_numpy(plan: Plan, feeds: Mapping[Any, Array]) -> Sequence[Array]:
    """Node by node."""
    return NumPyExecutor().run(plan, feeds)


def by_blocks(plan: Plan, feeds: Mapping[Any, Array]) -> Sequence[Array]:
    """Fused, block by block."""
    return _run(ExecutionTier(fused(plan, "numpy"), _KERNELS.uncompiled_binder), feeds)


def by_kernels(plan: Plan, feeds: Mapping[Any, Array]) -> Sequence[Array]:
    """With all compiled that can be, however much memory that takes."""
    graph = select_microkernels(graph_of(fused(plan, "llvm"), registry()), NO_END, 1)
    instead = make_plan(graph, NO_LIMITS)
    binder = _KERNELS.compile(instead)
    assert binder is not None
    return _run(ExecutionTier(instead, binder), feeds)


def _run(tier: ExecutionTier, feeds: Mapping[Any, Array]) -> Sequence[Array]:
    return NumPyExecutor()._run_prepared(tier, {key: feeds[key] for key in tier.plan.feeds}, NO_DEADLINE)


WAYS: Final = {"blocks": by_blocks, "kernels": by_kernels}


def tried(extreme: Extreme, known: set[object]) -> Iterator[str]:
    """What is wrong with an op's results; nothing where they were seen before for the same typed graph."""
    asked, small = extreme.asked(), extreme.asked(stand_in)
    refusal = asked.refusal()
    if refusal is not None:
        wanted = None if refusal == "over_budget" else small.refusal()
        yield from _compared(Results(refusal, None), Results(wanted, None), ("itself", _STANDS_IN))
        return
    nodes = extreme.case, asked.nodes()
    if nodes not in known:
        known.add(nodes)
        found = asked.results(by_numpy)
        if extreme.case.op.name not in _BY_SIZE:
            yield from _compared(found, small.results(by_numpy), ("itself", _STANDS_IN))
        for name, way in WAYS.items():
            yield from _compared(asked.results(way), found, (name, "NumPy"))


def _compared(found: Results, wanted: Results, ways: tuple[str, str]) -> Iterator[str]:
    """What differs by two ways. A number may be over a budget that the one which stands in for it is not."""
    for what in ("values", "gradients"):
        ours, theirs = getattr(found, what), getattr(wanted, what)
        excused = ways[1] == _STANDS_IN and (ours == "over_budget" or ours is None)
        if isinstance(ours, str) and ours not in REFUSALS:
            yield f"{what} are refused as {ours}"
        elif not excused and not _alike(ours, theirs):
            yield f"{what} by {ways[0]} are {_shown(ours)}, and by {ways[1]} {_shown(theirs)}"


def _alike(one: Outcome, other: Outcome) -> bool:
    if not isinstance(one, list) or not isinstance(other, list):
        return one is other or (isinstance(one, str) and one == other)
    same_types = [TensorType.of(a) for a in one] == [TensorType.of(a) for a in other]
    return same_types and all(np.allclose(a, b, 1e-4, 1e-5, equal_nan=True) for a, b in zip(one, other, strict=True))


def _shown(outcome: Outcome) -> str:
    if not isinstance(outcome, list):
        return str(outcome)
    return ", ".join(f"{TensorType.of(a)} {a.ravel()[:6].tolist()}" for a in outcome)


def main(first: str, which: str, *names: str) -> None:
    """Try what is there, and say so."""
    known: set[object] = set()
    with verified():
        for number, extreme in enumerate(extremes_in(which, names)):
            if number >= int(first):
                _say({"number": number, "begun": str(extreme)})
                _say({"wrong": list(tried(extreme, known))})


def _say(line: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
