"""Extreme 64-bit integers in every attribute of every op, compared across backends.

The numbers are powers of two, whose products with strides in bytes wrap around to 0. Each has a `stand_in` that is
small enough for any arithmetic and has the same remainder modulo every extent of the samples. An op that accepts a
number must give the same result for its stand-in.

Kernels may crash the process: `python -m tests.contract.extremes FIRST PART OP…` tries the numbers of a part from
number `FIRST` on, in a separate process. It prints a line of JSON before each number, and another with the result.
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
#: numbers for two attributes at once
PAIR_NUMBERS: Final = (1, 2**57, 2**62)
#: error codes for numbers that an op does not accept
REFUSALS: Final = {"bad_attribute", "shape_mismatch", "over_budget", "too_many_nodes"}
DTYPES: Final = ("float64", "float32")
#: enough for all stand-ins
LIMITS: Final = Limits(bytes=1 << 26, flops=1 << 28)
_KERNELS: Final = Kernels(KernelStore())
_STAND_IN_NAME: Final = "its stand-in"
#: ops whose result depends on the size of the number: only the backends are compared
_BY_SIZE: Final = {"matrix_power"}


def stand_in(number: int) -> int:
    """Return a number of up to 20 bits with the same remainders modulo 8, 9, 5, 7 and their products.

    The stand-in of 2n is twice the stand-in of n. The remainders of 2ᵏ modulo 315 have period 12. A small number is
    its own stand-in.
    """
    if number < 0:
        return -stand_in(-number)
    shift = 48 if number > 2**40 else 12 if number > 2**20 else 0
    return (number + 1 >> shift) - 1 if shift and number & 1 else number >> shift


@dataclass(frozen=True)
class Extreme:
    """Case with other numbers in one or two attribute entries: attribute name, entry and number of each."""

    case: Case
    numbers: tuple[tuple[str, int, int], ...]

    def __str__(self) -> str:
        changed = ", ".join(f"{name}[{entry}]={number}" for name, entry, number in self.numbers)
        return f"{self.case} with {changed}"

    def instance(self, substitute: Callable[[int], int] = int) -> OpInstance:
        """Return the op with `substitute` of the numbers, with float64 or float32 operands."""
        attrs = dict(_filled_attributes(self.case))
        for name, entry, number in self.numbers:
            attrs[name] = _replace_entry(attrs[name], entry, substitute(number))
        return OpInstance(self.case, attrs, tuple(self.case.arrays(DTYPES[crc32(str(self).encode()) % 2])))


@cache
def _filled_attributes(case: Case) -> Mapping[str, Any]:
    """Return all attributes, with the defaults of absent ones."""
    types = [TensorType.of(a) for a in case.arrays()]
    stated = case.program().attrs[len(types)]
    canonical = case.op.canonical(dict(stated), *types)
    return {name: canonical[name] if value is None else value for name, value in stated.items()}


def _replace_entry(value: Any, entry: int, number: int) -> Any:
    return number if isinstance(value, int) else [*(value or ())[:entry], number, *(value or ())[entry + 1 :]]


def extremes_in(part: str, names: Sequence[str]) -> list[Extreme]:
    """Return the sample, which has every number and pair of numbers once for each op, or the rest."""
    return part_of(part, extremes(names), lambda extreme: [(extreme.case.op.name, extreme.numbers)])


def extremes(names: Sequence[str]) -> Iterator[Extreme]:
    """Yield each number in each attribute entry, and two numbers in the same entry of any two lists.

    The first sample of an op gets all of them, the other samples a third each.
    """
    for case in all_cases():
        if case.op.name in names:
            places = list(_integer_entries(case))
            every = 3 if case.number else 1
            single = [Extreme(case, ((*place, n),)) for place in places for n in NUMBERS]
            yield from single[case.number % every :: every]
            lists = [(name, k) for name, k in places if case.op.attrs[name].kind == "ints"]
            pairs = [(a, b) for a, b in combinations(lists, 2) if a[1] == b[1]]
            number_pairs = list(product(PAIR_NUMBERS, repeat=2))[case.number % every :: every]
            yield from (Extreme(case, ((*a, m), (*b, n))) for m, n in number_pairs for a, b in pairs)


def _integer_entries(case: Case) -> Iterator[tuple[str, int]]:
    """Yield the integer entries of all attributes, at least one for each integer attribute."""
    for name, attr in case.op.attrs.items():
        if attr.kind in ("int", "ints"):
            value = _filled_attributes(case)[name]
            yield from ((name, k) for k in range(max(1, len(value or ())) if attr.kind == "ints" else 1))


def ops_with_integer_attributes() -> list[str]:
    """Return the ops that have integer attributes."""
    return list(dict.fromkeys(case.op.name for case in all_cases() if any(_integer_entries(case))))


@dataclass(frozen=True)
class OpInstance:
    """Op with its attributes and operands."""

    case: Case
    attrs: Mapping[str, Any]
    arrays: tuple[Array, ...]

    @property
    def node(self) -> int:
        """Return the node of the op."""
        return len(self.arrays)

    @property
    def types(self) -> dict[int, TensorType]:
        """Return the types of the operands."""
        return {i: TensorType.of(a) for i, a in enumerate(self.arrays)}

    def program(self) -> Program:
        """Return the inputs, the op, and a `get_output` for each of several results. Raises EngineError."""
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
        """Return a key of the typed graph. Raises EngineError."""
        builder, _ = self.program().build(self.types, [self.node])
        return tuple(
            (n.op.name, n.operands, () if n.is_leaf else make_attributes_key(n.attrs), n.types) for n in builder.nodes
        )

    def refusal(self) -> str | None:
        """Return the error code if the op is rejected, else None."""
        try:
            program = self.program()
            self._plan(program, Values(self._outputs(program)))
        except EngineError as error:
            return self._refused(error)
        return None

    def _outputs(self, program: Program) -> tuple[int, ...]:
        return tuple(range(self.node + 1, len(program.statements))) or (self.node,)

    def results(self, run: Callable[[Plan, Mapping[Any, Array]], Sequence[Array]]) -> Results:
        """Return values and gradients of the first float result, or the error code of each."""
        try:
            program = self.program()
            outputs = self._outputs(program)
            plan, feeds = self._plan(program, Values(outputs)), dict(enumerate(self.arrays))
            values = list(run(plan, feeds))
        except EngineError as error:
            return Results(self._refused(error), None)
        target = next((n for n, y in zip(outputs, values, strict=True) if y.dtype.kind == "f"), None)
        if target is None or not has_rule(self.case):
            return Results(values, None)
        seed = values[outputs.index(target)].copy()
        wrt = tuple(i for i, a in enumerate(self.arrays) if a.dtype.kind == "f")
        try:
            plan = self._plan(program, Gradients((), target, wrt, TensorType.of(seed)))
            return Results(values, list(run(plan, {**feeds, (COTANGENTS, target): seed})))
        except EngineError as error:
            return Results(values, self._refused(error))

    def _plan(self, program: Program, call: Call) -> Plan:
        return compile_call(CompileRequest(program, self.types, call, LIMITS, kernel_threads=0)).plan

    def _refused(self, error: EngineError) -> str:
        """Return the error code, after checking that the error names the node unless it is `over_budget`."""
        assert error.node == self.node or error.code == "over_budget", f"{error} names node {error.node}"
        return error.code


#: results, an error code, or None if nothing was computed
Outcome = list[Array] | str | None


@dataclass(frozen=True)
class Results:
    """Outcomes of values and gradients."""

    values: Outcome
    gradients: Outcome


def by_numpy(plan: Plan, feeds: Mapping[Any, Array]) -> Sequence[Array]:
    """Run node by node."""
    return NumPyExecutor().run(plan, feeds)


def by_blocks(plan: Plan, feeds: Mapping[Any, Array]) -> Sequence[Array]:
    """Run fused kernels in NumPy blocks."""
    return _run(ExecutionTier(fused(plan, "numpy"), _KERNELS.uncompiled_binder), feeds)


def by_kernels(plan: Plan, feeds: Mapping[Any, Array]) -> Sequence[Array]:
    """Run with everything compiled that can be, without a memory limit."""
    graph = select_microkernels(graph_of(fused(plan, "llvm"), registry()), NO_END, 1)
    instead = make_plan(graph, NO_LIMITS)
    binder = _KERNELS.compile(instead)
    assert binder is not None
    return _run(ExecutionTier(instead, binder), feeds)


def _run(tier: ExecutionTier, feeds: Mapping[Any, Array]) -> Sequence[Array]:
    return NumPyExecutor()._run_prepared(tier, {key: feeds[key] for key in tier.plan.feeds}, NO_DEADLINE)


BACKENDS: Final = {"blocks": by_blocks, "kernels": by_kernels}


def mismatches(extreme: Extreme, known: set[object]) -> Iterator[str]:
    """Yield the mismatches of an op's results, unless the same typed graph was checked before."""
    instance, small = extreme.instance(), extreme.instance(stand_in)
    refusal = instance.refusal()
    if refusal is not None:
        expected = None if refusal == "over_budget" else small.refusal()
        yield from _differences(Results(refusal, None), Results(expected, None), ("itself", _STAND_IN_NAME))
        return
    nodes = extreme.case, instance.nodes()
    if nodes not in known:
        known.add(nodes)
        actual = instance.results(by_numpy)
        if extreme.case.op.name not in _BY_SIZE:
            yield from _differences(actual, small.results(by_numpy), ("itself", _STAND_IN_NAME))
        for name, run in BACKENDS.items():
            yield from _differences(instance.results(run), actual, (name, "NumPy"))


def _differences(actual: Results, expected: Results, names: tuple[str, str]) -> Iterator[str]:
    """Yield the differences of two results. A number may exceed a budget that its stand-in does not."""
    for kind in ("values", "gradients"):
        ours, theirs = getattr(actual, kind), getattr(expected, kind)
        excused = names[1] == _STAND_IN_NAME and (ours == "over_budget" or ours is None)
        if isinstance(ours, str) and ours not in REFUSALS:
            yield f"{kind} are refused as {ours}"
        elif not excused and not _equal_outcomes(ours, theirs):
            yield f"{kind} by {names[0]} are {_summary(ours)}, and by {names[1]} {_summary(theirs)}"


def _equal_outcomes(one: Outcome, other: Outcome) -> bool:
    if not isinstance(one, list) or not isinstance(other, list):
        return one is other or (isinstance(one, str) and one == other)
    same_types = [TensorType.of(a) for a in one] == [TensorType.of(a) for a in other]
    return same_types and all(np.allclose(a, b, 1e-4, 1e-5, equal_nan=True) for a, b in zip(one, other, strict=True))


def _summary(outcome: Outcome) -> str:
    if not isinstance(outcome, list):
        return str(outcome)
    return ", ".join(f"{TensorType.of(a)} {a.ravel()[:6].tolist()}" for a in outcome)


def main(first: str, part: str, *names: str) -> None:
    """Try the extremes of a part and print the results."""
    known: set[object] = set()
    with verified():
        for number, extreme in enumerate(extremes_in(part, names)):
            if number >= int(first):
                _print_line({"number": number, "begun": str(extreme)})
                _print_line({"wrong": list(mismatches(extreme, known))})


def _print_line(line: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
